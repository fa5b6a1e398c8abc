// `podTemplate` of an Agent: a strategic merge patch on the pod template, applied last. What makes the pod an agent, and what
// keeps it from being more than one, cannot be patched; each attempt is a problem with its path.

import type { Problem } from '@penstock/agent/schema/problems'
import type { Agent } from '../api/agent.ts'

type Table = Readonly<Record<string, unknown>>

/** Lists of a pod that are merged entry by entry, and the member that tells the entries apart; all others are replaced. */
const mergeKeys: Readonly<Record<string, string>> = {
  containers: 'name',
  ephemeralContainers: 'name',
  initContainers: 'name',
  env: 'name',
  hostAliases: 'ip',
  imagePullSecrets: 'name',
  ports: 'containerPort',
  resourceClaims: 'name',
  schedulingGates: 'name',
  topologySpreadConstraints: 'topologyKey',
  volumeDevices: 'devicePath',
  volumeMounts: 'mountPath',
  volumes: 'name',
}

/** A strategic merge as the API server does it, with the directives `$patch: delete`, `$patch: replace` and null. */
export function strategicMerge<T extends object>(base: T, patch: Table): T {
  return mergeTables(base as Table, patch) as T
}

function mergeTables(base: Table, patch: Table): Table {
  if (patch['$patch'] === 'replace') return without(patch, '$patch')
  if (patch['$patch'] === 'delete') return {}
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(patch)) {
    if (key === '$patch' || key.startsWith('$setElementOrder/') || key === '$retainKeys') continue
    if (key.startsWith('$deleteFromPrimitiveList/')) {
      const name = key.slice('$deleteFromPrimitiveList/'.length)
      const gone = Array.isArray(value) ? value : []
      result[name] = ((result[name] as unknown[]) ?? []).filter((item) => !gone.includes(item))
    } else if (value === null) {
      delete result[key]
    } else if (Array.isArray(value)) {
      result[key] = mergeLists(key, result[key], value)
    } else if (isTable(value)) {
      const before = result[key]
      result[key] = mergeTables(isTable(before) ? before : {}, value)
    } else {
      result[key] = value
    }
  }
  return result
}

function mergeLists(name: string, base: unknown, patch: readonly unknown[]): unknown[] {
  const key = mergeKeys[name]
  if (patch.some((item) => isTable(item) && item['$patch'] === 'replace' && Object.keys(item).length === 1))
    return patch.filter((item) => !(isTable(item) && item['$patch'] === 'replace'))
  if (key === undefined || !Array.isArray(base)) return patch.filter((item) => !isDeletion(item))
  const result: unknown[] = [...base]
  for (const item of patch) {
    if (!isTable(item)) continue
    const at = result.findIndex((one) => isTable(one) && one[key] === item[key])
    if (isDeletion(item)) {
      if (at >= 0) result.splice(at, 1)
    } else if (at >= 0) {
      result[at] = mergeTables(result[at] as Table, item)
    } else {
      result.push(without(item, '$patch'))
    }
  }
  return result
}

const isDeletion = (item: unknown) => isTable(item) && item['$patch'] === 'delete'
const without = (table: Table, name: string): Table =>
  Object.fromEntries(Object.entries(table).filter(([key]) => key !== name))
const isTable = (value: unknown): value is Table => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The pod template with the Agent's patch on it. */
export const patched = <T extends object>(template: T, agent: Pick<Agent, 'spec'>): T =>
  strategicMerge(template, patchOf(agent))

const patchOf = (agent: Pick<Agent, 'spec'>): Table => (agent.spec.podTemplate ?? {}) as Table

/** Containers and volumes that are ours, by name. */
export const ownContainers = ['agent', 'data-dir'] as const
export const ownVolumes = ['bundle', 'secrets', 'operator', 'service-account', 'logs', 'data', 'tmp'] as const

const podMembers = [
  'activeDeadlineSeconds',
  'automountServiceAccountToken',
  'hostIPC',
  'hostNetwork',
  'hostPID',
  'hostUsers',
  'os',
  'restartPolicy',
  'securityContext',
  'serviceAccount',
  'serviceAccountName',
  'shareProcessNamespace',
]
const containerMembers = ['args', 'command', 'image', 'ports', 'restartPolicy', 'securityContext', 'livenessProbe']

/** What `podTemplate` of an Agent may not change. */
export function podTemplateProblems(agent: Pick<Agent, 'spec'>): Problem[] {
  const problems: Problem[] = []
  const report = (path: string, message: string, help: string) =>
    problems.push({ severity: 'error', path, message, help })
  const template = patchOf(agent)
  for (const key of Object.keys(template)) {
    if (key !== 'metadata' && key !== 'spec')
      report(`podTemplate.${key}`, `unknown field \`${key}\`, expected \`metadata\`, \`spec\``, 'It is a pod template.')
  }
  const metadata = tableOf(template['metadata'])
  for (const member of Object.keys(metadata)) {
    if (member !== 'labels' && member !== 'annotations')
      report(`podTemplate.metadata.${member}`, `\`${member}\` cannot be patched`, 'Only labels and annotations can.')
  }
  for (const part of ['labels', 'annotations'] as const) {
    for (const key of Object.keys(tableOf(metadata[part]))) {
      if (key.startsWith('penstock.dev/') || key.startsWith('app.kubernetes.io/'))
        report(`podTemplate.metadata.${part}.${key}`, `\`${key}\` is Penstock's own`, 'Use a key of your own.')
    }
  }
  const spec = tableOf(template['spec'])
  for (const member of podMembers) {
    if (spec[member] !== undefined)
      report(`podTemplate.spec.${member}`, `\`${member}\` cannot be patched`, "It belongs to the agent's security.")
  }
  if (tableOf(spec['nodeSelector'])['kubernetes.io/os'] !== undefined)
    report('podTemplate.spec.nodeSelector', '`kubernetes.io/os` cannot be patched', 'Agents run on Linux.')
  if (spec['$patch'] !== undefined || template['$patch'] !== undefined)
    report('podTemplate', '`$patch` is not possible for the whole template', 'Name what shall change.')
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, entry] of listOf(spec[list]).entries()) {
      const path = `podTemplate.spec.${list}[${index}]`
      const container = tableOf(entry)
      const name = container['name']
      if (typeof name !== 'string') {
        report(path, '`name` is missing', 'It says which container is meant.')
      } else if (ownContainers.some((own) => own === name)) {
        for (const member of [...containerMembers, '$patch']) {
          if (container[member] !== undefined)
            report(`${path}.${member}`, `\`${member}\` of container \`${name}\` cannot be patched`, imageHelp(member))
        }
        for (const [at, mount] of listOf(container['volumeMounts']).entries()) {
          if (isOwn(tableOf(mount)['name']) || tableOf(mount)['$patch'] !== undefined)
            report(
              `${path}.volumeMounts[${at}]`,
              "Penstock's own mounts cannot be patched",
              'Add a volume of your own.',
            )
        }
      } else {
        checkForeign(container, path, report)
      }
    }
  }
  for (const [index, entry] of listOf(spec['volumes']).entries()) {
    const volume = tableOf(entry)
    const path = `podTemplate.spec.volumes[${index}]`
    if (isOwn(volume['name'])) report(path, `Volume \`${volume['name']}\` is Penstock's own`, 'Use another name.')
    if (volume['$patch'] !== undefined) report(path, 'Volumes cannot be removed', 'Only further ones can be added.')
    if (volume['hostPath'] !== undefined)
      report(`${path}.hostPath`, 'Folders of the node cannot be mounted by `podTemplate`', hostPathHelp(agent))
  }
  return problems
}

/** A container that a user adds: it must not be more than the agent itself may be. */
function checkForeign(container: Table, path: string, report: (path: string, message: string, help: string) => void) {
  const context = tableOf(container['securityContext'])
  const help = 'A further container may have no more rights than the agent.'
  if (context['privileged'] === true) report(`${path}.securityContext.privileged`, '`privileged` is refused', help)
  if (context['allowPrivilegeEscalation'] === true)
    report(`${path}.securityContext.allowPrivilegeEscalation`, '`allowPrivilegeEscalation` is refused', help)
  if (listOf(tableOf(context['capabilities'])['add']).length > 0)
    report(`${path}.securityContext.capabilities.add`, 'Further capabilities are refused', help)
  for (const [at, mount] of listOf(container['volumeMounts']).entries()) {
    if (isOwn(tableOf(mount)['name']))
      report(`${path}.volumeMounts[${at}]`, "Penstock's own volumes are for the agent alone", 'Use another volume.')
  }
}

const isOwn = (name: unknown) => ownVolumes.some((own) => own === name)
const tableOf = (value: unknown): Table => (isTable(value) ? value : {})
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const imageHelp = (member: string) =>
  member === 'image' ? 'Set `spec.image`.' : "It is what makes it Penstock's agent."
const hostPathHelp = (agent: Pick<Agent, 'spec'>) =>
  agent.spec.mode === 'Node' ? 'Set `spec.node.logPaths.extraReadOnly`.' : 'Only Node agents read the node.'
