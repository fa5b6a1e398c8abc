// Pipelines of several tenants on one agent, whose destinations fail in all ways while pipelines and sinks change: no body that leaves the
// agent has a byte of another tenant, every event is exactly its line, and no line is lost or doubled. Memory that is given back is
// overwritten at once, so whatever still reads it delivers the wrong bytes.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Tap } from '../api/tap.ts'
import { Body } from '../event/body.ts'
import { Spares } from '../event/spares.ts'
import { registry } from '../registry.ts'
import { SlabPool } from '../tailing/slab.ts'
import { merged, type TestBundle } from '../testing/bundle.ts'
import { BundleRig } from '../testing/bundle-rig.ts'
import { KubeApi } from '../testing/kube-api.ts'
import { Random } from '../testing/random.ts'
import { TenantPods } from '../testing/tenant-pods.ts'
import { edit, poison, WildDestination, type WildSink } from '../testing/wild-destination.ts'

const tenants = ['red', 'green', 'blue', 'teal']

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-tenants-'))
  mkdirSync(join(folder, 'logs'))
  overwriteFreedMemory()
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

/** Overwrites the buffers in everything that is given to a pool. */
function overwriteFreedMemory(): void {
  const { give } = Spares.prototype
  vi.spyOn(Spares.prototype, 'give').mockImplementation(function (this: Spares<unknown>, spare) {
    const parts =
      spare instanceof Body ? [spare.buffer] : Buffer.isBuffer(spare) ? [spare] : Object.values(spare as object)
    for (const part of parts) {
      if (Buffer.isBuffer(part)) part.fill(poison)
      else if (ArrayBuffer.isView(part)) new Uint8Array(part.buffer, part.byteOffset, part.byteLength).fill(0xff)
    }
    give.call(this, spare)
  })
  const { give: giveSlab } = SlabPool.prototype
  vi.spyOn(SlabPool.prototype, 'give').mockImplementation(function (this: SlabPool, slab) {
    slab.buffer.fill(poison)
    giveSlab.call(this, slab)
  })
}

const sinks: Readonly<Record<string, WildSink>> = {
  raw: { format: 'ndjson', isEdited: false },
  zip: { format: 'ndjson', isEdited: true },
  disk: { format: 'array', isEdited: true },
  streams: { format: 'streams', isEdited: true },
  index: { format: 'bulk', isEdited: true },
  few: { format: 'ndjson', isEdited: true },
  drops: { format: 'ndjson', isEdited: true },
  guest: { format: 'ndjson', isEdited: false },
}

/** The sinks that every tenant has, and that deliver every line. */
const whole = ['raw', 'zip', 'disk', 'streams', 'index']
const isOneOfFew = (message: string) => /#\d*77#/.test(message) && message.startsWith('{') && message.endsWith('}')

/** The `http` sinks answer within a second, so that no request is sent twice on a slow machine. */
const request = {
  timeout_secs: 30,
  retry_initial_backoff_secs: 1,
  retry_max_duration_secs: 1,
  retry_jitter_mode: 'none',
}
const common = { batch: { timeout_secs: 0.05, max_events: 300 }, healthcheck: false }
const ndjson = { encoding: { codec: 'json' }, framing: { method: 'newline_delimited' } }

/** A tenant's sinks, by their names. */
function sinksOf(url: string, hasDrops: boolean): Record<string, { input: string } & Record<string, unknown>> {
  const http = { type: 'http', ...common }
  return {
    raw: {
      ...http,
      ...ndjson,
      input: 'app',
      request: { ...request, concurrency: 3 },
      buffer: { max_events: 150 },
      uri: `${url}/raw`,
    },
    zip: {
      ...http,
      ...ndjson,
      input: 'edit',
      request: { ...request, concurrency: 'adaptive' },
      compression: 'gzip',
      uri: `${url}/zip`,
    },
    disk: {
      ...http,
      encoding: { codec: 'json' },
      input: 'edit',
      request,
      buffer: { type: 'disk', max_size: 268_435_488 },
      uri: `${url}/disk`,
    },
    streams: {
      ...common,
      type: 'log_aggregator',
      input: 'edit',
      endpoint: `${url}/streams`,
      labels: { pod: '{{ orchestrator.pod_name }}', level: '{{ level }}', stream: '{{ stream }}' },
      out_of_order_action: 'accept',
      encoding: { codec: 'json' },
      request: { ...request, concurrency: 2 },
    },
    index: { ...common, type: 'search_engine', input: 'edit', endpoints: [`${url}/index`], api_version: 'v8', request },
    few: { ...http, ...ndjson, input: 'chosen', request, uri: `${url}/few` },
    ...(hasDrops && {
      drops: {
        ...http,
        ...ndjson,
        input: 'edit',
        request,
        buffer: { max_events: 100, when_full: 'drop_newest' },
        uri: `${url}/drops`,
      },
    }),
  }
}

/** A pipeline that reads some namespaces. */
function pipelineOf(
  name: string,
  namespaces: readonly string[],
  revision: number,
  parts: ReturnType<typeof sinksOf>,
): TestBundle {
  const id = (component: string) => `${name}/p/${component}`
  const few = 'contains(string(.id) ?? "", "77#")'
  return {
    pipelines: { [`${name}/p`]: { uid: name, generation: revision, hash: `${revision}` } },
    subscriptions: [{ cursor: `${name}/app`, out: id('app'), namespaces, options: {} }],
    transforms: {
      [id('edit')]: { type: 'remap', inputs: [id('app')], source: `${edit}\n.revision = ${revision}` },
      [id('chosen')]: { type: 'filter', inputs: [id('edit')], condition: few },
    },
    sinks: Object.fromEntries(
      Object.entries(parts).map(([sink, { input, ...options }]) => [id(sink), { ...options, inputs: [id(input)] }]),
    ),
  }
}

/** All pipelines: those of the tenants, one that reads two of them, and perhaps a guest that comes and goes. */
function bundleOf(url: string, revision: number, random: Random): TestBundle {
  const own = tenants.map((tenant) =>
    pipelineOf(tenant, [tenant], revision, sinksOf(`${url}/${tenant}`, random.chance(0.5))),
  )
  const { streams } = sinksOf(`${url}/all`, false)
  const file = {
    ...ndjson,
    type: 'file',
    input: 'edit',
    path: join(folder, 'files', '{{ orchestrator.pod_namespace }}'),
  }
  const all = pipelineOf('all', ['blue', 'teal'], revision, {
    streams: { ...streams, input: 'edit', tenant_id: '{{ orchestrator.pod_namespace }}' },
    file,
  })
  const { raw } = sinksOf(`${url}/green`, false)
  const guest = pipelineOf('guest', ['green'], revision, { guest: { ...raw, input: 'app', uri: `${url}/green/guest` } })
  return merged(...own, all, ...(random.chance(0.5) ? [guest] : []))
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 50 })

/** Lets pipelines, pods and destinations change at random. Returns what a tap has shown. */
async function disturb(
  rig: BundleRig,
  {
    pods,
    destination,
    random,
  }: { readonly pods: TenantPods; readonly destination: WildDestination; readonly random: Random },
): Promise<readonly string[]> {
  const tapped: string[] = []
  let tap: Tap | undefined
  const endTap = () => {
    for (const kept of tap?.drain() ?? []) tapped.push(tap?.line(kept) ?? '')
    tap?.[Symbol.dispose]()
    tap = undefined
  }
  let revision = 1
  for (let step = 0; step < 150; step++) {
    const choice = random.next()
    const tenant = random.pick(tenants)
    if (choice < 0.75) pods.write(tenant, random.between(1, random.pick([5, 60, 600])))
    else if (choice < 0.8) pods.rotate(tenant)
    else if (choice < 0.85) rig.put(bundleOf(destination.url, ++revision, random))
    else if (choice < 0.9) destination.stalled.add(`${tenant}/${random.pick(Object.keys(sinks))}`)
    else if (choice < 0.95) destination.stalled.clear()
    else if (tap === undefined) tap = new Tap(rig.topology, { outputsOf: ['*'], inputsOf: [], limit: 5 }, () => {})
    else endTap()
    await wait(random.below(30))
  }
  endTap()
  return tapped
}

/** Checks the lines of files and of a tap, which did not go to the destination. */
function checkOthers(destination: WildDestination, tapped: readonly string[]): void {
  const files = join(folder, 'files')
  for (const tenant of readdirSync(files)) {
    for (const line of readFileSync(join(files, tenant), 'utf8').trimEnd().split('\n'))
      destination.checkEvent('all/file', tenant, JSON.parse(line) as TappedEvent, true)
  }
  for (const line of tapped) {
    const { output, event } = JSON.parse(line) as { readonly output: string; readonly event: TappedEvent }
    destination.checkEvent(output, event.orchestrator.pod_namespace, event, !output.endsWith('/app'))
    // The pod to which the agent attributes the line, and the pipeline that reads it.
    const [pipeline = ''] = output.split('/')
    if (tenants.includes(pipeline)) expect(event.orchestrator.pod_namespace).toBe(pipeline)
  }
}

type TappedEvent = Readonly<Record<string, unknown>> & { readonly orchestrator: { readonly pod_namespace: string } }

test('each tenant has all of its lines once, and no byte of another one, while destinations fail', async () => {
  const seed = Number(process.env['PENSTOCK_TEST_SEED'] ?? Date.now() % 1_000_000)
  const random = new Random(seed)
  await using api = await KubeApi.start()
  const pods = new TenantPods(join(folder, 'logs'), api, tenants, random)
  await using destination = await new WildDestination(pods, sinks, new Random(seed + 1)).start()
  let tapped: readonly string[] = []
  {
    const bundle = bundleOf(destination.url, 1, random)
    await using rig = await BundleRig.start({ folder, components: registry, api, bundle, drainMs: 500 })
    tapped = await disturb(rig, { pods, destination, random })
    expect(rig.runner.state.failures, `Seed ${seed}`).toEqual([])
    expect(destination.problems.slice(0, 5), `Seed ${seed}`).toEqual([])
    destination.stalled.clear()
    destination.isCalm = true
    pods.complete()
    for (const tenant of tenants) {
      const isThere = (sink: string, isWanted?: (message: string) => boolean) =>
        eventually(() =>
          expect(destination.missing(`${tenant}/${sink}`, tenant, isWanted), `${tenant}/${sink}, seed ${seed}`).toEqual(
            [],
          ),
        )
      for (const sink of whole) await isThere(sink)
      await isThere('few', isOneOfFew)
      const doubled = [...whole, 'few'].filter((sink) => destination.doubled(`${tenant}/${sink}`).length > 0)
      expect(doubled, `${tenant}, seed ${seed}`).toEqual([])
    }
    expect(rig.metrics.byComponent(['byte_lane_events_total']).size).toBeGreaterThan(0)
  }
  checkOthers(destination, tapped)
  expect(destination.problems.slice(0, 5), `Seed ${seed}`).toEqual([])
})
