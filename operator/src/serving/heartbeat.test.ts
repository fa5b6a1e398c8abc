// The server for agents over a real connection, on the leader. The test fills the caches, and its reviews trust every token.

import { silentLogger } from '@penstock/agent/telemetry'
import { freePort } from '@penstock/agent/testing/free-port'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { FleetState } from '../fleet/state.ts'
import { Store } from '../kube/store.ts'
import { podType } from '../kube/types.ts'
import { testContext } from '../testing/context.ts'
import { labels, tokenAudience } from '../workloads/names.ts'
import { heartbeatPart } from './heartbeat.ts'

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function tokenOf(pod: string): string {
  const bound = { namespace: 'shop', serviceaccount: { name: 'default' }, pod: { name: pod, uid: pod } }
  const claims = { iss: 'cluster', aud: [tokenAudience], exp: 4_102_444_800, 'kubernetes.io': bound }
  return `${part({ alg: 'RS256' })}.${part({ ...claims, sub: 'system:serviceaccount:shop:default' })}.c2ln`
}

async function serving(...pods: readonly string[]) {
  const ending = new AbortController()
  const store = new Store<KubeObject>(podType, [''], silentLogger)
  const objects = pods.map((name) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName: 'n' }, status: { podIPs: [{ ip: '127.0.0.1' }] } },
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', labels: { [labels.agent]: 'side' } },
  }))
  store.replace(objects as KubeObject[], '', () => true)
  const fleet = new FleetState()
  const port = await freePort()
  const userOf = async (token: string) => {
    const { pod } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())['kubernetes.io']
    const extra = (name: string) => `authentication.kubernetes.io/${name}`
    return {
      username: 'system:serviceaccount:shop:default',
      extra: { [extra('pod-name')]: [pod.name], [extra('pod-uid')]: [pod.uid], [extra('node-name')]: ['n'] },
    }
  }
  const context = testContext({
    ...{ logger: silentLogger, metrics: new Registry(), signal: ending.signal, isLeader: () => true },
    artifacts: { complete: true, subscribe: () => ({ [Symbol.dispose]() {} }) },
    ...{ kube: { as: () => ({}) }, reviews: { userOf }, caches: { cache: () => store, synced: async () => {} } },
    settings: { heartbeatAddress: `127.0.0.1:${port}`, heartbeatPeriodMs: 30_000 },
  })
  const server = await heartbeatPart(fleet).start(context)
  return {
    fleet,
    report: async (pod: string, more: object = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/heartbeat`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokenOf(pod)}` },
        body: JSON.stringify({ schema: 1, state: 'Loaded', failures: [], failed: [], pipelines: {}, ...more }),
      })
      await response.arrayBuffer()
      return response.status
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await server[Symbol.asyncDispose]()
    },
  }
}

test.each([
  { what: 'reports all the time', count: 600, more: {} },
  { what: 'sends large reports', count: 20, more: { reason: 'x'.repeat(3_000_000) } },
])(
  'a pod that $what is limited, and others are not',
  async ({ count, more }) => {
    await using operator = await serving('evil', 'good')
    const statuses: number[] = []
    for (let sent = 0; sent < count; sent += 20)
      statuses.push(
        ...(await Promise.all(Array.from({ length: Math.min(20, count) }, () => operator.report('evil', more)))),
      )
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect(await operator.report('good')).toBe(200)
    expect(operator.fleet.report('shop/side', 'good')).toBeDefined()
  },
  60_000,
)

test('an agent may report several times a second', async () => {
  await using operator = await serving('agent')
  for (let sent = 0; sent < 50; sent++) expect(await operator.report('agent')).toBe(200)
})
