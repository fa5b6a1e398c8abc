// Admission in a separate process, with a real API server: the operator issues the certificates and registers the CA, and the webhook process
// responds. While it is down, everything else continues.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeCertificates } from './certificates.ts'
import { type Cluster, missingForCluster, startCluster } from './cluster/cluster.ts'
import { root, until } from './command.ts'
import { OperatorProcess } from './operator/process.ts'
import { penstock, programOf } from './program.ts'

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
  let heartbeats: number

  const get = async (...args: string[]) => JSON.parse(await cluster.kubectl(['get', ...args, '-o', 'json']))

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await cluster.kubectl(['apply', '--server-side', '-f', join(root, 'operator/install.yaml')])
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
    const { kubeconfig } = cluster
    heartbeats = await freePort()
    const args = [
      '--leader-election=false',
      '--authorize-cluster-pipelines',
      '--heartbeat-address',
      `0.0.0.0:${heartbeats}`,
    ]
    resources.use(OperatorProcess.start({ kubeconfig, args }))
    port = await freePort()
    const { command, args: main, env } = programOf('operator')
    webhook = spawn(
      command,
      [
        ...[...main, 'webhook', '--kubeconfig', kubeconfig],
        ...['--namespace', system, '--http-address', '', '--webhook-address', `0.0.0.0:${port}`],
        '--authorize-cluster-pipelines',
      ],
      { stdio: 'ignore', env: { ...process.env, ...env } },
    )
    resources.defer(async () => {
      if (webhook.exitCode === null && webhook.signalCode === null) {
        webhook.kill('SIGKILL')
        await once(webhook, 'exit')
      }
    })
  })
  afterAll(() => resources.disposeAsync())

  /** Sends a review like the API server. */
  async function review(
    object: { readonly kind: string } & Readonly<Record<string, unknown>>,
    oldObject?: object,
  ): Promise<{ allowed: boolean; status?: { message: string }; warnings?: readonly string[] }> {
    const asks = { uid: 'u', kind: { kind: object.kind }, operation: 'CREATE', object, oldObject }
    return JSON.parse(await posted(JSON.stringify({ request: asks }))).response
  }

  async function posted(body: string): Promise<string> {
    const secret = await get('secret', 'penstock-operator-tls', '-n', system)
    const ca = Buffer.from(secret.data['ca.crt'], 'base64').toString()
    const { webhooks } = await get('validatingwebhookconfiguration', 'penstock')
    const { path } = webhooks.find((one: { name: string }) => one.name === 'resources.penstock.dev').clientConfig
      .service
    return new Promise((done, failed) => {
      const servername = `penstock-webhook.${system}.svc`
      const asked = request({
        host: '127.0.0.1',
        port,
        path,
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
  }

  test('the API server gets the CA from the Secret', { timeout: 600_000 }, async () => {
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

  test('a separate process validates like the operator', { timeout: 600_000 }, async () => {
    const verdict = await until('an answer', 60_000, () => review(pipeline('wrong', '.a = parse_json(.message)')))
    expect(verdict).toMatchObject({ allowed: false, status: { message: expect.stringContaining('E103') } })
    expect(await review(pipeline('good', '.a = 1'))).toMatchObject({ allowed: true })
  })

  test('commands verify the operator by its certificate, and explain how to trust it', {
    timeout: 120_000,
  }, async () => {
    const { data } = await get('secret', 'penstock-operator-tls', '-n', system)
    const ca = join(cluster.folder, 'operator-ca.crt')
    await writeFile(ca, Buffer.from(data['ca.crt'], 'base64'))
    const top = (...more: string[]) => {
      const url = `https://127.0.0.1:${heartbeats}`
      const args = ['top', '-n', 'shop', '--once', '--operator-url', url]
      return penstock([...args, ...more], { env: { KUBECONFIG: cluster.kubeconfig } })
    }
    const result = await until('the figures', 60_000, async () => {
      const now = await top('--operator-ca', ca)
      return !now.stderr.includes('has just started') && now
    })
    expect([result.stdout, result.stderr]).toEqual(['No Pipeline is running.\n', ''])
    const untrusting = await top()
    expect(untrusting.code).toBe(69)
    expect(untrusting.stderr).toContain('--operator-ca: kubectl get secret penstock-operator-tls -n penstock-system')
  })

  test('a response contains the errors of all stages, one per line, and warnings about parts without effect', async () => {
    const wrong = pipeline('wrong', '.a = parse_json(.message)')
    const idle = pipeline('idle', '.a = 1')
    const sinks = [
      ...wrong.spec.sinks,
      { name: 'meta', type: 'http', config: { uri: 'http://169.254.169.254/', encoding: { codec: 'json' }, wrong: 1 } },
    ]
    const verdict = await review({ ...wrong, spec: { ...wrong.spec, shape: 1, sinks } })
    expect(verdict.allowed).toBe(false)
    const lines = verdict.status?.message.split('\n') ?? []
    expect(lines[0]).toBe('Pipeline "wrong" has 4 problems:')
    expect(lines.slice(1).sort()).toEqual([
      expect.stringMatching(/^- CompileFailed: transforms\[parse\] line 1 col \d+: E103 /),
      expect.stringMatching(/^- ForbiddenOption: sinks\[meta\]\.uri: .*\(T7\)/),
      expect.stringMatching(/^- InvalidConfig: sinks\[meta\]\.wrong: unknown field `wrong`/),
      expect.stringMatching(/^- InvalidConfig: spec\.shape: unknown field `shape`/),
    ])
    const sink = { type: 'http', config: { uri: 'http://x.example/', encoding: { codec: 'json' }, wrong: 1 } }
    const shared = { ...idle, kind: 'Sink', metadata: { name: 'shared', namespace: 'shop' }, spec: sink }
    expect(await review(shared)).toMatchObject({
      allowed: false,
      status: {
        message: expect.stringMatching(/^Sink "shared" has a problem: InvalidConfig: spec\.config\.wrong: unknown/),
      },
    })

    const unused = { name: 'unused', type: 'filter', inputs: ['app'], config: { condition: 'true' } }
    const search = {
      name: 'search',
      type: 'search_engine',
      inputs: ['app'],
      config: { endpoint: 'http://search:9200' },
    }
    const warned = await review({
      ...idle,
      spec: { ...idle.spec, transforms: [...idle.spec.transforms, unused], sinks: [search] },
    })
    expect(warned).toMatchObject({ allowed: true })
    expect(warned.warnings?.join('\n')).toMatch(/`endpoint` is deprecated/)
    expect(warned.warnings?.join('\n')).toMatch(/Transform "parse" has no consumers/)
    expect(warned.warnings?.join('\n')).toMatch(/Transform "unused" has no consumers/)
  })

  test('an invalid object may be changed as long as no new problem is added', async () => {
    const before = pipeline('old', '.a = parse_json(.message)')
    const still = pipeline('old', '.b = parse_json(.message)')
    expect(await review(still, before)).toMatchObject({
      allowed: true,
      warnings: [expect.stringMatching(/^still wrong: transforms\[parse\] line 1 col \d+: E103/)],
    })
    const sinks = [{ name: 'out', type: 'blackhole', config: { wrong: 1 } }]
    expect(await review({ ...still, spec: { ...still.spec, sinks } }, before)).toMatchObject({ allowed: false })
    expect(await review(still, pipeline('old', '.a = 1'))).toMatchObject({ allowed: false })
  })

  test('while the webhook is down, resources can be applied, and the status reports their problems', {
    timeout: 120_000,
  }, async () => {
    await cluster.apply(pipeline('wrong', '.a = parse_json(.message)'))
    const stalled = await until('the status', 60_000, async () => {
      const { status } = await get('pl', 'wrong', '-n', 'shop')
      return status?.conditions?.find((one: { type: string }) => one.type === 'Stalled')
    })
    expect(stalled).toMatchObject({ status: 'True', message: expect.stringContaining('E103') })
  })

  test('a ClusterPipeline runs only for authors with the permission to collect, as recorded by admission', {
    timeout: 300_000,
  }, async () => {
    const rbac = 'rbac.authorization.k8s.io'
    const allow = async (name: string, user: string, rules: readonly object[]) => {
      const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name }
      const subjects = [{ kind: user === 'bob' ? 'User' : 'Group', name: user, apiGroup: rbac }]
      const [apiVersion, metadata] = [`${rbac}/v1`, { name }]
      await cluster.apply({ apiVersion, kind: 'ClusterRole', metadata, rules })
      await cluster.apply({ apiVersion, kind: 'ClusterRoleBinding', metadata, roleRef, subjects })
    }
    const group = ['penstock.dev']
    const writes = { apiGroups: group, resources: ['clusterpipelines'], verbs: ['get', 'create', 'patch', 'update'] }
    await allow('bob-writes', 'bob', [writes])
    await allow('platform', 'platform', [writes, { apiGroups: group, resources: ['logs'], verbs: ['collect'] }])
    const alice = ['--as', 'alice', '--as-group', 'platform']
    const bob = ['--as', 'bob']
    const apply = async (who: readonly string[], value: number, ...more: string[]) => {
      const source = { name: 'all', type: 'orchestrator_logs' }
      const transform = { name: 'set', type: 'remap', config: { source: `.a = ${value}` } }
      const spec = { sources: [source], transforms: [transform], sinks: [{ name: 'out', type: 'blackhole' }] }
      const file = join(cluster.folder, 'cluster-pipeline.json')
      const object = { apiVersion: 'penstock.dev/v1alpha1', kind: 'ClusterPipeline', metadata: { name: 'all' }, spec }
      await writeFile(file, JSON.stringify(object))
      await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '-f', file, ...who, ...more])
    }
    const status = async () => (await get('clusterpipeline', 'all')).status
    const accepted = (reason: string | RegExp, by: string | undefined) =>
      until(`the ClusterPipeline to be ${reason}, by ${by}`, 60_000, async () => {
        const { metadata, status } = await get('clusterpipeline', 'all')
        const found = status?.conditions?.find((one: { type: string }) => one.type === 'Accepted')
        if (found?.observedGeneration !== metadata.generation) return undefined
        return found.reason.match(reason) !== null && status.authorizedBy === by && found
      })
    // Replaces the Service that the API server would use in a cluster with nodes.
    await using certificates = await makeCertificates()
    await using front = createServer(certificates.server, async (asked, answer) => {
      const body = await text(asked)
      await posted(body).then(
        (reply) => answer.setHeader('content-type', 'application/json').end(reply),
        (error) => answer.writeHead(502).end(String(error)),
      )
    })
    await new Promise<void>((done) => front.listen(0, '127.0.0.1', done))
    const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}/validate`
    const caBundle = (await readFile(certificates.authority)).toString('base64')
    const rules = [{ apiGroups: group, apiVersions: ['v1alpha1'], operations: ['CREATE', 'UPDATE'] }]
    const registration = {
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' },
      metadata: { name: 'authors' },
      webhooks: [
        {
          ...{ name: 'authors.penstock.dev', admissionReviewVersions: ['v1'], sideEffects: 'NoneOnDryRun' },
          ...{ failurePolicy: 'Fail', timeoutSeconds: 30 },
          clientConfig: { url, caBundle },
          rules: rules.map((rule) => ({ ...rule, resources: ['clusterpipelines'] })),
        },
      ],
    }
    await cluster.apply(registration)
    // A registration takes effect after a moment.
    await until('the API server to ask', 60_000, async () => {
      const refused = await apply(bob, 0, '--dry-run=server').catch(String)
      return refused?.includes('bob may not collect penstock.dev/logs')
    })
    await apply(alice, 1, '--dry-run=server')
    const recorded = async () => (await get('configmaps', '-n', system, '-l', 'penstock.dev/author-of')).items.length
    expect(await recorded()).toBe(0)
    await apply(alice, 1)
    await accepted(/^(Valid|NoMatchingAgent)$/, 'alice')
    expect(await recorded()).toBe(1)
    await expect(apply(bob, 2)).rejects.toThrow('bob may not collect penstock.dev/logs')

    // If applied while the webhook is down, the status reports it, and it is accepted when an author with the permission applies it.
    await cluster.kubectl(['delete', 'validatingwebhookconfiguration', 'authors'])
    await until('the apply of bob to pass', 60_000, async () => (await apply(bob, 3).catch(String)) === undefined)
    const refused = await accepted('AuthorNotAllowed', undefined)
    expect(refused).toMatchObject({
      status: 'False',
      message: expect.stringContaining('The author of this version is unknown'),
    })
    expect((await status()).conditions).toContainEqual(expect.objectContaining({ type: 'Stalled', status: 'True' }))
    await cluster.apply(registration)
    const annotate = (who: readonly string[], value: string) =>
      cluster.kubectl(['annotate', 'clusterpipeline', 'all', `penstock.dev/retry=${value}`, '--overwrite', ...who])
    // An author without the permission does not change the record. The request passes, because it does not change the spec.
    await until('alice to stand for it', 60_000, async () => {
      await annotate(bob, `bob ${Date.now()}`)
      expect((await status()).authorizedBy).toBeUndefined()
      await annotate(alice, `alice ${Date.now()}`)
      return (await recorded()) === 2
    })
    await accepted(/^(Valid|NoMatchingAgent)$/, 'alice')
    await cluster.kubectl(['delete', 'validatingwebhookconfiguration', 'authors'])
  })

  test('it stops on request', async () => {
    webhook.kill('SIGTERM')
    const [code] = await once(webhook, 'exit')
    expect(code).toBe(0)
  })
})
