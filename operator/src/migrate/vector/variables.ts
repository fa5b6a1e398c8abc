// Environment variables of a configuration. In sources and sinks, a variable becomes a key of a Secret. In programs, an expression reads it
// from the environment of the agent, because a program cannot refer to a Secret. A default replaces its variable everywhere.

import { positionAt, type Segments, type TextPosition } from '@penstock/agent/config'
import { isTable, walkOptions } from '@penstock/agent/schema'
import { memberAt, type Table } from '../documents.ts'
import type { Gap, Step } from '../draft.ts'
import { readReport } from '../environment.ts'
import { compiledText } from '../simplified.ts'
import { withoutBackends, withQuotedNames } from './adjusted.ts'
import { type Substituted, valueWithoutVariables, withoutVariables } from './environment.ts'
import type { Old } from './old.ts'

/** Characters around the number of a reference in a program, until the program is complete. No escape changes them. */
const [start, end] = ['\uE000', '\uE001']
const marked = new RegExp(`${start}(\\d+)${end}`, 'g')
/** The name in a reference such as `${NAME:?message}`. */
const nameIn = (whole: string) => /^\$\{?([A-Za-z0-9_.]+)/.exec(whole)?.[1] ?? whole

/** Comments, texts and expressions in quotes. */
const quoted = /#[^\n]*|"(?:[^"\\]|\\.)*"|\b[rst]'(?:[^'\\]|\\.)*'/gs

/** Variables that the pods of an agent have, by their usual names and by the field of the pod. */
const ownVariables: readonly { readonly usual: RegExp; readonly path?: string; readonly own: string }[] = [
  { usual: /^(?:\w+_)?(?:NODE_NAME|NODENAME)$/, path: 'spec.nodeName', own: 'AGENT_SELF_NODE_NAME' },
  { usual: /^(?:VECTOR_SELF_)?POD_NAME$/, path: 'metadata.name', own: 'POD_NAME' },
  { usual: /^(?:VECTOR_SELF_)?POD_NAMESPACE$/, path: 'metadata.namespace', own: 'POD_NAMESPACE' },
  { usual: /^HOSTNAME$/, own: 'HOSTNAME' },
]

const readCall = /\bget_env_var(!?\s*\(\s*)((?:name:\s*)?")([A-Za-z0-9_.]+)"/g

/** The place of the call that reads a variable, in the program or the condition of a component. */
function placeOfCall(options: Table, name: string): OptionPlace {
  for (const path of [['source'], ['condition'], ['condition', 'source']]) {
    const text = memberAt(options, path)
    const found = typeof text === 'string' ? [...text.matchAll(readCall)].find((call) => call[3] === name) : undefined
    if (found !== undefined) return { path, at: positionAt(String(text), found.index) }
  }
  return { path: [] }
}

/** The field of metadata for a variable of the pod. */
const ownField = (variable: string) => variable.toLowerCase()

/** The transforms that set these fields. */
export const ownSteps = (variables: readonly string[]): readonly Step[] =>
  variables.length === 0
    ? []
    : [
        {
          type: 'remap',
          text: variables.map((variable) => `%${ownField(variable)} = get_env_var("${variable}") ?? ""`).join('\n'),
        },
      ]

/** The options of a sink in whose templates fields of metadata replace the variables of the pod. */
function withOwnFields(
  options: Table,
  schema: Table,
  hasHeaders: boolean,
  ownOf: (name: string) => string | undefined,
  onOwn: (variable: string) => void,
): Table {
  const copy = structuredClone(options)
  walkOptions(schema, copy, ({ path, value, schemas }) => {
    const last = path.at(-1)
    // Headers of the sink `http` are templates if they contain a field.
    const isTemplate = schemas.some(({ format }) => format === 'template') || (hasHeaders && path.at(-2) === 'headers')
    if (typeof value !== 'string' || last === undefined || !isTemplate) return
    const text = value.replace(/\$\$|\$(?:\{(\w+)\}|(\w+))/g, (whole, braced?: string, plain?: string) => {
      const own = ownOf(braced ?? plain ?? '')
      if (own === undefined) return whole
      onOwn(own)
      return `{{ %${ownField(own)} }}`
    })
    const parent = memberAt(copy, path.slice(0, -1))
    Reflect.set(Object(parent), last, text)
  })
  return copy
}

/** A reference in the old configuration: its text, and its place in the options of a component. */
interface Reference extends OptionPlace {
  readonly whole: string
}

interface OptionPlace {
  readonly path: Segments
  /** The position in the text of the option. */
  readonly at?: TextPosition | undefined
}

export class Variables {
  readonly #podFields: ReadonlyMap<string, string>
  readonly #gaps: Gap[]
  /** Whether programs may read the environment of the agent. */
  readonly #readsEnvironment: boolean
  readonly #reported = new Set<string>()
  /** The references that marks stand for. */
  readonly #marked: Reference[] = []

  /** @param podFields fields of the pod that variables have as their values */
  constructor(gaps: Gap[], readsEnvironment: boolean, podFields: ReadonlyMap<string, string>) {
    this.#podFields = podFields
    this.#gaps = gaps
    this.#readsEnvironment = readsEnvironment
  }

  /** The component with the defaults of variables in its type and inputs. */
  named(old: Old): Old {
    const plain = (text: string, ...path: Segments) =>
      withoutVariables(text, false, (variable) => this.#report(old, variable, path, 'default'))
    return { ...old, type: plain(old.type, 'type'), inputs: old.inputs.map((input) => plain(input, 'inputs')) }
  }

  /**
   * The options of a source or a sink: references to keys of Secrets and defaults replace variables. In a template, a field of metadata
   * replaces a variable that differs between pods.
   * @param onOwn called with the name of each of these fields
   */
  inOptions(old: Old, schema: Table, onOwn: (name: string) => void): Record<string, unknown> {
    const own =
      this.#readsEnvironment && old.kind === 'sinks'
        ? withOwnFields(old.options, schema, old.type === 'http', (name) => this.#own(name), onOwn)
        : old.options
    const given = old.kind === 'sinks' ? withQuotedNames(own) : own
    const options = withoutBackends(given, (key) => this.#reportBackend(old, key))
    return valueWithoutVariables(options, (variable, path) => this.#report(old, variable, path)) as Record<
      string,
      unknown
    >
  }

  /** The options of a transform: defaults replace variables, and the others are marked until `program` reads them. */
  inTransform(old: Old): Record<string, unknown> {
    const visit = (value: unknown, path: Segments = []): unknown => {
      if (typeof value === 'string') return this.inText(old, value, path)
      if (Array.isArray(value)) return value.map((item, index) => visit(item, [...path, index]))
      if (!isTable(value)) return value
      return Object.fromEntries(Object.entries(value).map(([key, below]) => [key, visit(below, [...path, key])]))
    }
    return visit(old.options) as Record<string, unknown>
  }

  /** The same for one text. @param path undefined if it is not in the options */
  inText(old: Old, text: string, path?: Segments): string {
    return withoutVariables(
      text,
      false,
      ({ at, ...variable }) =>
        this.#report(old, path === undefined ? variable : { ...variable, at }, path ?? [], 'default'),
      (whole, at) => {
        const place = path === undefined ? { path: [] } : { path, at }
        return `${start}${this.#marked.push({ whole, ...place }) - 1}${end}`
      },
    )
  }

  /** A program in which expressions read the marked variables. If it does not compile, they stay as they are and become gaps. */
  program(old: Old, type: Step['type'], text: string): string {
    const own = text.replace(readCall, (whole, open: string, before: string, name: string) => {
      const known = this.#readsEnvironment ? this.#own(name) : undefined
      if (known !== undefined) return `get_env_var${open}${before}${known}"`
      this.#reportRead(old, name, placeOfCall(old.options, name))
      // It fails like a variable that is not set.
      return this.#readsEnvironment ? whole : `string${open}null`
    })
    const references = this.#referencesIn(own.replace(quoted, (whole) => (whole.startsWith('#') ? '' : whole)))
    if (references.length === 0) return this.#restored(own)
    if (this.#readsEnvironment) {
      const found = own.replace(quoted, (whole) =>
        whole.includes(start) && /^(?:"|s')/.test(whole) ? this.#reading(whole) : whole,
      )
      const others = this.#referencesIn(found.replace(quoted, (whole) => (whole.startsWith('#') ? '' : whole)))
      if (others.length === 0 && compiledText(type, this.#restored(found)).ok) {
        for (const { name, ...place } of references)
          if (this.#own(name) === undefined) this.#reportRead(old, name, place)
        return this.#restored(found)
      }
    }
    this.#reportKept(old, references)
    return this.#restored(own)
  }

  /** The options of a transform without marks: expressions read the variables of its programs, and others become gaps. */
  inPrograms(old: Old, options: Table): Record<string, unknown> {
    const { source, condition } = options
    const judged = (text: string) => this.program(old, 'filter', text)
    const programs = {
      ...(typeof source === 'string' && { source: this.program(old, 'remap', source) }),
      ...(typeof condition === 'string' && { condition: judged(condition) }),
      ...(isTable(condition) &&
        typeof condition['source'] === 'string' && {
          condition: { ...condition, source: judged(condition['source']) },
        }),
    }
    return this.#others(old, { ...options, ...programs })
  }

  #others(old: Old, options: Table): Record<string, unknown> {
    const visit = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(visit)
      if (isTable(value)) return Object.fromEntries(Object.entries(value).map(([key, below]) => [key, visit(below)]))
      if (typeof value !== 'string') return value
      this.#reportKept(old, this.#referencesIn(value))
      return this.#restored(value)
    }
    return visit(options) as Record<string, unknown>
  }

  /** The name that a variable of the pod has here; undefined for other variables. */
  #own(name: string): string | undefined {
    const field = this.#podFields.get(name)
    return ownVariables.find(({ usual, path }) => (field === undefined ? usual.test(name) : field === path))?.own
  }

  /** Reports references that stay in a text. */
  #reportKept(old: Old, references: readonly (OptionPlace & { readonly name: string })[]): void {
    for (const { name, path, at } of references) this.#report(old, { name, how: 'kept', at }, path)
  }

  #restored(text: string): string {
    return text.replace(marked, (_, index) => this.#marked[Number(index)]?.whole ?? '')
  }

  /** The marked references of a text, with their variables. */
  #referencesIn(text: string): readonly (OptionPlace & { readonly name: string })[] {
    return [...text.matchAll(marked)].flatMap(([, index]) => {
      const { whole, ...place } = this.#marked[Number(index)] ?? {}
      return whole === undefined ? [] : [{ path: [], ...place, name: nameIn(whole) }]
    })
  }

  /** A text in double quotes, or a raw text, as an expression that reads its variables. */
  #reading(text: string): string {
    const [open, close] = text.startsWith('"') ? ['"', '"'] : ["s'", "'"]
    const parts = text
      .slice(open.length, -close.length)
      .split(new RegExp(`(${start}\\d+${end})`))
      .filter((part) => part !== '')
      .map((part) => {
        const [{ name } = {}] = this.#referencesIn(part)
        return name === undefined ? `${open}${part}${close}` : `(get_env_var("${this.#own(name) ?? name}") ?? "")`
      })
    return parts.length === 1 ? (parts[0] ?? '') : `(${parts.join(' + ')})`
  }

  #gap(old: Old, place: OptionPlace, subject: string, reason: string, nearest: string, isReplaced: boolean): void {
    const { path, at } = place
    const { line, column } = old.root.placeOf([old.kind, old.id, ...path], at)
    const gap: Gap = {
      ...{ file: old.root.file, line, ...(at !== undefined && { column }) },
      ...{ subject, reason, nearest },
    }
    this.#gaps.push(isReplaced ? { ...gap, isReplaced } : gap)
  }

  /** Reports a reference of a program that stays in it. */
  #reportRead(old: Old, name: string, place: OptionPlace): void {
    if (!this.#isFirst(`read ${name}`)) return
    const { reason, nearest } = readReport(name)
    if (this.#readsEnvironment) this.#gap(old, place, `$${name}`, reason, nearest, true)
    else {
      const without = 'the program of a Pipeline in a namespace has no variables of the environment'
      this.#gap(old, place, `$${name}`, without, 'Replace it with its value.', false)
    }
  }

  /** @param only reports nothing else */
  #report(old: Old, { name, how, fallback, at }: Substituted, path: Segments, only?: Substituted['how']): void {
    if (only !== undefined && how !== only) return
    if (!this.#isFirst(`${how} ${name}`)) return
    const place = { path, at }
    if (how === 'secret') {
      if (this.#own(name) !== undefined) {
        const reason = 'pods have different values of the variable, and a Secret has one'
        this.#gap(old, place, `$${name}`, reason, 'Remove it, or replace it with a field of the event.', false)
        return
      }
      const nearest = 'Create the Secret that `spec.secrets` names, with a key of the same name.'
      this.#gap(old, place, `$${name}`, 'a key of a Secret replaces the environment variable', nearest, true)
    } else if (how === 'default') {
      const reason = `a resource is literal text; the default \`${fallback}\` replaces the variable`
      this.#gap(old, place, `$${name}`, reason, 'If the variable had another value, use it instead.', true)
    } else {
      const reason = 'a program is literal text, and the environment variable has no value here'
      this.#gap(old, place, `$${name}`, reason, 'Replace it with its value.', false)
    }
  }

  #reportBackend(old: Old, key: string): void {
    if (!this.#isFirst(`backend ${key}`)) return
    const nearest = `Create the Secret that \`spec.secrets\` names, with the key \`${key}\`.`
    this.#gap(old, { path: [] }, key, 'a key of a Secret replaces the secret', nearest, true)
  }

  #isFirst(key: string): boolean {
    if (this.#reported.has(key)) return false
    this.#reported.add(key)
    return true
  }
}
