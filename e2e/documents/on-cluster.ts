// Blocks of documents that need a cluster, in the order of a reader: installation with and without kubectl and for some namespaces, the quick
// start and the parts of the guide that use it, removal and reinstallation. Steps set up what their pages assume.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { within } from '../command.ts'
import { type Reader, type Step, textOf, yamlOf } from '../documents.ts'
import { system } from '../installed.ts'
import type { Registry } from '../registry.ts'

/** Tools for a step, in addition to the commands of the page. */
export interface Hand {
  readonly reader: Reader
  /** The registry, which contains the chart as released. */
  readonly registry: Registry
  kubectl(...args: string[]): Promise<string>
  apply(...objects: readonly object[]): Promise<void>
  /** Applies a resource on a page. */
  applyText(text: string): Promise<void>
  waitFor<T>(what: string, timeoutMs: number, attempt: () => Promise<T | false | undefined>): Promise<T>
  isReady(kind: string, namespace: string, name: string): Promise<unknown>
}

export interface ClusterStep extends Step {
  /** Sets up the state that the page assumes. */
  readonly before?: (hand: Hand) => Promise<unknown>
  /** Replacements that the reader makes in the block. */
  readonly words?: (hand: Hand) => Promise<Readonly<Record<string, string>>>
  /** The current folder of the reader. */
  readonly cwd?: string
  /** Parts of the expected output. */
  readonly prints?: readonly (string | RegExp)[]
  /** Checks the effect of the block. */
  readonly after?: (hand: Hand) => Promise<unknown>
}

const guide = (page: string) => `operator/guide/${page}.md`
const quickStart = guide('getting-started')
const removed: ClusterStep = { page: guide('install'), block: 'helm uninstall penstock' }

const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

/** The pod of the pages, which writes JSON lines, and a search engine that accepts everything. */
const shop = [
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web-0',
      namespace: 'shop',
      labels: { app: 'web', team: 'money', 'app.kubernetes.io/part-of': 'checkout' },
    },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'web',
          image: 'localhost/node:26',
          args: ['-e', `setInterval(() => console.log('{"level":"info","msg":"GET /cart"}'), 500)`],
        },
      ],
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'search', namespace: 'shop', labels: { app: 'search' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'search',
          image: 'localhost/node:26',
          args: [
            '-e',
            `require('node:http').createServer((request, answer) => {
              request.resume().on('end', () => answer.setHeader('content-type', 'application/json').end('{"errors":false,"items":[]}'))
            }).listen(9200)`,
          ],
        },
      ],
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'search', namespace: 'shop' },
    spec: { selector: { app: 'search' }, ports: [{ port: 9200 }] },
  },
]

/** A Sink, and a Pipeline that refers to it. */
const withSink = [
  {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Sink',
    metadata: { name: 'search', namespace: 'shop' },
    spec: { type: 'search_engine', config: { endpoints: ['http://search.shop.svc:9200'] } },
  },
  {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name: 'orders', namespace: 'shop' },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs' }],
      sinks: [{ name: 'search', ref: { kind: 'Sink', name: 'search' } }],
    },
  },
]

const firstPipeline = yamlOf('README.md', 'name: checkout,')
const agentOf = (name: string, spec: object) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name, namespace: system },
  spec,
})

/** The Agent of the chart with immediate rollouts. A reader would wait a minute or two for each change below. */
const quickAgent = agentOf('node', {
  mode: 'Node',
  pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } },
  rollout: { canary: { bake: '1s' }, step: { bake: '1s' } },
})

async function removeKinds({ kubectl }: Hand): Promise<void> {
  const kinds = (await kubectl('get', 'crd', '-o', 'name')).split('\n').filter((name) => name.includes('penstock.dev'))
  await kubectl('delete', ...kinds, ...within(120))
}

const operatorIsReady = ({ kubectl, waitFor }: Hand) =>
  waitFor('the operator to be ready', 120_000, () =>
    kubectl('-n', system, 'rollout', 'status', 'deployment/penstock-operator', ...within(20)),
  )

const withManifest: readonly ClusterStep[] = [
  {
    page: guide('install'),
    block: 'kubectl apply --server-side -f operator/install.yaml',
    after: operatorIsReady,
  },
  { page: guide('install'), block: 'pod-security.kubernetes.io/enforce=privileged' },
  {
    page: guide('install'),
    block: 'kubectl penstock cleanup',
    after: async ({ kubectl, waitFor }) => {
      await waitFor('the namespace to be gone', 60_000, async () => {
        const left = await kubectl('get', 'namespaces,crd,clusterroles', '-o', 'name')
        return !left.includes('penstock') || undefined
      })
    },
  },
]

const forSomeNamespaces: readonly ClusterStep[] = [
  {
    page: guide('install'),
    block: 'rbac.scope=Namespaced',
    before: ({ apply }) => apply(namespace('shop'), namespace('blog'), namespace(system)),
    after: operatorIsReady,
  },
  {
    ...removed,
    after: async (hand) => {
      await removeKinds(hand)
      await hand.kubectl('delete', 'namespace', 'shop', 'blog', system, ...within(120))
    },
  },
]

const used: readonly ClusterStep[] = [
  { page: quickStart, block: 'kind create cluster', prints: [/^json +/m, 'Phase:          Succeeded'] },
  { page: quickStart, block: 'kubectl penstock tap -n shop json', prints: [/GET \/ HTTP/, /shop\/json/] },

  {
    page: guide('pipeline'),
    block: 'kubectl apply -f pipeline.yaml',
    files: { 'pipeline.yaml': yamlOf(guide('pipeline'), 'name: all,') },
    before: async ({ reader, apply, kubectl, waitFor, isReady }) => {
      await reader.write('agent.json', JSON.stringify(quickAgent))
      await kubectl('apply', '--server-side', '-f', join(reader.folder, 'agent.json'))
      await apply(...shop)
      await isReady('plagent', system, 'node')
      await waitFor('web-0', 60_000, async () => (await kubectl('-n', 'shop', 'logs', 'web-0')).includes('GET'))
    },
    prints: ['shop/all', 'GET /'],
  },
  {
    page: guide('pipeline'),
    block: 'create secret generic es-creds',
    files: { 'ca.pem': 'a certificate\n' },
    // Later steps check their agents and destinations, so that the rollout can proceed meanwhile.
    after: async ({ apply, applyText }) => {
      await applyText(firstPipeline)
      await apply(...withSink)
    },
  },

  {
    page: guide('cli'),
    block: 'kubectl logs --timestamps',
    files: { 'pipeline.yaml': firstPipeline, 'events.yaml': textOf('examples/cluster-events/penstock.yaml') },
    before: async ({ reader }) => {
      await reader.write('money.log', '{"level":"info","msg":"payment 17 captured"}\n')
    },
    prints: ['GET /cart', 'payment 17 captured'],
    after: ({ applyText }) => applyText(yamlOf(guide('durability'), 'name: audit,')),
  },
  {
    page: guide('cli'),
    block: 'kubectl penstock tap checkout -n shop -c parse',
    before: ({ isReady }) => isReady('pl', 'shop', 'checkout'),
    words: async () => ({ NODE: 'node-1' }),
    prints: ['GET /', 'shop/checkout'],
  },
  { page: guide('cli'), block: 'create rolebinding penstock-cli' },
  { page: guide('cli'), block: 'kubectl port-forward', prints: ['GET /'] },

  {
    page: guide('troubleshooting'),
    block: 'kubectl penstock support-bundle',
    before: ({ isReady }) => isReady('pl', 'shop', 'checkout'),
    prints: ['shop/checkout', 'GET /'],
  },
  {
    page: guide('durability'),
    block: 'kubectl penstock top audit',
    before: ({ isReady }) => isReady('pl', 'shop', 'audit'),
    words: async ({ kubectl }) => {
      const pod = 'app.kubernetes.io/name=penstock-agent'
      const name = await kubectl('-n', system, 'get', 'pods', '-l', pod, '-o', 'jsonpath={.items[0].metadata.name}')
      return { PENSTOCK_AGENT_POD: name }
    },
    prints: ['shop/audit', 'archive'],
  },
  // The older revision is not ready for a while, so this step comes after those that check readiness.
  {
    page: guide('cli'),
    block: 'rollout resume node',
    before: ({ isReady }) => isReady('plagent', system, 'node'),
  },
  {
    page: guide('cli'),
    block: '--to-revision 9f3c2a',
    before: ({ isReady }) => isReady('plagent', system, 'node'),
    words: async ({ kubectl }) => {
      const { status } = JSON.parse(await kubectl('-n', system, 'get', 'plagent', 'node', '-o', 'json'))
      const earlier = (status.history as { revision: string }[]).find(({ revision }) => revision !== status.revision)
      return { '9f3c2a': earlier?.revision.slice(0, 6) ?? 'there is none' }
    },
  },
  {
    page: guide('gitops'),
    block: 'kubectl wait --for=condition=Ready',
  },
  {
    page: guide('gitops'),
    block: 'kubectl apply --dry-run=server',
    files: { 'deploy/pipeline.yaml': firstPipeline },
    words: async () => ({ FOLDER: 'deploy' }),
    prints: ['no problems', /checkout (?:configured|unchanged) \(server dry run\)/],
  },
  { page: guide('rights'), block: 'create rolebinding penstock-operator' },
  { page: guide('rights'), block: 'kubectl delete clusterrolebindings' },
  {
    page: guide('sidecar'),
    block: 'create rolebinding penstock-operator',
    // Another page has the same block.
    before: async ({ kubectl }) => {
      await kubectl('-n', 'shop', 'delete', 'rolebinding', 'penstock-operator')
    },
  },
  { page: guide('tenancy'), block: 'create rolebinding penstock-events' },
  {
    page: guide('install'),
    block: 'kubectl get lease',
    before: async ({ apply, applyText, kubectl, waitFor }) => {
      await apply(agentOf('hub', { mode: 'Aggregator', pipelines: { clusterPipelines: { selector: {} } } }))
      await applyText(`apiVersion: penstock.dev/v1alpha1
kind: ClusterPipeline
metadata: { name: cluster-events }
spec:
  sources: [{ name: events, type: orchestrator_events }]
  sinks: [{ name: out, type: blackhole }]
`)
      const holders = ['-l', 'penstock.dev/agent=hub', '-o', 'jsonpath={.items[*].spec.holderIdentity}']
      await waitFor('a leader', 90_000, async () => (await kubectl('-n', system, 'get', 'lease', ...holders)) !== '')
    },
    prints: [/penstock-aggregator-\d+ +penstock-hub-/],
  },
  { page: guide('operations'), block: 'helm upgrade penstock', prints: [/^penstock-system +node +/m] },
  {
    page: guide('operations'),
    block: 'kubectl penstock migrate',
    files: { 'mine/pipeline.yaml': firstPipeline },
    cwd: 'mine',
  },
]

/** A reader whose cluster still has the CRDs and Pipelines. */
const again: readonly ClusterStep[] = [
  removed,
  { page: guide('install'), block: 'helm test penstock', prints: ['Phase:          Succeeded'] },
  removed,
  {
    page: 'README.md',
    block: 'helm install penstock',
    files: { 'pipeline.yaml': firstPipeline },
    prints: [/^shop +checkout +/m],
    after: ({ isReady }) => isReady('pl', 'shop', 'checkout'),
  },
  removed,
  {
    page: 'charts/penstock/README.md',
    block: 'oci://REGISTRY/charts/penstock',
    words: async ({ registry }) => ({ REGISTRY: registry.address }),
    prints: ['STATUS: deployed'],
  },
  removed,
  {
    page: guide('install'),
    block: 'oci://REGISTRY/charts/penstock --version VERSION',
    words: async ({ registry }) => ({ REGISTRY: registry.address, VERSION: version }),
    after: operatorIsReady,
  },
  {
    page: guide('install'),
    block: 'webhook.clientCertificate.secret',
    before: async ({ reader, registry }) => reader.write('ca.crt', await readFile(registry.authority, 'utf8')),
    // Values that the reader chose at installation.
    words: async () => ({ '…': `charts/penstock --namespace ${system}` }),
    after: operatorIsReady,
  },
]

export const onCluster: readonly ClusterStep[] = [...withManifest, ...forSomeNamespaces, ...used, ...again]
