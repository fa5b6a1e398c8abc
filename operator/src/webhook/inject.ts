// Adds the sidecar to a pod that requests one. Pure and idempotent: it first removes the additions of an earlier call, so a second
// call returns the same pod.

import { createHash } from 'node:crypto'
import { canonicalJson } from '@penstock/agent/bundle'
import type { Agent } from '../api/agent.ts'
import type { ObjectMeta } from '../api/object.ts'
import { nativeSidecarMinor } from '../workloads/cluster-needs.ts'
import type { WorkloadInput } from '../workloads/pod.ts'
import { sidecarContainer, sidecarParts, sidecarPrefix } from '../workloads/sidecar.ts'

const annotations = {
  sidecar: 'penstock.dev/sidecar',
  pipelines: 'penstock.dev/pipelines',
  volume: 'penstock.dev/log-volume',
  paths: 'penstock.dev/log-paths',
  injected: 'penstock.dev/injected',
  allowLegacy: 'penstock.dev/allow-legacy-sidecar',
} as const

interface VolumeMount {
  readonly name: string
  readonly mountPath: string
  readonly subPath?: string
}

interface Container {
  readonly name: string
  readonly volumeMounts?: readonly VolumeMount[]
  readonly securityContext?: { readonly runAsUser?: number }
  readonly [field: string]: unknown
}

interface Volume {
  readonly name: string
  readonly emptyDir?: object
  readonly [source: string]: unknown
}

export interface AdmittedPod {
  readonly metadata: Partial<ObjectMeta> & { readonly generateName?: string }
  readonly spec: {
    readonly containers: readonly Container[]
    readonly initContainers?: readonly Container[]
    readonly volumes?: readonly Volume[]
    readonly securityContext?: { readonly runAsUser?: number }
    readonly [field: string]: unknown
  }
}

export interface Operation {
  readonly op: 'add'
  readonly path: string
  readonly value: unknown
}

export type Injection =
  | { readonly allowed: true; readonly patch: readonly Operation[]; readonly warnings: readonly string[] }
  | { readonly allowed: false; readonly message: string }

export interface InjectOptions {
  /** Finds an Agent by its name in the pod's namespace. */
  readonly agent: (name: string) => Agent | undefined
  readonly input: WorkloadInput
  readonly namespace: string
  /** Minor version of the API server. */
  readonly minor: number
}

/** The additions to a pod, as operations of a JSON patch; none if the pod has them already, or requests no sidecar. */
export function injectSidecar(pod: AdmittedPod, options: InjectOptions): Injection {
  const asked = pod.metadata.annotations ?? {}
  const name = asked[annotations.sidecar]
  if (name === undefined) return { allowed: true, patch: [], warnings: [] }
  const refuse = (text: string): Injection => ({
    allowed: false,
    message: `Annotation ${annotations.sidecar}: ${text}`,
  })

  const agent = options.agent(name)
  if (agent === undefined)
    return refuse(`there is no Agent "${name}" in namespace "${options.namespace}". Create one with \`mode: Sidecar\`.`)
  if (agent.spec.mode !== 'Sidecar')
    return refuse(`Agent "${name}" has mode ${agent.spec.mode}; a pod needs one with \`mode: Sidecar\`.`)
  const native = options.minor >= nativeSidecarMinor
  const isJob = pod.metadata.ownerReferences?.some((owner) => owner.kind === 'Job') === true
  if (!native && isJob && asked[annotations.allowLegacy] !== 'true')
    return refuse(
      `before Kubernetes 1.${nativeSidecarMinor} a sidecar keeps a Job from completing. To allow this, set ${annotations.allowLegacy}: "true".`,
    )

  const bare = withoutSidecar(pod)
  const place = placeOf(bare, asked)
  if (typeof place === 'string') return refuse(place)
  const { volume, mountPath, logPaths, users, isPresent } = place
  const declared = users[0]?.securityContext?.runAsUser ?? bare.spec.securityContext?.runAsUser
  const parts = sidecarParts(agent, options.input, {
    volume,
    mountPath,
    logPaths,
    pipelines: asked[annotations.pipelines] === undefined ? undefined : listOf(asked[annotations.pipelines]),
    user: declared === 0 ? undefined : declared,
  })
  const revision = createHash('sha256').update(canonicalJson(parts)).digest('hex').slice(0, 8)
  // If no container mounts the volume, it is mounted into every container of the pod, at the folder in the paths.
  const containers =
    users.length > 0
      ? bare.spec.containers
      : bare.spec.containers.map((container) => ({
          ...container,
          volumeMounts: [...(container.volumeMounts ?? []), { name: volume, mountPath }],
        }))
  const sidecar = parts.container as Container
  const { restartPolicy: _, ...legacy } = sidecar
  const wanted: AdmittedPod = {
    ...bare,
    metadata: {
      ...bare.metadata,
      annotations: { ...bare.metadata.annotations, [annotations.injected]: `${name}.${revision}` },
    },
    spec: {
      ...bare.spec,
      containers: native ? containers : [...containers, legacy as Container],
      ...(native ? { initContainers: [sidecar, ...(bare.spec.initContainers ?? [])] } : {}),
      volumes: [
        ...(bare.spec.volumes ?? []),
        ...(isPresent ? [] : [{ name: volume, emptyDir: {} }]),
        ...(parts.volumes as readonly Volume[]),
      ],
    },
  }
  return { allowed: true, patch: difference(pod, wanted), warnings: warningsOf(pod, users, bare) }
}

/** The volume that the sidecar reads. */
interface Place {
  readonly volume: string
  readonly mountPath: string
  readonly logPaths: readonly string[]
  /** Containers that mount it. */
  readonly users: readonly Container[]
  /** Whether the pod has it already. */
  readonly isPresent: boolean
}

/** The volume that the annotations and the pod describe, or the reason why the sidecar cannot read it. */
function placeOf(bare: AdmittedPod, asked: Readonly<Record<string, string>>): Place | string {
  const volume = asked[annotations.volume]
  if (volume === undefined || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(volume) || volume.startsWith(sidecarPrefix))
    return `${annotations.volume} must name the volume with the log files, such as \`logs\`; found ${quoted(volume)}.`
  const logPaths = listOf(asked[annotations.paths])
  const wrong = logPaths.find((path) => !path.startsWith('/') || path.split('/').includes('..'))
  if (wrong !== undefined)
    return `${annotations.paths} must contain absolute paths such as \`/logs/*.log\`; found ${quoted(wrong)}.`

  const present = bare.spec.volumes?.find((one) => one.name === volume)
  if (present !== undefined && present.emptyDir === undefined)
    return `volume "${volume}" is not an emptyDir, and sidecars do not read other volumes.`
  const users = bare.spec.containers.filter((container) => mountOf(container, volume) !== undefined)
  const mountPath = users.map((container) => mountOf(container, volume)?.mountPath).find(Boolean) ?? folderOf(logPaths)
  if (mountPath === undefined)
    return `no container mounts volume "${volume}", and ${annotations.paths} does not specify the folder of the files.`
  const outside = logPaths.find((path) => !path.startsWith(`${mountPath.replace(/\/$/, '')}/`))
  if (outside !== undefined)
    return `${annotations.paths} contains ${quoted(outside)}, which is outside volume "${volume}" at ${mountPath}.`
  return { volume, mountPath, logPaths, users, isPresent: present !== undefined }
}

/** Warnings about annotations outside the pod template of a workload, where they have no effect. */
export function misplacedWarnings(workload: {
  readonly kind?: string
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> }
}): string[] {
  if (workload.metadata?.annotations?.[annotations.sidecar] === undefined) return []
  const place = workload.kind === 'CronJob' ? 'spec.jobTemplate.spec.template.metadata' : 'spec.template.metadata'
  return [
    `Annotation ${annotations.sidecar} has no effect on a ${workload.kind}: put it on its pods, in ${place}.annotations.`,
  ]
}

/** The pod without the additions of an earlier call. A user's volume stays, even if it was created for the sidecar. */
function withoutSidecar(pod: AdmittedPod): AdmittedPod {
  if (pod.metadata.annotations?.[annotations.injected] === undefined) return pod
  const kept = <T extends { readonly name: string }>(
    list: readonly T[] | undefined,
    isOurs: (name: string) => boolean,
  ) => list?.filter((one) => !isOurs(one.name))
  const initContainers = kept(pod.spec.initContainers, (name) => name === sidecarContainer)
  const ownVolumes = new Set(['bundle', 'secrets', 'operator', 'data'].map((name) => sidecarPrefix + name))
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: kept(pod.spec.containers, (name) => name === sidecarContainer) ?? [],
      ...(initContainers === undefined ? {} : { initContainers }),
      volumes: kept(pod.spec.volumes, (name) => ownVolumes.has(name)) ?? [],
    },
  }
}

/** Operations for the modified parts of a pod; `add` replaces an existing member. */
function difference(from: AdmittedPod, to: AdmittedPod): Operation[] {
  const operations: Operation[] = []
  for (const member of ['volumes', 'initContainers', 'containers'] as const) {
    if (to.spec[member] !== undefined && !isSame(from.spec[member], to.spec[member]))
      operations.push({ op: 'add', path: `/spec/${member}`, value: to.spec[member] })
  }
  if (!isSame(from.metadata.annotations, to.metadata.annotations))
    operations.push({ op: 'add', path: '/metadata/annotations', value: to.metadata.annotations })
  return operations
}

function warningsOf(pod: AdmittedPod, users: readonly Container[], bare: AdmittedPod): string[] {
  const warnings: string[] = []
  if (users.length === 0)
    warnings.push(
      `No container mounted volume "${pod.metadata.annotations?.[annotations.volume]}"; now all of them do.`,
    )
  const user = users[0]?.securityContext?.runAsUser ?? bare.spec.securityContext?.runAsUser
  if (user === 0)
    warnings.push(
      'The container that writes the files runs as root; the sidecar does not, and only reads files that other users may read.',
    )
  return warnings
}

const mountOf = (container: Container, volume: string) =>
  container.volumeMounts?.find((mount) => mount.name === volume && mount.subPath === undefined)
const listOf = (text: string | undefined) =>
  (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
const isSame = (left: unknown, right: unknown) => JSON.stringify(left ?? null) === JSON.stringify(right ?? null)
const quoted = (text: string | undefined) => (text === undefined ? 'none' : `"${text}"`)

/** The longest folder path without wildcards that all globs share. */
function folderOf(globs: readonly string[]): string | undefined {
  const folders = globs.map((glob) => {
    const parts = glob.split('/').slice(0, -1)
    const wild = parts.findIndex((part) => /[*?[{]/.test(part))
    return wild < 0 ? parts : parts.slice(0, wild)
  })
  const [first] = folders
  if (first === undefined) return undefined
  let length = first.length
  for (const folder of folders)
    while (length > 0 && folder.slice(0, length).join('/') !== first.slice(0, length).join('/')) length--
  return length < 2 ? undefined : first.slice(0, length).join('/')
}
