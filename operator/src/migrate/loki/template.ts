// Converts Go templates of the stages `template` and `replace` to lines of a program that build the variable `text`.

import { textLiteral } from '@penstock/agent/config'
import { escapedText } from '../escape.ts'
import { translateRegex } from './regex.ts'
import { unquote } from './selector.ts'

/** Returns the expression of a field such as `.Value`. Its value is a text, or null if missing. */
export type Fields = (name: string) => string

export type TemplateLines =
  | {
      readonly ok: true
      readonly lines: readonly string[]
      /** Expressions of fields without which Go's template fails, so that the stage does nothing. */
      readonly required: readonly string[]
    }
  | { readonly ok: false; readonly reason: string }

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly words: readonly Word[] }
  /** A variable with its value. */
  | { readonly kind: 'set'; readonly name: string; readonly words: readonly Word[] }
  | { readonly kind: 'if'; readonly branches: readonly Branch[] }
interface Branch {
  /** The condition; undefined for `else`. */
  readonly words: readonly Word[] | undefined
  readonly nodes: readonly Node[]
}
type Word =
  | { readonly kind: 'field' | 'text' | 'name' | 'variable'; readonly text: string }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'pipe' }
  | { readonly kind: 'group'; readonly words: readonly Word[] }

/** Compiles a template; `fields` returns the expressions of its fields. */
export function templateLines(template: string, fields: Fields): TemplateLines {
  try {
    const writer = new Writer(fields)
    const lines = ['text = ""', ...writer.nodes(parse(template))]
    return { ok: true, lines: lines.length === 2 ? [joinFirst(lines)] : lines, required: [...writer.required] }
  } catch (error) {
    return { ok: false, reason: (error as Error).message }
  }
}

/** Merges `text = ""` and `text = text + X`. */
function joinFirst([, line = '']: readonly string[]): string {
  return line.startsWith('text = text + ') ? `text = ${line.slice('text = text + '.length)}` : `text = ""\n${line}`
}

function parse(template: string): readonly Node[] {
  const stack: { nodes: Node[]; branches: { words: readonly Word[] | undefined; nodes: Node[] }[] }[] = [
    { nodes: [], branches: [] },
  ]
  const top = () => stack.at(-1) as (typeof stack)[number]
  const current = () => top().branches.at(-1)?.nodes ?? top().nodes
  const pattern = /\{\{(-\s)?\s*((?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^"`}]|\}(?!\}))*?)\s*(\s-)?\}\}/g
  let from = 0
  let trims = false
  const addText = (text: string): void => {
    if (text !== '') current().push({ kind: 'text', text })
  }
  for (const found of template.matchAll(pattern)) {
    let text = template.slice(from, found.index)
    if (trims) text = text.trimStart()
    if (found[1] !== undefined) text = text.trimEnd()
    addText(text)
    trims = found[3] !== undefined
    from = found.index + found[0].length
    const action = found[2] ?? ''
    const [, keyword = '', rest = ''] =
      /^(if|else if|else|end|range|with|define|block|template|break|continue)\b\s*(.*)$/s.exec(action) ?? []
    if (action.startsWith('/*')) continue
    const variable = /^\$(\w+)\s*:?=\s*(.*)$/s.exec(action)
    if (keyword === 'if') stack.push({ nodes: [], branches: [{ words: wordsOf(rest), nodes: [] }] })
    else if (keyword === 'else' || keyword === 'else if') {
      if (stack.length === 1) throw new Error('`else` without `if`')
      top().branches.push({ words: keyword === 'else' ? undefined : wordsOf(rest), nodes: [] })
    } else if (keyword === 'end') {
      const closed = stack.length > 1 ? stack.pop() : undefined
      if (closed === undefined) throw new Error('`end` without `if`')
      current().push({ kind: 'if', branches: closed.branches })
    } else if (keyword !== '') throw new Error(`\`${keyword}\` has no counterpart`)
    else if (variable !== null)
      current().push({ kind: 'set', name: variable[1] ?? '', words: wordsOf(variable[2] ?? '') })
    else current().push({ kind: 'value', words: wordsOf(action) })
  }
  const tail = template.slice(from)
  if (tail.includes('{{')) throw new Error('`{{` without `}}`')
  addText(trims ? tail.trimStart() : tail)
  if (stack.length > 1) throw new Error('`if` without `end`')
  return stack[0]?.nodes ?? []
}

function wordsOf(text: string): readonly Word[] {
  const stack: Word[][] = [[]]
  const pattern =
    /\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`|(-?\d+(?:\.\d+)?)(?![\w.])|\.([A-Za-z_][\w.]*)|([A-Za-z_]\w*)|\$(\w+)|(\|)|(\()|(\)))/y
  const end = text.trimEnd().length
  pattern.lastIndex = 0
  while (pattern.lastIndex < end) {
    const at = pattern.lastIndex
    const found = pattern.exec(text)
    if (found === null) throw new Error(`\`${text.slice(at).trim()}\` is not read`)
    const [, quoted, raw, number, field, name, variable, pipe, open] = found
    const words = stack.at(-1) as Word[]
    if (quoted !== undefined) words.push({ kind: 'text', text: unquote(quoted) })
    else if (raw !== undefined) words.push({ kind: 'text', text: raw })
    else if (number !== undefined) words.push({ kind: 'number', text: number })
    else if (field !== undefined) words.push({ kind: 'field', text: field })
    else if (name !== undefined) words.push({ kind: 'name', text: name })
    else if (variable !== undefined) words.push({ kind: 'variable', text: variable })
    else if (pipe !== undefined) words.push({ kind: 'pipe' })
    else if (open !== undefined) stack.push([])
    else {
      const group = stack.length > 1 ? stack.pop() : undefined
      if (group === undefined) throw new Error('a bracket is not open')
      stack.at(-1)?.push({ kind: 'group', words: group })
    }
  }
  if (stack.length > 1) throw new Error('a bracket is not closed')
  return stack[0] ?? []
}

/** The value of an operand or a call. */
interface Value {
  /** `number` is a literal, `integer` a computed number. */
  readonly type: 'text' | 'number' | 'integer' | 'condition'
  readonly expression: string
  /** Whether it is a field, which may be null. */
  readonly isField?: true
  /** The text of a literal. */
  readonly constant?: string
  /** The text of a condition that returns one of its operands. */
  readonly asText?: string
}

const text = (expression: string): Value => ({ type: 'text', expression })
const condition = (expression: string): Value => ({ type: 'condition', expression })
const integer = (expression: string): Value => ({ type: 'integer', expression })

/** A regular expression class with the characters of a text. */
const classOf = (characters: string) =>
  `[${[...characters].map((char) => (/[\w ]/.test(char) ? char : `\\x{${char.codePointAt(0)?.toString(16)}}`)).join('')}]`
const space = '[\\t\\n\\x0b\\f\\r\\x20\\x{85}\\x{a0}]'

function constantOf(value: Value | undefined, what: string): string {
  if (value?.constant === undefined) throw new Error(`${what} must be a literal`)
  return value.constant
}

function literalOf(regex: string): string {
  const translated = translateRegex(regex)
  if (!translated.ok) throw new Error(`its regular expression is not valid: ${translated.reason}`)
  return `r'${translated.text}'`
}

const cut = (value: string, regex: string) => text(`replace(${value}, ${literalOf(regex)}, "")`)
const trimmed = (value: string, set: string, left: boolean, right: boolean): Value => {
  const begin = left ? `replace(${value}, r'^${set}+', "")` : value
  return text(right ? `replace(${begin}, r'${set}+$', "")` : begin)
}
const withoutPrefix = (value: string, prefix: string) => cut(value, `^${escapedText(prefix)}`)
const withoutSuffix = (value: string, suffix: string) => cut(value, `${escapedText(suffix)}$`)

type Call = (values: readonly Value[], at: (index: number) => string) => Value

/** Functions by name: those of Promtail and Alloy, and common ones of sprig. */
const functions: Readonly<Record<string, Call>> = {
  ToLower: (_, at) => text(`downcase(${at(0)})`),
  ToUpper: (_, at) => text(`upcase(${at(0)})`),
  lower: (_, at) => text(`downcase(${at(0)})`),
  upper: (_, at) => text(`upcase(${at(0)})`),
  TrimSpace: (_, at) => trimmed(at(0), space, true, true),
  trim: (_, at) => trimmed(at(0), space, true, true),
  Trim: (values, at) => trimmed(at(0), classOf(constantOf(values[1], 'the characters of `Trim`')), true, true),
  TrimLeft: (values, at) => trimmed(at(0), classOf(constantOf(values[1], 'the characters of `TrimLeft`')), true, false),
  TrimRight: (values, at) =>
    trimmed(at(0), classOf(constantOf(values[1], 'the characters of `TrimRight`')), false, true),
  trimAll: (values, at) => trimmed(at(1), classOf(constantOf(values[0], 'the characters of `trimAll`')), true, true),
  TrimPrefix: (values, at) => withoutPrefix(at(0), constantOf(values[1], 'the prefix')),
  TrimSuffix: (values, at) => withoutSuffix(at(0), constantOf(values[1], 'the suffix')),
  trimPrefix: (values, at) => withoutPrefix(at(1), constantOf(values[0], 'the prefix')),
  trimSuffix: (values, at) => withoutSuffix(at(1), constantOf(values[0], 'the suffix')),
  Replace: (values, at) => {
    if (values[3]?.type !== 'number') throw new Error('`Replace` has no count')
    return text(
      `replace(${at(0)}, ${at(1)}, ${at(2)}, count: ${Number(values[3].expression) < 0 ? -1 : values[3].expression})`,
    )
  },
  replace: (_, at) => text(`replace(${at(2)}, ${at(0)}, ${at(1)})`),
  regexReplaceAll: (values, at) =>
    text(`replace(${at(1)}, ${literalOf(constantOf(values[0], 'the pattern'))}, ${at(2)})`),
  regexReplaceAllLiteral: (values, at) =>
    text(`replace(${at(1)}, ${literalOf(constantOf(values[0], 'the pattern'))}, replace(${at(2)}, "$", "$$"))`),
  Hash: (_, at) => text(`sha3(${at(0)} + ${at(1)}, variant: "SHA3-256")`),
  Sha2Hash: (_, at) => text(`sha2(${at(0)} + ${at(1)}, variant: "SHA-256")`),
  sha1sum: (_, at) => text(`sha1(${at(0)})`),
  sha256sum: (_, at) => text(`sha2(${at(0)}, variant: "SHA-256")`),
  b64enc: (_, at) => text(`encode_base64(${at(0)})`),
  // As in sprig, positions count bytes.
  trunc: (values, at) => {
    const count = Number(values[0]?.expression)
    if (!Number.isInteger(count)) throw new Error('the length of `trunc` must be a literal')
    const part = count < 0 ? `slice!(${at(1)}, ${count})` : `slice!(${at(1)}, 0, ${count})`
    return text(`({ if length(${at(1)}) > ${Math.abs(count)} { ${part} } else { ${at(1)} } })`)
  },
  substr: (values, at) => {
    const [start, end] = [Number(values[0]?.expression), Number(values[1]?.expression)]
    if (!(start >= 0) || !Number.isInteger(end)) throw new Error('the positions of `substr` must be literals')
    const part = end < 0 || end < start ? `slice!(${at(2)}, ${start})` : `slice!(${at(2)}, ${start}, ${end})`
    return text(`({ if length(${at(2)}) > ${start} { ${part} } else { "" } })`)
  },
  quote: (values, at) => text(values.map((_, index) => goQuoted(at(index))).join(' + " " + ')),
  squote: (values, at) => text(values.map((_, index) => `"'" + ${at(index)} + "'"`).join(' + " " + ')),
  toString: (_: readonly Value[], at: (index: number) => string) => text(at(0)),
  nospace: (_, at) => text(`replace(${at(0)}, r'${space}', "")`),
  b64dec: (_, at) => text(`(decode_base64(${at(0)}) ?? "illegal base64 data")`),
  regexFind: (values, at) => {
    const regex = literalOf(`(?P<whole_match>${constantOf(values[0], 'the pattern')})`)
    return text(`string!(get!(parse_regex(${at(1)}, ${regex}) ?? {}, ["whole_match"]) || "")`)
  },
  int: (values, at) => integer(whole(values, at, 0)),
  int64: (values, at) => integer(whole(values, at, 0)),
  atoi: (values, at) => integer(whole(values, at, 0)),
  len: (_, at) => integer(`length(${at(0)})`),
  print: (values, at) => text(values.map((_, index) => at(index)).join(' + ')),
  printf: (values, at) => text(formatted(values, at)),
  contains: (_, at) => condition(`contains(${at(1)}, ${at(0)})`),
  hasPrefix: (_, at) => condition(`starts_with(${at(1)}, ${at(0)})`),
  hasSuffix: (_, at) => condition(`ends_with(${at(1)}, ${at(0)})`),
  // As in sprig, operands are whole numbers, and a text that is not a number is zero.
  div: (values, at) => {
    const by = Number(values[1]?.expression)
    if (!Number.isInteger(by) || by === 0)
      throw new Error('the divisor of `div` must be a literal whole number other than zero')
    return text(`to_string(to_int(${whole(values, at, 0)} / ${by}))`)
  },
  add: (values, at) => text(`to_string(${values.map((_, index) => whole(values, at, index)).join(' + ')})`),
  sub: (values, at) => text(`to_string(${whole(values, at, 0)} - ${whole(values, at, 1)})`),
  mul: (values, at) => text(`to_string(${values.map((_, index) => whole(values, at, index)).join(' * ')})`),
  regexMatch: (values, at) => condition(`match(${at(1)}, ${literalOf(constantOf(values[0], 'the pattern'))})`),
}

const isNumber = (value: Value | undefined) => value?.type === 'number' || value?.type === 'integer'

/** A text that is not a whole number is zero. */
const whole = (values: readonly Value[], at: (index: number) => string, index: number): string => {
  const value = values[index]
  return value !== undefined && isNumber(value) ? value.expression : `(parse_int(${at(index)}) ?? 0)`
}

/** A text in Go's quotes, in which other control characters than these are hexadecimal. */
const escapes = '{ "\\"": "\\\\\\"", "\\\\": "\\\\\\\\", "\\n": "\\\\n", "\\t": "\\\\t", "\\r": "\\\\r" }'
const goQuoted = (value: string) =>
  `"\\"" + (replace_with(${value}, r'["\\\\\\x00-\\x1f\\x7f]') -> |m| { sign = get(${escapes}, [m.string]) ?? null; if is_string(sign) { string!(sign) } else { "\\\\x" + encode_base16(m.string) } }) + "\\""`

/** `%s` and `%v` consume the values in order. */
function formatted(values: readonly Value[], at: (index: number) => string): string {
  let next = 1
  const parts = constantOf(values[0], 'the format of `printf`')
    .split(/(%[sv%])/)
    .filter((part) => part !== '')
    .map((part) => {
      if (part === '%%') return textLiteral('%')
      if (part === '%s' || part === '%v') return at(next++)
      if (part.includes('%')) throw new Error('`printf` has verbs other than `%s` and `%v`')
      return textLiteral(part)
    })
  if (next !== values.length) throw new Error('the number of values of `printf` differs from its verbs')
  return parts.length === 0 ? '""' : parts.join(' + ')
}

const orders: Readonly<Record<string, string>> = { lt: '<', le: '<=', gt: '>', ge: '>=' }

/** The first text that is not empty. */
const firstOf = (texts: readonly string[]): Value =>
  text(`string!(get!(filter([${texts.join(', ')}]) -> |_index, item| { item != "" }, [0]) || "")`)

class Writer {
  readonly required = new Set<string>()
  readonly #fields: Fields
  readonly #variables = new Map<string, Value>()
  #depth = 0

  constructor(fields: Fields) {
    this.#fields = fields
  }

  nodes(nodes: readonly Node[]): string[] {
    const lines: string[] = []
    let run: string[] = []
    const end = () => {
      if (run.length > 0) lines.push(`text = text + ${run.join(' + ')}`)
      run = []
    }
    for (const node of nodes) {
      if (node.kind === 'text') run.push(textLiteral(node.text))
      else if (node.kind === 'value') run.push(this.#shown(this.#value(node.words)))
      else if (node.kind === 'set') {
        end()
        lines.push(this.#set(node.name, this.#value(node.words)))
      } else {
        end()
        lines.push(...this.#branches(node.branches))
      }
    }
    end()
    return lines
  }

  #set(name: string, value: Value): string {
    if (value.type === 'condition') throw new Error('a variable is a condition')
    const variable = `variable_${name.toLowerCase()}`
    const isNumber = value.type === 'number'
    this.#variables.set(name, { ...value, expression: variable, type: isNumber ? 'integer' : value.type })
    return `${variable} = ${value.expression}`
  }

  #branches(branches: readonly Branch[]): string[] {
    const parts = branches.map(({ words, nodes }, index) => {
      const head = words === undefined ? 'else ' : `${index === 0 ? '' : 'else '}if ${this.#test(this.#value(words))} `
      this.#depth++
      const inner = this.nodes(nodes)
      this.#depth--
      // A block needs a statement.
      return `${head}{\n${(inner.length === 0 ? ['text = text + ""'] : inner).join('\n').replace(/^/gm, '  ')}\n}`
    })
    return parts.join(' ').split('\n')
  }

  /** Go's text for a value. A missing field becomes `<no value>`. */
  #shown(value: Value): string {
    if (value.asText !== undefined) return value.asText
    if (value.type === 'condition') throw new Error('a condition is used as text')
    if (value.type === 'number') return textLiteral(value.expression)
    if (value.type === 'integer') return `to_string(${value.expression})`
    return value.isField ? `string!(${value.expression} || "<no value>")` : value.expression
  }

  /** A value as a text argument of a function. */
  #argument(value: Value | undefined): string {
    if (value === undefined) throw new Error('an argument of a function is missing')
    if (value.asText !== undefined) return value.asText
    if (value.type === 'number') return value.expression
    if (value.type === 'integer') return `to_string(${value.expression})`
    if (value.type === 'condition') throw new Error('an argument of a function is a condition')
    if (!value.isField) return value.expression
    if (this.#depth === 0) this.required.add(value.expression)
    return `string!(${value.expression} || "")`
  }

  #test(value: Value): string {
    if (value.type === 'condition') return value.expression
    if (value.type === 'number') return value.expression === '0' ? 'false' : 'true'
    if (value.type === 'integer') return `${value.expression} != 0`
    return value.isField ? `string!(${value.expression} || "") != ""` : `${value.expression} != ""`
  }

  #value(words: readonly Word[]): Value {
    let piped: Value | undefined
    let command: Word[] = []
    const end = (): void => {
      piped = this.#call(command, piped)
      command = []
    }
    for (const word of words) {
      if (word.kind === 'pipe') end()
      else command.push(word)
    }
    end()
    return piped as Value
  }

  #call(words: readonly Word[], piped: Value | undefined): Value {
    const [first, ...rest] = words
    if (first === undefined) throw new Error('an action is empty')
    if (first.kind !== 'name') {
      if (rest.length > 0 || piped !== undefined) throw new Error('a value is called')
      return this.#single(first)
    }
    if (first.text === 'true' || first.text === 'false') return condition(first.text)
    const values = [...rest.map((word) => this.#single(word)), ...(piped === undefined ? [] : [piped])]
    return this.#operator(first.text, values) ?? this.#function(first.text, values)
  }

  #function(name: string, values: readonly Value[]): Value {
    const call = Object.hasOwn(functions, name) ? functions[name] : undefined
    if (call === undefined) throw new Error(`the function \`${name}\` has no counterpart`)
    return call(values, (index) => this.#argument(values[index]))
  }

  /** Functions that accept missing values. */
  #operator(name: string, values: readonly Value[]): Value | undefined {
    const [first, second] = values
    const open = (value: Value | undefined): string => {
      if (value === undefined || value.type === 'condition')
        throw new Error(`\`${name}\` compares values other than texts`)
      if (value.isField) return `string!(${value.expression} || "")`
      return value.type === 'number' ? textLiteral(value.expression) : value.expression
    }
    /** Two numbers or two texts. Go rejects other comparisons, so that the stage does nothing. */
    const compared = (sign: string, left: Value | undefined, right: Value | undefined): string => {
      const numbers = [left, right].filter(isNumber).length
      if (numbers === 1 && [left, right].some((value) => value?.type === 'integer'))
        throw new Error(`\`${name}\` compares a number with a text`)
      if (numbers === 2) return `${left?.expression} ${sign} ${right?.expression}`
      return `${open(left)} ${sign} ${open(right)}`
    }
    switch (name) {
      case 'eq':
        return condition(
          `(${values
            .slice(1)
            .map((value) => compared('==', first, value))
            .join(' || ')})`,
        )
      case 'ne':
        return condition(`(${compared('!=', first, second)})`)
      case 'lt':
      case 'le':
      case 'gt':
      case 'ge':
        return condition(`(${compared(orders[name] ?? '', first, second)})`)
      case 'not':
        return condition(`!(${this.#test(first ?? text('""'))})`)
      case 'empty':
        return condition(`!(${this.#test(first ?? text('""'))})`)
      case 'and':
        return condition(`(${values.map((value) => this.#test(value)).join(' && ')})`)
      case 'or': {
        const test = condition(`(${values.map((value) => this.#test(value)).join(' || ')})`)
        // The last operand is the result if all are empty, so it must not be missing.
        const isText = values.every(({ type }) => type === 'text') && values.at(-1)?.isField !== true
        return isText ? { ...test, asText: firstOf(values.map(open)).expression } : test
      }
      case 'default':
        if (first === undefined || second === undefined) return undefined
        return firstOf([open(second), open(first)])
      case 'coalesce':
        return firstOf(values.map(open))
      case 'ternary': {
        const [, , test] = values
        if (test === undefined) return undefined
        return text(`({ if ${this.#test(test)} { ${open(first)} } else { ${open(second)} } })`)
      }
      default:
        return undefined
    }
  }

  #single(word: Word): Value {
    switch (word.kind) {
      case 'text':
        return { type: 'text', expression: textLiteral(word.text), constant: word.text }
      case 'number':
        return { type: 'number', expression: word.text }
      case 'variable': {
        const value = this.#variables.get(word.text)
        if (value === undefined) throw new Error(`the variable \`$${word.text}\` is not set`)
        return value
      }
      case 'field':
        if (word.text.includes('.')) throw new Error(`\`.${word.text}\` is below a text`)
        return { type: 'text', expression: this.#fields(word.text), isField: true }
      case 'group':
        return this.#value(word.words)
      case 'name':
        if (word.text === 'true' || word.text === 'false') return condition(word.text)
        return this.#function(word.text, [])
      default:
        throw new Error('a pipe has no value')
    }
  }
}
