// Attacks on the servers of the operator, with a real API server: reviews that only the API server may send, and forged tokens.

import { request } from 'node:https'
import { join } from 'node:path'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root, until } from '../command.ts'
import { OperatorProcess, system } from '../operator/process.ts'

const missing = missingForCluster(0)

describe.skipIf(missing !== undefined)(`attacks on servers${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let operator: OperatorProcess
  let webhooks: number
  let heartbeats: number

  const get = async (...args: string[]) => JSON.parse(await cluster.kubectl(['get', ...args, '-o', 'json']))

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await cluster.kubectl(['apply', '--server-side', '-f', join(root, 'operator/install.yaml')])
    webhooks = await freePort()
    const address = ['--webhook-address', `0.0.0.0:${webhooks}`]
    heartbeats = await freePort()
    const args = ['--leader-election=false', '--authorize-cluster-pipelines', ...address]
    operator = await resources
      .use(OperatorProcess.start({ kubeconfig: cluster.kubeconfig, heartbeats, args }))
      .leading()
  })
  afterAll(() => resources.disposeAsync())

  /** The path of a webhook at the API server, after the operator has registered it. */
  const registered = (kind: string, name: string): Promise<string> =>
    until(`the path of ${name}: ${operator.log.slice(-500)}`, 60_000, async () => {
      const found = await get(kind, 'penstock')
      return found.webhooks.find((one: { name: string }) => one.name === name).clientConfig.service.path
    })

  function post(path: string, body: object): Promise<{ code: number; text: string }> {
    return new Promise((done, failed) => {
      // An attacker need not verify certificates.
      const options = { host: '127.0.0.1', port: webhooks, path, method: 'POST', rejectUnauthorized: false }
      const asked = request({ ...options, agent: false }, (answer) => {
        let text = ''
        answer.on('data', (part) => {
          text += part
        })
        answer.on('end', () => done({ code: answer.statusCode ?? 0, text }))
      })
      asked.on('error', failed)
      asked.end(JSON.stringify(body))
    })
  }

  const forged = {
    request: {
      uid: 'u',
      kind: { kind: 'ClusterPipeline' },
      operation: 'CREATE',
      object: { kind: 'ClusterPipeline', metadata: { name: 'all', uid: '1' }, spec: {} },
      userInfo: { username: 'system:admin', groups: ['system:masters'] },
    },
  }

  test('a review from another client than the API server is rejected, and records no author', async () => {
    const path = await registered('validatingwebhookconfiguration', 'resources.penstock.dev')
    expect(path).toMatch(/^\/validate\/[0-9a-f]{64}$/)
    const inject = await registered('mutatingwebhookconfiguration', 'strict.sidecar.penstock.dev')
    const paths = ['/validate', '/validate/', `${path}x`, `/validate${inject.slice('/inject'.length)}`]
    for (const each of paths) expect((await post(each, forged)).code, each).toBe(404)
    const records = await get('configmaps', '-n', system, '-l', 'penstock.dev/author-of')
    expect(records.items).toEqual([])
    // The same review gets a response at the correct path.
    expect(
      (await until('an answer', 30_000, () => post(path, { request: { ...forged.request, dryRun: true } }))).code,
    ).toBe(200)
  })

  test('reinstalling the webhooks shows only differences in fields that the operator owns', async () => {
    const path = await registered('validatingwebhookconfiguration', 'resources.penstock.dev')
    await cluster.kubectl(['apply', '--server-side', '-f', join(root, 'operator/install.yaml')])
    expect(await registered('validatingwebhookconfiguration', 'resources.penstock.dev')).toBe(path)
    const { metadata } = await get('validatingwebhookconfiguration', 'penstock', '--show-managed-fields')
    const owners = metadata.managedFields.filter((one: object) => JSON.stringify(one).includes('"f:path"'))
    expect(owners.map((one: { manager: string }) => one.manager)).toEqual(['penstock-webhook-paths'])
  })

  test('forged tokens use up no token reviews, and an agent can still report', {
    timeout: 300_000,
  }, async () => {
    const labels = { 'penstock.dev/agent': 'node' }
    const pod = async (name: string, more: object) => {
      const spec = { containers: [{ name: 'agent', image: 'none:1' }] }
      await cluster.apply({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'default', namespace: system },
      })
      await cluster.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: system, ...more }, spec })
      const bound = ['--bound-object-kind', 'Pod', '--bound-object-name', name]
      return (
        await cluster.kubectl(['create', 'token', 'default', '-n', system, '--audience', 'penstock-operator', ...bound])
      ).trim()
    }
    const agent = await pod('agent', { labels })
    const sidecar = await pod('sidecar', { annotations: { 'penstock.dev/injected': 'side.12345678' } })
    const ask = async (token: string) => {
      const url = `http://127.0.0.1:${heartbeats}/v1/readers`
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(url, { method: 'POST', headers, body: '{}' })).status
    }
    expect(await until('the sidecar to be known', 60_000, async () => (await ask(sidecar)) === 200)).toBe(true)

    const [head = '', body = ''] = agent.split('.')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const tokens = (count: number, make: (index: number) => string) =>
      Array.from({ length: count }, (_, index) => make(index))
    const foreign = { ...claims['kubernetes.io'], pod: { name: 'app', uid: 'app' } }
    const attacks = [
      ...tokens(500, (index) => `garbage-${index}`),
      // Tokens for another audience, or without a valid form, need no review.
      ...tokens(500, (index) => `${head}.${text({ ...claims, aud: [`api-${index}`] })}.c2ln`),
      // Only the signature is wrong.
      ...tokens(500, (index) => `${head}.${text({ ...claims, jti: String(index), 'kubernetes.io': foreign })}.c2ln`),
    ]
    const before = await operator.writes()
    const statuses: number[] = []
    for (let at = 0; at < attacks.length; at += 50) {
      statuses.push(...(await Promise.all(attacks.slice(at, at + 50).map(ask))))
      expect(await ask(sidecar), 'a known agent').toBe(200)
    }
    expect([...new Set(statuses)].sort()).toEqual([401, 429])
    // A new agent during the flood, from the same address.
    expect(await ask(agent)).toBe(200)
    expect((await operator.writes()) - before).toBeLessThan(150)
  })
})
