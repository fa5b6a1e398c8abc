// `-o` of the commands that read a cluster, with a fake API server: tables, JSON and YAML contain the same facts as the
// text.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { main } from './commands.ts'

const apiVersion = 'penstock.dev/v1alpha1'
const conditions = (ready: string) => [
  { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
  { type: 'Programmed', status: ready, reason: ready === 'True' ? 'Programmed' : 'RollingOut', message: '1 of 2.' },
  { type: 'Ready', status: ready, reason: ready === 'True' ? 'Ready' : 'RollingOut', message: '1 of 2.' },
]
const pipeline = (name: string, ready: string, app: string) => ({
  apiVersion,
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop', uid: name, generation: 2 },
  spec: {
    sources: [{ name: 'pods', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app } } } }],
    sinks: [{ name: 'out', type: 'blackhole', config: {} }],
  },
  status: {
    observedGeneration: 2,
    conditions: conditions(ready),
    agents: [{ name: 'penstock-system/node', revision: 'r2', desired: 2, current: 1 }],
    flow: { window: '1m', eventsIn: 70, eventsOut: 69, dropped: 1, errors: 0, lagSeconds: 4 },
  },
})
const objects: Record<string, object> = {
  '/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/web': pipeline('web', 'True', 'web'),
  '/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines': {
    metadata: {},
    items: [pipeline('web', 'True', 'web'), pipeline('other', 'False', 'other')],
  },
  '/apis/penstock.dev/v1alpha1/namespaces/shop/agents/node': {
    apiVersion,
    kind: 'Agent',
    metadata: { name: 'node', namespace: 'shop' },
    spec: { mode: 'Node' },
    status: {
      revision: 'r2',
      stableRevision: 'r1',
      nodes: { desired: 2, current: 1, ready: 2, failed: 0, stale: 0 },
      history: [{ revision: 'r1', at: '2026-11-23T09:00:00Z', result: 'Succeeded' }],
      conditions: conditions('False'),
    },
  },
  ...Object.fromEntries(
    ['first', 'third'].map((name) => [
      `/apis/penstock.dev/v1alpha1/namespaces/shop/agents/${name}`,
      {
        apiVersion,
        kind: 'Agent',
        metadata: { name, namespace: 'shop' },
        spec: { mode: 'Node' },
        status: {
          revision: 'r3',
          stableRevision: 'r3',
          history: (name === 'first' ? ['r3'] : ['r3', 'r2', 'r1']).map((revision) => ({
            revision,
            at: '2026-11-23T09:00:00Z',
            result: 'RolledOut',
          })),
          conditions: conditions('True'),
        },
      },
    ]),
  ),
  '/apis/penstock.dev/v1alpha1/agents': {
    metadata: {},
    items: [
      {
        apiVersion,
        kind: 'Agent',
        metadata: { name: 'node', namespace: 'penstock-system' },
        spec: { mode: 'Node', pipelines: { namespaceSelector: {} } },
      },
    ],
  },
  '/api/v1/namespaces/shop': { metadata: { name: 'shop' } },
  '/api/v1/namespaces/shop/pods/web-1': {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-1', namespace: 'shop', uid: 'u1', labels: { app: 'web' } },
    spec: { containers: [{ name: 'web' }] },
    status: { phase: 'Pending' },
  },
}

const folder = mkdtempSync(join(tmpdir(), 'penstock-outputs-'))
let server: Server
/** Paths of the requests so far. */
const asked: string[] = []
/** Paths that the user may not read. */
let isForbidden: (path: string) => boolean = () => false
beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://cluster')
    asked.push(pathname)
    const isRefused = isForbidden(pathname)
    response.writeHead(isRefused ? 403 : 200, { 'content-type': 'application/json' })
    if (isRefused) response.end(JSON.stringify({ kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 }))
    else response.end(JSON.stringify(objects[pathname] ?? { metadata: {}, items: [] }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one', namespace: 'shop' } }],
    clusters: [{ name: 'one', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'one', user: { token: 'secret' } }],
  }
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(config))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})
afterEach(() => {
  isForbidden = () => false
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

async function penstock(...args: string[]) {
  vi.stubEnv('KUBECONFIG', join(folder, 'kubeconfig'))
  let out = ''
  vi.spyOn(console, 'log').mockImplementation((text) => {
    out += `${text}\n`
  })
  const err = vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text
    return true
  })
  const code = await main(args)
  return { code, out, err: err.mock.calls.flat().join('\n') }
}

const table = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {3,}/))

test('status has a row for each Pipeline', async () => {
  const { code, out } = await penstock('status', '-o', 'table')
  expect(code).toBe(1)
  expect(table(out)).toEqual([
    ['KIND', 'NAMESPACE', 'NAME', 'READY', 'REASON', 'AGENTS', 'IN', 'OUT', 'DROPPED', 'ERRORS', 'LAG SECONDS'],
    ['Pipeline', 'shop', 'web', 'True', 'Ready', '1/2', '70', '69', '1', '0', '4'],
    ['Pipeline', 'shop', 'other', 'False', 'RollingOut', '1/2', '70', '69', '1', '0', '4'],
  ])
  const rows = JSON.parse((await penstock('status', '-o', 'json')).out) as object[]
  expect(rows.map((row) => (row as { name: string }).name)).toEqual(['web', 'other'])
  expect(parse((await penstock('status', '-o', 'yaml')).out)).toEqual(rows)
})

test('status of one Pipeline is one object, with its conditions', async () => {
  const { code, out } = await penstock('status', 'web', '-o', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({ name: 'web', ready: 'True', eventsIn: 70, conditions: conditions('True') })
})

test('status of a version that the operator has not processed yet ends with 1, although the version before was ready', async () => {
  const path = '/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/web'
  const before = objects[path] as ReturnType<typeof pipeline>
  objects[path] = { ...before, metadata: { ...before.metadata, generation: 3 } }
  try {
    const { code, out } = await penstock('status', 'web')
    expect([code, out]).toEqual([1, expect.stringContaining('The operator has not processed generation 3 yet')])
  } finally {
    objects[path] = before
  }
})

test('status without a Pipeline is an empty list for machines', async () => {
  const { code, out, err } = await penstock('status', '--cluster', '-o', 'json')
  expect([code, JSON.parse(out), err]).toEqual([0, [], 'There is no ClusterPipeline.'])
})

test('status --watch shows each change, once, until Ctrl-C', async () => {
  const path = '/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/web'
  const before = objects[path] as object
  const watching = penstock('status', 'web', '--watch', '-o', 'table')
  const looks = () => asked.filter((one) => one === path).length
  const from = looks()
  try {
    await vi.waitFor(() => expect(looks()).toBeGreaterThan(from + 1), 50_000)
    objects[path] = pipeline('web', 'False', 'web')
    const changed = looks()
    await vi.waitFor(() => expect(looks()).toBeGreaterThan(changed + 1), 50_000)
  } finally {
    objects[path] = before
    process.emit('SIGINT')
  }
  const { code, out } = await watching
  expect(code).toBe(1)
  expect(out.match(/^Pipeline .*/gm)?.map((line) => line.split(/ {3,}/)[3])).toEqual(['True', 'False'])
  expect((await penstock('status', '--watch', '-o', 'json')).code).toBe(64)
})

test('rollout status shows the same in every format', async () => {
  const { code, out } = await penstock('rollout', 'status', 'node', '-o', 'table')
  expect(code).toBe(1)
  expect(table(out)).toEqual([
    [
      'NAMESPACE',
      'AGENT',
      'REVISION',
      'STABLE',
      'PAUSED',
      'DESIRED',
      'UP TO DATE',
      'READY',
      'FAILED',
      'SILENT',
      'REASON',
    ],
    ['shop', 'node', 'r2', 'r1', 'no', '2', '1', '2', '0', '0', 'RollingOut'],
  ])
  const row = JSON.parse((await penstock('rollout', 'status', 'node', '-o', 'json')).out)
  expect(row).toMatchObject({ name: 'node', current: 1, programmed: 'False', history: [{ revision: 'r1' }] })
  expect(parse((await penstock('rollout', 'status', 'node', '-o', 'yaml')).out)).toEqual(row)
  const text = (await penstock('rollout', 'status', 'node')).out
  expect(text).toContain('  revision r2 is being rolled out; r1 is stable\n  agents: 1 of 2 up to date, 2 ready')
})

test.each([
  { agent: 'third', to: 'r3', says: 'already runs revision r3, so nothing was changed. There are: r2, r1.' },
  { agent: 'first', to: 'r3', says: 'already runs revision r3, so nothing was changed.' },
  { agent: 'first', to: 'r9', says: 'has no earlier revision.' },
  { agent: 'third', to: 'r9', says: 'has no earlier revision r9. There are: r2, r1.' },
  { agent: 'third', to: 'r1', says: 'returns to revision r1.' },
  { agent: 'third', to: undefined, says: 'returns to revision r2.' },
])('rollout undo of an Agent with a $agent revision to $to explains the result', async ({ agent, to, says }) => {
  const before = asked.length
  const { code, out, err } = await penstock(
    'rollout',
    'undo',
    agent,
    ...(to === undefined ? [] : ['--to-revision', to]),
  )
  const isDone = says.startsWith('returns')
  expect([code, isDone ? out : `${err}\n`]).toEqual([isDone ? 0 : 1, expect.stringContaining(`shop/${agent} ${says}`)])
  // Read once; written only by a rollback.
  expect(asked.slice(before).filter((path) => path.endsWith(`/agents/${agent}`))).toHaveLength(isDone ? 2 : 1)
})

test('why has a row for each Pipeline, and facts about the pod', async () => {
  const { code, out, err } = await penstock('why', 'web-1', '-o', 'table')
  expect([code, err]).toEqual([1, 'It has no node, so it has no logs yet.'])
  expect(table(out)).toEqual([
    ['KIND', 'PIPELINE', 'READS IT', 'WHY', 'EVENTS', 'LAG SECONDS', 'DROPPED'],
    ['Pipeline', 'shop/web', 'no', 'the pod has no node yet; pods: containers web', '-', '4', '1'],
    [
      'Pipeline',
      'shop/other',
      'no',
      'pods: its selector app=other does not match the labels of the pod (app=web)',
      '-',
      '-',
      '-',
    ],
  ])
  const rows = JSON.parse((await penstock('why', 'web-1', '-o', 'json')).out)
  expect(rows[0]).toMatchObject({
    reads: false,
    sources: [{ name: 'pods', reads: true }],
    obstacles: ['the pod has no node yet'],
  })
  expect(parse((await penstock('why', 'web-1', '-o', 'yaml')).out)).toEqual(rows)
})

test.each([
  { args: ['status', '-o', 'wide'], says: '`--output` takes one of text, table, json, yaml; found `wide`.' },
  { args: ['why', 'web-1', '-o', 'wide'], says: '`--output` takes one of text, table, json, yaml; found `wide`.' },
  { args: ['rollout', 'pause', 'node', '-o', 'json'], says: '`--output` is for `penstock rollout status`.' },
])('$args is refused', async ({ args, says }) => {
  const { code, err } = await penstock(...args)
  expect(code).toBe(64)
  expect(err).toContain(says)
})

test('support-bundle lists its content, and leaves no archive if nothing could be read', async () => {
  const file = join(folder, 'bundle.tar.gz')
  isForbidden = (path) => !path.endsWith('/agents')
  const whole = await penstock('support-bundle', '-o', file)
  expect(whole.code).toBe(0)
  expect(whole.out).toMatch(/bundle\.tar\.gz: resources\. \d+ things could not be read; about\.txt names them\./)
  expect(whole.err).toContain('pods: ')
  expect(gunzipSync(readFileSync(file)).toString()).toContain('resources/agents.yaml')
  // It overwrites no earlier archive.
  const again = await penstock('support-bundle', '-o', file)
  expect([again.code, again.err]).toEqual([
    73,
    expect.stringContaining('bundle.tar.gz" cannot be created: it exists already.'),
  ])
  rmSync(file)

  const asked: string[] = []
  isForbidden = (path) => {
    asked.push(path)
    return false
  }
  const one = await penstock('support-bundle', '-n', 'shop', '-o', file)
  expect(one.code).toBe(0)
  expect(asked.filter((path) => !path.includes('/namespaces/shop/'))).toEqual([])
  const text = gunzipSync(readFileSync(file)).toString()
  expect(text).toContain('resources/pipelines.yaml')
  expect(text).toContain('name: other')
  rmSync(file)

  isForbidden = () => true
  const none = await penstock('support-bundle', '-n', 'elsewhere', '-o', file)
  expect(none.code).toBe(69)
  expect(none.err).toContain('Nothing could be read, so there is no archive.')
  expect(existsSync(file)).toBe(false)
})
