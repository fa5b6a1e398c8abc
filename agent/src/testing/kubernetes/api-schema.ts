// The API of one version of Kubernetes, as far as the agent uses it. Checks objects strictly, checks requests, and creates objects with
// all fields of that version.

import { readFileSync } from 'node:fs'
import { isTable } from '../../schema/walk.ts'

type Table = Readonly<Record<string, unknown>>

interface Member {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
}

/** Maximum nesting of objects of recursive types. */
const maxDepth = 12

export class ApiSchema {
  readonly #members = new Map<string, readonly Member[]>()
  readonly #plain = new Map<string, string>()
  readonly #requests: { readonly pattern: RegExp; readonly parameters: ReadonlySet<string> }[] = []

  /** @param version a version with a file in this folder, such as `1.19` */
  constructor(version: string) {
    const text = readFileSync(new URL(`./${version}.txt`, import.meta.url), 'utf8')
    for (const line of text.trim().split('\n')) {
      const [word, name = '', ...rest] = line.split(' ')
      if (word === 'get') {
        const pattern = new RegExp(`^${name.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
        this.#requests.push({ pattern, parameters: new Set(rest) })
      } else if (word === 'type' && rest[0] === '=') this.#plain.set(name, rest[1] as string)
      else if (word === 'type') this.#members.set(name, rest.map(memberOf))
    }
  }

  /** Problems of an object, with paths: fields that this version does not have, and values of wrong types. */
  problemsOf(kind: string, object: unknown): string[] {
    if (!this.#members.has(kind)) return [`${kind}: no such kind`]
    return [...this.#check(object, kind, kind)]
  }

  *#check(value: unknown, type: string, path: string): Generator<string> {
    const inner = type.slice(1, -1)
    const members = this.#members.get(type)
    if (type.startsWith('[')) {
      if (!Array.isArray(value)) yield `${path}: must be a list`
      else for (const [index, item] of value.entries()) yield* this.#check(item, inner, `${path}[${index}]`)
    } else if (type.startsWith('{')) {
      if (!isTable(value)) yield `${path}: must be a table`
      else for (const [key, item] of Object.entries(value)) yield* this.#check(item, inner, `${path}.${key}`)
    } else if (members !== undefined) {
      if (!isTable(value)) yield `${path}: must be a table`
      else yield* this.#checkTable(value, members, path)
    } else if (!this.#plainTypes(type).includes(typeNameOf(value))) yield `${path}: must be of type ${type}`
  }

  *#checkTable(value: Table, members: readonly Member[], path: string): Generator<string> {
    for (const { name, isRequired } of members) {
      if (isRequired && value[name] === undefined) yield `${path}.${name}: missing`
    }
    for (const [key, item] of Object.entries(value)) {
      const member = members.find(({ name }) => name === key)
      if (member === undefined) yield `${path}.${key}: no such field`
      else yield* this.#check(item, member.type, `${path}.${key}`)
    }
  }

  #plainTypes(type: string): readonly string[] {
    return (this.#plain.get(type) ?? type).split('|')
  }

  /** Returns undefined if this version serves requests to `path?query`; otherwise the problem. */
  problemOfRequest(request: string): string | undefined {
    const url = new URL(request, 'http://localhost')
    const known = this.#requests.find(({ pattern }) => pattern.test(url.pathname))
    if (known === undefined) return `${url.pathname}: no such path`
    const unknown = [...url.searchParams.keys()].find((name) => !known.parameters.has(name))
    return unknown === undefined ? undefined : `${url.pathname}: no parameter ${unknown}`
  }

  /** An object with all fields of its kind. Texts contain the paths of their fields. */
  complete(kind: string): Table {
    return this.#sample(kind, kind, 0) as Table
  }

  #sample(type: string, path: string, depth: number): unknown {
    const inner = type.slice(1, -1)
    if (type.startsWith('[')) return depth > maxDepth ? [] : [this.#sample(inner, path, depth + 1)]
    if (type.startsWith('{')) return { key: this.#sample(inner, `${path}.key`, depth + 1) }
    const members = this.#members.get(type)
    if (members !== undefined) {
      if (depth > maxDepth) return {}
      return Object.fromEntries(
        members.map(({ name, type: own }) => [name, this.#sample(own, `${path}.${name}`, depth + 1)]),
      )
    }
    const [plain = ''] = this.#plainTypes(type)
    return { string: path, integer: 1, number: 1, boolean: true, object: {} }[plain]
  }
}

function memberOf(text: string): Member {
  const [name = '', type = ''] = text.split(':')
  return { name: name.replace(/!$/, ''), type, isRequired: name.endsWith('!') }
}

function typeNameOf(value: unknown): string {
  return Number.isInteger(value) ? 'integer' : typeof value
}
