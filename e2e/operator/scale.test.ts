// How the operator does with many Pipelines: how long an author waits for an answer, and how much memory it takes.
// PENSTOCK_TEST_PIPELINES sets the number; the goals are for 2000 (answer) and 5000 (memory).

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { until } from '../command.ts'
import { Api } from './fleet.ts'
import { apiVersion, OperatorProcess, type PipelineLike, prepare, saysOf } from './process.ts'

const missing = missingForCluster(0)
const count = Number(process.env['PENSTOCK_TEST_PIPELINES'] ?? 300)
const path = (name = '') => `/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines${name === '' ? '' : `/${name}`}`

const pipeline = (name: string, value: number) => ({
  apiVersion,
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop', labels: { team: `t-${value % 10}` } },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: name } } } }],
    transforms: [
      {
        name: 'parse',
        type: 'remap',
        config: { source: `. = merge(., object(parse_json(.message) ?? {}) ?? {})\n.n = ${value}` },
      },
      { name: 'keep', type: 'filter', config: { condition: '.level != "debug"' } },
    ],
    sinks: [{ name: 'out', type: 'http', config: { uri: 'https://store.example/in', encoding: { codec: 'json' } } }],
  },
})

describe.skipIf(missing !== undefined)(`${count} Pipelines${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let api: Api
  let operator: OperatorProcess

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop')
    api = resources.use(await Api.start(cluster))
    operator = await resources.use(OperatorProcess.start({ kubeconfig: cluster.kubeconfig })).leading()
  })
  afterAll(() => resources[Symbol.asyncDispose]())

  const apply = (name: string, value: number) =>
    api.request(
      'PATCH',
      `${path(name)}?fieldManager=author&force=true`,
      pipeline(name, value),
      'application/apply-patch+yaml',
    )

  test('each is answered', { timeout: 1_800_000 }, async () => {
    const names = Array.from({ length: count }, (_, index) => `p-${index}`)
    for (let at = 0; at < count; at += 20) {
      await Promise.all(names.slice(at, at + 20).map((name, index) => apply(name, at + index)))
    }
    await until('every Pipeline to be accepted', 1_500_000, async () => {
      const { items } = await api.get<{ items: PipelineLike[] }>(path())
      return items.length === count && items.every((each) => saysOf(each, 'Accepted') === 'True Valid')
    })
    const memory = operator.memory()
    console.log(`${count} Pipelines: ${memory.toFixed(0)} MiB after the first look at all`)
    expect(memory).toBeLessThan(512)
  })

  test('an author is answered soon', { timeout: 600_000 }, async () => {
    const times: number[] = []
    for (let change = 0; change < 50; change++) {
      const name = `p-${(change * 37) % count}`
      const generation = (await api.get<PipelineLike>(path(name))).metadata.generation + 1
      const started = performance.now()
      await apply(name, count + change)
      await until(`the answer to a change of ${name}`, 60_000, async () => {
        const found = await api.get<PipelineLike>(path(name))
        if (found.metadata.generation === generation && saysOf(found, 'Accepted') === 'True Valid') return true
        throw new Error(`generation ${found.metadata.generation} of ${generation}: ${JSON.stringify(found.status)}`)
      })
      times.push(performance.now() - started)
    }
    times.sort((left, right) => left - right)
    const at = (part: number) =>
      (times[Math.min(times.length - 1, Math.floor(times.length * part))] as number).toFixed(0)
    // Times are told and not judged: how busy the machine is decides them as well.
    console.log(`apply to Accepted beside ${count} Pipelines: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
    console.log(`memory: ${operator.memory().toFixed(0)} MiB`)
  })
})
