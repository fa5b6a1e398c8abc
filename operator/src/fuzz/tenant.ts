// Resources of a hostile tenant, generated from the declarations of all components and functions, with attack values that suit the kind of
// each option. Part of each tree is valid, so that much is accepted; the rest is as hostile as possible.

import { components, type FunctionDeclaration, findComponent, optionsOf, textLiteral } from '@penstock/agent/config'
import { damagedProgram } from '@penstock/agent/fuzz/mutate'
import { examples, randomProgram } from '@penstock/agent/fuzz/programs'
import {
  type AnyDeclaration,
  aliasesOf,
  type ComponentKind,
  isTable,
  meaningOf,
  membersOf,
  type Schema,
  variantsOf,
  walkOptions,
} from '@penstock/agent/schema'
import { functions, kinds } from '@penstock/agent/testing/operator'
import { Random } from '@penstock/agent/testing/random'
import type { KubeObject } from '../api/object.ts'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import { typeViolations } from '../compile/tenancy.ts'
import { object, tenant, victimText } from './world.ts'

type Table = Record<string, unknown>

export interface TenantCase {
  readonly pipeline: KubeObject
  /** The tenant's own Sources and Sinks. */
  readonly own: readonly KubeObject[]
  readonly policy: TenantPolicySpec | undefined
}

/** A file that contains `secretText`; programs and options try to read it. */
export interface Bait {
  readonly path: string
  readonly variable: string
}

/** @param malice the share of hostile values; by default derived from the seed */
export function caseOf(seed: number, bait: Bait, malice?: number): TenantCase {
  return new Author(new Random(seed), bait, malice).write()
}

/** An accepted case with one or two hostile values. */
export function disturbed(base: TenantCase, seed: number, bait: Bait): TenantCase {
  const random = new Random(seed)
  return new Author(random, bait, random.pick([0, 0.05, 0.3])).disturb(structuredClone(base))
}

/** Trees in the form of the API server: JSON, in which `__proto__` is an ordinary name. */
function member(table: Table, name: string, value: unknown): void {
  Object.defineProperty(table, name, { value, enumerable: true, configurable: true, writable: true })
}

/** Keys of foreign secrets in the operator's format, including the victim's real ones (see run.ts). */
export const foreignKeys: string[] = ['1a7674eb4ee78df7e1ac439a93c3fa8e']

const hosts = [
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '2130706433',
  '0177.0.0.1',
  '0.0.0.0',
  '169.254.169.254',
  '169.254.169.254.',
  '0xa9fea9fe',
  '169.254.43518',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:169.254.169.254]',
  '[::ffff:0:a9fe:a9fe]',
  '[64:ff9b::a9fe:a9fe]',
  '[2002:a9fe:a9fe::1]',
  '[::a9fe:a9fe]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fd20:ce::254]',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  '10.96.0.1',
  'localhost',
  'LOCALHOST.',
  'a.localhost',
  'kubernetes.default.svc',
  '①②⑦.⓪.⓪.①',
  '127。0。0。1',
  '127.0.0.1%00.example.com',
  'example.com@127.0.0.1',
  'example.com#@127.0.0.1',
  '127.0.0.1:80,example.com:80',
  '{{ host }}',
  '1\t27.0.0.1',
  '%31%32%37.0.0.1',
]

const markers = [
  '$secret',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueFrom',
  'secretKeyRef',
  '',
  '*',
  '**',
]

const odd = (json: string): unknown => JSON.parse(json)

const controls = [
  '\u0000',
  '\u0001',
  '\t',
  '\n',
  '\r',
  ' ',
  '\u001b[2J',
  '\u00a0',
  '\u2028',
  '\ufeff',
  '\udffe',
  '\ud800',
  '\u202e',
  '\u009b',
]

function policyOf(random: Random): TenantPolicySpec | undefined {
  if (random.chance(0.4)) return undefined
  return {
    namespaceSelector: {},
    allowedSources: ['*'],
    allowedSinks: ['*'],
    ...(random.chance(0.2) ? { denyOptions: ['sinks.*.tls.ca_file', 'sinks.*.proxy'] } : {}),
    ...(random.chance(0.1) ? { implicitCredentials: 'Allow' } : {}),
  } as TenantPolicySpec
}

/** Whether an option, or one below it, is a credential that a tenant must set. */
function isCredential(schema: Schema): boolean {
  let known = credentials.get(schema)
  if (known === undefined) {
    known =
      meaningOf(schema).explicit !== undefined ||
      Object.values(membersOf(schema)).some(isCredential) ||
      (variantsOf(schema) ?? []).some(isCredential)
    credentials.set(schema, known)
  }
  return known
}
const credentials = new WeakMap<Schema, boolean>()

const malices = [0, 0.01, 0.02, 0.05, 0.1, 0.3]

class Author {
  readonly #random: Random
  readonly #bait: Bait
  /** The share of hostile values. */
  readonly #malice: number
  readonly #policy: TenantPolicySpec | undefined
  readonly #files: readonly string[]
  /** The remaining size budget of the tree; each visit costs one. */
  #left = 400

  constructor(random: Random, bait: Bait, malice = random.pick(malices)) {
    this.#random = random
    this.#bait = bait
    this.#malice = malice
    this.#policy = policyOf(random)
    this.#files = [
      bait.path,
      '/dev/zero',
      '/proc/self/environ',
      '/etc/passwd',
      '/etc/penstock/secrets/1a7674eb4ee78df7e1ac439a93c3fa8e',
      `../../../../../../..${bait.path}`,
      `./${bait.path}`,
      `{${bait.path}`,
      `/x-----BEGIN /../..${bait.path}`,
      `${bait.path}\u0000.pem`,
    ]
  }

  write(): TenantCase {
    const random = this.#random
    const own: KubeObject[] = []
    const sources = this.#some(1, random.chance(0.2) ? 2 : 1, () => this.#entry('source', own))
    const transforms = this.#some(0, 2, () => this.#entry('transform', own))
    const sinks = this.#some(1, 3, () => this.#entry('sink', own))
    const names = [...sources, ...transforms, ...sinks].map(({ name }) => String(name))
    const before = sources.map(({ name }) => String(name))
    for (const entry of [...transforms, ...sinks]) {
      if (this.#evil()) entry['inputs'] = this.#some(1, 3, () => this.#input(names))
      else if (random.chance(0.25)) entry['inputs'] = [random.pick([...before, '*'])]
      if (transforms.includes(entry)) before.push(String(entry['name']))
    }
    const spec: Table = {
      secrets: random.chance(0.97)
        ? [{ alias: 'own', secretName: 'creds' }, ...(this.#evil() ? [this.#alias()] : [])]
        : undefined,
      sources,
      transforms,
      sinks,
      mode: !this.#evil() ? undefined : random.pick(['Auto', 'Node', 'Aggregator', 'Sidecar']),
      limits: random.chance(0.1) ? { perContainer: { linesPerSecond: 10, onLimit: 'Drop' } } : undefined,
      onError: random.chance(0.15)
        ? {
            deadLetter: {
              sink: this.#evil() ? random.pick([...names, 'shop/checkout/out', '*', '']) : String(sinks[0]?.['name']),
              maxEventsPerSecond: 5,
            },
          }
        : undefined,
      tests: transforms.length > 0 && random.chance(0.15) ? this.#tests(transforms) : undefined,
    }
    for (const [name, value] of Object.entries(spec)) if (value === undefined) delete spec[name]
    if (this.#evil()) this.#disturb(spec)
    return {
      pipeline: object('Pipeline', tenant.pipeline, spec, tenant.namespace),
      own,
      policy: this.#policy,
    }
  }

  /** Changes or adds values of options, including undeclared ones. */
  disturb(test: TenantCase): TenantCase {
    const random = this.#random
    const spec = (test.pipeline as unknown as { spec: Record<'sources' | 'transforms' | 'sinks', Table[]> }).spec
    const own = test.own.map((each) => [each.kind.toLowerCase(), (each as { spec?: unknown }).spec] as const)
    const components = [
      ...own,
      ...spec.sources.map((entry) => ['source', entry] as const),
      ...spec.transforms.map((entry) => ['transform', entry] as const),
      ...spec.sinks.map((entry) => ['sink', entry] as const),
    ]
    for (let changes = random.pick([1, 1, 2]); changes > 0; changes--) {
      const [kind, entry] = random.pick(components)
      const declaration = findComponent(kind as ComponentKind, String((entry as Table)['type']))
      const config = (entry as Table)['config']
      if (random.chance(0.1) || declaration === undefined || !isTable(config)) this.#disturb(spec)
      else this.#disturbOption(optionsOf(declaration).schema, config)
    }
    return test
  }

  #disturbOption(schema: Schema, config: Table): void {
    const random = this.#random
    const places: { readonly holder: Table; readonly name: string; readonly schema: Schema }[] = []
    walkOptions(schema, config, ({ value, schemas }) => {
      if (!isTable(value)) return undefined
      for (const each of schemas) {
        for (const [name, below] of Object.entries(membersOf(each))) places.push({ holder: value, name, schema: below })
        const others = each['additionalProperties']
        if (isTable(others)) places.push({ holder: value, name: this.#text(), schema: others })
      }
      return undefined
    })
    if (places.length === 0) return
    const { holder, name, schema: found } = random.pick(places)
    member(
      holder,
      name,
      random.chance(0.3) ? this.#value(found) : random.chance(0.2) ? this.#oddTree() : this.#hostile(found),
    )
  }

  // --- Resources ---

  #alias(): Table {
    return {
      alias: this.#random.pick(['theirs', '__proto__', 'constructor', 'own.x', '']),
      secretName: this.#random.pick(['creds', 'shop/creds', '../shop/creds', 'other', '__proto__']),
      namespace: this.#random.pick(['shop', 'platform', undefined, '*']),
    }
  }

  #input(names: readonly string[]): string {
    return this.#random.pick([
      ...names,
      ...names,
      '*',
      '**',
      `${this.#random.pick(names)}.dropped`,
      `${this.#random.pick(names)}*`,
      'shop/checkout/app',
      'shop/*',
      '_cluster/*',
      '../checkout/app',
      `evil/p/${this.#random.pick(names)}`,
      '__proto__',
      'x'.repeat(this.#random.pick([1, 127, 4000])),
      `${this.#random.pick(names)}\u0000`,
    ])
  }

  #entry(kind: 'source' | 'transform' | 'sink', own: KubeObject[]): Table {
    const random = this.#random
    const entry: Table = { name: this.#name() }
    if (kind !== 'transform' && random.chance(0.25)) {
      const upper = kind === 'source' ? 'Source' : 'Sink'
      const isOwn = random.chance(0.4)
      const others = ['closed', 'out', 'logs', '__proto__', 'shop/out']
      const name = isOwn ? `own-${own.length}` : this.#evil() ? random.pick(others) : 'store'
      entry['ref'] = { kind: isOwn || this.#evil() ? upper : `Cluster${upper}`, name }
      if (isOwn) {
        const { name: _, ...spec } = this.#component(kind)
        own.push(object(upper, name, spec, tenant.namespace))
      } else if (kind === 'sink' && random.chance(0.5)) {
        entry['overrides'] = !this.#evil()
          ? { labels: { [this.#name()]: this.#text(), ...(random.chance(0.3) ? { cluster: 'forged' } : {}) } }
          : random.pick<Table>([
              { endpoint: 'http://evil.example/' },
              { tenant_id: 'shop' },
              { auth: {} },
              { labels: { '{{ n }}': 'x', '{{ m }}*': '{{ v }}' } },
              { labels: { 'cluster*': '{{ v }}' } },
              { labels: this.#oddTree() },
            ])
      }
      return entry
    }
    const { name: _, ...component } = this.#component(kind)
    return { ...entry, ...component }
  }

  #component(kind: 'source' | 'transform' | 'sink'): Table {
    const random = this.#random
    const isAllowed = ({ type }: AnyDeclaration) =>
      typeViolations(kind, type, 'Aggregator', { ownMachine: false, policy: this.#policy }).length === 0 ||
      type === 'orchestrator_logs'
    const isUsual = (each: AnyDeclaration) =>
      isAllowed(each) && (each.kind === 'source' || each.accepts.includes('log'))
    const own = components.filter((each) => each.kind === kind)
    const declaration = random.pick(own.filter(this.#evil() ? () => true : random.chance(0.85) ? isUsual : isAllowed))
    const { inputs: _, ...config } = this.#table(optionsOf(declaration).schema) as Table
    return {
      type:
        this.#evil() && random.chance(0.2)
          ? random.pick(['', '__proto__', 'exec', declaration.type.toUpperCase()])
          : declaration.type,
      config,
      ...(declaration.type === 'orchestrator_logs' && random.chance(0.1) ? { selector: this.#selector() } : {}),
    }
  }

  #selector(): Table {
    return this.#random.pick<Table>([
      { pods: { matchLabels: { app: 'web' } } },
      { pods: { matchLabels: { app: 'web,metadata.namespace=shop' } } },
      { namespaces: { matchLabels: {} } },
      { containers: { exclude: ['../..', '**', 'a/b', '{a,b}'] } },
      { pods: { matchExpressions: [{ key: 'x in (a),!y', operator: 'In', values: ['b),c in (d'] }] } },
    ])
  }

  #tests(transforms: readonly Table[]): Table[] {
    const at = String(transforms.at(-1)?.['name'] ?? 'none')
    return [
      {
        name: 'one',
        insertAt: String(transforms[0]?.['name'] ?? 'none'),
        input: this.#testInput(),
        expect: [{ at, ...(this.#random.chance(0.5) ? { assert: this.#program() } : { count: 1 }) }],
      },
    ]
  }

  #testInput(): Table {
    if (this.#random.chance(0.2)) return { program: this.#program() }
    return { log: this.#random.chance(0.8) ? { message: this.#text(), n: 1 } : this.#oddTree() }
  }

  /** Replaces any value of the tree with an odd one, or adds one. */
  #disturb(tree: unknown): void {
    const holders: (Table | unknown[])[] = []
    const open: unknown[] = [tree]
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      if (typeof value !== 'object' || value === null) continue
      holders.push(value as Table)
      for (const inner of Object.values(value)) if (inner !== undefined) open.push(inner)
    }
    const holder = this.#random.pick(holders)
    const value = this.#random.chance(0.5) ? this.#oddTree() : this.#text()
    if (Array.isArray(holder)) holder.push(value)
    else member(holder, this.#random.pick([...Object.keys(holder), ...markers]), value)
  }

  // --- Values of options ---

  #evil(): boolean {
    return this.#random.chance(this.#malice)
  }

  #some<T>(min: number, max: number, make: () => T): T[] {
    return Array.from({ length: this.#random.between(min, max) }, make)
  }

  #names = 0
  #name(): string {
    return this.#evil() && this.#random.chance(0.2)
      ? this.#random.pick([
          'shop/checkout/out',
          '_cluster',
          'a.b',
          '__proto__',
          'constructor',
          '*',
          '',
          'A',
          'x'.repeat(64),
          'a\u0000',
          '..',
        ])
      : `c${this.#names++}`
  }

  #value(schema: Schema): unknown {
    const random = this.#random
    this.#left--
    if (this.#evil()) return random.chance(0.3) ? this.#oddTree() : this.#hostile(schema)
    const variants = variantsOf(schema)
    if (variants !== undefined) return this.#value(random.pick(variants))
    if (schema['const'] !== undefined) return schema['const']
    if (Array.isArray(schema['enum'])) {
      // Most other codecs need further options.
      const plain = schema['enum'].find((word) => word === 'json' || word === 'text')
      return plain !== undefined && random.chance(0.7) ? plain : random.pick(schema['enum'])
    }
    const given = schema['examples']
    if (Array.isArray(given) && meaningOf(schema).address === undefined && random.chance(0.6))
      return structuredClone(random.pick(given))
    if (schema['default'] !== undefined && random.chance(0.3)) return structuredClone(schema['default'])
    switch (schema['type']) {
      case 'object':
        return this.#table(schema)
      case 'array': {
        const min = Number(schema['minItems'] ?? 0)
        const items = schema['items']
        return isTable(items) ? this.#some(min, min + 2, () => this.#value(items)) : []
      }
      case 'boolean':
        return random.chance(0.5)
      case 'integer':
        return Math.max(Number(schema['minimum'] ?? 1), random.pick([1, 5, 100, 1000]))
      case 'number':
        return Math.max(Number(schema['minimum'] ?? 0.5), random.pick([0.5, 1, 30]))
      case 'string':
        return this.#fitting(schema)
      default:
        return this.#text()
    }
  }

  #table(schema: Schema): unknown {
    const random = this.#random
    const variants = variantsOf(schema)
    if (variants !== undefined) return this.#value(random.pick(variants))
    const table: Table = {}
    const required = (schema['required'] ?? []) as readonly string[]
    const often = this.#left > 0 ? random.pick([0, 0.05, 0.15]) : 0
    for (const [name, below] of Object.entries(membersOf(schema))) {
      const { program, owner, file, secret, address } = meaningOf(below)
      const isNotTheirs = owner !== undefined || (file !== undefined && file.inline === undefined)
      if (!required.includes(name)) {
        if (isNotTheirs && !this.#evil()) continue
        const isUsual = address !== undefined || secret === true || isCredential(below)
        const chance = program !== undefined ? 0.98 : isUsual ? 0.8 : often
        if (!random.chance(chance)) continue
      }
      const aliases = aliasesOf(below)
      const written = aliases.length > 0 && random.chance(0.3) ? random.pick(aliases) : name
      table[written] = this.#value(below)
    }
    const others = schema['additionalProperties']
    if (isTable(others)) {
      for (const _ of this.#some(0, 2, () => 0))
        member(table, this.#evil() ? this.#text() : `k${random.below(9)}`, this.#value(others))
    } else if (this.#evil()) {
      member(table, random.pick(markers), this.#text())
    }
    return table
  }

  /** Text that the option accepts. */
  #fitting(schema: Schema): unknown {
    const random = this.#random
    const { address, file, program, secret } = meaningOf(schema)
    if (program !== undefined) return program === 'condition' ? this.#condition() : this.#program()
    if (address !== undefined) {
      const scheme = Object.keys(address.ports).at(-1)
      if (random.chance(0.1)) return this.#reference()
      const host = random.pick(['logs.example.com', 'logs.example.com:8443', 'store.evil.svc', '203.0.113.9'])
      return scheme === undefined || (address.bare !== undefined && random.chance(0.7)) ? host : `${scheme}://${host}`
    }
    if (file?.inline !== undefined)
      return random.pick<unknown>([
        '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----',
        '{"type":"service_account"}',
        'data:application/json;base64,e30=',
        this.#reference(),
      ])
    if (secret === true && random.chance(0.7)) return this.#reference()
    if (random.chance(0.1)) return this.#reference()
    switch (schema['format']) {
      case 'template':
        return random.pick(['a', '{{ message }}', 'x-{{ orchestrator.pod_name }}'])
      case 'field-path':
        return random.pick(['.a', 'message', 'orchestrator.pod_name'])
      case 'url':
        return 'https://logs.example.com/'
      default:
        return random.pick(['a', 'word', 'eu-west-1', '[a-z]+'])
    }
  }

  /** Attack values that suit the kind of the option. */
  #hostile(schema: Schema): unknown {
    const random = this.#random
    const { program, address, file } = meaningOf(schema)
    const variants = variantsOf(schema)
    if (variants !== undefined && random.chance(0.7)) return this.#hostile(random.pick(variants))
    if (program !== undefined) return this.#program()
    if (address !== undefined || schema['format'] === 'url') return random.chance(0.5) ? this.#url() : this.#text()
    if (file !== undefined) return this.#file()
    switch (schema['type']) {
      case 'integer':
      case 'number':
        return random.pick([1e15, 2 ** 53, 1e9, 100_001, 1e308, -1, 0, 0.1, 268_435_488, 4 * 1024 ** 3, '7', '1e9'])
      case 'boolean':
        return random.pick<unknown>([true, false, 'true', 1])
      case 'array':
        return random.pick<unknown>([
          Array.from({ length: random.pick([1, 100, 3000]) }, () => this.#text()),
          [this.#oddTree()],
          [[]],
        ])
      case 'object':
        return random.chance(0.3) ? this.#oddTree() : this.#table(schema)
      default:
        return this.#text()
    }
  }

  #reference(): unknown {
    const random = this.#random
    if (!this.#evil()) {
      return random.pick<unknown>([
        { valueFrom: { secretKeyRef: { name: 'creds', key: 'token' } } },
        { valueFrom: { configMapKeyRef: { name: 'settings', key: 'token' } } },
        { valueFrom: { secretKeyRef: { name: 'none', key: 'token', optional: true } } },
        'SECRET[own.token]',
      ])
    }
    return random.pick<unknown>([
      { valueFrom: { secretKeyRef: { name: 'creds', key: 'token', namespace: 'shop' } } },
      { valueFrom: { secretKeyRef: { name: '../shop/creds', key: 'token' } } },
      { valueFrom: { secretKeyRef: { name: 'shop/creds', key: 'token' } } },
      { valueFrom: { secretKeyRef: { name: 'store', key: 'token', namespace: 'platform' } } },
      { valueFrom: { fieldRef: { fieldPath: random.pick(['metadata.name', 'spec.nodeName', '__proto__']) } } },
      { valueFrom: { secretKeyRef: { name: 'creds', key: 'token' }, fieldRef: {} } },
      odd('{"valueFrom":{"__proto__":{"name":"creds","key":"token"}}}'),
      { valueFrom: { fileRef: { path: this.#bait.path } } },
      'SECRET[own.token|uri]',
      'xSECRET[own.token]y',
      'SECRET[theirs.token]',
      'SECRET[shop/creds.token]',
      'SECRET[own.../../shop/creds/token]',
      'SECRET[__proto__.token]',
      'SECRET[own.token]'.repeat(500),
      'SECRET['.repeat(3000),
    ])
  }

  #file(): string {
    const path = this.#random.pick(this.#files)
    if (this.#random.chance(0.02)) return `**/${'{a,b}'.repeat(this.#random.pick([2, 2, 8, 8, 8, 17]))}`
    return this.#random.pick([path, this.#fileUrl(path), `${this.#random.pick(controls)}${path}`])
  }

  #fileUrl(path: string): string {
    const control = this.#random.pick(controls)
    return this.#random.pick([
      `file://${path}`,
      `FILE://${path}`,
      `${control}file://${path}`,
      `fi${control}le://${path}`,
      `file:${path}`,
      `file:\\\\${path}`,
      `file://localhost${path}`,
      `fi\nl\te:///${path}`,
      `file:${control}${path}`,
      `url:file://${path}`,
    ])
  }

  #url(): string {
    const random = this.#random
    if (random.chance(0.2)) return this.#fileUrl(random.pick(this.#files))
    const scheme = random.pick([
      'http',
      'https',
      'HTTP',
      'amqp',
      'pulsar',
      'pulsar+ssl',
      'unix',
      'data',
      'gopher',
      'ht\ttp',
      '',
    ])
    const slashes = random.pick(['://', '://', '://', ':/', ':', ':\\\\', ':///'])
    const user = random.pick(['', '', '', 'a:b@', 'example.com@', '@'])
    const port = random.pick(['', ':80', ':6443', ':0', ':{{ port }}', ':99999'])
    return `${random.chance(0.1) ? random.pick(controls) : ''}${scheme}${slashes}${user}${random.pick(hosts)}${port}/${random.pick(['', 'x', '../', '?a#b'])}`
  }

  #text(): string {
    const random = this.#random
    switch (random.below(9)) {
      case 0:
        return this.#file()
      case 1:
        return this.#url()
      case 2: {
        const reference = this.#reference()
        return typeof reference === 'string' ? reference : random.pick(foreignKeys)
      }
      case 3:
        return random.pick([
          `\${${this.#bait.variable}}`,
          `$${this.#bait.variable}`,
          `\${${this.#bait.variable}:-x}`,
          '$HOME',
          '%{HOME}',
        ])
      case 4:
        return random.pick([
          '{{ a }}',
          '{{ %vector.secret }}',
          '{{',
          '{{ .a.b[0].__proto__ }}',
          '{{ x }}'.repeat(2000),
          '\u0000{{\u0000}}',
        ])
      case 5:
        return random.pick([
          '(a+)+$',
          '(a{1,1000}){1,1000}',
          '(?<__proto__>a)',
          '('.repeat(3000),
          '[[:alpha:]&&[^b]]+',
          '(?i)'.repeat(500),
        ])
      case 6:
        return 'é\u{1f600}\ud800x'.repeat(random.pick([1, 10, 3000]))
      case 7:
        return random.pick(markers)
      default:
        return `${random.pick(controls)}${random.pick(['a', 'b', victimText.slice(0, 6)])}${random.pick(controls)}`
    }
  }

  #oddTree(): unknown {
    const random = this.#random
    const key = random.pick(foreignKeys)
    switch (random.below(9)) {
      case 0:
        return { $secret: key }
      case 1:
        return { $secret: key, x: 'y' }
      case 2:
        return odd(`{"__proto__":{"$secret":"${key}"},"constructor":{"prototype":{"$secret":"${key}"}}}`)
      case 3:
        return [[[{ a: { $secret: key } }]]]
      case 4: {
        let deep: unknown = random.chance(0.5) ? { $secret: key } : 'x'
        for (let depth = random.pick([5, 50, 500]); depth > 0; depth--) deep = random.chance(0.5) ? [deep] : { a: deep }
        return deep
      }
      case 5:
        return Object.fromEntries(Array.from({ length: random.pick([10, 1000]) }, (_, index) => [`k${index}`, index]))
      case 6:
        return this.#reference()
      case 7:
        return { valueFrom: this.#reference() }
      default:
        return random.pick<unknown>([null, true, 7, [], {}, '', [null], { '': null }])
    }
  }

  // --- Programs ---

  #condition(): string {
    return this.#random.chance(0.6)
      ? this.#random.pick(['true', '.a == 1', 'exists(.message)', 'contains(string(.message) ?? "", "x")'])
      : this.#program()
  }

  #program(): string {
    const random = this.#random
    if (!this.#evil() && random.chance(0.6))
      return random.pick(['.a = 1', '. = parse_json(.message) ?? {}', 'del(.x)', '.n = now()'])
    switch (random.below(10)) {
      case 0:
        return damagedProgram(random)
      case 1:
        return random.chance(0.2) ? randomProgram(random, random.chance(0.5)) : random.pick(examples)
      case 2:
        return random.pick(explosions)(random.pick([3, 8, 200]))
      default:
        return this.#some(1, 3, () => this.#call(random.pick(functions))).join('\n')
    }
  }

  /** A call of a function with all of its arguments, each of an accepted kind. */
  #call(declaration: FunctionDeclaration): string {
    const random = this.#random
    const given = declaration.parameters.flatMap((parameter) => {
      if (parameter.required !== true && random.chance(0.3)) return []
      const argument = this.#argument(parameter)
      return random.chance(0.3) ? [`${parameter.name}: ${argument}`] : [argument]
    })
    const call = `${declaration.name}${random.chance(0.4) ? '!' : ''}(${given.join(', ')})`
    return random.pick([`.r, err = ${call}`, `.r = ${call}`, `x = ${call} ?? null\n. = {"x": x}`, call])
  }

  #argument({ kind, enum: words, query, meaning }: FunctionDeclaration['parameters'][number]): string {
    const random = this.#random
    if (words !== undefined) return JSON.stringify(random.pick(words))
    if (query === true) return random.pick(['.a', '.', '%x', '.a.b[0]'])
    if (meaning === 'file') return random.chance(0.5) ? textLiteral(this.#file()) : `[${textLiteral(this.#file())}]`
    if (random.chance(0.3)) return random.pick(['.a', 'string!(.message)', '.'])
    const fits = (['string', 'integer', 'boolean', 'regex', 'array', 'object', 'timestamp', 'float'] as const).filter(
      (each) => kind.is(kinds[each]) || kinds[each].is(kind),
    )
    switch (fits.length === 0 ? 'string' : random.pick(fits)) {
      case 'integer':
        return random.pick(['0', '1', '-1', '1000000000', '9223372036854775807'])
      case 'float':
        return random.pick(['0.5', '1e30'])
      case 'boolean':
        return 'true'
      case 'regex':
        return random.pick(["r'a'", "r'(a+)+$'", "r'(?P<__proto__>a)'"])
      case 'timestamp':
        return "t'2026-01-01T00:00:00Z'"
      case 'array':
        return random.pick([`[${textLiteral(this.#file())}]`, '[]', '[[[1]]]', '["%{WORD:a}"]'])
      case 'object':
        return random.pick(['{}', '{"a": {"b": 1}}', `{"A": "%{A}%{A}", "path": ${textLiteral(this.#file())}}`])
      default:
        return textLiteral(this.#text().slice(0, 300))
    }
  }
}

/** Programs that grow large during compilation or at run time. */
const explosions: readonly ((size: number) => string)[] = [
  (size) => `${'('.repeat(size * 10)}1${')'.repeat(size * 10)}`,
  (size) => `.a = ${'['.repeat(size)}${']'.repeat(size)}`,
  (size) => `${'if true { '.repeat(size)}.a = 1${' }'.repeat(size)}`,
  (size) => {
    const turns = Math.min(size, 12)
    return `a = [1,2,3,4,5,6,7,8,9,10]\n${Array.from({ length: turns }, (_, index) => `for_each(a) -> |_i${index}, _v${index}| { `).join('')}.x = 1${' }'.repeat(turns)}`
  },
  (size) =>
    `acc = [1]\nfor_each([${Array.from({ length: size }, () => 1).join(',')}]) -> |_i, _v| { acc = append(acc, acc) }\n.a = length(acc)`,
  (size) => `s = "x"\n${'s = s + s\n'.repeat(size)}.a = s`,
  (size) => {
    const aliases = Array.from({ length: size }, (_, index) => `"A${index}": "%{A${index + 1}}%{A${index + 1}}"`).join(
      ', ',
    )
    return `.g = parse_groks!(string!(.message), patterns: ["%{A0}"], aliases: {${aliases}, "A${size}": "x"})`
  },
  (size) => `.m = match(string!(.message), r'${'(a|b|'.repeat(size)}c${')*'.repeat(size)}')`,
  (size) => `.a = ${Array.from({ length: size * 10 }, (_, index) => `.x${index}`).join(' ?? ')}`,
  (size) => `.a = "${'{{ string!(.x) }}'.repeat(size)}"`,
  (size) =>
    `${Array.from({ length: size * 5 }, (_, index) => `.f${index} = { "a": .f${index - 1}, "b": [.f${index - 1}] }`).join('\n')}`,
  (size) => `.a = repeat!("x", ${size * 1_000_000})`,
]
