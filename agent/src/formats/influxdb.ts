// Parses lines of the InfluxDB line protocol.

export interface InfluxLine {
  readonly measurement: string
  readonly tags: readonly (readonly [string, string])[]
  readonly fields: readonly (readonly [string, number | boolean | string])[]
  /** Nanoseconds since the epoch. */
  readonly timestamp: bigint | undefined
}

/** The lines of a text; a sentence if one has another format. */
export function parseInfluxLines(text: string): InfluxLine[] | string {
  const lines: InfluxLine[] = []
  for (const line of text.split('\n')) {
    const trimmed = line.replace(/\r$/, '')
    if (/^\s*(#|$)/.test(trimmed)) continue
    const parsed = parseLine(trimmed.trim())
    if (typeof parsed === 'string') return parsed
    lines.push(parsed)
  }
  return lines
}

const quotedValue = /"((?:[^"\\]|\\.)*)"/sy

function parseLine(line: string): InfluxLine | string {
  let at = 0
  /** Reads text up to one of these characters, unless it is escaped. */
  const until = (stops: string): string => {
    let text = ''
    while (at < line.length && !stops.includes(line[at] as string)) {
      if (line[at] === '\\' && at + 1 < line.length && ', ='.includes(line[at + 1] as string)) at++
      text += line[at++]
    }
    return text
  }
  const measurement = until(', ')
  if (measurement === '') return 'the measurement is missing'
  const tags: [string, string][] = []
  while (line[at] === ',') {
    at++
    const key = until('=, ')
    if (key === '' || line[at] !== '=') return `the tag ${key} has no value`
    at++
    const value = until(', ')
    if (value === '') return `the tag ${key} has no value`
    tags.push([key, value])
  }
  if (line[at] !== ' ') return 'the fields are missing'
  while (line[at] === ' ') at++
  const fields: [string, number | boolean | string][] = []
  for (;;) {
    const key = until('=, ')
    if (key === '' || line[at] !== '=') return `the field ${key} has no value`
    at++
    if (line[at] === '"') {
      quotedValue.lastIndex = at
      const match = quotedValue.exec(line)
      if (match === null) return `the text of the field ${key} does not end`
      fields.push([key, match[1] as string])
      at = quotedValue.lastIndex
    } else {
      const value = scalar(until(', '))
      if (value === undefined) return `the value of the field ${key} is not valid`
      fields.push([key, value])
    }
    if (line[at] !== ',') break
    at++
  }
  const rest = line.slice(at).trim()
  if (rest !== '' && !/^-?\d{1,19}$/.test(rest)) return `the timestamp ${rest} is not valid`
  return { measurement, tags, fields, timestamp: rest === '' ? undefined : BigInt(rest) }
}

function scalar(text: string): number | boolean | undefined {
  if (/^(t|T|true|True|TRUE)$/.test(text)) return true
  if (/^(f|F|false|False|FALSE)$/.test(text)) return false
  if (/^-?\d+i$/.test(text) || /^\d+u$/.test(text)) return Number(text.slice(0, -1))
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined
}
