// Makes a conversion fit a namespace, where a Pipeline reads no files of the node: files with the content of an option become keys of a
// Secret. Other parts that the rules for namespaces forbid are refused, or become gaps if a TenantPolicy may allow them.

import { findComponent, optionsOf } from '@penstock/agent/config'
import {
  type ComponentKind,
  type LimitName,
  limits,
  meaningOf,
  namesFile,
  pathOf,
  walkOptions,
} from '@penstock/agent/schema'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import { identityViolations, optionViolations, runsOn, typeViolations } from '../compile/tenancy.ts'
import type { Component, Draft, Identity, Kind, Origin } from './draft.ts'

const kinds: Readonly<Record<Kind, ComponentKind>> = { sources: 'source', transforms: 'transform', sinks: 'sink' }

/** A policy that allows everything that a policy can. */
const generous: TenantPolicySpec = {
  namespaceSelector: {},
  allowedSources: ['*'],
  allowedSinks: ['*'],
  implicitCredentials: 'Allow',
  maxReadBytes: '1Ti',
  limits: Object.fromEntries(
    (Object.keys(limits) as LimitName[]).flatMap((name) =>
      limits[name].field === undefined ? [[name, limits[name].unit === 'bytes' ? '1Ti' : 1_000_000_000]] : [],
    ),
  ),
}

/**
 * Replaces files by keys of a Secret, and adds gaps for them and for parts that need a TenantPolicy.
 * @returns the parts that no policy allows, with their reasons
 */
export function fitNamespace(
  draft: Draft,
  identity: Identity & { readonly namespace: string },
  file: string,
): string[] {
  const files = new SecretFiles(`${identity.name}-files`, identity.namespace, draft)
  const elsewhere = new Set(draft.ofFiles().map(({ name }) => name))
  const refused: string[] = []
  draft.replaceEach((kind, name, component) => {
    if (elsewhere.has(name)) return component
    const origin = component.origin ?? { file, line: 1, subject: `${kinds[kind]} ${name}` }
    const fitting = files.in(kinds[kind], component, origin)
    const never = violationsOf(kinds[kind], fitting, generous)
    for (const { message } of never) refused.push(`  ${kinds[kind]} \`${name}\`: ${message}`)
    const known = new Set(never.map(({ message }) => message))
    for (const { message, help } of violationsOf(kinds[kind], fitting, undefined)) {
      if (known.has(message)) continue
      draft.gaps.push({ ...origin, reason: message, nearest: help ?? 'Omit `-n` to get a ClusterPipeline.' })
    }
    return fitting
  })
  files.report()
  return refused
}

function violationsOf(kind: ComponentKind, { type, config = {} }: Component, policy: TenantPolicySpec | undefined) {
  const mode = kind === 'source' && runsOn(type) === 'aggregator' ? 'Aggregator' : 'Node'
  const rules = { ownMachine: false, policy }
  return [
    ...typeViolations(kind, type, mode, rules),
    ...optionViolations(kind, type, config, mode, rules),
    ...identityViolations(kind, type, config, rules),
  ]
}

/** Files whose content becomes the value of an option, as keys of one Secret. */
class SecretFiles {
  readonly #secret: string
  readonly #namespace: string
  readonly #draft: Draft
  /** Keys by path. */
  readonly #keys = new Map<string, string>()
  readonly #uses: (Origin & { readonly reason: string })[] = []

  constructor(secret: string, namespace: string, draft: Draft) {
    this.#secret = secret
    this.#namespace = namespace
    this.#draft = draft
  }

  in(kind: ComponentKind, component: Component, origin: Origin): Component {
    const declaration = findComponent(kind, component.type)
    if (declaration === undefined || component.config === undefined) return component
    const config = structuredClone(component.config)
    walkOptions(optionsOf(declaration).schema, component.config, ({ path, value, schemas }) => {
      const meanings = schemas.map(meaningOf)
      const isContent = meanings.some(({ file }) => file?.inline !== undefined)
      if (typeof value !== 'string' || !isContent || !namesFile(meanings, value) || value.includes('SECRET['))
        return undefined
      const key = this.#keyOf(value)
      replaceAt(config, path, { valueFrom: { secretKeyRef: { name: this.#secret, key } } })
      this.#uses.push({
        ...origin,
        reason: `\`${pathOf(path)}\` is the file \`${value}\`, and a Pipeline of a namespace reads no files of the node. It reads key \`${key}\` of the Secret \`${this.#secret}\``,
      })
      return false
    })
    return { ...component, config }
  }

  /** Adds a row for each file, with the command that creates the Secret. */
  report(): void {
    const keys = [...this.#keys].map(([path, key]) => inShell(`--from-file=${key}=${path}`)).join(' ')
    const nearest = `Create the Secret: kubectl -n ${this.#namespace} create secret generic ${this.#secret} ${keys}`
    for (const use of this.#uses) this.#draft.gaps.push({ ...use, nearest, isReplaced: true })
  }

  /** The name of the file, with a number if another file has the same. */
  #keyOf(path: string): string {
    const known = this.#keys.get(path)
    if (known !== undefined) return known
    const name = (path.split('/').at(-1) ?? '').replace(/[^\w.-]/g, '-') || 'file'
    const taken = new Set(this.#keys.values())
    let key = name
    for (let number = 2; taken.has(key); number++) key = `${number}-${name}`
    this.#keys.set(path, key)
    return key
  }
}

/** A word of a command. */
const inShell = (word: string) => (/^[\w./=@:+-]*$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

function replaceAt(config: object, path: readonly (string | number)[], value: object): void {
  const parent = path.slice(0, -1).reduce<object>((above, segment) => Reflect.get(above, segment), config)
  Reflect.set(parent, path.at(-1) as string | number, value)
}
