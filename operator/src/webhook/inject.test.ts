import { expect, test } from 'vitest'
import type { Agent } from '../api/agent.ts'
import { type AdmittedPod, type InjectOptions, injectSidecar, misplacedWarnings } from './inject.ts'

const agent: Agent = {
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'side', namespace: 'shop', uid: 'uid-1' },
  spec: { mode: 'Sidecar', sidecar: { drainSeconds: 7 } },
}
const options = (more: Partial<InjectOptions> = {}): InjectOptions => ({
  agent: (name) => (name === 'side' ? agent : undefined),
  input: {
    image: 'penstock/agent:1',
    operatorUrl: 'https://penstock-operator.penstock-system.svc:9443',
    operatorNamespace: 'penstock-system',
  },
  namespace: 'shop',
  minor: 36,
  ...more,
})
const asking = {
  'penstock.dev/sidecar': 'side',
  'penstock.dev/log-volume': 'logs',
  'penstock.dev/log-paths': '/logs/*.log',
}
const pod = (annotations: Record<string, string> = asking, spec: Partial<AdmittedPod['spec']> = {}): AdmittedPod => ({
  metadata: { name: 'import', annotations },
  spec: {
    containers: [{ name: 'app', image: 'x', volumeMounts: [{ name: 'logs', mountPath: '/logs' }] }],
    initContainers: [{ name: 'prepare', image: 'x' }],
    volumes: [{ name: 'logs', emptyDir: {} }],
    ...spec,
  },
})

/** Applies the response to the pod, as the API server does. */
function injected(from: AdmittedPod, more: Partial<InjectOptions> = {}): AdmittedPod {
  const result = injectSidecar(from, options(more))
  if (!result.allowed) throw new Error(result.message)
  const changed = structuredClone(from) as unknown as Record<string, Record<string, unknown>>
  for (const { path, value } of result.patch) {
    const [, part = '', member = ''] = path.split('/')
    ;(changed[part] as Record<string, unknown>)[member] = value
  }
  return changed as unknown as AdmittedPod
}
const refusal = (from: AdmittedPod, more: Partial<InjectOptions> = {}) => {
  const result = injectSidecar(from, options(more))
  return result.allowed ? undefined : result.message
}

test('a pod gets a native sidecar on request, as its first init container', () => {
  const result = injected(pod({ ...asking, 'penstock.dev/pipelines': 'files, audit' }))
  expect(result.spec.initContainers?.map((container) => container.name)).toEqual(['penstock-agent', 'prepare'])
  const [sidecar] = result.spec.initContainers ?? []
  expect(sidecar).toMatchObject({ restartPolicy: 'Always', image: 'penstock/agent:1' })
  expect(sidecar?.['args']).toEqual([
    ...['--bundle', '/etc/penstock/bundle', '--secrets', '/etc/penstock/secrets'],
    ...['--operator', 'https://penstock-operator.penstock-system.svc:9443', '--data-dir', '/var/lib/penstock'],
    ...['--log-volume', '/logs', '--log-paths', '/logs/*.log', '--pipelines', 'files,audit', '--drain-seconds', '7'],
  ])
  expect(result.spec.containers).toEqual(pod().spec.containers)
  expect(result.metadata.annotations?.['penstock.dev/injected']).toMatch(/^side\.[0-9a-f]{8}$/)
})

test('the sidecar conforms to the restricted standard, and only reads the volume', () => {
  const result = injected(pod())
  const [sidecar] = result.spec.initContainers ?? []
  expect(sidecar?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(sidecar?.volumeMounts?.at(-1)).toEqual({ name: 'logs', mountPath: '/logs', readOnly: true })
  expect(result.spec.volumes?.filter((volume) => volume['hostPath'] !== undefined)).toEqual([])
  expect(JSON.stringify(sidecar?.['resources'])).toContain('requests')
})

test('a second call changes nothing, and a changed Agent replaces the sidecar in place', () => {
  const once = injected(pod())
  expect(injectSidecar(once, options())).toMatchObject({ allowed: true, patch: [] })
  const newer = { ...agent, spec: { ...agent.spec, image: { tag: '2' } } } as Agent
  const again = injected(once, { agent: () => newer })
  expect(again.spec.initContainers?.map((container) => container.name)).toEqual(['penstock-agent', 'prepare'])
  expect(again.spec.initContainers?.[0]?.['image']).toBe('penstock/agent:2')
  expect(again.spec.volumes?.map((volume) => volume.name)).toEqual(once.spec.volumes?.map((volume) => volume.name))
})

test('containers that another webhook adds meanwhile stay', () => {
  const once = injected(pod())
  const more: AdmittedPod = {
    ...once,
    spec: { ...once.spec, initContainers: [{ name: 'mesh', image: 'm' }, ...(once.spec.initContainers ?? [])] },
  }
  expect(injected(more).spec.initContainers?.map((container) => container.name)).toEqual([
    'penstock-agent',
    'mesh',
    'prepare',
  ])
})

test('a missing volume is added, and mounted at the configured paths', () => {
  const from = pod(
    { ...asking, 'penstock.dev/log-paths': '/var/log/app/*.log,/var/log/app/old/*.gz' },
    { containers: [{ name: 'app', image: 'x' }], volumes: [] },
  )
  const result = injected(from)
  expect(result.spec.volumes?.[0]).toEqual({ name: 'logs', emptyDir: {} })
  expect(result.spec.containers[0]?.volumeMounts).toEqual([{ name: 'logs', mountPath: '/var/log/app' }])
  expect(injectSidecar(result, options())).toMatchObject({ patch: [] })
})

test('the sidecar runs as the user who writes, but never as root', () => {
  const as = (user: number) =>
    injected(pod(asking, { securityContext: { runAsUser: user } })).spec.initContainers?.[0]?.securityContext?.runAsUser
  expect(as(2000)).toBe(2000)
  expect(as(0)).toBe(1000)
  expect(injectSidecar(pod(asking, { securityContext: { runAsUser: 0 } }), options())).toMatchObject({
    warnings: [expect.stringContaining('root')],
  })
})

test('a pod without the annotation is not changed', () => {
  expect(injectSidecar(pod({}), options())).toEqual({ allowed: true, patch: [], warnings: [] })
})

test.each([
  [{ 'penstock.dev/sidecar': 'none' }, 'there is no Agent "none" in namespace "shop"'],
  [{ 'penstock.dev/log-volume': '' }, 'penstock.dev/log-volume must name the volume'],
  [{ 'penstock.dev/log-volume': 'penstock-data' }, 'found "penstock-data"'],
  [{ 'penstock.dev/log-paths': 'logs/*.log' }, 'must contain absolute paths'],
  [{ 'penstock.dev/log-paths': '/logs/../etc/passwd' }, 'found "/logs/../etc/passwd"'],
  [{ 'penstock.dev/log-paths': '/etc/passwd' }, 'outside volume "logs" at /logs'],
])('annotations %j are refused: %s', (annotations, message) => {
  expect(refusal(pod({ ...asking, ...annotations } as Record<string, string>))).toContain(message)
})

test('volumes of other kinds, and Agents of other modes, are refused', () => {
  const volumes = [{ name: 'logs', hostPath: { path: '/var/log' } }]
  expect(refusal(pod(asking, { volumes }))).toContain('is not an emptyDir')
  const node = { ...agent, spec: { mode: 'Node' } } as Agent
  expect(refusal(pod(), { agent: () => node })).toContain('has mode Node')
})

test('before 1.29, a Job is refused unless an annotation insists, and other pods get a normal container', () => {
  const job: AdmittedPod = {
    ...pod(),
    metadata: { annotations: asking, ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'u' }] },
  }
  expect(refusal(job, { minor: 28 })).toContain('1.29')
  const insisting: AdmittedPod = {
    ...job,
    metadata: { ...job.metadata, annotations: { ...asking, 'penstock.dev/allow-legacy-sidecar': 'true' } },
  }
  const result = injected(insisting, { minor: 28 })
  expect(result.spec.containers.map((container) => container.name)).toEqual(['app', 'penstock-agent'])
  expect(result.spec.containers[1]).not.toHaveProperty('restartPolicy')
})

test('an annotation outside the pod template is reported', () => {
  const metadata = { annotations: { 'penstock.dev/sidecar': 'side' } }
  expect(misplacedWarnings({ kind: 'Deployment', metadata })[0]).toContain('spec.template.metadata.annotations')
  expect(misplacedWarnings({ kind: 'CronJob', metadata })[0]).toContain('spec.jobTemplate.spec.template')
  expect(misplacedWarnings({ kind: 'Deployment', metadata: {} })).toEqual([])
})
