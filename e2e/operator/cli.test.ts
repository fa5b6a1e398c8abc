// The commands that look at a cluster, on a real API server: what they print and how they end.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { execute, node, root } from '../command.ts'

const missing = missingForCluster(0)

const pipeline = (name: string, selector: object, more: object = {}) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', selector }],
    transforms: [{ name: 'parse', type: 'remap', config: { source: '.team = "blue"' } }],
    sinks: [{ name: 'store', ref: { kind: 'ClusterSink', name: 'loki' } }],
    ...more,
  },
})

describe.skipIf(missing !== undefined)(
  `penstock beside a cluster${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    const resources = new AsyncDisposableStack()
    let cluster: Cluster
    let folder: string

    const penstock = (...args: string[]) =>
      execute(node, ['--conditions=source', join(root, 'operator/src/main.ts'), ...args], {
        env: { KUBECONFIG: cluster.kubeconfig },
      })

    beforeAll(async () => {
      cluster = resources.use(await startCluster())
      folder = await mkdtemp(join(tmpdir(), 'penstock-cli-'))
      resources.defer(() => rm(folder, { recursive: true }))
      await cluster.kubectl(['apply', '--server-side', '-k', join(root, 'crds')])
      await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s'])
      await cluster.apply(
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'blue' } } },
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'penstock-system' } },
      )
      await cluster.apply(
        {
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'ClusterSink',
          metadata: { name: 'loki' },
          spec: {
            type: 'log_aggregator',
            allowedNamespaces: { from: 'All' },
            config: { endpoint: 'http://loki.example:3100', labels: { app: 'x' }, encoding: { codec: 'json' } },
          },
        },
        {
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'Agent',
          metadata: { name: 'node', namespace: 'penstock-system' },
          spec: { mode: 'Node', pipelines: { namespaceSelector: { matchLabels: { team: 'blue' } } } },
        },
        pipeline('web', { pods: { matchLabels: { app: 'web' } } }),
        pipeline('other', { pods: { matchLabels: { app: 'other' } } }),
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: {
            name: 'web-1',
            namespace: 'shop',
            labels: { app: 'web' },
            annotations: { 'penstock.dev/exclude-containers': 'proxy' },
          },
          spec: {
            nodeName: 'n1',
            containers: [
              { name: 'web', image: 'x' },
              { name: 'proxy', image: 'x' },
            ],
          },
        },
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'left-1', namespace: 'shop', labels: { app: 'web', 'penstock.dev/exclude': 'true' } },
          spec: { nodeName: 'n1', containers: [{ name: 'web', image: 'x' }] },
        },
      )
      const at = '2026-01-01T00:00:00Z'
      const condition = (type: string, status: string, reason: string, message = '') => ({
        type,
        status,
        reason,
        message,
        observedGeneration: 1,
        lastTransitionTime: at,
      })
      const status = {
        observedGeneration: 1,
        programmedGeneration: 1,
        conditions: [
          condition('Accepted', 'True', 'Valid'),
          condition('Programmed', 'False', 'NodesFailed', '1 of 2 agents failed.'),
          condition('Ready', 'False', 'NodesFailed', '1 of 2 agents failed.'),
        ],
        agents: [
          {
            name: 'penstock-system/node',
            revision: '9f3c2a1b',
            desired: 2,
            current: 1,
            failed: 1,
            stale: 0,
            failures: [{ node: 'n9', reason: 'BufferUnwritable', message: 'data dir is read-only' }],
          },
        ],
        components: [
          {
            name: 'parse',
            kind: 'transform',
            errors: '3',
            lastError: { reason: 'FunctionCallError', message: 'parse_json: expected value', at, node: 'n9' },
          },
        ],
      }
      await cluster.kubectl([
        '-n',
        'shop',
        'patch',
        'pipeline',
        'web',
        '--subresource=status',
        '--type=merge',
        '-p',
        JSON.stringify({ status }),
      ])
    })
    afterAll(() => resources.disposeAsync())

    test('status shows a Pipeline as a tree, with what fails and where', async () => {
      const result = await penstock('status', 'web', '-n', 'shop')
      expect(result.stdout).toBe(`Pipeline shop/web
  Accepted     True    Valid
  Programmed   False   NodesFailed: 1 of 2 agents failed.
  Ready        False   NodesFailed: 1 of 2 agents failed.
  source    app (orchestrator_logs)
  transform parse (remap)
            3 errors; the last: FunctionCallError: parse_json: expected value (n9, 2026-01-01T00:00:00Z)
  sink      store (ClusterSink loki)
  agent     penstock-system/node: 1/2 run revision 9f3c2a1b, 1 failed
            n9: BufferUnwritable: data dir is read-only
`)
      expect(result.code).toBe(1)
      const absent = await penstock('status', 'gone', '-n', 'shop')
      expect([absent.code, absent.stderr]).toEqual([1, 'There is no Pipeline gone in namespace shop.\n'])
    })

    test('why tells which Pipelines read a pod, which do not, and for what reason', async () => {
      const web = await penstock('why', 'web-1', '-n', 'shop')
      expect(web.stdout).toBe(`Pod shop/web-1 (Pending) on node n1
  Pipeline shop/other
    does not: source app: its selector {"matchLabels":{"app":"other"}} does not match the labels of the pod (app=web)
  Pipeline shop/web
    reads it: source app: containers web; left out: proxy
    but no agent runs it: NodesFailed: 1 of 2 agents failed.
Its logs are not read.
`)
      const left = await penstock('why', 'left-1', '-n', 'shop')
      expect(left.stdout).toContain('It has the label penstock.dev/exclude: "true"')
      expect(left.code).toBe(1)
    })

    test('rollout pauses an Agent, tells so, and lets a Pipeline be tried again', async () => {
      const agent = ['node', '-n', 'penstock-system']
      expect((await penstock('rollout', 'pause', ...agent)).stdout).toBe(
        'The rollout of Agent penstock-system/node stays where it is.\n',
      )
      const status = await penstock('rollout', 'status', ...agent)
      expect([status.stdout.split('\n')[0], status.code]).toEqual(['Agent penstock-system/node (paused)', 1])
      expect((await penstock('rollout', 'retry', 'web', '-n', 'shop')).code).toBe(0)
      const at = await cluster.kubectl([
        '-n',
        'shop',
        'get',
        'pipeline',
        'web',
        '-o',
        'jsonpath={.metadata.annotations}',
      ])
      expect(JSON.parse(at)).toHaveProperty(['penstock.dev/retry'])
      const unknown = await penstock('rollout', 'stauts', 'node')
      expect([unknown.code, unknown.stderr]).toEqual([64, expect.stringContaining('Did you mean `status`?')])
    })

    test('support-bundle holds resources and their status, and no secret', async () => {
      const secret = 'hunter2-of-the-store'
      await cluster.apply(
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'penstock-x', namespace: 'shop' },
          stringData: { p: secret },
        },
        {
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'Sink',
          metadata: { name: 'search', namespace: 'shop' },
          spec: {
            type: 'search_engine',
            config: {
              endpoints: [`http://me:${secret}@search:9200`],
              auth: { strategy: 'basic', user: 'me', password: secret },
            },
          },
        },
      )
      const file = join(folder, 'bundle.tar.gz')
      const result = await penstock('support-bundle', '-o', file)
      expect([result.code, result.stderr]).toEqual([0, ''])
      const text = gunzipSync(await readFile(file)).toString('latin1')
      expect(text).toContain('reason: BufferUnwritable')
      expect(text).toContain('http://***@search:9200')
      expect(text).toContain('password: "***"')
      expect(text).not.toContain(secret)
    })

    test('diff shows what applying a file would change for the agents', async () => {
      const file = join(folder, 'web.yaml')
      const same = pipeline('web', { pods: { matchLabels: { app: 'web' } } })
      await writeFile(file, JSON.stringify(same))
      const none = await penstock('diff', '-f', file)
      expect([none.stdout, none.stderr, none.code]).toEqual(['No difference.\n', '', 0])

      await writeFile(file, JSON.stringify(same).replace('blue', 'green'))
      const some = await penstock('diff', '-f', file)
      expect(some.code).toBe(1)
      expect(some.stdout).toContain('-    source: .team = "blue"\n+    source: .team = "green"\n')
      expect(some.stdout.split('\n').filter((line) => /^[-+] /.test(line))).toHaveLength(2)
    })
  },
)
