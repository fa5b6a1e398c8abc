// Runs the recipes of `examples/` with real servers: the `penstock run` command of their README, without `--print` and with the addresses
// of these servers. Afterwards, the servers must contain the events of `expected.ndjson`. Each recipe has its own tenant or index.

import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import amqp from 'amqplib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { root, until } from '../command.ts'
import { penstock } from '../program.ts'
import { type RunningService, type ServiceName, service } from '../services/service.ts'
import { queryLoki, queryPrometheus, searchAll } from '../stores.ts'

const examples = join(root, 'examples')

/** Recipes by destination. The other recipes deliver to other kinds of servers, or need credentials of their reader. */
const recipes = {
  loki: [
    'argo-cd-and-flux',
    'cluster-events',
    'drop-debug-logs',
    'from-fluent-bit',
    'from-vector',
    'go-stack-traces',
    'java-stack-traces',
    'json-logs',
    'limit-noisy-pod',
    'mask-secrets',
    'multi-cluster-labels',
    'nodejs-stack-traces',
    'only-some-namespaces',
    'parse-nginx',
    'python-stack-traces',
    'route-by-team',
    'sample-noisy-logs',
    'sidecar-for-a-job',
  ],
  others: ['aggregator-with-a-queue', 'apache-metrics', 'dead-letters'],
  none: ['agent-alone', 'disk-buffer', 'quickstart', 'secret-rotation'],
}

test('every recipe is in the list', async () => {
  const folders = (await readdir(examples, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  expect(Object.values(recipes).flat().toSorted()).toEqual(folders.map(({ name }) => name).toSorted())
})

/**
 * Queries of the stores cover the last two hours, so the hour of a recipe's times is replaced by an hour that began 10 to 70
 * minutes ago.
 */
const [hour, minute] = [3_600_000, 60_000]
const delta = Math.floor((Date.now() - 10 * minute) / hour) * hour - Date.parse('2026-11-23T09:00:00Z')
const monthNames = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
function recent(text: string): string {
  const at = (hours: string) => new Date(Date.parse(`2026-11-23T${hours}:00:00Z`) + delta).toISOString().slice(0, 13)
  return text
    .replace(/2026-11-23([T ])(\d\d)/g, (_, between, hours) => at(hours).replace('T', between))
    .replace(/2026\/11\/23 (\d\d)/g, (_, hours) => at(hours).replaceAll('-', '/').replace('T', ' '))
    .replace(/23\/Nov\/2026:(\d\d)/g, (_, hours) => {
      const [, year, month, day, hoursNow] = /^(\d+)-(\d+)-(\d+)T(\d+)$/.exec(at(hours)) ?? []
      return `${day}/${monthNames[Number(month) - 1]}/${year}:${hoursNow}`
    })
}

type Config = Record<string, unknown>
interface Entry {
  readonly name?: string
  readonly type?: string
  readonly config?: Config
}
interface Resource {
  readonly apiVersion?: string
  readonly spec?: Entry & { readonly sources?: readonly Entry[]; readonly sinks?: readonly Entry[] }
}

/** New options of a component, by its type. */
type Aims = Readonly<Record<string, (config: Config) => Config>>

/** A copy of a recipe whose components have other addresses. */
async function copied(name: string, aims: Aims): Promise<AsyncDisposable & { readonly folder: string }> {
  const folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'recipe-'))
  await cp(join(examples, name), folder, { recursive: true })
  for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || file.name === 'README.md') continue
    const path = join(file.parentPath, file.name)
    const text = recent(await readFile(path, 'utf8'))
    await writeFile(path, file.name.endsWith('.yaml') ? aimed(text, aims) : text)
  }
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

function aimed(text: string, aims: Aims): string {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Resource)
  if (!documents.some(({ apiVersion }) => apiVersion?.startsWith('penstock.dev/'))) return text
  const aim = (entry: Entry): Entry => {
    const change = entry.type === undefined ? undefined : aims[entry.type]
    return change === undefined ? entry : { ...entry, config: change(entry.config ?? {}) }
  }
  return documents
    .map((document) => {
      if (document.spec === undefined) return stringify(document)
      const { sources, sinks } = document.spec
      const lists = { ...(sources && { sources: sources.map(aim) }), ...(sinks && { sinks: sinks.map(aim) }) }
      return stringify({ ...document, spec: { ...aim(document.spec), ...lists } })
    })
    .join('---\n')
}

/** The arguments of the first `penstock run` on the page of a recipe, changed for its copy, without `--print`. */
async function wordsOf(name: string, folder: string): Promise<string[]> {
  const page = await readFile(join(examples, name, 'README.md'), 'utf8')
  const [, words = ''] = /^\$ npx penstock (run (?:.*\\\n)*.*)$/m.exec(page) ?? []
  return words
    .replaceAll('\\\n', ' ')
    .replaceAll(`examples/${name}`, folder)
    .split(/\s+/)
    .filter((word) => word !== '' && word !== '--print')
}

async function delivered(name: string, aims: Aims): Promise<void> {
  await using copy = await copied(name, aims)
  const { code, stdout, stderr } = await penstock(await wordsOf(name, copy.folder))
  expect(code, stderr).toBe(0)
  // An event on the screen has not been delivered.
  expect(stdout, stderr).toBe('')
}

const expected = async (name: string) =>
  recent(await readFile(join(examples, name, 'expected.ndjson'), 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** The text of an event, for any convention of its fields. */
const textOf = ({ message, log }: Record<string, unknown>) => String(message ?? log)
const missingOf = (...names: readonly ServiceName[]) => {
  const missing = names.map((name) => service(name).missing).find((reason) => reason !== undefined)
  return { missing: missing !== undefined, why: missing === undefined ? '' : ` (${missing})` }
}

/** Servers for a group of recipes. */
function servers(...names: readonly ServiceName[]): Map<ServiceName, RunningService> {
  const running = new Map<ServiceName, RunningService>()
  const resources = new AsyncDisposableStack()
  beforeAll(async () => {
    for (const name of names) running.set(name, resources.use(await service(name).start()))
  })
  afterAll(() => resources.disposeAsync())
  return running
}

/** Loki gives each entry this label. */
const everything = '{service_name=~".+"}'

const toLoki = (url: string, tenant: string): Aims => ({
  log_aggregator: (config) => ({ tenant_id: tenant, ...config, endpoint: url }),
})

const { missing: noLoki, why: whyNoLoki } = missingOf('loki')
describe.skipIf(noLoki)(`recipes and Loki${whyNoLoki}`, () => {
  const running = servers('loki')

  test.each(recipes.loki)('%s', async (name) => {
    const url = running.get('loki')?.url ?? ''
    const tenant = randomUUID()
    await delivered(name, toLoki(url, tenant))
    const events = await expected(name)
    const tenants = [...new Set(events.map((event) => String(event['tenant'] ?? tenant)))]
    const entries = await until(`${events.length} entries in Loki`, 30_000, async () => {
      const found = await Promise.all(tenants.map((one) => queryLoki(url, everything, one)))
      return found.flat().length >= events.length && found.flat()
    })
    const lines = entries.map(({ line }) => textOf(JSON.parse(line)))
    expect(lines.toSorted()).toEqual(events.map(textOf).toSorted())
    for (const { labels } of entries) expect(Object.keys(labels)).not.toEqual([])
  })
})

const { missing: noStores, why: whyNoStores } = missingOf('loki', 'opensearch')
describe.skipIf(noStores)(`dead letters, OpenSearch and Loki${whyNoStores}`, () => {
  const running = servers('loki', 'opensearch')

  test('orders are indexed, and the rest has its reason', async () => {
    const [loki = '', search = ''] = (['loki', 'opensearch'] as const).map((name) => running.get(name)?.url)
    const own = randomUUID()
    await delivered('dead-letters', { ...toLoki(loki, own), ...toSearch(search, own) })
    const hits = await searchAll(search, own)
    expect(hits.map(({ _source }) => _source['order_id'])).toEqual([17])
    const dead = await until('2 dead letters', 30_000, async () => {
      const entries = await queryLoki(loki, everything, own)
      return entries.length >= 2 && entries
    })
    for (const { line } of dead) expect(JSON.parse(line).metadata.dropped).toMatchObject({ reason: 'error' })
  })
})

const toSearch = (url: string, index: string): Aims => ({
  search_engine: (config) => ({ ...config, endpoints: [url], bulk: { index } }),
})

const { missing: noQueue, why: whyNoQueue } = missingOf('rabbitmq', 'opensearch')
describe.skipIf(noQueue)(`the queue, RabbitMQ and OpenSearch${whyNoQueue}`, () => {
  const running = servers('rabbitmq', 'opensearch')

  test('messages become documents by their id, and leave the queue', async () => {
    const [broker = '', search = ''] = (['rabbitmq', 'opensearch'] as const).map((name) => running.get(name)?.url)
    const own = randomUUID()
    const connection = await amqp.connect(broker)
    const channel = await connection.createConfirmChannel()
    await channel.assertQueue(own, { durable: true })
    const name = 'aggregator-with-a-queue'
    const messages = (await readFile(join(examples, name, 'messages.ndjson'), 'utf8')).trimEnd().split('\n')
    for (const message of messages) channel.sendToQueue(own, Buffer.from(message))
    await channel.waitForConfirms()
    try {
      const fromQueue = (config: Config) => ({ ...config, connection_string: broker, queue: own })
      await using copy = await copied(name, { amqp: fromQueue, ...toSearch(search, own) })
      const ran = await penstock(['run', copy.folder, '--for', '10s'])
      expect(ran.code, ran.stderr).toBe(0)
      const ids = (await expected(name)).map(({ id }) => String(id))
      expect((await searchAll(search, own)).map(({ _id }) => _id).toSorted()).toEqual(ids.toSorted())
      expect((await channel.checkQueue(own)).messageCount).toBe(0)
    } finally {
      await channel.deleteQueue(own)
      await connection.close()
    }
  })
})

const { missing: noMetrics, why: whyNoMetrics } = missingOf('apache', 'prometheus')
describe.skipIf(noMetrics)(`metrics of Apache, and Prometheus${whyNoMetrics}`, () => {
  const running = servers('apache', 'prometheus')

  test('every metric that the recipe shows is in the store', async () => {
    const [apache = '', prometheus = ''] = (['apache', 'prometheus'] as const).map((name) => running.get(name)?.url)
    const name = 'apache-metrics'
    await using copy = await copied(name, {
      webserver_metrics: (config) => ({ ...config, endpoints: [apache] }),
      remote_write_metrics: (config) => ({ ...config, endpoint: `${prometheus}/api/v1/write` }),
    })
    const ran = await penstock(['run', copy.folder, '--for', '10s'])
    expect(ran.code, ran.stderr).toBe(0)
    const page = await readFile(join(examples, name, 'README.md'), 'utf8')
    const shown = [...page.matchAll(/^… (apache_\w+)\{/gm)].map(([, metric = '']) => metric)
    expect(shown).toContain('apache_up')
    // The page of an idle server shows no load.
    for (const metric of new Set(shown.filter((one) => one !== 'apache_cpu_load')))
      expect(await queryPrometheus(prometheus, metric), metric).not.toEqual([])
  })
})
