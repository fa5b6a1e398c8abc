// Converts Go templates of the stages `template` and `replace` to lines of a program that build the variable `text`.

import { textLiteral } from '@penstock/agent/config'
import { type Arguments, functions, memberOf } from './template-functions.ts'
import { type Branch, type Node, parseTemplate, type Word } from './template-syntax.ts'
import {
  condition,
  isFloat,
  isNumber,
  isWhole,
  nullable,
  orElse,
  orEmpty,
  perhaps,
  testOf,
  text,
  type Value,
} from './template-values.ts'

/** The path of the extracted value for a field such as `.level`, or an expression for a text that always exists. */
export type Fields = (name: string) => { readonly path: string } | { readonly text: string }

export type TemplateLines =
  | {
      readonly ok: true
      readonly lines: readonly string[]
      /** Paths of extracted values without which Go's template fails, so that the stage does nothing. */
      readonly required: readonly string[]
      /** Whether the lines set the variable `failed`. If it is true, the stage does nothing. */
      readonly mayFail: boolean
    }
  | { readonly ok: false; readonly reason: string }

/** Compiles a template; `fields` returns the values of its fields. */
export function templateLines(template: string, fields: Fields): TemplateLines {
  try {
    const writer = new Writer(fields)
    const lines = ['text = ""', ...writer.nodes(parseTemplate(template))]
    const all = lines.length === 2 ? [joinFirst(lines)] : lines
    const { mayFail } = writer
    return { ok: true, lines: mayFail ? ['failed = false', ...all] : all, required: [...writer.required], mayFail }
  } catch (error) {
    return { ok: false, reason: (error as Error).message }
  }
}

/** Merges `text = ""` and `text = text + X`. */
function joinFirst([, line = '']: readonly string[]): string {
  return line.startsWith('text = text + ') ? `text = ${line.slice('text = text + '.length)}` : `text = ""\n${line}`
}

const orders: Readonly<Record<string, string>> = { lt: '<', le: '<=', gt: '>', ge: '>=' }

/** The first text that is not empty; the last one if all are. */
const firstOf = (values: readonly Value[]): Value => {
  const last = values.at(-1) as Value
  const others = values.slice(0, -1)
  const chosen = others.reduceRight(
    (rest, value) => `if ${testOf(value)} { ${orEmpty(value)} } else { ${rest} }`,
    nullable(last),
  )
  return last.missing === undefined ? text(`({ ${chosen} })`) : perhaps(`({ ${chosen} })`)
}

class Writer {
  readonly required = new Set<string>()
  mayFail = false
  readonly #fields: Fields
  readonly #variables = new Map<string, Value>()
  /** The dot inside of `with`. */
  #dot: Value | undefined
  /** Whether an expression is evaluated under a condition only. */
  #isConditional = false
  #names = 0

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
      else if (node.kind === 'value') run.push(orElse(this.#value(node.words), '<no value>'))
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

  /** A variable that is set again may have been missing before. */
  #set(name: string, value: Value): string {
    const variable = `variable_${name.toLowerCase()}`
    const before = this.#variables.get(name)
    const type = value.type === 'number' ? (isFloat(value) ? 'float' : 'integer') : value.type
    if (before !== undefined && before.type !== type) throw new Error(`the variable \`$${name}\` changes its type`)
    const mayMiss = value.missing !== undefined || before?.missing !== undefined
    const { constant: _, ...kept } = value
    this.#variables.set(name, { ...kept, expression: variable, type, ...(mayMiss ? { missing: 'null' } : {}) })
    return `${variable} = ${value.missing === undefined ? value.expression : nullable(value)}`
  }

  #branches(branches: readonly Branch[]): string[] {
    const wasConditional = this.#isConditional
    const before: string[] = []
    const parts = branches.map(({ words, nodes, isDot, variable }, index) => {
      const dot = this.#dot
      let head = 'else '
      if (words !== undefined) {
        const value = this.#value(words)
        if (variable !== undefined) {
          if (index > 0) throw new Error('`else if` sets a variable')
          before.push(this.#set(variable, value))
        }
        head = `${index === 0 ? '' : 'else '}if ${testOf(value)} `
        // Inside of `with`, the value is not missing.
        if (isDot) this.#dot = value.missing === undefined ? value : text(orEmpty(value))
      }
      this.#isConditional = true
      const inner = this.nodes(nodes)
      this.#dot = dot
      // A block needs a statement.
      return `${head}{\n${(inner.length === 0 ? ['text = text + ""'] : inner).join('\n').replace(/^/gm, '  ')}\n}`
    })
    this.#isConditional = wasConditional
    return [...before, ...parts.join(' ').split('\n')]
  }

  /** A new name for a variable. */
  #name(): string {
    return `part_${++this.#names}`
  }

  #fail(test: string): string {
    this.mayFail = true
    return test === 'true' ? 'failed = true' : `if ${test} { failed = true }`
  }

  /** A value as a text argument of a function. A missing value makes the template fail. */
  #argument(value: Value | undefined): string {
    if (value === undefined) throw new Error('an argument of a function is missing')
    if (value.type !== 'text') throw new Error('an argument of a function is not a text')
    if (value.missing === undefined) return value.expression
    if (value.missing === 'field' && !this.#isConditional) {
      this.required.add(value.expression)
      return orEmpty(value)
    }
    const name = this.#name()
    return `({ ${name} = ${nullable(value)}; ${this.#fail(`is_null(${name})`)}; string!(${name} || "") })`
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
    const values = this.#operands(first.text, rest, piped)
    return this.#operator(first.text, values) ?? this.#function(first.text, values)
  }

  /** The operands of a function. `and` and `or` evaluate the second only if the first does not decide. */
  #operands(name: string, words: readonly Word[], piped: Value | undefined): readonly Value[] {
    const before = this.#isConditional
    const values = words.map((word) => {
      const value = this.#single(word)
      if (name === 'and' || name === 'or') this.#isConditional = true
      return value
    })
    this.#isConditional = before
    return piped === undefined ? values : [...values, piped]
  }

  #function(name: string, values: readonly Value[]): Value {
    const call = Object.hasOwn(functions, name) ? functions[name] : undefined
    if (call === undefined) throw new Error(`the function \`${name}\` has no counterpart`)
    const read = new Set<string>()
    const seen = new Proxy(values, {
      get: (all, key) => {
        if (typeof key === 'string' && /^\d+$/.test(key)) read.add(key)
        return Reflect.get(all, key)
      },
    })
    const given: Arguments = {
      values: seen,
      at: (index) => this.#argument(seen[index]),
      any: (index, instead = '') => {
        const value = seen[index]
        if (value === undefined) throw new Error('an argument of a function is missing')
        return orElse(value, instead)
      },
      fail: (test) => this.#fail(test),
      name: () => this.#name(),
    }
    const result = call(given)
    // Go's template would fail for each event.
    if (read.size < values.length) throw new Error(`the function \`${name}\` has too many arguments`)
    return result
  }

  /** Two numbers of one type or two texts. Go rejects other comparisons, so that the stage does nothing. */
  #compared(sign: string, left: Value | undefined, right: Value | undefined): string {
    if (left === undefined || right === undefined) throw new Error('a comparison has one operand')
    const isEquality = sign === '=='
    if (isNumber(left) && isNumber(right)) {
      const isSame = (isWhole(left) && isWhole(right)) || (isFloat(left) && isFloat(right))
      return isSame ? `${left.expression} ${sign} ${right.expression}` : this.#rejected('true')
    }
    if (left.type === 'condition' && right.type === 'condition' && isEquality)
      return `${left.expression} == ${right.expression}`
    if (left.type !== 'text' || right.type !== 'text') return this.#mismatched(left, right, isEquality)
    if (!isEquality) return this.#ordered(sign, left, right)
    const empty = [left, right].find(({ constant }) => constant === '')
    const other = empty === left ? right : left
    if (empty !== undefined && other.missing === 'field')
      return `(is_string(${other.expression}) && ${orEmpty(other)} == "")`
    // A missing value equals only another missing one.
    const isLiteral = [left, right].some(({ constant }) => constant !== undefined && constant !== '')
    const side = isLiteral ? orEmpty : nullable
    return `${side(left)} == ${side(right)}`
  }

  #ordered(sign: string, left: Value, right: Value): string {
    return `${this.#argument(left)} ${sign} ${this.#argument(right)}`
  }

  /** A comparison of values with different types. A missing value is only different. */
  #mismatched(left: Value, right: Value, isEquality: boolean): string {
    const missing = [left, right].find((value) => value.missing !== undefined)
    if (!isEquality || missing === undefined) return this.#rejected('true')
    return this.#rejected(
      missing.missing === 'field' ? `is_string(${missing.expression})` : `!is_null(${missing.expression})`,
    )
  }

  #rejected(test: string): string {
    return `({ ${this.#fail(test)}; false })`
  }

  /** Functions that accept missing values. */
  #operator(name: string, values: readonly Value[]): Value | undefined {
    const [first, second] = values
    switch (name) {
      case 'eq':
        if (second === undefined) throw new Error('a comparison has one operand')
        return condition(
          `(${values
            .slice(1)
            .map((value) => this.#compared('==', first, value))
            .join(' || ')})`,
        )
      case 'ne':
        return condition(`!(${this.#compared('==', first, second)})`)
      case 'lt':
      case 'le':
      case 'gt':
      case 'ge':
        return condition(`(${this.#compared(orders[name] ?? '', first, second)})`)
      case 'not':
      case 'empty':
        return condition(`!(${testOf(first ?? text('""'))})`)
      case 'and':
      case 'or':
        return this.#joined(name, values)
      case 'default':
        if (first === undefined || second === undefined) return undefined
        return firstOf([second, first])
      case 'coalesce':
        return firstOf([...values, perhaps('null')])
      case 'ternary': {
        const [, , test] = values
        if (first === undefined || second === undefined || test === undefined) return undefined
        if (test.type !== 'condition') return text(`({ ${this.#fail('true')}; "" })`)
        const chosen = `({ if ${test.expression} { ${nullable(first)} } else { ${nullable(second)} } })`
        return first.missing === undefined && second.missing === undefined ? text(chosen) : perhaps(chosen)
      }
      default:
        return undefined
    }
  }

  /** `and` and `or` return one of their operands. */
  #joined(name: 'and' | 'or', values: readonly Value[]): Value {
    if (values.length === 0) throw new Error(`\`${name}\` has no operands`)
    const isText = values.every(({ type }) => type === 'text')
    if (!isText) return condition(`(${values.map(testOf).join(name === 'and' ? ' && ' : ' || ')})`)
    if (name === 'or') return firstOf(values)
    const last = values.at(-1) as Value
    const chosen = values
      .slice(0, -1)
      .reduceRight((rest, value) => `if ${testOf(value)} { ${rest} } else { ${nullable(value)} }`, nullable(last))
    return perhaps(`({ ${chosen} })`)
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
      case 'dot':
        if (this.#dot === undefined) throw new Error('the dot is all values')
        return this.#dot
      case 'field':
        if (this.#dot !== undefined) throw new Error(`\`.${word.text}\` is below the value of \`with\``)
        return this.#field(word.text)
      case 'root':
        return this.#field(word.text)
      case 'group':
        return word.members.reduce(memberOf, this.#value(word.words))
      case 'name':
        if (word.text === 'true' || word.text === 'false') return condition(word.text)
        return this.#function(word.text, [])
      default:
        throw new Error('a pipe has no value')
    }
  }

  #field(name: string): Value {
    if (name.includes('.')) throw new Error(`\`.${name}\` is below a text`)
    const found = this.#fields(name)
    return 'text' in found ? text(found.text) : { type: 'text', expression: found.path, missing: 'field' }
  }
}
