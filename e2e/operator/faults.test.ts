// Faults during constant changes: the operator is killed repeatedly, two of them run at once, the API server is killed, etcd is compacted while
// the operator is disconnected. The final state must equal that of a run without faults.

import { Random } from '@penstock/agent/testing/random'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { until } from '../command.ts'
import { Api } from './fleet.ts'
import {
  apiVersion,
  CutWire,
  compact,
  conditionOf,
  OperatorProcess,
  type PipelineLike,
  prepare,
  restartApiServer,
  saysOf,
} from './process.ts'

const missing = missingForCluster(0)
const seed = 20261121

/** Specs between which Pipelines change, with the expected status. */
const specs = [
  { source: '.a = 1', says: 'True Valid' },
  { source: '.a = 2', says: 'True Valid' },
  { source: '.b = parse_json(.message)', says: 'False CompileFailed' },
  { source: '.c = get_env_var!("HOME")', says: 'False ForbiddenOption' },
] as const

const pipeline = (name: string, version: number, namespace = 'shop') => ({
  apiVersion,
  kind: 'Pipeline',
  metadata: { name, namespace },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs' }],
    transforms: [{ name: 'parse', type: 'remap', config: { source: specs[version]?.source } }],
    sinks: [{ name: 'out', type: 'blackhole' }],
  },
})

describe.skipIf(missing !== undefined)(`the operator in trouble${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let api: Api
  /** The last applied spec of each Pipeline; undefined if deleted. */
  const applied = new Map<string, number>()

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop', 'calm')
    api = resources.use(await Api.start(cluster))
  })
  afterAll(() => resources[Symbol.asyncDispose]())

  const start = (args: readonly string[] = ['--leader-election=false'], kubeconfig = cluster.kubeconfig) =>
    resources.use(OperatorProcess.start({ kubeconfig, args }))

  const path = (namespace: string, name = '') => `/apis/${apiVersion}/namespaces/${namespace}/pipelines${name}`
  async function pipelines(namespace = 'shop'): Promise<readonly PipelineLike[]> {
    return (await api.get<{ items: readonly PipelineLike[] }>(path(namespace))).items
  }
  /** Applies resources one after another, as from a file. */
  async function apply(...objects: readonly ReturnType<typeof pipeline>[]): Promise<void> {
    for (const object of objects) {
      const { name, namespace } = object.metadata
      const asked = `${path(namespace, `/${name}`)}?fieldManager=author&force=true`
      await api.request('PATCH', asked, object, 'application/apply-patch+yaml')
    }
  }

  /** Changes some Pipelines: creates some, changes programs, and deletes some. */
  async function churn(random: Random, count: number): Promise<void> {
    const changed = new Map<string, number>()
    const deleted = new Set<string>()
    for (let change = 0; change < count; change++) {
      const name = `p-${random.below(20)}`
      if (random.chance(0.2)) {
        changed.delete(name)
        if (applied.has(name)) deleted.add(name)
      } else {
        deleted.delete(name)
        changed.set(name, random.below(specs.length))
      }
    }
    if (deleted.size > 0) {
      for (const name of deleted) await api.request('DELETE', path('shop', `/${name}`))
      for (const name of deleted) applied.delete(name)
    }
    await apply(...[...changed].map(([name, version]) => pipeline(name, version)))
    for (const [name, version] of changed) applied.set(name, version)
  }

  /** Waits until all Pipelines have the expected status. */
  async function settled(): Promise<void> {
    await until('the expected status of all Pipelines', 90_000, async () => {
      const found = await pipelines()
      const wrong = found.filter(
        (each) => saysOf(each, 'Accepted') !== specs[applied.get(each.metadata.name) ?? -1]?.says,
      )
      if (found.length !== applied.size) throw new Error(`${found.length} Pipelines instead of ${applied.size}`)
      if (wrong.length > 0)
        throw new Error(wrong.map((each) => `${each.metadata.name}: ${saysOf(each, 'Accepted')}`).join(', '))
      return true
    })
  }

  /** The status of the Pipelines without parts that vary between runs. */
  async function state(namespace: string) {
    const found = await pipelines(namespace)
    return found
      .map(
        (each) =>
          [each.metadata.name, ['Accepted', 'ResolvedRefs', 'Stalled'].map((type) => saysOf(each, type))] as const,
      )
      .sort(([left], [right]) => (left < right ? -1 : 1))
  }

  test(`the operator is killed 50 times at random moments (seed ${seed})`, { timeout: 600_000 }, async () => {
    const random = new Random(seed)
    for (let kill = 0; kill < 50; kill++) {
      const operator = start()
      const moment = 100 + random.next() * 2_400
      const changes = churn(random, 3)
      // A random moment, from the first instruction to the middle of a status write.
      await Promise.all([changes, new Promise((done) => setTimeout(done, moment))])
      expect(operator.running, operator.log).toBe(true)
      await operator.kill()
    }
    const operator = await start().leading()
    await settled()
    await operator.idle()

    // The same resources, applied at once to an operator without faults.
    await apply(...[...applied].map(([name, version]) => pipeline(name, version, 'calm')))
    await until('the calm run to be done', 60_000, async () =>
      (await state('calm')).every(([, [accepted]]) => accepted !== undefined && accepted !== 'Unknown Pending'),
    )
    // If a newer version is rejected, the accepted one continues to run. The compared status does not include this.
    expect(await state('shop')).toEqual(await state('calm'))
    await operator.stop()
  })

  test('only one of two operators writes; when it is killed, the other takes over', async () => {
    const one = start([])
    await one.leading()
    const other = start([])
    await other.logged('Another process leads.')
    await until('the other to be ready', 30_000, async () => (await other.get('/readyz')).startsWith('200'))
    await churn(new Random(seed + 1), 10)
    await settled()
    expect(await other.writes()).toBe(0)

    await one.kill()
    await churn(new Random(seed + 2), 10)
    await other.leading()
    await settled()

    // An operator releases its Lease on a graceful stop, so the next one need not wait for its expiry.
    const third = start([])
    await third.logged('Another process leads.')
    expect(await other.stop()).toBe(0)
    const before = Date.now()
    await third.leading()
    expect(Date.now() - before).toBeLessThan(12_000)
    await third.stop()
  })

  test('a leader that was suspended does not write after its Lease has expired', async () => {
    const sleeper = await start([]).leading()
    const other = start([])
    await other.logged('Another process leads.')
    sleeper.signal('SIGSTOP')
    await other.leading()
    const writes = await leaseHolder()
    sleeper.signal('SIGCONT')
    expect(await sleeper.ended()).not.toBe(0)
    expect(await leaseHolder()).toBe(writes)
    await churn(new Random(seed + 3), 6)
    await settled()
    await other.stop()
  })

  test('the operator recovers when the API server is killed and restarted during changes', async () => {
    const operator = await start().leading()
    await churn(new Random(seed + 4), 10)
    await restartApiServer(cluster)
    await churn(new Random(seed + 5), 10)
    await settled()
    expect(operator.running).toBe(true)
    await operator.stop()
  })

  test('12: after a disconnection with an etcd compaction, it lists again, notices deletions, and writes nothing else', async () => {
    const wire = resources.use(await CutWire.start(cluster))
    const operator = await start(['--leader-election=false', '--log-level', 'debug'], wire.kubeconfig).leading()
    await apply(pipeline('stays', 0), pipeline('goes', 0), pipeline('turns', 0))
    for (const name of ['stays', 'goes', 'turns']) applied.set(name, 0)
    await settled()
    await operator.idle()
    const before = await pipelines()
    // The agents' revision changes with the set of Pipelines; the status of the other Pipelines does not.
    const conditionsOf = (list: readonly PipelineLike[]) =>
      list
        .filter(({ metadata }) => !['goes', 'turns'].includes(metadata.name))
        .map((each) => [each.metadata.name, conditionOf(each, 'Accepted'), conditionOf(each, 'ResolvedRefs')])

    wire.cut()
    await api.request('DELETE', path('shop', '/goes'))
    applied.delete('goes')
    await apply(pipeline('turns', 2))
    applied.set('turns', 2)
    await compact(cluster)
    // The API server has lost its watch history, so a new list is required.
    await restartApiServer(cluster)
    wire.restore()

    await settled()
    await operator.idle()
    expect(operator.log).toContain('The watched version has expired; listing again.')
    expect(conditionsOf(await pipelines())).toEqual(conditionsOf(before))
    // A Pipeline with the name of the deleted one is new, without state of the old one.
    await apply(pipeline('goes', 3))
    applied.set('goes', 3)
    await settled()
    expect(await operator.stop()).toBe(0)
  })

  async function leaseHolder(): Promise<string> {
    const lease = await api.get('/apis/coordination.k8s.io/v1/namespaces/penstock-system/leases/penstock-operator')
    return String(lease.spec?.['holderIdentity'])
  }
})
