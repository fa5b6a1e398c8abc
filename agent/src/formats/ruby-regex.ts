// Translates regular expressions in Ruby's dialect (Oniguruma, UTF-8), the dialect of grok patterns, to JavaScript with flag `v`. Atomic
// groups and possessive quantifiers (`(?>…)`, `++`) become ordinary ones, which may match where the atomic ones fail.

const wordItems = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}'
const word = `[${wordItems}]`

/** The class items for `[:name:]` and `\p{Name}`. */
const posix: Readonly<Record<string, string>> = {
  alnum: '\\p{Alphabetic}\\p{M}\\p{Nd}',
  alpha: '\\p{Alphabetic}\\p{M}',
  ascii: '\\x00-\\x7F',
  blank: '\\t\\p{Zs}',
  cntrl: '\\p{Cc}',
  digit: '\\p{Nd}',
  graph: '\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}',
  lower: '\\p{Lowercase}',
  print: '\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}',
  punct: '\\p{P}\\p{S}',
  space: '\\p{White_Space}',
  upper: '\\p{Uppercase}',
  word: wordItems,
  xdigit: '0-9A-Fa-f',
}

const hex = '0-9A-Fa-f'
const newline = '(?:\\r\\n|[\\n\\v\\f\\r\\x85\\u2028\\u2029])'

/** Deeper nesting is rejected, so that recursion cannot overflow the stack. */
const maxDepth = 250

/**
 * Translates a pattern to JavaScript syntax for flag `v`. Only named groups are captured. Throws a SyntaxError for invalid patterns, and
 * for those that no bounded search supports: back-references, subexpression calls, absent groups. `dotAll`: `.` matches line ends too,
 * as after `(?m)`, which may then be written `(?s)`.
 */
export function translateRuby(pattern: string, dotAll: boolean): string {
  return new Translator(pattern, dotAll).translate()
}

interface Options {
  readonly i: boolean
  /** Whether `.` matches line ends. */
  readonly m: boolean
  readonly x: boolean
}

class Translator {
  readonly #pattern: string
  #at = 0
  readonly #takesS: boolean
  #options: Options
  #depth = 0

  constructor(pattern: string, dotAll: boolean) {
    this.#pattern = pattern
    this.#takesS = dotAll
    this.#options = { i: false, m: dotAll, x: false }
  }

  translate(): string {
    const source = this.#alternatives()
    if (this.#at < this.#pattern.length) throw this.#invalid('a ")" without its "("')
    return source
  }

  #invalid(problem: string): SyntaxError {
    return new SyntaxError(`invalid regular expression at character ${this.#at + 1}: ${problem}`)
  }

  #peek(): string | undefined {
    const code = this.#pattern.codePointAt(this.#at)
    return code === undefined ? undefined : String.fromCodePoint(code)
  }

  #take(text: string): boolean {
    if (!this.#pattern.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.#at
    const match = sticky.exec(this.#pattern)
    if (match !== null) this.#at += match[0].length
    return match
  }

  /** Reads up to the closing `)` of the group, or the end. */
  #alternatives(): string {
    if (++this.#depth > maxDepth) throw this.#invalid(`more than ${maxDepth} groups within each other`)
    const outer = this.#options
    let source = ''
    // Options in a group of their own apply up to the end of the enclosing group, including alternatives.
    let opened = 0
    for (let char = this.#peek(); char !== undefined && char !== ')'; char = this.#peek()) {
      if (this.#options.x && this.#match(/\s+|#[^\n]*/y) !== null) continue
      if (this.#take('|')) {
        source += '|'
        continue
      }
      if (this.#match(/\(\?#(?:\\.|[^)\\])*\)/sy) !== null) continue
      const options = this.#match(/\(\?([imsxad]*)(?:-([imsx]*))?\)/y)
      if (options !== null) {
        const before = this.#options
        this.#setOptions(options[1] as string, options[2] ?? '')
        if (before.i !== this.#options.i) {
          source += this.#options.i ? '(?i:' : '(?-i:'
          opened++
        }
        continue
      }
      source += this.#repeated(this.#atom(char))
    }
    this.#options = outer
    this.#depth--
    return source + ')'.repeat(opened)
  }

  #setOptions(on: string, off: string): void {
    // Dialects other than Ruby's use `s` for `m`; the extended grok dialect accepts both.
    if (!this.#takesS && (on + off).includes('s'))
      throw this.#invalid('there is no option "s"; "." matches line ends after (?m)')
    const m = (letters: string) => letters.replaceAll('s', 'm')
    const [given, taken] = [m(on), m(off)]
    const has = (letter: 'i' | 'm' | 'x') =>
      (given.includes(letter) || this.#options[letter]) && !taken.includes(letter)
    this.#options = { i: has('i'), m: has('m'), x: has('x') }
  }

  #repeated(atom: string): string {
    let result = atom
    for (;;) {
      const sign = this.#match(/[*+?]/y)
      if (sign !== null) {
        // A second sign makes it lazy; a following `+` makes it possessive, which changes no match found this way.
        const more = this.#match(/[?+]/y)?.[0] === '?' ? '?' : ''
        result = `(?:${result})${sign[0]}${more}`
        continue
      }
      const count = this.#match(/\{(\d*)(,?)(\d*)\}/y)
      if (count === null) return result
      const [text, from = '', comma = '', to = ''] = count
      if (from === '' && to === '') {
        // `{}` and `{,}` are literal text.
        return result + escaped(text)
      }
      if (from !== '' && to !== '' && Number(from) > Number(to)) throw this.#invalid(`${text} counts down`)
      result = `(?:${result}){${from === '' ? '0' : from}${comma}${to}}`
      // With only one number, `?` is a separate repetition.
      if (comma !== '' && this.#take('?')) result += '?'
    }
  }

  #atom(char: string): string {
    if (char === '(') return this.#group()
    if (char === '[') return `(?:${this.#class()})`
    if (char === '\\') return this.#escape()
    this.#at += char.length
    switch (char) {
      case '.':
        return this.#options.m ? '(?:[^])' : '(?:[^\\n])'
      case '^':
        return '(?:^|(?<=\\n)(?=[^]))'
      case '$':
        return '(?![^\\n])'
      case '*':
      case '+':
      case '?':
        throw this.#invalid(`"${char}" has nothing to repeat`)
      default:
        return escaped(char)
    }
  }

  #group(): string {
    if (!this.#take('(?')) {
      this.#at++
      return `(?:${this.#inner()})`
    }
    const look = this.#match(/<?[=!]/y)
    if (look !== null) return `(?${look[0]}${this.#inner()})`
    const name = this.#match(/<([^>]*)>|'([^']*)'/y)
    if (name !== null) {
      const given = name[1] ?? name[2] ?? ''
      if (!/^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(given))
        throw this.#invalid(`"${given}" is not a valid group name`)
      return `(?<${given}>${this.#inner()})`
    }
    if (this.#take(':') || this.#take('>')) return `(?:${this.#inner()})`
    const options = this.#match(/([imsxad]*)(?:-([imsx]*))?:/y)
    if (options === null) throw this.#invalid('this kind of group is not supported')
    const outer = this.#options
    this.#setOptions(options[1] as string, options[2] ?? '')
    const changed = outer.i !== this.#options.i
    const open = changed ? (this.#options.i ? '(?i:' : '(?-i:') : '(?:'
    const inner = this.#inner()
    this.#options = outer
    return `${open}${inner})`
  }

  #inner(): string {
    const outer = this.#options
    const inner = this.#alternatives()
    this.#options = outer
    if (!this.#take(')')) throw this.#invalid('a "(" without its ")"')
    return inner
  }

  /** An escape outside classes. */
  #escape(): string {
    const char = this.#pattern[this.#at + 1]
    switch (char) {
      case undefined:
        throw this.#invalid('a "\\" at the end')
      case 'b':
        this.#at += 2
        return `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`
      case 'B':
        this.#at += 2
        return `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`
      case 'A':
      case 'G':
        this.#at += 2
        return '^'
      case 'z':
        this.#at += 2
        return '$'
      case 'Z':
        this.#at += 2
        return '(?=\\n?$)'
      case 'R':
        this.#at += 2
        return newline
      case 'X':
        this.#at += 2
        return '(?:\\r\\n|\\P{M}\\p{M}*|\\p{M}+)'
      case 'K':
      case 'k':
      case 'g':
        throw this.#invalid(`"\\${char}" is not supported`)
    }
    if (/[1-9]/.test(char)) throw this.#invalid('back-references are not supported')
    const { text, set } = this.#character()
    return set ? `(?:[${text}])` : text
  }

  /** An escape inside or outside classes: one character, or items of a class. */
  #character(): { readonly text: string; readonly set: boolean } {
    this.#at++
    const property = this.#match(/([pP])\{(\^?)([^}]*)\}/y)
    if (property !== null) {
      const [, letter, caret, name = ''] = property
      return { text: this.#property(name, (letter === 'P') !== (caret === '^')), set: true }
    }
    const code = this.#match(/x\{([0-9A-Fa-f]{1,8})\}|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})/y)
    if (code !== null) return { text: this.#code(Number.parseInt(code[1] ?? code[2] ?? code[3] ?? '', 16)), set: false }
    const octal = this.#match(/[0-7]{1,3}/y)
    if (octal !== null) return { text: this.#code(Number.parseInt(octal[0], 8)), set: false }
    const control = this.#match(/(?:c|C-)(.)/sy)
    if (control !== null) return { text: this.#code((control[1] as string).charCodeAt(0) & 31), set: false }
    const char = this.#peek()
    if (char === undefined) throw this.#invalid('a "\\" at the end')
    this.#at += char.length
    const items = itemsOf[char]
    if (items !== undefined) return { text: items, set: true }
    const named = namedCharacters[char]
    return { text: escaped(named ?? char), set: false }
  }

  #code(code: number): string {
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      throw this.#invalid('this is not the code of a character')
    return `\\u{${code.toString(16)}}`
  }

  #property(name: string, negative: boolean): string {
    const known = posix[name.toLowerCase().replaceAll(/[\s_-]/g, '')]
    if (known !== undefined) return negative ? `[^${known}]` : known
    const titled = name
      .toLowerCase()
      .split(/[\s_-]+/)
      .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
      .join('_')
    for (const candidate of [name, titled, `Script=${titled}`, name.toUpperCase()]) {
      try {
        // Flag `v` would also accept properties of strings, which are not classes of characters.
        new RegExp(`\\p{${candidate}}`, 'u')
        return `\\${negative ? 'P' : 'p'}{${candidate}}`
      } catch {
        // Not a property of this name; tries the next.
      }
    }
    throw this.#invalid(`there is no property "${name}" of characters`)
  }

  /** Reads a class from `[` to `]`. */
  #class(): string {
    if (++this.#depth > maxDepth) throw this.#invalid(`more than ${maxDepth} classes within each other`)
    this.#at++
    const open = this.#take('^') ? '[^' : '['
    // The operands of `&&`.
    const operands: string[] = []
    let items = ''
    const start = this.#at
    for (;;) {
      const char = this.#peek()
      if (char === undefined) throw this.#invalid('a "[" without its "]"')
      // A leading bracket is literal if another one follows.
      if (char === ']' && !(this.#at === start && this.#pattern.indexOf(']', start + 1) > 0)) break
      if (this.#take('&&')) {
        operands.push(`[${items}]`)
        items = ''
        continue
      }
      items += this.#item(char)
    }
    this.#at++
    this.#depth--
    return operands.length === 0 ? `${open}${items}]` : `${open}${[...operands, `[${items}]`].join('&&')}]`
  }

  #item(char: string): string {
    if (char === '[') {
      const named = this.#match(/\[:(\^?)(\w+):\]/y)
      if (named === null) return this.#class()
      const known = posix[named[2] as string]
      if (known === undefined) throw this.#invalid(`there is no class [:${named[2]}:]`)
      return named[1] === '^' ? `[^${known}]` : known
    }
    const first = this.#one(char)
    if (first.set || this.#pattern[this.#at] !== '-') return first.text
    const next = this.#pattern[this.#at + 1]
    if (next === undefined || next === ']' || next === '[') return first.text
    this.#at++
    const last = this.#one(this.#peek() as string)
    if (last.set) return `${first.text}\\-${last.text}`
    return `${first.text}-${last.text}`
  }

  #one(char: string): { readonly text: string; readonly set: boolean } {
    if (char === '\\') {
      if (this.#pattern[this.#at + 1] === 'b') {
        this.#at += 2
        return { text: '\\u{8}', set: false }
      }
      return this.#character()
    }
    this.#at += char.length
    return { text: escaped(char), set: false }
  }
}

const itemsOf: Readonly<Record<string, string>> = {
  d: '\\p{Nd}',
  D: '\\P{Nd}',
  w: wordItems,
  W: `[^${wordItems}]`,
  s: '\\p{White_Space}',
  S: '\\P{White_Space}',
  h: hex,
  H: `[^${hex}]`,
}

const namedCharacters: Readonly<Record<string, string>> = {
  t: '\t',
  n: '\n',
  r: '\r',
  f: '\f',
  v: '\v',
  a: '\x07',
  e: '\x1b',
}

/** Escapes literal characters, for use inside and outside classes. */
function escaped(text: string): string {
  let result = ''
  for (const char of text) {
    result += /^[0-9A-Za-z_ \u0080-\u{10ffff}]$/u.test(char)
      ? char
      : `\\u{${(char.codePointAt(0) as number).toString(16)}}`
  }
  return result
}
