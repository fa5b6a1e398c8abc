// Admission apart from the operator, on a real API server: the operator makes the certificates and says whom to trust, a process
// of its own answers, and while nobody answers everything else goes on.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from './cluster/cluster.ts'
import { node, root, until } from './command.ts'
import { freePort, OperatorProcess } from './operator/process.ts'

const missing = missingForCluster(0)
const system = 'penstock-system'

const pipeline = (name: string, source: string) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs' }],
    transforms: [{ name: 'parse', type: 'remap', config: { source } }],
    sinks: [{ name: 'out', type: 'blackhole', config: {} }],
  },
})

describe.skipIf(missing !== undefined)(`admission${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let webhook: ChildProcess
  let port: number

  const get = async (...args: string[]) => JSON.parse(await cluster.kubectl(['get', ...args, '-o', 'json']))

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await cluster.kubectl(['apply', '--server-side', '-f', join(root, 'operator/install.yaml')])
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
    const { kubeconfig } = cluster
    const heartbeats = await freePort()
    const args = ['--leader-election=false', '--heartbeat-address', `0.0.0.0:${heartbeats}`]
    resources.use(OperatorProcess.start({ kubeconfig, args }))
    port = await freePort()
    webhook = spawn(
      node,
      [
        ...['--conditions=source', join(root, 'operator/src/main.ts'), 'webhook', '--kubeconfig', kubeconfig],
        ...['--namespace', system, '--http-address', '', '--webhook-address', `0.0.0.0:${port}`],
      ],
      { stdio: 'ignore' },
    )
    resources.defer(async () => {
      if (webhook.exitCode === null && webhook.signalCode === null) {
        webhook.kill('SIGKILL')
        await once(webhook, 'exit')
      }
    })
  })
  afterAll(() => resources.disposeAsync())

  /** Asks as the API server does. */
  async function review(object: object): Promise<{ allowed: boolean; status?: { message: string } }> {
    const secret = await get('secret', 'penstock-operator-tls', '-n', system)
    const ca = Buffer.from(secret.data['ca.crt'], 'base64').toString()
    const body = JSON.stringify({ request: { uid: 'u', kind: { kind: 'Pipeline' }, operation: 'CREATE', object } })
    const answer = await new Promise<string>((done, failed) => {
      const servername = `penstock-webhook.${system}.svc`
      const asked = request({
        host: '127.0.0.1',
        port,
        path: '/validate',
        method: 'POST',
        ca,
        servername,
        agent: false,
      })
      asked.on('error', failed)
      asked.on('response', (response) => {
        let text = ''
        response.on('data', (part) => {
          text += part
        })
        response.on('end', () => done(text))
      })
      asked.end(body)
    })
    return JSON.parse(answer).response
  }

  test('the authority of the Secret is the one that the API server is told', { timeout: 120_000 }, async () => {
    const { data } = await until('the certificate', 60_000, () => get('secret', 'penstock-operator-tls', '-n', system))
    for (const kind of ['validatingwebhookconfiguration', 'mutatingwebhookconfiguration']) {
      const found = await until(`the caBundle of the ${kind}`, 60_000, async () => {
        const now = await get(kind, 'penstock', '--show-managed-fields')
        return now.webhooks[0].clientConfig.caBundle !== undefined && now
      })
      for (const entry of found.webhooks) expect(entry.clientConfig.caBundle).toBe(data['ca.crt'])
      const owners = found.metadata.managedFields.filter((one: object) => JSON.stringify(one).includes('f:caBundle'))
      expect(owners.map((one: { manager: string }) => one.manager)).toEqual(['penstock-certificates'])
    }
  })

  test('a process apart from the operator checks as the operator does', { timeout: 120_000 }, async () => {
    const verdict = await until('an answer', 60_000, () => review(pipeline('wrong', '.a = parse_json(.message)')))
    expect(verdict).toMatchObject({ allowed: false, status: { message: expect.stringContaining('E103') } })
    expect(await review(pipeline('good', '.a = 1'))).toMatchObject({ allowed: true })
  })

  test('while nobody answers, resources are applied and the status tells what is wrong', {
    timeout: 120_000,
  }, async () => {
    await cluster.apply(pipeline('wrong', '.a = parse_json(.message)'))
    const stalled = await until('the status', 60_000, async () => {
      const { status } = await get('pl', 'wrong', '-n', 'shop')
      return status?.conditions?.find((one: { type: string }) => one.type === 'Stalled')
    })
    expect(stalled).toMatchObject({ status: 'True', message: expect.stringContaining('E103') })
  })

  test('it ends when it is asked to', async () => {
    webhook.kill('SIGTERM')
    const [code] = await once(webhook, 'exit')
    expect(code).toBe(0)
  })
})
