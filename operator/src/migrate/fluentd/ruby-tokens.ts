// The tokens of Ruby code. Texts with `#{…}` become sums of their parts, `%w[…]` becomes a list, and a line end becomes `;`.

const tokenPattern =
  /"|'(?:[^'\\]|\\.)*'|\d[\d_]*(?:\.\d+)?|\$(?:\d|~|&)|`[^`]*`|[A-Za-z_]\w*(?:[?!](?!=))?|&\.|\.\.\.?|=>|::|=~|!~|\|\|=|\+=|-=|[=!<>]=|\|\||&&|\*\*|<=>|[-+*%<>!?:.,()[\]{}=;|&]|\/(?:[^/\\]|\\.)*\/[imx]*/sy
const words = /%[wi](?:\[([^\]]*)\]|\(([^)]*)\)|\{([^}]*)\})/y
const otherRegex = /%r(?:\{((?:[^{}\\]|\\.|\{[^{}]*\})*)\}|\[([^\]]*)\]|!([^!]*)!)([imx]*)/y
const space = /[ \t\r]+/y
/** A comment, or a line end with the white space behind it. A line that begins with a period continues the one before. */
const lineEnd = /\s*\n\s*(\.|&\.)?/y

/** Whether a token ends a value, so that a sign behind it is an operator. */
const isValueEnd = (token = '') =>
  token === 'end' || (/["')\]}`]$|\w[?!]?$|^\$|^\/./.test(token) && !keywords.has(token))

export const keywords: ReadonlySet<string> = new Set(
  'if unless then else elsif end case when begin rescue ensure and or not while until do return in'.split(' '),
)

/** @returns undefined for text that is not Ruby, or a part of it that is not supported */
export function tokensOf(code: string): string[] | undefined {
  const tokens: string[] = []
  for (let at = 0; at < code.length; ) {
    const next = tokenAt(code, at, tokens)
    if (next === undefined) return undefined
    at = next
  }
  return tokens
}

/** Appends the token at a position, and returns the position behind it. */
function tokenAt(code: string, at: number, tokens: string[]): number | undefined {
  const read = (regex: RegExp) => {
    regex.lastIndex = at
    return regex.exec(code)
  }
  if (read(space) !== null) return space.lastIndex
  const line = read(lineEnd)
  if (line !== null) {
    const end = lineEnd.lastIndex - (line[1] ?? '').length
    if (line[1] === undefined && isValueEnd(tokens.at(-1))) tokens.push(';')
    return end
  }
  const isOperator = isValueEnd(tokens.at(-1))
  const sign = code[at] as string
  if (isOperator && (sign === '/' || sign === '%')) {
    tokens.push(sign)
    return at + 1
  }
  const list = read(words)
  if (list !== null) {
    const texts = (list[1] ?? list[2] ?? list[3] ?? '').split(/\s+/).filter((word) => word !== '')
    tokens.push('[', ...texts.flatMap((word) => [`'${word.replace(/['\\]/g, '\\$&')}'`, ',']), ']')
    return words.lastIndex
  }
  const regex = read(otherRegex)
  if (regex !== null) {
    tokens.push(`/${regex[1] ?? regex[2] ?? regex[3] ?? ''}/${regex[4]}`)
    return otherRegex.lastIndex
  }
  const found = read(tokenPattern)
  if (found === null) return undefined
  if (found[0] === '"') return quoted(code, at, tokens)
  if (/^\/./.test(found[0]) && found[0].includes('#{')) return undefined
  tokens.push(/^\d/.test(found[0]) ? found[0].replaceAll('_', '') : found[0])
  return tokenPattern.lastIndex
}

/** A text between double quotes. */
function quoted(code: string, start: number, tokens: string[]): number | undefined {
  const parts: string[][] = []
  let text = '"'
  for (let at = start + 1; at < code.length; at++) {
    const sign = code[at] as string
    if (sign === '"') {
      const last = `${text}"`
      if (parts.length === 0) tokens.push(last)
      else tokens.push('(', ...parts.flatMap((part) => [...part, '+']), last, ')')
      return at + 1
    }
    if (sign === '\\') text += sign + (code[++at] ?? '')
    else if (!code.startsWith('#{', at)) text += sign
    else {
      const end = closing(code, at + 2)
      const inner = end < 0 ? undefined : tokensOf(code.slice(at + 2, end))
      if (inner === undefined) return undefined
      parts.push([`${text}"`, '+', '(', ...inner, ')', '.', 'to_s'])
      text = '"'
      at = end
    }
  }
  return undefined
}

/** The position of the brace that closes code; negative without one. */
export function closing(text: string, from: number): number {
  let depth = 0
  let quote = ''
  for (let at = from; at < text.length; at++) {
    const sign = text[at] as string
    if (quote !== '') {
      if (sign === '\\') at++
      else if (quote === '"' && text.startsWith('#{', at)) {
        const end = closing(text, at + 2)
        if (end < 0) return -1
        at = end
      } else if (sign === quote) quote = ''
    } else if (sign === '"' || sign === "'") quote = sign
    else if (sign === '/' && startsRegex.test(text.slice(from, at))) at = endOfRegex(text, at)
    else if (sign === '{') depth++
    else if (sign === '}' && depth-- === 0) return at
  }
  return -1
}

/** Text before a slash that begins a regular expression. */
const startsRegex = /(?:^|[([{,=~!|&;?:]|\b(?:when|if|unless|and|or|not|then|else))\s*$/

/** The position of the slash that ends a regular expression. */
function endOfRegex(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '/') return at
  }
  return from
}

/** Signs behind a backslash between double quotes. Before any other sign, a backslash means nothing. */
const signs: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  s: ' ',
  e: '\x1b',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
}

/** The text between quotes. */
export function textIn(token: string): string {
  const inner = token.slice(1, -1)
  if (token.startsWith("'")) return inner.replace(/\\(['\\])/g, '$1')
  const escapes = /\\(?:u\{([\da-fA-F]+)\}|u([\da-fA-F]{4})|x([\da-fA-F]{1,2})|(.))/gs
  return inner.replace(escapes, (_, braced?: string, four?: string, two?: string, sign = '') => {
    const code = braced ?? four ?? two
    return code === undefined ? (signs[sign] ?? sign) : String.fromCodePoint(Number.parseInt(code, 16))
  })
}

/** Tokens that open a bracket, or a part that ends with `end`. */
const openers: ReadonlySet<string> = new Set(['(', '[', '{', 'case', 'begin', 'do'])
const closers: ReadonlySet<string> = new Set([')', ']', '}', 'end'])
const separators: ReadonlySet<string> = new Set([';', 'then', 'else', 'elsif', 'when'])

/** Whether an `if` or `unless` follows a value, and so is a condition of the statement before it. */
const isModifier = (tokens: readonly string[], at: number) => isValueEnd(tokens[at - 1])

/** The first of some words in the statement at a position, outside of its brackets and inner statements. */
export function wordAhead(tokens: readonly string[], from: number, wanted: readonly string[]): string | undefined {
  let depth = 0
  for (let at = from; at < tokens.length; at++) {
    const token = tokens[at] as string
    const isCondition = token === 'if' || token === 'unless'
    const opens = openers.has(token) || (isCondition && !(at > from && isModifier(tokens, at)))
    if (depth === 0 && wanted.includes(token) && !opens) return token
    if (opens) depth++
    else if (closers.has(token)) {
      if (depth-- === 0) return undefined
    } else if (depth === 0 && separators.has(token)) return undefined
  }
  return undefined
}
