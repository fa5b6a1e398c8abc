// The operator with many Pipelines and agents: the response time for authors, and its memory. PENSTOCK_TEST_PIPELINES and PENSTOCK_TEST_AGENTS
// set the numbers. The goals are for 2000 Pipelines (response time), and for 5000 Pipelines and 1000 agents (memory).

import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { inGroups, until } from '../command.ts'
import { Crowd } from './crowd.ts'
import { Api } from './fleet.ts'
import { apiVersion, heartbeatUrl, OperatorProcess, type PipelineLike, prepare, saysOf, system } from './process.ts'

const missing = missingForCluster(0)
const count = Number(process.env['PENSTOCK_TEST_PIPELINES'] ?? 300)
const agents = Number(process.env['PENSTOCK_TEST_AGENTS'] ?? 20)
/** Seconds between reports, as with many agents. */
const period = agents > 100 ? 30 : 5
/** The memory limit of the pod, which must be sufficient. */
const memoryMiB = 512
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

describe.skipIf(missing !== undefined)(
  `${count} Pipelines, ${agents} agents${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    const resources = new AsyncDisposableStack()
    let cluster: Cluster
    let api: Api
    let operator: OperatorProcess
    let heartbeats: number
    const start = () =>
      resources.use(
        OperatorProcess.start({
          kubeconfig: cluster.kubeconfig,
          heartbeats,
          args: ['--leader-election', 'false', '--heartbeat-period', `${period}s`, '--status-period', `${period}s`],
        }),
      )

    beforeAll(async () => {
      cluster = resources.use(await startCluster())
      await prepare(cluster, 'shop')
      api = resources.use(await Api.start(cluster))
      heartbeats = await freePort()
      operator = await start().leading()
      await until('the account of agents', 60_000, () =>
        api.find(`/api/v1/namespaces/${system}/serviceaccounts/penstock-node`),
      )
      const operatorUrl = heartbeatUrl(heartbeats)
      resources.use(await Crowd.start(api, { agent: 'node', nodes: agents, operatorUrl, everyMs: period * 1000 }))
    }, 600_000)
    afterAll(() => resources[Symbol.asyncDispose]())

    const printMemory = (when: string) => {
      const { now, peak } = operator.memory()
      console.log(`${count} Pipelines, ${agents} agents: ${now.toFixed(0)} MiB ${when}, ${peak.toFixed(0)} MiB at most`)
    }

    const apply = (name: string, value: number) =>
      api.request(
        'PATCH',
        `${path(name)}?fieldManager=author&force=true`,
        pipeline(name, value),
        'application/apply-patch+yaml',
      )

    test('accepts all Pipelines', { timeout: 1_800_000 }, async () => {
      const names = Array.from({ length: count }, (_, index) => `p-${index}`)
      await inGroups([...names.entries()], 20, ([index, name]) => apply(name, index))
      await until('every Pipeline to be accepted', 1_500_000, async () => {
        const { items } = await api.get<{ items: PipelineLike[] }>(path())
        return items.length === count && items.every((each) => saysOf(each, 'Accepted') === 'True Valid')
      })
      printMemory('after the first look at all')
      expect(operator.memory().peak).toBeLessThan(memoryMiB)
    })

    test('responds quickly to an author', { timeout: 600_000 }, async () => {
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
      // Print times without an assertion, because they depend on the load of the machine.
      console.log(`apply to Accepted with ${count} Pipelines: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
      printMemory('after these changes')
    })

    test('stays within its memory limit when it restarts with all Pipelines', { timeout: 1_800_000 }, async () => {
      await operator.stop()
      operator = await start().leading()
      await until('every agent to be heard', 600_000, async () => (await operator.heard()) > 2 * agents)
      await operator.idle()
      printMemory('after a restart')
      expect(operator.memory().peak).toBeLessThan(memoryMiB)
    })
  },
)
