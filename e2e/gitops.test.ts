// GitOps tools and the guide, with a real API server. Tests evaluate the tools' health rules with the operator's real status, and check that the
// API server accepts all resources in the guide and that they compile.

import { mkdtemp, mkdtempDisposable, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { type Cluster, missingForCluster, startCluster } from './cluster/cluster.ts'
import { root, until } from './command.ts'
import { argoHealth, kstatus, type Watched } from './gitops.ts'
import { objectsOf } from './helm.ts'
import { OperatorProcess } from './operator/process.ts'
import { penstock } from './program.ts'

const missing = missingForCluster(0)
const guide = join(root, 'operator/guide')

const pipeline = (name: string, source: string, more: object = {}) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop', labels: { team: 'payments' }, annotations: { note: 'x' } },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', config: {} }],
    transforms: [{ name: 'parse', type: 'remap', config: { source } }],
    sinks: [{ name: 'out', type: 'blackhole', config: {} }],
    ...more,
  },
})

const objects = {
  good: pipeline('good', '.a = 1'),
  broken: pipeline('broken', '.a = parse_json(.message)'),
  suspended: pipeline('suspended', '.a = 1', { suspend: true }),
  sink: {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Sink',
    metadata: { name: 'nowhere', namespace: 'shop' },
    spec: { type: 'blackhole', config: {} },
  },
  policy: {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'TenantPolicy',
    metadata: { name: 'default' },
    spec: { namespaceSelector: {} },
  },
  agent: {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Agent',
    metadata: { name: 'node', namespace: 'penstock-system' },
    spec: { mode: 'Node', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } } },
  },
}
type Name = keyof typeof objects

interface Live extends Watched {
  readonly metadata: Watched['metadata'] & {
    readonly labels?: Record<string, string>
    readonly annotations?: Record<string, string>
  }
}

describe.skipIf(missing !== undefined)(`GitOps${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await cluster.kubectl(['apply', '--server-side', '-k', join(root, 'crds')])
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    for (const name of ['shop', 'observability', 'penstock-system'])
      await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    const { kubeconfig } = cluster
    await resources.use(OperatorProcess.start({ kubeconfig, args: ['--leader-election=false'] })).leading()
    await cluster.kubectl(['apply', '--server-side', '--field-manager=argocd-controller', '-f', '-'], {
      input: Object.values(objects)
        .map((object) => JSON.stringify(object))
        .join('\n---\n'),
    })
  })
  afterAll(() => resources.disposeAsync())

  const live = async (name: Name): Promise<Live> => {
    const { kind, metadata } = objects[name]
    const place = 'namespace' in metadata ? ['-n', metadata.namespace] : []
    return JSON.parse(await cluster.kubectl([...place, 'get', `${kind}.penstock.dev`, metadata.name, '-o', 'json']))
  }
  const verdicts = (object: Live) => ({ kstatus: kstatus(object), argo: argoHealth(object).status })

  test.each([
    // There are no nodes, so nothing runs it; install.test.ts has nodes.
    ['good', { kstatus: 'InProgress', argo: 'Progressing' }],
    ['broken', { kstatus: 'Failed', argo: 'Degraded' }],
    ['suspended', { kstatus: 'Current', argo: 'Suspended' }],
    ['sink', { kstatus: 'Current', argo: 'Healthy' }],
    ['policy', { kstatus: 'Current', argo: 'Healthy' }],
    ['agent', { kstatus: 'InProgress', argo: 'Progressing' }],
  ] as const)('%s comes to %j', async (name, expected) => {
    const object = await until(`${name} to be judged ${JSON.stringify(expected)}`, 60_000, async () => {
      const now = await live(name)
      if (JSON.stringify(verdicts(now)) === JSON.stringify(expected)) return now
      throw new Error(`${JSON.stringify(verdicts(now))}: ${JSON.stringify(now.status)}`)
    })
    expect(object.status?.observedGeneration).toBe(object.metadata.generation)
    for (const condition of object.status?.conditions ?? []) {
      if (['Reconciling', 'Stalled'].includes(condition.type)) expect(condition.status).toBe('True')
    }
  })

  test('the tools show problems', async () => {
    expect(argoHealth(await live('broken')).message).toMatch(/parse.*line 1 col \d+.*E103/)
  })

  test('an object without a status is not healthy', () => {
    const fresh = { metadata: { generation: 1 }, spec: {} }
    expect(argoHealth(fresh)).toEqual({ status: 'Progressing', message: 'Waiting for the operator' })
    const changed = { ...fresh, metadata: { generation: 2 }, status: { observedGeneration: 1, conditions: [] } }
    expect(argoHealth(changed).status).toBe('Progressing')
    expect(kstatus(changed)).toBe('InProgress')
  })

  test('the operator changes neither spec nor labels nor annotations', async () => {
    for (const name of Object.keys(objects) as Name[]) {
      const { metadata, spec } = objects[name]
      const now = await live(name)
      expect(now.spec, name).toEqual(spec)
      expect(now.metadata.labels, name).toEqual('labels' in metadata ? metadata.labels : undefined)
      expect(now.metadata.annotations, name).toEqual('annotations' in metadata ? metadata.annotations : undefined)
      expect(now.metadata.generation, name).toBe(1)
    }
  })
  test('Kustomize can use the installation as a base, and replace images with those of a mirror', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-kustomize-'))
    const own = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: [relative(await realpath(folder.path), join(root, 'operator'))],
      images: [{ name: 'penstock/operator', newName: 'mirror.example/penstock/operator' }],
    }
    await writeFile(join(folder.path, 'kustomization.yaml'), stringify(own))
    const rendered = objectsOf(await cluster.kubectl(['kustomize', folder.path]))
    const plain = objectsOf(await readFile(join(root, 'operator/install.yaml'), 'utf8'))
    const names = (list: typeof plain) => list.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()
    expect(names(rendered)).toEqual(names(plain))
    const deployment = rendered.find(({ kind }) => kind === 'Deployment')
    expect(JSON.stringify(deployment)).toContain('"image":"mirror.example/penstock/operator:')
    await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-k', folder.path])
  })

  describe('the guide', async () => {
    const pages = (await readdir(guide)).filter((name) => name.endsWith('.md')).sort()
    for (const page of pages) {
      const text = await readFile(join(guide, page), 'utf8')
      const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] as string)
      if (blocks.length === 0) continue
      test(`${page}: the API server accepts all resources, and the Pipelines compile`, async () => {
        const answer = await cluster.kubectl(['apply', '--server-side', '--dry-run=server', '-f', '-'], {
          input: blocks.join('\n---\n'),
        })
        const documents = blocks.flatMap((block) => parseAllDocuments(block).map((document) => document.toJS()))
        expect(answer.trim().split('\n')).toHaveLength(documents.length)

        if (!documents.some((document) => document.kind.endsWith('Pipeline'))) return
        const folder = await mkdtemp(join(tmpdir(), 'penstock-guide-'))
        try {
          // A page may show several stages of an object. The last one counts.
          const newest = new Map(
            documents.map((one) => [`${one.kind} ${one.metadata.namespace}/${one.metadata.name}`, one]),
          )
          await writeFile(
            join(folder, 'page.yaml'),
            [...newest.values()].map((one) => JSON.stringify(one)).join('\n---\n'),
          )
          for (const command of ['lint', 'test']) {
            const result = await penstock([command, '-f', folder])
            expect(result.code, `${command}: ${result.stdout}${result.stderr}`).toBe(0)
          }
        } finally {
          await rm(folder, { recursive: true })
        }
      })
    }
  })
})
