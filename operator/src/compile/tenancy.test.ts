// The rules for tenants follow declarations: each option that names a file, an address or an amount is checked, whatever its name is. The
// test generates its attempts, so a new component is covered once it is registered.

import { components } from '@penstock/agent/config'
import { limits, meaningOf } from '@penstock/agent/schema'
import { type OptionPlace, optionLeaves } from '@penstock/agent/testing/option-places'
import { expect, test } from 'vitest'
import { identityViolations, limitedDefaults, optionViolations, policyWarnings, typeViolations } from './tenancy.ts'

const leaves = components
  .filter(({ kind }) => kind !== 'transform')
  .flatMap((each) => optionLeaves(each, { aliases: true }))
const strict = { ownMachine: false }
const judge = ({ component: { kind, type }, ...leaf }: OptionPlace, value: unknown, options = {}) =>
  optionViolations(kind, type, leaf.with(value), 'Node', { ...strict, ...options }).map(({ message }) => message)

test('no option for a file accepts one, in any spelling of its name', () => {
  const files = leaves.filter(({ schema }) => meaningOf(schema).file !== undefined)
  expect(files.length).toBeGreaterThan(60)
  const open = files.filter((leaf) => !judge(leaf, '/etc/passwd').some((message) => /\(T[34]\)$/.test(message)))
  expect(open.map(({ name }) => name)).toEqual([])
})

test('no option for a program accepts one from a Secret, completely or partly', () => {
  const programs = components
    .flatMap((each) => optionLeaves(each, { aliases: true }))
    .filter(({ schema }) => meaningOf(schema).program !== undefined)
  expect(programs.length).toBeGreaterThan(3)
  for (const value of ['.a = "SECRET[own.token]"', { valueFrom: { secretKeyRef: { name: 'own', key: 'token' } } }]) {
    const open = programs.filter((leaf) => !judge(leaf, value).some((message) => message.includes('(T6)')))
    expect(open.map(({ name }) => name)).toEqual([])
  }
})

test('no option for an address accepts a file', () => {
  const addresses = leaves.filter(({ schema }) => meaningOf(schema).address !== undefined)
  expect(addresses.length).toBeGreaterThan(60)
  for (const text of ['file:///etc/passwd', '\u0001file:///etc/passwd', 'fi\tle:///etc/passwd', 'fi\nle:/etc/passwd']) {
    const open = addresses.filter((leaf) => !judge(leaf, text).some((message) => message.includes('(T4)')))
    expect(open.map(({ name }) => name)).toEqual([])
  }
})

test('no option for an address accepts one of the node, of a cloud or of the API server', () => {
  const hosts = ['127.1', '169.254.169.254', '[fd00:ec2::254]', '[64:ff9b::a9fe:a9fe]', '100.100.100.200', '10.0.0.1']
  for (const leaf of leaves) {
    const { address } = meaningOf(leaf.schema)
    if (address === undefined) continue
    for (const scheme of Object.keys(address.ports)) {
      for (const host of hosts) {
        const found = judge(leaf, `${scheme}://user:word@${host}:1/x`, { apiHosts: ['10.0.0.1'] })
        expect(
          found.some((message) => message.includes('(T7)')),
          `${leaf.name} ${scheme} ${host}`,
        ).toBe(true)
      }
    }
  }
})

test('every amount is bounded, and a TenantPolicy can raise the bound with the field in the message', () => {
  const amounts = leaves.filter(({ schema }) => meaningOf(schema).limit !== undefined)
  expect(amounts.length).toBeGreaterThan(60)
  for (const leaf of amounts) {
    const limit = meaningOf(leaf.schema).limit as keyof typeof limits
    const { cap, field } = limits[limit]
    const policy = {
      namespaceSelector: {},
      ...(field === undefined ? { limits: { [limit]: cap + 1 } } : { [field]: cap + 1 }),
    }
    expect(judge(leaf, cap), leaf.name).toEqual([])
    expect(judge(leaf, cap + 1), leaf.name).toHaveLength(1)
    expect(judge(leaf, cap + 1, { policy }), leaf.name).toEqual([])
    expect(judge(leaf, cap + 1, { ownMachine: true }), leaf.name).toEqual([])
  }
})

test('a bound below the default of an option also limits a missing option', () => {
  const lowered: string[] = []
  for (const {
    name,
    schema,
    path,
    component: { kind, type },
  } of leaves) {
    const { limit } = meaningOf(schema)
    if (limit === undefined || typeof schema['default'] !== 'number' || path.some((key) => typeof key === 'number'))
      continue
    const min = (schema['minimum'] as number | undefined) ?? 0
    const { field } = limits[limit]
    const policy = {
      namespaceSelector: {},
      ...(field === undefined ? { limits: { [limit]: min } } : { [field]: min }),
    }
    const found = (policyGiven: object) =>
      path.reduce<unknown>(
        (value, key) => (value as Record<string, unknown> | undefined)?.[key],
        limitedDefaults(kind, type, {}, { ownMachine: false, ...policyGiven }),
      )
    if (found({ policy }) === min) lowered.push(name)
    expect([undefined, schema['default']], name).toContain(found({}))
  }
  expect(lowered.length).toBeGreaterThan(30)
  const policy = { namespaceSelector: {}, limits: { batchBytes: 1000 } }
  const given = { uri: 'https://example.com', batch: { timeout_secs: 5 } }
  expect(limitedDefaults('sink', 'http', given, { ownMachine: false, policy })).toEqual({
    ...given,
    batch: { timeout_secs: 5, max_bytes: 1000 },
  })
  const written = { uri: 'https://example.com', batch: { max_bytes: 500 } }
  expect(limitedDefaults('sink', 'http', written, { ownMachine: false, policy })).toBe(written)
})

test('a bound is explained: the limit, the found value, and how to raise it', () => {
  expect(
    optionViolations('sink', 'http', { buffer: { type: 'memory', max_events: 1_000_000_000 } }, 'Node', strict),
  ).toEqual([
    {
      path: ['buffer', 'max_events'],
      message: '`max_events` must be 20000 or less in a namespaced resource (T11); found 1000000000',
      help: 'A TenantPolicy may set another limit by `spec.limits.bufferEvents`.',
    },
  ])
})

test.each([
  ['cloud_queue', 'source', {}],
  ['cloud_queue', 'source', { auth: { access_key_id: 'a' } }],
  ['search_engine', 'sink', { auth: { strategy: 'aws' } }],
  ['search_engine', 'sink', { auth: { strategy: 'aws', secret_access_key: 'a', access_key_id: null } }],
  ['remote_write_metrics', 'sink', { auth: { strategy: 'aws', assume_role: 'r' } }],
  ['siem_unstructured', 'sink', {}],
  ['monitor_a_logs', 'sink', {}],
  ['datadog_metrics', 'sink', {}],
] as const)('%s as a %s with %j would use the identity of the agent', (type, kind, values) => {
  expect(identityViolations(kind, type, values, strict)).toHaveLength(1)
  const policy = { namespaceSelector: {}, implicitCredentials: 'Allow' as const }
  expect(identityViolations(kind, type, values, { ...strict, policy })).toEqual([])
})

test.each([
  ['cloud_queue', 'source', { auth: { access_key_id: { $secret: 'x' }, secret_access_key: { $secret: 'y' } } }],
  ['search_engine', 'sink', {}],
  ['search_engine', 'sink', { auth: { strategy: 'basic', user: 'a', password: 'b' } }],
  ['siem_unstructured', 'sink', { api_key: { $secret: 'x' } }],
  ['monitor_a_logs', 'sink', { api_key: 'by its other name' }],
] as const)('%s as a %s with %j has its own identity', (type, kind, values) => {
  expect(identityViolations(kind, type, values, strict)).toEqual([])
})

test.each([
  ['sinks.*.tls.ca_file', 'http', { tls: { ca_path: '-----BEGIN ' } }],
  ['sinks.*.tls.ca_path', 'http', { tls: { ca_file: '-----BEGIN ' } }],
  ['sinks.loki.tls', 'log_aggregator', { tls: { enabled: true } }],
  ['sinks.log_aggregator.tls', 'loki', { tls: { enabled: true } }],
  ['sinks.*.request.headers.*', 'http', { request: { headers: { 'x-a': 'b' } } }],
])('a policy that denies %s denies it for %s with %j', (pattern, type, given) => {
  const policy = { namespaceSelector: {}, denyOptions: [pattern] }
  const found = optionViolations('sink', type, given, 'Node', { ...strict, policy })
  expect(found.filter(({ message }) => message.includes(`denyOptions: ${pattern}`))).toHaveLength(1)
})

test.each([
  { host: '10.1.2.3', says: 'The TenantPolicy denies the network 10.1.0.0/16 (egress.denyCIDRs).' },
  { host: '[fd12::1]', says: 'The TenantPolicy denies the network fd12::/16 (egress.denyCIDRs).' },
  {
    host: '169.254.1.1',
    says: 'It is in a network that is always denied: link-local, loopback, or a service of the cloud.',
  },
  { host: '10.2.2.3', says: undefined },
])('the reason why an address is denied names the network: $host', ({ host, says }) => {
  const policy = { namespaceSelector: {}, egress: { denyCIDRs: ['10.0.0.0/30', '10.1.0.0/16', 'fd12::/16'] } }
  const given = { uri: `http://${host}/`, encoding: { codec: 'json' } }
  const found = optionViolations('sink', 'http', given, 'Node', { ...strict, policy })
  expect(found.map(({ help }) => help)).toEqual(says === undefined ? [] : [says])
})

test('a policy with entries that match nothing gets a warning', () => {
  const found = policyWarnings({
    namespaceSelector: {},
    denyOptions: ['sinks.*.proxy', 'sinks.*.tls.ca_fil', 'sink.http.tls', 'sources.http.tls', 'sinks.loki'],
    allowedSources: ['kubernetes_logs', 'stdout'],
    allowedSinks: ['*', 'loki'],
  })
  expect(found.map((warning) => warning.replace(/:.*/, ''))).toEqual([
    'spec.denyOptions[1]',
    'spec.denyOptions[2]',
    'spec.denyOptions[3]',
    'spec.denyOptions[4]',
    'spec.allowedSources[1]',
  ])
})

test('types that reach the agent or files of the node are forbidden, for any policy', () => {
  const policy = { namespaceSelector: {}, allowedSources: ['*'], allowedSinks: ['*'] }
  const closed = components.filter(
    ({ kind, type }) => typeViolations(kind, type, 'Aggregator', { ...strict, policy }).length > 0,
  )
  expect(closed.map(({ kind, type }) => `${kind} ${type}`).toSorted()).toEqual([
    'sink console',
    'sink file',
    'source file',
    'source internal_logs',
    'source internal_metrics',
    'source stdin',
  ])
  expect(typeViolations('source', 'file', 'Sidecar', strict)).toEqual([])
})

test('writes the value of an option without a form for references as text', () => {
  const files = leaves.filter(({ schema }) => {
    const { file } = meaningOf(schema)
    return file !== undefined && file.inline === undefined
  })
  expect(files.length).toBeGreaterThan(5)
  for (const value of [{ valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }, 'SECRET[a.b]', '**/SECRET[a.b]/*']) {
    const open = files.filter((leaf) => !judge(leaf, value).some((message) => /\(T[34]\)/.test(message)))
    expect(open.map(({ name }) => name)).toEqual([])
  }
})
