// The statements that a Ruby expression needs before its value: variables, and checks for errors that Ruby would raise.

import { textLiteral } from '@penstock/agent/config'
import { ownName } from '../fluent-bit/own-time.ts'
import { fieldNode, isRecord, type Node, UnknownRuby } from './ruby-node.ts'

export class Emitter {
  /** Statements that must run before the expression. */
  readonly before: string[] = []
  /** Whether the value reads the record after a part of it has been deleted, so that the order of values matters. */
  hasDeleted = false
  readonly #name: string
  readonly isWide: boolean
  readonly changesRecord: boolean
  /** Ruby variables, and the names that statements declare before all others. */
  readonly #variables = new Map<string, Node>()
  readonly #declared: string[] = []
  #kepts = 0
  #depth = 0
  /** The statement for an error in Ruby: it discards the event, or sets the variable of a `rescue`. */
  #onError = 'abort'

  /**
   * @param name the prefix for names of variables
   * @param changesRecord whether members that the code sets are those of the record itself, not of a copy
   * @param isWide whether the compiler may know nothing about the kinds of variables, because a program with kinds was not valid
   */
  constructor(name: string, isWide: boolean, changesRecord = false) {
    this.#name = name
    this.isWide = isWide
    this.changesRecord = changesRecord
  }

  get statements(): readonly string[] {
    return [...this.#declared.map((name) => `${name} = null`), ...this.before]
  }

  /** Stores the value of an expression in a variable. */
  kept(expression: string, kind: Node['kind']): Node {
    const variable = this.fresh()
    this.#set(variable, expression, kind)
    return kind === 'any' ? fieldNode(variable, []) : { text: variable, kind }
  }

  #set(variable: string, expression: string, kind: Node['kind']): void {
    this.before.push(`${variable} = ${expression}`)
    if (this.isWide && kind === 'any') this.before.push(`${variable} = get([${variable}], [0]) ?? null`)
  }

  /** A name for a variable of the program that is not yet in use. */
  fresh(): string {
    return `${this.#name}_${this.#kepts++}`
  }

  variable(name: string): Node | undefined {
    return this.#variables.get(name)
  }

  /** Assigns a value to a variable of Ruby. A variable that is assigned in some cases only is nil in the others. */
  assign(name: string, value: Node): Node {
    const variable = `${this.#name}_${name}`
    const known = this.#variables.get(name)
    const isFixed = known === undefined && this.#depth === 0
    if (known === undefined && this.#depth > 0) this.#declared.push(variable)
    const kind = isFixed ? value.kind : 'any'
    this.#set(variable, value.text, kind)
    const node = kind === 'any' ? fieldNode(variable, []) : { text: variable, kind }
    this.#variables.set(name, node)
    return node
  }

  /** A part that Ruby evaluates only in some cases, together with the statements that it needs. */
  scoped(read: () => Node): Node {
    const from = this.before.length
    this.#depth++
    const node = read()
    this.#depth--
    const statements = this.before.splice(from)
    if (statements.length === 0) return node
    const { path: _path, root: _root, literal: _literal, ...rest } = node
    return { ...rest, text: `{\n${[...statements, node.text].join('\n')}\n}` }
  }

  /** The code of a block, with values for its parameters. Outside of it, the parameters mean what they meant before. */
  block(parameters: ReadonlyMap<string, Node>, read: () => Node): Node {
    const outer = new Map([...parameters.keys()].map((name) => [name, this.#variables.get(name)]))
    const node = this.scoped(() => {
      for (const [name, value] of parameters) {
        const isVariable = value.root !== undefined && value.path?.length === 0
        this.#variables.set(name, isVariable ? value : this.kept(value.text, value.kind))
      }
      return read()
    })
    for (const [name, value] of outer) {
      if (value === undefined) this.#variables.delete(name)
      else this.#variables.set(name, value)
    }
    return node
  }

  /** The Ruby code raises an error if the condition is true. */
  failIf(condition: string): void {
    this.before.push(`if ${condition} { ${this.#onError} }`)
  }

  /** The value of a part, or that of another part if an error occurs in it. */
  rescued(read: () => Node, other: () => Node): Node {
    const outer = this.#onError
    const hasFailed = this.kept('false', 'boolean').text
    this.#onError = `${hasFailed} = true`
    const node = read()
    this.#onError = outer
    const instead = this.scoped(other)
    return this.kept(`if ${hasFailed} { ${instead.text} } else { ${node.text} }`, 'any')
  }

  /** The receiver of a method that only texts have. */
  textOf(node: Node): Node {
    if (node.kind === 'text') return node
    if (node.kind !== 'any' || node.pairs !== undefined) throw new UnknownRuby()
    const other = this.#onError === 'abort' ? 'abort' : `${this.#onError}\n""`
    return this.kept(`if is_string(${node.text}) { string!(${node.text}) } else { ${other} }`, 'text')
  }

  /** The result of a call that fails, as `value, error = call`. */
  parsed(call: string): Node {
    const variable = this.fresh()
    this.before.push(`${variable}, ${variable}_error = ${call}`)
    this.failIf(`${variable}_error != null`)
    return fieldNode(variable, [])
  }

  /** `if` with the values of both cases. */
  either(test: string, yes: Node, no: Node): Node {
    const kind = yes.kind === no.kind ? yes.kind : 'any'
    return this.kept(`if ${test} { ${yes.text} } else { ${no.text} }`, kind)
  }

  /** Deletes a member of an object within the record, by a name that only the event contains. */
  removed(owner: Node, key: Node): Node {
    if (owner.path === undefined || isRecord(owner)) throw new UnknownRuby()
    this.hasDeleted = true
    this.failIf(`!is_object(${owner.text})`)
    const name = `to_string(${key.text}) ?? ""`
    const value = this.kept(`get(${owner.text}, [${name}]) ?? null`, 'any')
    this.before.push(`${owner.text} = remove(object(${owner.text}) ?? {}, [${name}]) ?? ${owner.text}`)
    return value
  }

  /** Sets a member, and returns its value. */
  assigned(owner: Node, key: Node, value: Node): Node {
    if (owner.path === undefined || (isRecord(owner) && !this.changesRecord)) throw new UnknownRuby()
    const kept = this.kept(value.text === '' ? '{}' : value.text, value.kind)
    if (!isRecord(owner)) this.failIf(`!is_object(${owner.text})`)
    const isObject = isRecord(owner) ? owner.text : `object(${owner.text}) ?? {}`
    if (key.literal !== undefined) {
      const name = textLiteral(isRecord(owner) ? ownName(key.literal) : key.literal)
      this.before.push(`${owner.text} = set!(${isObject}, [${name}], ${kept.text})`)
    } else {
      this.failIf(`!is_string(${key.text})`)
      this.before.push(`${owner.text} = set!(${isObject}, [to_string(${key.text}) ?? ""], ${kept.text})`)
    }
    return kept
  }

  /**
   * Deletes a member, and returns its value. The record keeps a field of its own, because Fluentd sets the values on a copy of the record;
   * later values do not see the field.
   * The variable `restored` has the fields that the record gets back.
   */
  deleted(owner: Node, name: string): Node {
    const field = fieldNode(undefined, [...(owner.path ?? []), name]).text
    this.hasDeleted = true
    if (owner.path?.length === 0) {
      const kept = `object(set(restored, [${textLiteral(name)}], ${field}) ?? null) ?? restored`
      this.before.push(`if exists(${field}) { restored = ${kept} }`)
    }
    return this.kept(`del(${field})`, 'any')
  }
}
