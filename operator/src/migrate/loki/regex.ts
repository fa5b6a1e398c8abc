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

/** Group names of a pattern. */
export function groupNames(text: string): readonly string[] {
  return [...text.matchAll(/\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>/g)].map((found) => found[1] ?? '')
}

export interface Segments {
  /** Flags at the beginning, such as `(?i)`. */
  readonly flags: string
  /** The parts in order: groups to replace, and the text between them. */
  readonly pieces: readonly { readonly text: string; readonly isGroup: boolean; readonly name?: string }[]
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

/** Splits a pattern into groups and the text between them; undefined if groups with names are nested, or groups are in alternatives or in repetitions. */
export function segmentsOf(given: string): Segments | undefined {
  const pattern = withoutInner(given)
  const flags = /^(?:\(\?[a-zA-Z-]+\))*/.exec(pattern)?.[0] ?? ''
  const pieces: { text: string; isGroup: boolean; name?: string }[] = []
  let depth = 0
  let from = flags.length
  let open = -1
  let inClass = false
  for (let at = from; at < pattern.length; at++) {
    const char = pattern[at]
    if (char === '\\') {
      if (pattern[at + 1] === 'Q') return undefined
      at++
    } else if (inClass) inClass = char !== ']' || /\[\^?$/.test(pattern.slice(0, at))
    else if (char === '[') inClass = true
    else if (char === '|' && depth === 0) return undefined
    else if (char === '(') {
      const head = /^\((?:\?P?<(\w+)>|(\?))?/.exec(pattern.slice(at))
      const captures = head?.[2] === undefined
      if (!captures && /^\(\?[a-zA-Z-]+\)/.test(pattern.slice(at))) return undefined
      if (captures && depth > 0) return undefined
      if (captures) {
        if (at > from) pieces.push({ text: pattern.slice(from, at), isGroup: false })
        open = at + (head?.[0].length ?? 1)
        const name = head?.[1]
        pieces.push({ text: '', isGroup: true, ...(name === undefined ? {} : { name }) })
      }
      depth++
    } else if (char === ')') {
      depth--
      if (depth === 0 && open >= 0) {
        if (/^[*+?{]/.test(pattern.slice(at + 1))) return undefined
        const group = pieces.pop()
        pieces.push({ ...group, isGroup: true, text: pattern.slice(open, at) })
        from = at + 1
        open = -1
      }
    }
  }
  if (depth !== 0) return undefined
  if (from < pattern.length) pieces.push({ text: pattern.slice(from), isGroup: false })
  return { flags, pieces }
}
