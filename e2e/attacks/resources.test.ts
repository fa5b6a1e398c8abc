// Resources of a tenant with the role `edit` in one namespace, each of which tries to reach beyond the tenant. A real API server stores
// them, and the real operator judges them. The test checks the bundle that the operator writes for agents.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import {
  apiVersion,
  type ConditionLike,
  eventually,
  OperatorProcess,
  prepare,
  signIn,
  system,
} from '../operator/process.ts'

const rights = parseAllDocuments(readFileSync(join(root, 'operator/install.yaml'), 'utf8'))
  .map((one) => one.toJS() as { readonly kind: string })
  .filter(({ kind }) => /^(ServiceAccount|(Cluster)?Role(Binding)?)$/.test(kind))

const missing = missingForCluster(0)
const mallory = ['--as', 'mallory']
const rbac = { apiGroup: 'rbac.authorization.k8s.io' }

interface Attack {
  /** Parts of the spec that replace a harmless source, program or sink. */
  readonly mode?: 'Node' | 'Aggregator' | 'Sidecar'
  readonly source?: object
  readonly program?: string
  readonly sink?: object
  /** The text of the condition Accepted. */
  readonly says: string | RegExp
}

const http = (config: object) => ({ type: 'http', config: { encoding: { codec: 'json' }, ...config } })
const to = (uri: string) => http({ uri })
const broker = (credentialsUrl: string) => ({
  type: 'message_broker',
  config: {
    endpoint: 'pulsar+ssl://broker.example.com:6651',
    topic: 'logs',
    encoding: { codec: 'json' },
    auth: { oauth2: { issuer_url: 'https://issuer.example.com', credentials_url: credentialsUrl } },
  },
})
const secretOf = (namespace?: string) => ({
  valueFrom: { secretKeyRef: { name: 'creds', key: 'token', ...(namespace === undefined ? {} : { namespace }) } },
})

/** Attacks by Pipeline name. */
const attacks: Readonly<Record<string, Attack>> = {
  'program-device': { program: '.a = parse_etld!(.message, psl: "/dev/zero")', says: /`parse_etld` .*\(T4\)/ },
  'program-proto': { program: '.a = parse_proto!(.message, "/dev/zero", "a.B")', says: /`parse_proto` .*\(T4\)/ },
  'program-schema': {
    program: '.a = validate_json_schema!(.message, "/etc/passwd")',
    says: /`validate_json_schema` .*\(T4\)/,
  },
  'program-variable': { program: '.a = get_env_var!("HOME")', says: /`get_env_var` .*\(T6\)/ },
  'program-host': { program: '.a = get_hostname!()', says: /`get_hostname` .*\(T6\)/ },
  'program-network': { program: '.a = dns_lookup!("kubernetes.default")', says: /`dns_lookup` .*\(T6\)/ },
  'program-request': { program: '.a = http_request!("http://169.254.169.254/")', says: /`http_request` .*\(T6\)/ },
  'file-source': { mode: 'Node', source: { type: 'file', config: { include: ['/etc/**'] } }, says: '(T9)' },
  'file-authority': {
    sink: http({
      uri: 'https://example.com',
      tls: { ca_file: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' },
    }),
    says: '(T4)',
  },
  'file-sink': { sink: { type: 'file', config: { path: '/tmp/x', encoding: { codec: 'json' } } }, says: /\(T[49]\)/ },
  'url-file': { sink: broker('file:///etc/passwd'), says: '(T4)' },
  'url-file-control': { sink: broker('\u0001file:///etc/passwd'), says: '(T4)' },
  'url-file-tab': { sink: broker('fi\tle:///dev/zero'), says: '(T4)' },
  'url-file-line': { sink: broker('fi\nle:///dev/zero'), says: '(T4)' },
  'host-metadata': { sink: to('http://169.254.169.254/latest'), says: '(T7)' },
  'host-metadata-6': { sink: to('http://[fd00:ec2::254]/'), says: '(T7)' },
  'host-mapped': { sink: to('http://[::ffff:a9fe:a9fe]/'), says: '(T7)' },
  'host-translated': { sink: to('http://[64:ff9b::a9fe:a9fe]/'), says: '(T7)' },
  'host-decimal': { sink: to('http://2852039166/'), says: '(T7)' },
  'host-loopback': { sink: to('http://127.0.0.1:8686/'), says: '(T7)' },
  'host-azure': { sink: to('http://168.63.129.16/'), says: '(T7)' },
  'identity-node': {
    sink: {
      type: 'search_engine',
      config: { endpoints: ['https://es.example.com'], auth: { strategy: 'aws' }, aws: { region: 'eu-west-1' } },
    },
    says: '(T5)',
  },
  'memory-buffer': {
    sink: {
      ...to('https://example.com'),
      ...http({ uri: 'https://example.com', buffer: { type: 'memory', max_events: 1e9 } }),
    },
    says: /\(T1[01]\)/,
  },
  'memory-batch': { sink: http({ uri: 'https://example.com', batch: { max_bytes: 1e12 } }), says: /\(T1[01]\)/ },
  'marker-text': {
    sink: http({ uri: 'https://example.com', request: { headers: { a: { $secret: 'k1' } } } }),
    says: '$secret',
  },
  'marker-two': {
    sink: http({ uri: 'https://example.com', request: { headers: { a: { $secret: 'k1', b: 'c' } } } }),
    says: '$secret',
  },
  'secret-foreign': {
    sink: http({ uri: 'https://example.com', auth: { strategy: 'bearer', token: secretOf('shop') } }),
    says: /\(T8\)|namespace/,
  },
}

const specOf = ({ mode = 'Aggregator', source, program, sink }: Attack) => ({
  mode,
  sources: [
    {
      name: 'in',
      ...(source ??
        (mode === 'Node'
          ? { type: 'orchestrator_logs', config: {} }
          : { type: 'demo_logs', config: { format: 'json' } })),
    },
  ],
  ...(program === undefined ? {} : { transforms: [{ name: 'do', type: 'remap', config: { source: program } }] }),
  sinks: [{ name: 'out', ...(sink ?? to('https://example.com')) }],
})

/** By Agent name: settings that are not allowed outside of platform namespaces. */
const agents: Readonly<Record<string, object>> = {
  'on-nodes': { mode: 'Node' },
  'as-operator': { mode: 'Aggregator', podTemplate: { spec: { serviceAccountName: 'penstock-operator' } } },
  'with-host': {
    mode: 'Aggregator',
    podTemplate: { spec: { volumes: [{ name: 'h', hostPath: { path: '/' } }] } },
  },
  'with-network': { mode: 'Aggregator', podTemplate: { spec: { hostNetwork: true } } },
  'with-privileges': {
    mode: 'Aggregator',
    podTemplate: { spec: { containers: [{ name: 'agent', securityContext: { privileged: true } }] } },
  },
  'with-starter': {
    mode: 'Aggregator',
    podTemplate: { spec: { initContainers: [{ name: 'x', image: 'x', securityContext: { runAsUser: 0 } }] } },
  },
}

describe.skipIf(missing !== undefined)(`resources of a tenant${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let operator: OperatorProcess

  const read = async (...args: string[]) => JSON.parse(await cluster.kubectl([...args, '-o', 'json']))
  const asMallory = (object: object) =>
    cluster.kubectl([...mallory, 'apply', '-f', '-'], { input: JSON.stringify(object) })
  const accepted = async (kind: string, name: string): Promise<ConditionLike | undefined> =>
    (await read('-n', 'evil', 'get', kind, name)).status?.conditions?.find(
      (one: ConditionLike) => one.type === 'Accepted',
    )

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop', 'evil')
    const user = { ...rbac, kind: 'User', name: 'mallory' }
    const bound = (kind: string, name: string, role: string, subject: object, namespace?: string) => ({
      apiVersion: `${rbac.apiGroup}/v1`,
      kind,
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      roleRef: { ...rbac, kind: 'ClusterRole', name: role },
      subjects: [subject],
    })
    const account = { kind: 'ServiceAccount', name: 'penstock-operator', namespace: system }
    await cluster.apply(
      ...rights,
      bound('ClusterRoleBinding', 'penstock-operator-namespace', 'penstock-operator-namespace', account),
      bound('RoleBinding', 'edit', 'edit', user, 'evil'),
      bound('RoleBinding', 'penstock-edit', 'penstock-edit', user, 'evil'),
      ...['shop', 'evil'].map((namespace) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'creds', namespace },
        stringData: { token: `OF-${namespace.toUpperCase()}` },
      })),
      // Sources without network access, so that each row is rejected for its own reason.
      {
        apiVersion,
        kind: 'TenantPolicy',
        metadata: { name: 'all' },
        spec: { namespaceSelector: {}, allowedSources: ['demo_logs', 'orchestrator_logs'] },
      },
      // Agents that would run any accepted Pipeline.
      {
        apiVersion,
        kind: 'Agent',
        metadata: { name: 'all', namespace: system },
        spec: { mode: 'Aggregator', pipelines: { namespaceSelector: {} } },
      },
      {
        apiVersion,
        kind: 'Agent',
        metadata: { name: 'nodes', namespace: system },
        spec: { mode: 'Node', pipelines: { namespaceSelector: {} } },
      },
    )
    const kubeconfig = join(cluster.folder, 'operator-kubeconfig')
    await signIn(cluster, 'penstock-operator', kubeconfig)
    operator = await resources.use(OperatorProcess.start({ kubeconfig, args: ['--leader-election=false'] })).leading()
    for (const [name, attack] of Object.entries(attacks))
      await asMallory({ apiVersion, kind: 'Pipeline', metadata: { name, namespace: 'evil' }, spec: specOf(attack) })
    for (const [name, spec] of Object.entries(agents))
      await asMallory({ apiVersion, kind: 'Agent', metadata: { name, namespace: 'evil' }, spec })
    await asMallory({
      apiVersion,
      kind: 'Pipeline',
      metadata: { name: 'harmless', namespace: 'evil' },
      spec: specOf({ says: '' }),
    })
  })
  afterAll(() => resources.disposeAsync())

  test.each(Object.entries(attacks))(
    'Pipeline %s is rejected, and the reason names the rule',
    async (name, { says }) => {
      await eventually(async () => {
        const condition = await accepted('pl', name)
        expect(condition?.status, condition?.message).toBe('False')
        if (typeof says === 'string') expect(condition?.message).toContain(says)
        else expect(condition?.message).toMatch(says)
      })
    },
  )

  test.each(Object.keys(agents))('Agent %s is rejected', async (name) => {
    await eventually(async () => {
      const condition = await accepted('plagent', name)
      expect(condition?.status, condition?.message).toBe('False')
    })
    for (const kind of ['deployments', 'daemonsets', 'statefulsets'])
      expect((await read('-n', 'evil', 'get', kind)).items, kind).toEqual([])
  })

  test('agents receive only the harmless Pipeline, and the operator needs little memory', async () => {
    await eventually(async () => expect((await accepted('pl', 'harmless'))?.status).toBe('True'))
    const bundles = (await read('-n', system, 'get', 'configmaps')).items as {
      readonly metadata: { readonly name: string }
      readonly data?: Readonly<Record<string, string>>
    }[]
    const text = JSON.stringify(bundles)
    for (const name of Object.keys(attacks)) expect(text, name).not.toContain(`evil/${name}/`)
    const secrets = JSON.stringify((await read('-n', 'evil', 'get', 'secrets')).items)
    expect(secrets).not.toContain(Buffer.from('OF-SHOP').toString('base64'))
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${operator.pid}/status`, 'utf8'))?.[1]
    expect(Number(peak) / 1024).toBeLessThan(512)
  })
})
