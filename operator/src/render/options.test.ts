// Tests every option of every component from the resource to the agent: the option is compiled, rendered to a bundle, read, and loaded
// as an agent does. Each value differs from the default, so a default cannot be mistaken for it. An option either arrives with its
// value, is refused with a message at its place, or has a fixed value, which a warning at its place reports.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readBundle } from '@penstock/agent/bundle'
import { components, optionsOf } from '@penstock/agent/config'
import { isTable, type Meaning, meaningOf, type Options, operatorTreatment, type Schema } from '@penstock/agent/schema'
import { loadPart, type PipelinePart, partsOf, skeleton } from '@penstock/agent/testing/operator'
import { type OptionPlace, optionLeaves } from '@penstock/agent/testing/option-places'
import { afterAll, expect, test } from 'vitest'
import { type CompileJob, compileJob } from '../compile/job.ts'
import { renderBundle } from './bundle.ts'
import { fragmentOf } from './fragment.ts'

type Table = Readonly<Record<string, unknown>>

interface Option extends OptionPlace {
  /** Its own options, and those of the enclosing list. */
  readonly meaning: Meaning
}

/** Required options for each place. The operator sets `inputs`. */
const siblings = ({ inputs: _, ...members }: Readonly<Record<string, Schema>>) => skeleton(members as Options)

const all = components
  .flatMap((component) => optionLeaves(component, { siblings }))
  .filter(({ schema }) => schema['const'] === undefined)
  .map((place): Option => ({ ...place, meaning: { ...meaningOf(place.list ?? {}), ...meaningOf(place.schema) } }))

// --- values ---

/** A program that the agent of a cluster kind accepts. */
const programFile = join(mkdtempSync(join(tmpdir(), 'penstock-options-')), 'program.remap')
writeFileSync(programFile, '.a = 1')
afterAll(() => rmSync(dirname(programFile), { recursive: true }))

/** Texts with a format that their schema does not specify. */
const values: readonly (readonly [place: RegExp, value: unknown])[] = [
  [/^source file\.encoding\.charset$/, 'utf-16le'],
  [/timezone$/, 'Europe/Paris'],
  [/^transform filter\.condition(\.source)?$/, 'true'],
  [/^transform remap\.source$/, '.a = 1'],
  [/\.oauth2\.credentials_url$/, 'data:application/json;base64,e30='],
  [/(include|exclude)_paths_glob_patterns\[\]$/, '**/app.log'],
  [/customer_id$/, '123e4567-e89b-12d3-a456-426614174000'],
  [/^sink siem_unstructured\.endpoint$/, 'other.example:8080'],
  [/^sink search_engine\.bulk\.action$/, 'create'],
  [/\.compression\.level$/, 3],
  [/^source orchestrator_logs\.glob_minimum_cooldown_ms$/, 5000],
  [/\.quantiles\[\]$/, 0.25],
  [/\.buffer\.max_size$/, 300_000_000],
  [/^transform remap\.files?(\[\])?$/, programFile],
]

const contents = { pem: '-----BEGIN CERTIFICATE-----', json: '{}', data: 'data:application/json;base64,e30=' } as const

/** A valid value for the option, other than the default. */
function sampleOf({ name, schema, meaning }: Option, isNamespaced: boolean): unknown {
  const given = values.find(([place]) => place.test(name))?.[1]
  if (given !== undefined) return given
  const { file, address } = meaning
  if (isNamespaced && file?.inline !== undefined) return contents[file.inline]
  const examples = [...((schema['examples'] ?? []) as readonly unknown[]), ...((schema['enum'] ?? []) as unknown[])]
  const other = examples.find((example) => !isTable(example) && example !== schema['default'])
  // Addresses in examples may be local, and tenants cannot connect to local addresses.
  if (address !== undefined && typeof other === 'string') return other.replace(/127\.0\.0\.1|localhost/, 'example.com')
  if (other !== undefined) return other
  if (file !== undefined) return file.within === undefined ? '/a/file' : '**/*.log'
  if (schema['type'] === 'boolean') return schema['default'] !== true
  if (schema['type'] === 'integer' || schema['type'] === 'number') return numberFor(schema)
  if (schema['enum'] !== undefined) return schema['default']
  return schema['format'] === 'url' ? 'https://example.com' : 'text'
}

/** Between the limits; 17 where allowed. */
function numberFor({ minimum, exclusiveMinimum, maximum, exclusiveMaximum, default: usual }: Schema): number {
  const low = Number(minimum ?? exclusiveMinimum ?? 0)
  const high = Number(maximum ?? exclusiveMaximum ?? Number.POSITIVE_INFINITY)
  const isFine = (value: number) =>
    value >= low && value <= high && value !== exclusiveMinimum && value !== exclusiveMaximum && value !== usual
  return [17, low, low + 1, high, (low + high) / 2].find(isFine) ?? Number(usual)
}

const avroSchema = '{"type":"record","name":"e","fields":[{"name":"message","type":"string"}]}'

/** Companion options that the checks of a component require. */
const companions: readonly (readonly [place: RegExp, options: Table])[] = [
  [/^source demo_logs/, { format: 'json' }],
  [/^source amqp\.tls\.enabled$/, { connection_string: 'amqps://a.example' }],
  [/^source (?!demo_logs|stdin|amqp).*\.auth\.(access_key_id|session_token)$/, { auth: { secret_access_key: 'k' } }],
  [/\.auth\.(secret_access_key|session_token)$/, { auth: { access_key_id: 'a' } }],
  [/\.auth\.(access_key_id|session_token)$/, { auth: { secret_access_key: 'k' } }],
  [/\.auth\.(external_id|session_name)$/, { auth: { assume_role: 'r' } }],
  [/^transform remap\.(?!source|files?\b)/, { source: '.' }],
  [/\.encoding\.codec$/, { encoding: { csv: { fields: ['a'] }, avro: { schema: avroSchema } } }],
  [/\.compression\.level$/, { compression: { algorithm: 'gzip' } }],
  [/\.buffer\.(type|max_size)$/, { buffer: { type: 'disk', max_size: 300_000_000 } }],
  [/\.framing\.method$/, { framing: { character_delimited: { delimiter: ',' } } }],
  [/^sink log_aggregator\.request\.concurrency$/, { out_of_order_action: 'accept' }],
  [
    /^sink search_engine\.opensearch_service_type$/,
    { api_version: 'v8', auth: { strategy: 'aws' }, aws: { region: 'eu-1' } },
  ],
  [/^sink message_broker\.auth\.name$/, { auth: { token: 't' } }],
  [/^sink message_broker\.auth\.token$/, { auth: { name: 'n' } }],
  [/^sink message_broker\.auth\.oauth2/, { auth: { oauth2: { credentials_url: contents.data } } }],
  [/^sink message_broker\.tls\.enabled$/, { endpoint: 'pulsar+ssl://broker.example:6651' }],
  [/^sink monitor_a/, { default_api_key: 'k' }],
  [/^sink observability_d/, { account_id: '1' }],
  [/^sink remote_write_metrics\.aws/, { auth: { strategy: 'aws' } }],
  [/^sink search_engine\.(?!endpoint$|aws\.endpoint$)/, { endpoints: ['http://search.example'] }],
  [/^sink search_engine\.aws/, { auth: { strategy: 'aws' }, aws: { region: 'eu-1' } }],
  [/^sink search_engine\.bulk\.version$/, { id_key: 'id', bulk: { version_type: 'external' } }],
  [/^sink siem_unstructured/, { api_key: 'k' }],
  [/^sink siem_unstructured\.(?!endpoint$)/, { region: 'eu' }],
  [/^sink tsdb_metrics\.(?!org$|bucket$|token$)/, { database: 'd' }],
  [/^sink tsdb_metrics\.(org|bucket|token)$/, { org: 'o', bucket: 'b', token: 't' }],
]

/** Merges the second value into the first, table by table. */
function merged(under: unknown, over: unknown): unknown {
  if (!isTable(under) || !isTable(over)) return over
  const result: Record<string, unknown> = { ...under }
  for (const [key, value] of Object.entries(over)) result[key] = key in result ? merged(result[key], value) : value
  return result
}

/** The table with a value at a path. */
function withValue(table: unknown, [key, ...rest]: OptionPlace['path'], value: unknown): unknown {
  if (key === undefined) return value
  if (Array.isArray(table)) return table.map((item, index) => (index === key ? withValue(item, rest, value) : item))
  return { ...(table as Table), [key]: withValue((table as Table | undefined)?.[key], rest, value) }
}

// --- the way ---

const lists = { source: 'sources', transform: 'transforms', sink: 'sinks' } as const
const noSecrets = { value: () => undefined, digest: () => undefined }

/** Allows tenants to use every type of source, and the credentials of the agent. */
const policy = {
  allowedSources: components.filter(({ kind }) => kind === 'source').map(({ type }) => type),
  implicitCredentials: 'Allow',
}

interface Outcome {
  /** Problems at the place of the option. */
  readonly refusals: readonly string[]
  readonly warnings: readonly string[]
  /** Problems elsewhere, of the operator or the agent: the option could not be tested. */
  readonly others: readonly string[]
  readonly arrives: boolean
  /** No option of the component can arrive. */
  readonly isTypeRefused: boolean
}

async function outcomeOf(option: Option, value: unknown, namespace: string | undefined): Promise<Outcome> {
  const { component, name, path } = option
  const { kind, type } = component
  const beside = companions.filter(([place]) => place.test(name)).map(([, options]) => options)
  const config = withValue([option.with(value), ...beside].reduce<unknown>(merged, {}), path, value)
  const takesLogs = component.kind === 'source' || component.accepts.includes('log')
  const events = takesLogs ? { type: 'demo_logs', config: { format: 'json' } } : metricSource
  const pipeline = {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: namespace === undefined ? 'ClusterPipeline' : 'Pipeline',
    metadata: { name: 'p', uid: 'u', generation: 1, ...(namespace === undefined ? {} : { namespace }) },
    spec: {
      ...(type === 'file' && kind === 'source' ? { mode: 'Sidecar' } : {}),
      sources: [{ name: 'in', ...events }],
      transforms: [],
      sinks: [{ name: 'out', type: 'blackhole', config: {} }],
      [lists[kind]]: [{ name: 'own', type, config }],
    },
  }
  const job = { pipeline, resources: [], policy, keys: {}, apiHosts: [], clusterName: '' }
  const { artifact, problems } = await compileJob(job as unknown as CompileJob)
  const typePlace = `spec.${lists[kind]}[0].type`
  const place = path.reduce<string>(
    (label, key) => (typeof key === 'number' ? `${label}[${key}]` : `${label}.${key}`),
    `spec.${lists[kind]}[0].config`,
  )
  // A list may be refused as a whole.
  const isOwn = (at: string) => at === place || (at.includes('.config.') && place.startsWith(`${at}[`))
  const messagesOf = (severity: string, own: boolean) =>
    problems.filter((one) => one.severity === severity && isOwn(one.path) === own).map(({ message }) => message)
  const isTypeRefused = problems.some(({ severity, path: at }) => severity === 'error' && at === typePlace)
  const judged = {
    isTypeRefused,
    refusals: messagesOf('error', true),
    warnings: messagesOf('warning', true),
    others: messagesOf('error', false),
  }
  if (artifact === undefined) return { ...judged, arrives: false }

  const { rev, shards } = await renderBundle([{ fragment: fragmentOf(artifact), createdAt: '' }])
  const bundle = readBundle(
    { rev, shards },
    shards.map(({ data }) => data),
  )
  const [part] = [...partsOf(bundle).values()] as [PipelinePart]
  const loaded = loadPart(part, noSecrets, { dataDir: '/tmp', denied: [], env: {} })
  if (!loaded.ok) return { ...judged, others: loaded.problems.map(({ message }) => message), arrives: false }
  const own = [...loaded.config[lists[kind]].values()].find(({ id }) => id.endsWith('/own'))
  const arrived = path.reduce<unknown>((table, key) => (table as Table | undefined)?.[key], own?.options)
  // Selectors of pods belong to the hub, which has them in the subscription.
  const { subscription = {} } = (own ?? {}) as { readonly subscription?: object }
  const selectors = Object.values(subscription).map(String)
  return { ...judged, arrives: arrived === value || selectors.some((text) => text.includes(String(value))) }
}

const metricSource = { type: 'webserver_metrics', config: { endpoints: ['http://a.example/server-status'] } }

/** Components that access data outside a namespace, so tenants cannot use their options. */
const clusterOnly = ['sink console', 'sink file', 'source internal_logs', 'source internal_metrics', 'source stdin']

/** Options with an outcome other than the expected one, with the actual one. */
async function surprises(
  options: readonly Option[],
  namespace: string | undefined,
  treatmentOf: (meaning: Meaning) => 'honoured' | 'content' | 'refused' | 'fixed',
): Promise<string[]> {
  const found: string[] = []
  for (const option of options) {
    const value = sampleOf(option, namespace !== undefined)
    const { refusals, warnings, others, arrives } = await outcomeOf(option, value, namespace)
    const treatment = treatmentOf(option.meaning)
    const isDeprecated = optionsOf(option.component).members[option.path[0] as string]?.['deprecated'] === true
    const isRight = {
      honoured: arrives && (isDeprecated || warnings.length === 0),
      content: arrives && warnings.length === 0,
      refused: refusals.some((message) => message !== '') && !arrives,
      fixed: warnings.length > 0 && refusals.length === 0,
    }[treatment]
    const happened = arrives ? `arrives ${warnings}` : [...refusals, ...others].join('; ')
    if (!isRight) found.push(`${option.name} = ${JSON.stringify(value)}: ${treatment}, but ${happened}`)
  }
  return found
}

test('no value that is tried is a default', () => {
  // Of these there is only one.
  const only = (schema: Schema) => (schema['enum'] as readonly unknown[] | undefined)?.length === 1
  const same = all.filter((option) => !only(option.schema) && sampleOf(option, false) === option.schema['default'])
  expect(same.map(({ name }) => name)).toEqual([])
  expect(all.length).toBeGreaterThan(1000)
})

test('an agent runs every option of a cluster kind with its value, or a warning says that it is fixed', async () => {
  expect(await surprises(all, undefined, (meaning) => operatorTreatment(meaning).cluster)).toEqual([])
})

test('an agent runs every option of a namespaced kind with its value, or it is refused or fixed', async () => {
  const refused = new Set<string>()
  for (const option of all) {
    const { type } = option.component
    const key = `${option.component.kind} ${type}`
    if (refused.has(key)) continue
    const { isTypeRefused } = await outcomeOf(option, sampleOf(option, true), 'shop')
    if (isTypeRefused) refused.add(key)
  }
  expect([...refused].toSorted()).toEqual(clusterOnly)
  const open = all.filter(({ component: { kind, type } }) => !refused.has(`${kind} ${type}`))
  expect(await surprises(open, 'shop', (meaning) => operatorTreatment(meaning).namespaced)).toEqual([])
})
