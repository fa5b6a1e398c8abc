// Checks the agent against the schema of the oldest supported Kubernetes: every request that the Kubernetes sources send, every object
// field that they read, and the manifest of the standalone agent.

import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { minServerMinor } from '../../kube/server-version.ts'
import { startSource } from '../../testing/harness.ts'
import { type ApiObject, KubeApi } from '../../testing/kube-api.ts'
import { ApiSchema } from '../../testing/kubernetes/api-schema.ts'
import { version } from '../../version.ts'
import { capturedFields } from './annotate.ts'

const oldest = new ApiSchema(`1.${minServerMinor}`)

let folder: string
let api: KubeApi
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-oldest-'))
  api = await KubeApi.start()
  api.minor = String(minServerMinor)
  writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
})
afterEach(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** An object with every field of the oldest version, overridden by these. */
function complete(kind: string, metadata: ApiObject['metadata'], more: object = {}): ApiObject {
  const object = oldest.complete(kind)
  return { ...object, ...more, metadata: { ...(object['metadata'] as object), ...metadata } }
}

const completePod = () => {
  const pod = complete('Pod', { name: 'web', namespace: 'shop', uid: 'u1', annotations: { note: 'hello' } })
  return { ...pod, spec: { ...(pod['spec'] as object), nodeName: 'node-1' } }
}

function writeLine(pod: string): void {
  const container = join(folder, 'pods', pod, 'Pod.spec.containers.name')
  mkdirSync(container, { recursive: true })
  appendFileSync(join(container, '0.log'), '2026-01-01T00:00:02.123456789Z stdout F hello\n')
}

const logs = (options: object = {}) => {
  mkdirSync(join(folder, 'pods'), { recursive: true })
  const files = { logs_dir: join(folder, 'pods'), kube_config_file: join(folder, 'kubeconfig') }
  return startSource('orchestrator_logs', { ...files, self_node_name: 'node-1', ...options })
}

const refusedRequests = () =>
  [...new Set(api.requests)].map((request) => oldest.problemOfRequest(request)).filter((one) => one !== undefined)

test('every field about a pod can be filled from objects of the oldest version', async () => {
  const pod = completePod()
  // A container and its status must have the same name; the schema does not express that.
  const status = pod['status' as keyof typeof pod] as unknown as Record<string, unknown>
  const [state] = status['containerStatuses'] as Record<string, unknown>[]
  const named = { ...status, containerStatuses: [{ ...state, name: 'Pod.spec.containers.name' }] }
  api.set('pods', { ...pod, status: named })
  api.set('namespaces', complete('Namespace', { name: 'shop' }))
  api.set('nodes', complete('Node', { name: 'node-1' }))
  writeLine('shop_web_u1')
  await using source = await logs()
  const [event] = await source.received(1)
  const { orchestrator } = (event as unknown as { fields: { orchestrator: Record<string, unknown> } }).fields
  expect(Object.keys(orchestrator).toSorted()).toEqual([...capturedFields].toSorted())
  expect(orchestrator['container_id']).toBe('Pod.status.containerStatuses.containerID')
  expect(orchestrator['pod_ips']).toEqual(['Pod.status.podIPs.ip'])
})

test.each([
  {},
  { use_apiserver_cache: true },
  {
    extra_label_selector: 'a=b',
    extra_field_selector: 'spec.restartPolicy=Always',
    extra_namespace_label_selector: 'c=d',
  },
])('orchestrator_logs sends only requests that the oldest version serves, with %j', async (options) => {
  const known = completePod()
  const labels = { a: 'b', c: 'd' }
  api.set('pods', {
    ...known,
    metadata: { ...known.metadata, labels },
    spec: { ...known['spec'], restartPolicy: 'Always' },
  })
  for (let index = 0; index < 501; index++) api.set('namespaces', { metadata: { name: `n-${index}`, labels } })
  api.set('namespaces', { metadata: { name: 'shop', labels } })
  writeLine('shop_web_u1')
  // A pod that the watch does not know is looked up by its name.
  writeLine('shop_gone_u2')
  await using source = await logs(options)
  await source.received(1)
  await vi.waitFor(() => expect(api.requests).toContain('/api/v1/namespaces/shop/pods/gone'), { timeout: 10_000 })
  await vi.waitFor(() => expect(api.watches).toBe(3))
  await vi.waitFor(() => expect(api.versionRequests).toBe(1))
  expect(refusedRequests()).toEqual([])
})

test.each([{}, { namespaces: ['shop'] }])('orchestrator_events does so, too, with %j', async (options) => {
  api.set('events', complete('Event', { name: 'web.1', namespace: 'shop', uid: 'e1' }, eventTimes))
  await using source = await startSource(
    'orchestrator_events',
    { kube_config_file: join(folder, 'kubeconfig'), read_from: 'beginning', ...options },
    { dataDir: folder },
  )
  const [event] = await source.received(1)
  const { orchestrator, message } = (event as unknown as { fields: Record<string, unknown> }).fields
  expect(message).toBe('Event.note')
  expect(Object.values(orchestrator as object)).not.toContain(undefined)
  await vi.waitFor(() => expect(api.watches).toBe(1))
  await vi.waitFor(() => expect(api.versionRequests).toBe(1))
  expect(refusedRequests()).toEqual([])
})

const time = '2026-01-01T00:00:02.123456Z'
const eventTimes = {
  eventTime: time,
  deprecatedFirstTimestamp: time,
  deprecatedLastTimestamp: time,
  series: { count: 2, lastObservedTime: time },
}

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const manifestPath = join(import.meta.dirname, '../../../../examples/agent-alone/agent.yaml')
const manifests = parseAllDocuments(readFileSync(manifestPath, 'utf8')).map((document) => {
  if (document.errors.length > 0) throw document.errors[0]
  return document.toJS() as Manifest
})
const manifest = <T>(kind: string): T => {
  const found = manifests.find((one) => one.kind === kind)
  if (found === undefined) throw new Error(`${manifestPath} has no ${kind}.`)
  return found as T
}

test('the oldest version accepts the manifest of the agent without an operator', () => {
  expect(manifests.flatMap((one) => oldest.problemsOf(one.kind, one))).toEqual([])
  // The check must find an unknown field.
  const daemonSet = structuredClone(manifest<DaemonSet>('DaemonSet'))
  const [container] = daemonSet.spec.template.spec.containers
  Object.assign(container, { restartPolicy: 'Always', securityContext: { appArmorProfile: {} }, args: 'text' })
  const at = 'DaemonSet.spec.template.spec.containers[0]'
  expect(oldest.problemsOf('DaemonSet', daemonSet).toSorted()).toEqual([
    `${at}.args: must be a list`,
    `${at}.restartPolicy: no such field`,
    `${at}.securityContext.appArmorProfile: no such field`,
  ])
  expect(oldest.problemOfRequest('/api/v1/pods?watch=true&sendInitialEvents=true')).toBe(
    '/api/v1/pods: no parameter sendInitialEvents',
  )
  expect(oldest.problemOfRequest('/apis/discovery.k8s.io/v1/endpointslices')).toContain('no such path')
})

interface DaemonSet extends Manifest {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly [{ readonly image: string }] } }
  }
}

test('the manifest uses the image of this version', () => {
  const [container] = manifest<DaemonSet>('DaemonSet').spec.template.spec.containers
  expect(container.image).toBe(`penstock/agent:${version}`)
})

test('its account may send exactly the requests of its source', async () => {
  api.set('pods', completePod())
  writeLine('shop_web_u1')
  writeLine('shop_gone_u2')
  await using source = await logs()
  await source.received(1)
  await vi.waitFor(() => expect(api.requests).toContain('/api/v1/namespaces/shop/pods/gone'), { timeout: 10_000 })
  await vi.waitFor(() => expect(api.watches).toBe(3))
  const used = new Set(api.requests.map(rightOf))
  const role = manifest<{ rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[] } & Manifest>(
    'ClusterRole',
  )
  const granted = role.rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`))),
  )
  expect([...used].filter((right) => !granted.includes(right))).toEqual([])
  // The right to list implies reading each object, so not every resource needs `get`.
  expect(granted.filter((right) => !right.startsWith('get ') && !used.has(right))).toEqual([])
})

function rightOf(request: string): string {
  const url = new URL(request, 'http://localhost')
  const [, resource, name] =
    /^\/api\/v1\/(?:namespaces\/[^/]+\/)?(pods|namespaces|nodes)(?:\/([^/]+))?$/.exec(url.pathname) ?? []
  const verb = name !== undefined ? 'get' : url.searchParams.get('watch') === 'true' ? 'watch' : 'list'
  return `${verb} /${resource}`
}
