// Evaluates expressions of Alloy to settings. An environment variable stays as `${NAME}`; an export of a component becomes a reference.

import { posix } from 'node:path'
import type { Report } from '../loki/context.ts'
import { isNodeVariable } from '../loki/fields.ts'
import { isList, isMap, itemsOf, type Place, type Scalar, type Tree, textOf, textsOf } from '../loki/tree.ts'
import type { Attribute, Block, Expression } from './syntax.ts'

/** The prefix of a reference; it cannot occur in a text of the user. */
const mark = '\u{e000}'

/** The path of a reference, such as `loki.write.default.receiver`. */
export function referenceOf(tree: Tree | undefined): string | undefined {
  const text = textOf(tree)
  return text?.startsWith(mark) === true ? text.slice(mark.length) : undefined
}

type Call = (values: readonly Tree[]) => Scalar | readonly Tree[] | undefined

const join = (values: readonly Tree[], separator: string) =>
  textsOf({ file: '', line: 1, value: values }).join(separator)
/** Whether a text contains a variable, whose value only the agent knows. */
const hasVariable = (text: string) => /\$\{[A-Z_]/.test(text)
/** A function of known texts. The value of a variable cannot be changed here. */
const onTexts =
  (change: (text: string, ...more: readonly string[]) => string): Call =>
  (values) => {
    const texts = values.map((value) => textOf(value) ?? '')
    const [first, ...more] = texts
    return first === undefined || texts.some(hasVariable) ? undefined : change(first, ...more)
  }
const lower = onTexts((text) => text.toLowerCase())
const upper = onTexts((text) => text.toUpperCase())
const trim = onTexts((text) => text.trim())
const replace = onTexts((text, from = '', to = '') => text.replaceAll(from, to))
/** Cuts characters of a set from both ends. */
const trimSet = onTexts((text, set = '') => {
  if (set === '') return text
  const some = `(?:${[...set].map(RegExp.escape).join('|')})+`
  return text.replace(new RegExp(`^${some}|${some}$`, 'gu'), '')
})
const split: Call = (values) => {
  const [text, separator] = values.map(textOf)
  const [place] = values
  if (place === undefined || text === undefined || separator === undefined || hasVariable(text)) return undefined
  return text.split(separator).map((value) => ({ ...place, value }))
}
const concat: Call = (values) => values.flatMap((value) => (isList(value) ? value.value : [value]))

/** `%s`, `%d`, `%v` and `%q` consume the values in order. */
const format: Call = ([form, ...values]) => {
  let next = 0
  let isWhole = true
  const text = (textOf(form) ?? '').replace(/%([a-z%])/g, (whole, verb: string) => {
    if (verb === '%') return '%'
    const value = textOf(values[next++])
    if (value === undefined || !'sdvq'.includes(verb)) isWhole = false
    return verb === 'q' ? JSON.stringify(value) : (value ?? whole)
  })
  return isWhole ? text : undefined
}

/** The first value that is not empty. An environment variable gets the value after it as its default. */
const coalesce: Call = (values) => {
  for (const [index, value] of values.entries()) {
    const text = textOf(value)
    const variable = /^\$\{(\w+)\}$/.exec(text ?? '')?.[1]
    const following = textOf(values[index + 1])
    if (variable !== undefined && text !== undefined) {
      // Variables with the name of the node have the same value.
      if (following === undefined || (isNodeVariable(text) && isNodeVariable(following))) return text
      return hasVariable(following) ? undefined : `\${${variable}:-${following}}`
    }
    if (isList(value) && value.value.length > 0) return value.value
    if (text !== undefined && text !== '' && text !== 'false' && text !== '0') return value.value as Scalar
  }
  return null
}

const variable: Call = ([name]) => {
  const text = textOf(name)
  return text === undefined || !/^[A-Z_][A-Z0-9_]*$/.test(text) ? undefined : `\${${text}}`
}

const functions: Readonly<Record<string, Call>> = {
  'sys.env': variable,
  env: variable,
  'string.format': format,
  format,
  'string.join': ([list, separator]) => join(itemsOf(list), textOf(separator) ?? ''),
  join: ([list, separator]) => join(itemsOf(list), textOf(separator) ?? ''),
  'string.to_lower': lower,
  to_lower: lower,
  'string.to_upper': upper,
  to_upper: upper,
  'string.trim_space': trim,
  trim_space: trim,
  'string.trim_prefix': onTexts((text, prefix = '') => (text.startsWith(prefix) ? text.slice(prefix.length) : text)),
  'string.trim_suffix': onTexts((text, suffix = '') =>
    text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text,
  ),
  'string.replace': replace,
  replace,
  'string.trim': trimSet,
  trim: trimSet,
  'string.split': split,
  split,
  'file.path_join': (values) => {
    const texts = values.map(textOf)
    return texts.every((text) => text !== undefined) ? posix.join(...texts) : undefined
  },
  concat,
  'array.concat': concat,
  coalesce,
  nonsensitive: ([value]) => value?.value as Scalar,
  'convert.nonsensitive': ([value]) => value?.value as Scalar,
}

/** The variable for the export of a component that provides a single value, by its path. */
function variableOf(path: readonly string[]): string | undefined {
  const [room, kind] = path
  if (room === 'local' && kind === 'file' && path[3] === 'content') return path[2]
  if (room === 'remote' && ['http', 's3'].includes(kind ?? '') && path[3] === 'content') return path[2]
  // Several Secrets may have a key with the same name.
  if (room === 'remote' && kind === 'kubernetes' && path[4] === 'data') return `${path[3]}_${path[5]}`
  if (room === 'remote' && kind === 'vault' && path.includes('data')) return `${path[2]}_${path.at(-1)}`
  return undefined
}

export class Evaluator {
  readonly #file: string
  readonly #above: number
  readonly #report: Report
  readonly #line: number | undefined
  /** Keys of Secrets that values refer to, by the names of their variables. */
  readonly secrets = new Map<string, { readonly path: readonly string[]; readonly place: Place }>()

  /**
   * @param above lines of the file before the text
   * @param line the line for all parts, if the text is generated from chart values
   */
  constructor(file: string, above: number, report: Report, line?: number) {
    this.#line = line
    this.#file = file
    this.#above = above
    this.#report = report
  }

  place(line: number): Place {
    return { file: this.#file, line: this.#line ?? this.#above + line }
  }

  attribute(block: Block, name: string): Tree | undefined {
    const found = block.attributes.find((attribute) => attribute.name === name)
    return found === undefined ? undefined : this.#attribute(found)
  }

  #attribute({ line, value }: Attribute): Tree {
    return { ...this.value(value), ...this.place(line) }
  }

  /** A block as settings. Inner blocks are members by name, or a list if several have the same name. */
  tree(block: Block, leaves: readonly string[] = []): Tree {
    const members = new Map<string, Tree>()
    for (const attribute of block.attributes) members.set(attribute.name, this.#attribute(attribute))
    for (const inner of block.blocks) {
      if (leaves.includes(inner.name)) continue
      const tree = this.tree(inner)
      const before = members.get(inner.name)
      const all =
        before === undefined ? tree : { ...before, value: isList(before) ? [...before.value, tree] : [before, tree] }
      members.set(inner.name, all)
    }
    return { ...this.place(block.line), value: members }
  }

  value(expression: Expression): Tree {
    const place = this.place(expression.line)
    const give = (value: Tree['value'] | undefined): Tree => {
      if (value !== undefined) return { ...place, value }
      this.#report.gap(
        place,
        'expression',
        'the value of the expression is known only while Alloy runs',
        'Replace the expression with its value.',
      )
      return { ...place, value: null }
    }
    switch (expression.kind) {
      case 'literal':
        return give(expression.value)
      case 'list':
        return give(expression.items.map((item) => this.value(item)))
      case 'object':
        return give(new Map(expression.members.map(([name, member]) => [name, this.value(member)])))
      case 'path':
        return this.#path(expression.path, place, give)
      case 'index':
        return this.#index(expression, place, give)
      case 'call': {
        const call = Object.hasOwn(functions, expression.name) ? functions[expression.name] : undefined
        return give(call?.(expression.values.map((value) => this.value(value))))
      }
      case 'unary': {
        const { value } = this.value(expression.value)
        return give(
          expression.sign === '-' && typeof value === 'number'
            ? -value
            : typeof value === 'boolean'
              ? !value
              : undefined,
        )
      }
      case 'binary':
        return give(binary(expression.sign, this.value(expression.left), this.value(expression.right)))
    }
  }

  #path(path: readonly string[], place: Place, give: (value: Tree['value'] | undefined) => Tree): Tree {
    if (path.join('.') === 'constants.hostname') return give('$'.concat('{HOSTNAME}'))
    if (path.join('.') === 'constants.os') return give('linux')
    const own = variableOf(path)
    if (own !== undefined) return give(this.#secret(own, path, place))
    if (path[0] === 'argument' || path[0] === 'module' || path.length < 3) return give(undefined)
    return give(mark + path.join('.'))
  }

  /** `remote.kubernetes.secret.x.data["password"]`, or a member of a value. */
  #index(
    expression: Expression & { kind: 'index' },
    place: Place,
    give: (value: Tree['value'] | undefined) => Tree,
  ): Tree {
    const name = textOf(this.value(expression.index))
    if (expression.of.kind === 'path' && name !== undefined) {
      const path = [...expression.of.path, name]
      const own = variableOf(path)
      if (own !== undefined) return give(this.#secret(own, path, place))
    }
    const of = this.value(expression.of)
    if (isMap(of) && name !== undefined) return give(of.value.get(name)?.value)
    if (isList(of) && name !== undefined) return give(of.value[Number(name)]?.value)
    return give(undefined)
  }

  #secret(name: string, path: readonly string[], place: Place): string {
    const key = name
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')
      .replace(/^(?=\d)/, '_')
    this.secrets.set(key, { path, place })
    return `\${${key}}`
  }
}

function binary(sign: string, left: Tree, right: Tree): Tree['value'] | undefined {
  const [one, other] = [left.value, right.value]
  // A text with a variable can only be joined with others.
  if (sign !== '+' && [one, other].some((value) => typeof value === 'string' && hasVariable(value))) return undefined
  if (sign === '==') return one === other
  if (sign === '!=') return one !== other
  if (typeof one === 'boolean' && typeof other === 'boolean') return sign === '&&' ? one && other : one || other
  if (sign === '+') {
    if (isList(left) && isList(right)) return [...left.value, ...right.value]
    if (typeof one === 'string' && typeof other === 'string') return one + other
  }
  if (typeof one !== 'number' || typeof other !== 'number') return undefined
  const results: Readonly<Record<string, number | boolean>> = {
    '+': one + other,
    '-': one - other,
    '*': one * other,
    '/': one / other,
    '%': one % other,
    '^': one ** other,
    '<': one < other,
    '<=': one <= other,
    '>': one > other,
    '>=': one >= other,
  }
  return results[sign]
}
