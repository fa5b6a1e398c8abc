import { request } from 'node:http'
import { beforeEach, expect, test, vi } from 'vitest'
import { defineSink, defineSource, erased, registryOf, type SourceContext } from '../component.ts'
import { loadConfigObject } from '../config/load.ts'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { Exposition } from '../telemetry/exposition.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { log } from '../testing/events.ts'
import { reload } from '../topology/reload.ts'
import { Topology } from '../topology/run.ts'
import { ApiServer } from './server.ts'
import { globTest } from './tap.ts'

const sources = new Map<string, SourceContext>()
const components = registryOf([
  erased(
    defineSource({
      type: 'feed',
      summary: 'Sends what the test gives it.',
      outputs: ['log'],
      options: {},
      build(_options, context) {
        sources.set(context.id, context)
        return { run: () => new Promise((resolve) => context.stopping.addEventListener('abort', () => resolve())) }
      },
    }),
  ),
  erased(
    defineSink({
      type: 'sponge',
      summary: 'Takes everything.',
      accepts: ['log'],
      options: {},
      build: () => ({
        write(batch) {
          batch.finalizer.release(1, 'delivered')
          return undefined
        },
        close: async () => {},
      }),
    }),
  ),
])
beforeEach(() => sources.clear())

const send = (id: string, ...messages: string[]) => {
  const batch = logBatch(
    messages.map((message) => log({ message })),
    new Finalizer(),
  )
  void sources.get(id)?.output.send(batch)
}

function configOf(object: unknown) {
  const result = loadConfigObject(object, { components, allowEmpty: true })
  if (!result.ok) throw new Error(result.problems.map((problem) => problem.message).join('\n'))
  return result.config
}

const both = {
  sources: { in: { type: 'feed' }, other: { type: 'feed' } },
  sinks: { out: { type: 'sponge', inputs: ['in'] }, rest: { type: 'sponge', inputs: ['other'] } },
}

async function observed() {
  const metrics = new Metrics()
  const topology = await Topology.start(configOf(both), { logger: silentLogger, metrics })
  const exposition = new Exposition(metrics, { host: 'node', pid: '1' })
  const api = await ApiServer.start({ address: '127.0.0.1:0', logger: silentLogger, exposition })
  const url = `http://${api.address}`
  return {
    api,
    url,
    topology,
    get: async (path: string) => {
      const response = await fetch(`${url}${path}`)
      return { status: response.status, text: await response.text() }
    },
    [Symbol.asyncDispose]: async () => {
      await api.close()
      await topology.stop(0)
    },
  }
}

test('health and readiness follow the state of the agent', async () => {
  await using observation = await observed()
  const { api, get, topology } = observation
  const states = async () => [(await get('/health')).status, (await get('/ready')).status]
  expect(await states()).toEqual([200, 503])
  api.topology = topology
  expect(await states()).toEqual([200, 200])
  expect((await get('/health')).text).toBe('{"ok":true}\n')
  api.stopping = true
  expect(await states()).toEqual([503, 503])
  expect((await get('/health')).text).toBe('{"ok":false,"reason":"The agent is stopping."}\n')
  expect((await fetch(`${observation.url}/health`, { method: 'POST' })).status).toBe(405)
  expect((await get('/nothing')).status).toBe(404)
})

test('metrics and components show what was counted', async () => {
  await using observation = await observed()
  observation.api.topology = observation.topology
  send('in', 'one', 'two')
  const metrics = (await observation.get('/metrics')).text
  expect(metrics).toMatch(
    /^component_received_events_total\{component_id="out",.*component_name="out".*pid="1".*\} 2$/m,
  )
  expect(metrics).toMatch(/^buffer_sent_events_total\{.*buffer_id="out".*\} 2$/m)
  expect(metrics).toMatch(/^utilization\{component_id="out"/m)
  const { components } = JSON.parse((await observation.get('/v1/components')).text)
  expect(components).toMatchObject([
    { component_id: 'in', component_kind: 'source', component_type: 'feed', sent_events_total: 2, outputs: ['in'] },
    { component_id: 'other', sent_events_total: 0 },
    { component_id: 'out', component_kind: 'sink', inputs: ['in'], received_events_total: 2 },
    { component_id: 'rest' },
  ])
})

/** The lines of a tap as they come. */
async function tap(url: string, query: string) {
  const lines: { kind: string; message?: string; component_id?: string; event?: unknown }[] = []
  const connected = Promise.withResolvers<void>()
  const connection = request(`${url}/v1/tap?${query}`, (response) => {
    let rest = ''
    response.setEncoding('utf8')
    response.on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) lines.push(JSON.parse(part))
    })
    response.on('error', () => {})
    connected.resolve()
  })
  connection.on('error', () => {})
  connection.end()
  await connected.promise
  return {
    lines,
    events: () => lines.filter((line) => line.kind === 'event'),
    notes: () => lines.filter((line) => line.kind === 'notification').map((line) => line.message),
    [Symbol.dispose]: () => connection.destroy(),
  }
}

test('a tap shows the events of matching outputs, and continues after a reload', async () => {
  await using observation = await observed()
  const { api, url, topology } = observation
  api.topology = topology
  using tapped = await tap(url, 'outputs_of=i*,nobody,out&interval=10')
  send('in', 'one')
  send('other', 'hidden')
  await vi.waitFor(() => expect(tapped.events()).toHaveLength(1))
  expect(tapped.events()[0]).toEqual({
    kind: 'event',
    output: 'in',
    component_id: 'in',
    component_kind: 'source',
    component_type: 'feed',
    event: { message: 'one' },
  })
  expect(tapped.notes()).toEqual([
    "[tap] Pattern 'i*' successfully matched.",
    "[tap] Pattern 'nobody' failed to match: will retry on configuration reload.",
    `[tap] Warning: sink outputs cannot be tapped. Output pattern 'out' matches sinks ["out"]`,
    "[tap] Pattern 'out' failed to match: will retry on configuration reload.",
  ])
  const more = { ...both, sources: { ...both.sources, nobody: { type: 'feed' } } }
  await reload(topology, configOf(more))
  send('nobody', 'new')
  await vi.waitFor(() => expect(tapped.events().map((line) => line.component_id)).toEqual(['in', 'nobody']))
})

test('a tap on the inputs of a sink shows what it reads', async () => {
  await using observation = await observed()
  observation.api.topology = observation.topology
  using tapped = await tap(observation.url, 'inputs_of=rest&interval=10')
  send('in', 'hidden')
  send('other', 'seen')
  await vi.waitFor(() => expect(tapped.events()).toHaveLength(1))
  expect(tapped.events()[0]?.event).toEqual({ message: 'seen' })
})

test('a tap shows at most its limit of events in an interval', async () => {
  await using observation = await observed()
  observation.api.topology = observation.topology
  using tapped = await tap(observation.url, 'outputs_of=*&limit=3&interval=10')
  send('in', ...Array.from({ length: 1000 }, (_, index) => `${index}`))
  send('other', 'late')
  await vi.waitFor(() => expect(tapped.events()).toHaveLength(3))
})

test('a tap limits the size of its sample, and reports the number of skipped events', async () => {
  await using observation = await observed()
  observation.api.topology = observation.topology
  using tapped = await tap(observation.url, 'outputs_of=in&limit=10000&interval=500')
  const large = 'x'.repeat(1 << 20)
  send('in', ...Array.from({ length: 20 }, () => large))
  await vi.waitFor(() => expect(tapped.events().length).toBeGreaterThan(5), 10_000)
  expect(tapped.events().length).toBeLessThan(8)
  expect(tapped.notes().at(-1)).toMatch(/^\[tap\] 1[3-9] events skipped: the sample/)
  await vi.waitFor(() => {
    send('in', 'small')
    expect(tapped.events().at(-1)?.event).toEqual({ message: 'small' })
  }, 10_000)
})

test.each(['limit=0', 'limit=x', 'interval=1'])('a tap with %s is rejected', async (query) => {
  await using observation = await observed()
  observation.api.topology = observation.topology
  expect((await observation.get(`/v1/tap?${query}`)).status).toBe(400)
})

test('the agent does not start if the address is in use', async () => {
  await using observation = await observed()
  const { address } = observation.api
  const again = ApiServer.start({ address, logger: silentLogger, exposition: new Exposition(new Metrics(), {}) })
  await expect(again).rejects.toMatchObject({ code: 'PEN_API_BIND' })
})

test.each([
  { pattern: '*', yes: ['a', 'a.b'], no: [] },
  { pattern: 'a?c', yes: ['abc'], no: ['ac', 'abbc'] },
  { pattern: 'a[bc].*', yes: ['ab.x', 'ac.'], no: ['ad.x', 'abx'] },
  { pattern: '[!a]b', yes: ['xb'], no: ['ab'] },
  { pattern: 'a(b', yes: ['a(b'], no: ['ab'] },
])('the glob $pattern matches $yes but not $no', ({ pattern, yes, no }) => {
  const matches = globTest(pattern)
  for (const text of yes) expect(matches(text)).toBe(true)
  for (const text of no) expect(matches(text)).toBe(false)
})
