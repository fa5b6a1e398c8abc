// Converts Go regular expressions (RE2) to literals of the remap language, which uses Rust's dialect. The dialects differ in the meaning of
// `\d`, `\w`, `\s` and `\b` (ASCII only in Go), of unpaired braces and of brackets in a class, and in some escapes.

/** A pattern, or the reason why it cannot be converted. */
export type Translated = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }

/** Go's shorthands, written as the content of a class. */
const shorthands: Readonly<Record<string, string>> = {
  d: '0-9',
  w: '0-9A-Za-z_',
  s: '\\t\\n\\f\\r\\x20',
}
const kept = new Set([...'nrtfvaAz'])
const special = new Set([...'\\.+*?()|[]{}^$#&-~'])

/** Escapes one character. A quote would end the literal. */
function plain(char: string): string {
  if (char === "'") return '\\x27'
  if (char === '\n') return '\\n'
  if (char === '\r') return '\\r'
  return special.has(char) ? `\\${char}` : char
}

class Translator {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  run(): string {
    let out = ''
    while (this.#at < this.#text.length) out += this.#next()
    return out
  }

  #nextChar(): string {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at) as number)
    this.#at += char.length
    return char
  }

  #next(): string {
    const char = this.#nextChar()
    if (char === '\\') return this.#escape(false)
    if (char === '[') return this.#class()
    if (char === '{') return this.#isRepetition() ? char : '\\{'
    if (char === '}') return this.#closesRepetition() ? char : '\\}'
    if (char === "'" || char === '\n' || char === '\r') return plain(char)
    return char
  }

  /** Whether the brace just read begins `{2}`, `{2,}` or `{2,3}`. Go reads any other brace as text. */
  #isRepetition(): boolean {
    return /^\d+(?:,\d*)?\}/.test(this.#text.slice(this.#at, this.#at + 20))
  }

  #closesRepetition(): boolean {
    const before = this.#text.slice(Math.max(0, this.#at - 20), this.#at)
    return /\{\d+(?:,\d*)?\}$/.test(before) && !/\\\{\d+(?:,\d*)?\}$/.test(before)
  }

  #escape(inClass: boolean): string {
    if (this.#at >= this.#text.length) throw new Error('the pattern ends in a backslash')
    const char = this.#nextChar()
    const shorthand = Object.hasOwn(shorthands, char.toLowerCase()) ? shorthands[char.toLowerCase()] : undefined
    if (shorthand !== undefined) {
      const isNegated = char !== char.toLowerCase()
      return isNegated ? `[^${shorthand}]` : inClass ? shorthand : `[${shorthand}]`
    }
    if (char === 'b' && !inClass) return '(?-u:\\b)'
    if (char === 'B' && !inClass) throw new Error('`\\B` between characters that are not ASCII differs')
    if (char === 'Q') return this.#quoted()
    if (char === 'x') {
      const found = /^(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))/.exec(this.#text.slice(this.#at))
      if (found === null) throw new Error('`\\x` is followed by two hexadecimal digits')
      this.#at += found[0].length
      return `\\x{${found[1] ?? found[2]}}`
    }
    if (char === 'p' || char === 'P') {
      const found = /^(?:\{\^?\w+\}|[A-Z])/.exec(this.#text.slice(this.#at))
      if (found === null) throw new Error('`\\p` is followed by the name of a class')
      this.#at += found[0].length
      return `\\${char}${found[0]}`
    }
    const octal = /^[0-7]{1,3}/.exec(this.#text.slice(this.#at - 1))
    if (octal !== null && (char === '0' || octal[0].length > 1)) {
      this.#at += octal[0].length - 1
      return `\\x{${Number.parseInt(octal[0], 8).toString(16)}}`
    }
    if (kept.has(char)) return `\\${char}`
    if (/[0-9A-Za-z]/.test(char)) throw new Error(`\`\\${char}\` means nothing in Go`)
    return plain(char)
  }

  /** `\Q…\E`: literal text. */
  #quoted(): string {
    const end = this.#text.indexOf('\\E', this.#at)
    const text = this.#text.slice(this.#at, end < 0 ? undefined : end)
    this.#at = end < 0 ? this.#text.length : end + 2
    return [...text].map(plain).join('')
  }

  #class(): string {
    let out = '['
    if (this.#text[this.#at] === '^') out += this.#nextChar()
    // A bracket in first position is literal text.
    if (this.#text[this.#at] === ']') {
      this.#at++
      out += '\\]'
    }
    for (;;) {
      if (this.#at >= this.#text.length) throw new Error('a class is not closed')
      const posix = /^\[:\^?[a-z]+:\]/.exec(this.#text.slice(this.#at, this.#at + 20))
      if (posix !== null) {
        this.#at += posix[0].length
        out += posix[0]
        continue
      }
      const char = this.#nextChar()
      if (char === ']') return `${out}]`
      if (char === '\\') out += this.#escape(true)
      // In other positions, a hyphen denotes a range.
      else if (char === '-') out += this.#isRange(out) ? '-' : '\\-'
      else if ('[&~^'.includes(char)) out += `\\${char}`
      else out += special.has(char) ? char : plain(char)
    }
  }

  /** Whether the hyphen just read is between two characters. */
  #isRange(before: string): boolean {
    return this.#text[this.#at] !== ']' && !/^\[\^?$/.test(before)
  }
}

/** The pattern in the dialect of the remap language. */
export function translateRegex(text: string): Translated {
  try {
    return { ok: true, text: new Translator(text).run() }
  } catch (error) {
    return { ok: false, reason: (error as Error).message }
  }
}

const named = /\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?P?<([A-Za-z_]\w*)>/gs

/** The pattern in which only the last of several groups with the same name has it. In Go, the value of the last one counts. */
export function withoutRepeatedNames(text: string): string {
  const left = new Map<string, number>()
  for (const [, name] of text.matchAll(named)) if (name !== undefined) left.set(name, (left.get(name) ?? 0) + 1)
  return text.replace(named, (whole, name?: string) => {
    if (name === undefined) return whole
    const rest = (left.get(name) ?? 1) - 1
    left.set(name, rest)
    return rest > 0 ? '(?:' : whole
  })
}

/** Group names of a pattern. */
export function groupNames(text: string): readonly string[] {
  return [...text.matchAll(/\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>/g)].map((found) => found[1] ?? '')
}

interface Piece {
  readonly text: string
  readonly isGroup: boolean
  readonly name?: string
}

export interface Segments {
  /** The pattern in which each piece is a group, so that a match consists of groups only. Groups of other alternatives do not match. */
  readonly pattern: string
  /** The parts in order: groups to replace, and the text between them. */
  readonly pieces: readonly Piece[]
}

/** The pattern in which groups without a name do not capture inside of other groups, which are replaced as a whole. */
function withoutInner(pattern: string): string {
  const captures: boolean[] = []
  return pattern.replace(
    /\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((\?)?|\)/gs,
    (text, other?: string) => {
      if (text === ')') captures.pop()
      if (!text.startsWith('(')) return text
      const isInner = other === undefined && captures.includes(true)
      captures.push(other === undefined ? !isInner : false)
      return isInner ? '(?:' : text
    },
  )
}

const atom = /\\Q.*?(?:\\E|$)|\\(?:x\{[^}]*\}|.)|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|[\s\S]/gsy
const quantifier = /(?:[*+?]|\{\d+(?:,\d*)?\})\??/y
const capturing = /^\((?:\?P?<(\w+)>|(?!\?))/

/** The text of the group that begins at a position, with its bracket; undefined if it does not end. */
function groupAt(pattern: string, from: number): string | undefined {
  let depth = 0
  for (let at = from; at < pattern.length; ) {
    atom.lastIndex = at
    const text = atom.exec(pattern)?.[0] ?? ''
    at += text.length
    if (text === '(') depth++
    else if (text === ')' && --depth === 0) return pattern.slice(from, at)
  }
  return undefined
}

/** Whether a pattern has a capturing group. */
const captures = (pattern: string): boolean =>
  [...pattern.matchAll(new RegExp(atom.source, 'gs'))].some(
    ({ 0: text, index }) => text === '(' && capturing.test(pattern.slice(index, index + 40)),
  )

/** Adds the pieces of a pattern, and returns it with each piece as a group; undefined if a group to replace is repeated. */
function segmented(pattern: string, pieces: Piece[]): string | undefined {
  let out = ''
  let between = ''
  const end = (): void => {
    if (between === '') return
    pieces.push({ text: between, isGroup: false })
    out += `(${between})`
    between = ''
  }
  for (let at = 0; at < pattern.length; ) {
    atom.lastIndex = at
    const text = atom.exec(pattern)?.[0] ?? ''
    if (text !== '(') {
      at += text.length
      if (text !== '|') between += text
      else {
        end()
        out += text
      }
      continue
    }
    const group = groupAt(pattern, at)
    if (group === undefined || /^\(\?[a-zA-Z-]+\)$/.test(group)) return undefined
    at += group.length
    quantifier.lastIndex = at
    const times = quantifier.exec(pattern)?.[0] ?? ''
    at += times.length
    if (!captures(group)) {
      between += group + times
      continue
    }
    if (times !== '' && !times.startsWith('?')) return undefined
    end()
    const head = capturing.exec(group)
    const inner = group.slice(head?.[0].length ?? group.indexOf(':') + 1, -1)
    if (head === null) {
      const made = segmented(inner, pieces)
      if (made === undefined) return undefined
      out += `${group.slice(0, group.indexOf(':') + 1)}${made})${times}`
    } else {
      if (captures(inner)) return undefined
      pieces.push({ text: inner, isGroup: true, ...(head[1] === undefined ? {} : { name: head[1] }) })
      out += `(${inner})${times}`
    }
  }
  end()
  return out
}

/** Splits a pattern into groups and the text between them; undefined if groups with names are nested, or a group is repeated. */
export function segmentsOf(given: string): Segments | undefined {
  const whole = withoutInner(given)
  const flags = /^(?:\(\?[a-zA-Z-]+\))*/.exec(whole)?.[0] ?? ''
  const pieces: Piece[] = []
  const pattern = segmented(whole.slice(flags.length), pieces)
  return pattern === undefined ? undefined : { pattern: flags + pattern, pieces }
}

/** The colour sequences that Loki removes. */
export const colours =
  '[\\x{1b}\\x{9b}][\\[\\]()#;?]*(?:(?:(?:[a-zA-Z0-9]*(?:;[a-zA-Z0-9]*)*)?\\x07)|(?:(?:[0-9]{1,4}(?:;[0-9]{0,4})*)?[0-9A-PRZcf-ntqry=><~]))'
