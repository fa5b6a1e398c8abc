// Parses lines of the InfluxDB line protocol.

export interface InfluxLine {
  readonly measurement: string
  /** Undefined without a comma after the measurement. */
  readonly tags: readonly (readonly [string, string])[] | undefined
  readonly fields: readonly (readonly [string, number | boolean | string])[]
  /** Nanoseconds since the epoch. */
  readonly timestamp: bigint | undefined
}

/** The lines of a text; a sentence if one has another format. */
export function parseInfluxLines(text: string): InfluxLine[] | string {
  const lines: InfluxLine[] = []
  for (const line of text.split('\n')) {
    const start = line.replace(/^[ \t]+/, '')
    if (start === '' || start.startsWith('#')) continue
    const parsed = parseLine(start)
    if (typeof parsed === 'string') return parsed
    lines.push(parsed)
  }
  return lines
}

const quotedValue = /"((?:[^"\\]|\\.)*)"/sy
const number = /-?\d+i|\d+u|-?(?:\d+\.)?\d+[eE][+-]?\d+|-?\d+(?:\.\d+)?/y
const yesOrNo = /true|True|TRUE|t|T|false|False|FALSE|f|F/y
/** A timestamp, with blanks around it, that ends the line. */
const ending = /(?: +(-?\d+) *)?$/y

function parseLine(line: string): InfluxLine | string {
  let at = 0
  /** Reads text up to one of these characters. A backslash makes them part of it, and stays in front of others. */
  const until = (stops: string, escapable: string): string => {
    let text = ''
    while (at < line.length && !stops.includes(line[at] as string)) {
      if (line[at] === '\\' && at + 1 < line.length) {
        if (!escapable.includes(line[at + 1] as string)) text += '\\'
        at++
      }
      text += line[at++]
    }
    return text
  }
  const measurement = until(', \t', ', \\')
  if (measurement === '' || measurement.endsWith('\\')) return 'the measurement is missing'
  let tags: [string, string][] | undefined
  while (line[at] === ',') {
    at++
    // A comma without a tag may end the measurement.
    if (tags === undefined && line[at] === ' ') {
      tags = []
      break
    }
    const key = until('= \t', ', =\\')
    if (key === '' || line[at] !== '=') return `the tag ${key} has no value`
    at++
    const value = until(', \t', ', =\\')
    if (value === '' || value.endsWith('\\')) return `the tag ${key} has no value`
    tags ??= []
    tags.push([key, value])
  }
  if (line[at] !== ' ') return 'the fields are missing'
  while (line[at] === ' ') at++
  const fields: [string, number | boolean | string][] = []
  for (;;) {
    const key = until('= \t', ', =\\')
    if (key === '' || line[at] !== '=') return `the field ${key} has no value`
    at++
    const pattern = line[at] === '"' ? quotedValue : /[-\d]/.test(line[at] ?? '') ? number : yesOrNo
    pattern.lastIndex = at
    const match = pattern.exec(line)
    const value = match === null ? undefined : (match[1] ?? scalar(match[0]))
    if (value === undefined) return `the value of the field ${key} is not valid`
    fields.push([key, value])
    at = pattern.lastIndex
    if (line[at] !== ',') break
    at++
  }
  ending.lastIndex = at
  const end = ending.exec(line)
  const timestamp = end?.[1] === undefined ? undefined : BigInt(end[1])
  if (end === null || (timestamp !== undefined && BigInt.asIntN(64, timestamp) !== timestamp)) {
    return `the end of the line ${JSON.stringify(line.slice(at))} is not a timestamp`
  }
  return { measurement, tags, fields, timestamp }
}

/** The value of a number or a boolean; undefined for an integer that does not fit. */
function scalar(text: string): number | boolean | undefined {
  if (/^[tT]/.test(text)) return true
  if (/^[fF]/.test(text)) return false
  if (!/[iu]$/.test(text)) return Number(text)
  const whole = BigInt(text.slice(0, -1))
  const fits = text.endsWith('i') ? BigInt.asIntN(64, whole) : BigInt.asUintN(64, whole)
  return fits === whole ? Number(whole) : undefined
}
