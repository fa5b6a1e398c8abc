// `podTemplate` of an Agent: a strategic merge patch on the pod template, applied last. It may only contain the fields listed here, in the
// given form; everything else is a problem with its path.

import type { Problem } from '@penstock/agent/errors'
import { isTable, listOf, tableOf } from '@penstock/agent/schema'
import type { Agent } from '../api/agent.ts'

type Table = Readonly<Record<string, unknown>>

/** Lists of a pod that are merged entry by entry, and the member that identifies an entry; all others are replaced. */
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

/** A strategic merge like that of the API server, with the directives `$patch: delete`, `$patch: replace` and null. */
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

/**
 * The pod template with the Agent's patch applied. Containers that the patch adds have the rights of the agent, or the fewer rights that
 * it sets.
 */
export function patched<T extends object>(template: T, agent: Pick<Agent, 'spec'>): T {
  const result = strategicMerge(template, patchOf(agent)) as T & { readonly spec?: Table }
  const spec = tableOf(result.spec)
  const bounded = Object.fromEntries(
    (['containers', 'initContainers'] as const)
      .filter((list) => Array.isArray(spec[list]))
      .map((list) => [list, listOf(spec[list]).map((entry) => withBounds(tableOf(entry)))]),
  )
  return { ...result, spec: { ...spec, ...bounded } }
}

function withBounds(container: Table): Table {
  if (isOwnContainer(container['name'])) return container
  return { ...container, securityContext: { ...foreignSecurity, ...tableOf(container['securityContext']) } }
}

const foreignSecurity = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  runAsUser: 1000,
  seccompProfile: { type: 'RuntimeDefault' },
} as const

const patchOf = (agent: Pick<Agent, 'spec'>): Table => tableOf(agent.spec.podTemplate)

/** Penstock's own containers and volumes, by name. */
const ownContainers = ['agent', 'data-dir'] as const
const ownVolumes = ['bundle', 'secrets', 'operator', 'service-account', 'logs', 'data', 'tmp'] as const

const isOwnContainer = (name: unknown) => ownContainers.some((own) => own === name)
/** Further folders of a Node Agent are mounted as `logs-0` and so on. */
const isOwnVolume = (name: unknown) =>
  ownVolumes.some((own) => own === name) || (typeof name === 'string' && /^logs-\d+$/.test(name))

type Report = (path: string, message: string, help: string) => void

/** Checks a value, and reports problems at its path. */
type Check = (value: unknown, path: string, report: Report) => void

// --- the allowed content of a patch: each field has a check ---

const kindOf = (value: unknown) =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'a table'
        : `a ${typeof value}`

const scalar =
  (type: 'string' | 'number' | 'boolean', what: string): Check =>
  (value, path, report) => {
    if (typeof value !== type)
      report(path, `\`${lastOf(path)}\` must be ${what}; found ${kindOf(value)}`, 'Pods have it in this form.')
  }
const text = scalar('string', 'text')
const number = scalar('number', 'a number')
const flag = scalar('boolean', 'true or false')
/** A table whose content can only harm the pod itself; the API server checks its members. */
const table: Check = (value, path, report) => {
  if (!isTable(value))
    report(path, `\`${lastOf(path)}\` must be a table; found ${kindOf(value)}`, 'Pods have it in this form.')
}
const nullable =
  (check: Check): Check =>
  (value, path, report) => {
    if (value !== null) check(value, path, report)
  }
/** One value and no other. */
const only =
  (allowed: boolean, help: string): Check =>
  (value, path, report) => {
    if (value !== allowed)
      report(path, `\`${lastOf(path)}: ${JSON.stringify(value)}\` is not allowed; it may be ${allowed}`, help)
  }
const not =
  (refused: readonly unknown[], check: Check, help: string): Check =>
  (value, path, report) => {
    if (refused.includes(value)) report(path, `\`${lastOf(path)}: ${JSON.stringify(value)}\` is not allowed`, help)
    else check(value, path, report)
  }
const each =
  (check: Check): Check =>
  (value, path, report) => {
    if (!Array.isArray(value)) {
      report(path, `\`${lastOf(path)}\` must be a list; found ${kindOf(value)}`, 'Pods have it in this form.')
      return
    }
    for (const [index, item] of value.entries()) check(item, `${path}[${index}]`, report)
  }
const mapOf =
  (check: Check, isRefused: (key: string) => string | undefined = () => undefined): Check =>
  (value, path, report) => {
    if (!isTable(value)) return table(value, path, report)
    for (const [key, item] of Object.entries(value)) {
      const why = key.startsWith('$') ? 'Directives are only allowed for list entries.' : isRefused(key)
      if (why !== undefined) report(`${path}.${key}`, `\`${key}\` cannot be patched`, why)
      else check(item, `${path}.${key}`, report)
    }
  }
/** A table with exactly these possible members. */
const members =
  (checks: Readonly<Record<string, Check>>, helps: Readonly<Record<string, string>> = {}): Check =>
  (value, path, report) => {
    if (!isTable(value)) return table(value, path, report)
    for (const [key, item] of Object.entries(value)) {
      const check = Object.hasOwn(checks, key) ? checks[key] : undefined
      if (check !== undefined) check(item, `${path}.${key}`, report)
      else
        report(
          `${path}.${key}`,
          `\`${key}\` cannot be patched`,
          helps[key] ?? `Allowed are: ${Object.keys(checks).join(', ')}.`,
        )
    }
  }
/** `$patch` of a list entry that is not Penstock's own. */
const directive: Check = (value, path, report) => {
  if (value !== 'delete' && value !== 'replace')
    report(path, '`$patch` is `delete` or `replace`', 'As for kubectl patch.')
}
const entries = (checks: Readonly<Record<string, Check>>): Check => each(members({ $patch: directive, ...checks }))
const openEntries: Check = each(table)

const lastOf = (path: string) => path.slice(path.lastIndexOf('.') + 1)

/** Variables that would change the agent's code or identity. */
const ownVariables = ['AGENT_SELF_NODE_NAME', 'POD_NAME', 'POD_NAMESPACE', 'NODE_IP', 'PATH']
const isLoaderVariable = (name: string) =>
  name !== 'NODE_EXTRA_CA_CERTS' && /^(NODE|LD|GLIBC|MALLOC|OPENSSL|UV|V8)_/.test(name)

const agentVariable: Check = (value, path, report) => {
  members({ $patch: directive, name: text, value: text, valueFrom: table })(value, path, report)
  const name = tableOf(value)['name']
  if (typeof name !== 'string') report(path, '`name` is missing', 'The name identifies the variable.')
  else if (ownVariables.includes(name) || isLoaderVariable(name))
    report(path, `Variable \`${name}\` cannot be set`, 'It determines which code the agent runs, or which agent it is.')
}

const mount: Check = (value, path, report) => {
  if (isOwnVolume(tableOf(value)['name']) || tableOf(value)['$patch'] !== undefined)
    return report(path, "Penstock's own mounts cannot be patched", 'Add a volume of your own.')
  members({ name: text, mountPath: text, readOnly: flag, subPath: text })(value, path, report)
}

const foreignMount: Check = (value, path, report) => {
  if (isOwnVolume(tableOf(value)['name']))
    return report(path, "Penstock's own volumes are only for the agent", 'Use another volume.')
  members({ name: text, mountPath: text, readOnly: flag, subPath: text })(value, path, report)
}

const agentContainer = members(
  {
    name: text,
    env: each(agentVariable),
    resources: nullable(table),
    readinessProbe: table,
    startupProbe: table,
    terminationMessagePolicy: text,
    volumeMounts: each(mount),
  },
  { image: 'Set `spec.image`.', imagePullPolicy: 'Set `spec.image.pullPolicy`.' },
)

const noMore = 'An additional container must not have more rights than the agent.'
const foreignContext = members({
  allowPrivilegeEscalation: only(false, noMore),
  privileged: only(false, noMore),
  runAsNonRoot: only(true, noMore),
  runAsUser: not([0], number, noMore),
  runAsGroup: number,
  readOnlyRootFilesystem: flag,
  capabilities: members({ drop: each(text) }, { add: noMore }),
  seccompProfile: members({ type: not(['Unconfined'], text, noMore), localhostProfile: text }),
  appArmorProfile: members({ type: not(['Unconfined'], text, noMore), localhostProfile: text }),
})

const foreignContainer = members({
  name: text,
  image: text,
  imagePullPolicy: text,
  command: each(text),
  args: each(text),
  workingDir: text,
  env: openEntries,
  envFrom: openEntries,
  ports: each(members({ name: text, containerPort: number, protocol: text }, { hostPort: noMore, hostIP: noMore })),
  resources: table,
  restartPolicy: text,
  lifecycle: table,
  livenessProbe: table,
  readinessProbe: table,
  startupProbe: table,
  terminationMessagePath: text,
  terminationMessagePolicy: text,
  volumeMounts: each(foreignMount),
  securityContext: foreignContext,
})

const container: Check = (value, path, report) => {
  const { name } = tableOf(value)
  if (typeof name !== 'string') report(path, '`name` is missing', 'The name identifies the container.')
  else if (isOwnContainer(name)) agentContainer(value, path, report)
  else foreignContainer(value, path, report)
}

const projectedSource = members(
  { configMap: table, downwardAPI: table, secret: table },
  { serviceAccountToken: "The agent's account is only for the agent." },
)

const volume = ({ spec: { mode } }: Pick<Agent, 'spec'>): Check => {
  const folder = mode === 'Node' ? 'Set `spec.node.logPaths.extraReadOnly`.' : 'Only Node agents read the node.'
  const kinds = members(
    {
      name: text,
      configMap: table,
      downwardAPI: table,
      emptyDir: table,
      ephemeral: table,
      persistentVolumeClaim: table,
      projected: members({ defaultMode: number, sources: each(projectedSource) }),
      secret: table,
    },
    { hostPath: folder, $patch: 'Volumes cannot be removed: you can only add volumes.' },
  )
  return (value, path, report) => {
    const { name } = tableOf(value)
    if (isOwnVolume(name)) report(path, `Volume \`${name}\` is Penstock's own`, 'Use another name.')
    else kinds(value, path, report)
  }
}

const isOwnKey = (key: string) =>
  key.startsWith('penstock.dev/') || key.startsWith('app.kubernetes.io/')
    ? "It is Penstock's own: use another key."
    : undefined

const security = "It is part of the agent's security."

/** The fields of a pod template that users may set; all others are rejected. */
const templateOf = (agent: Pick<Agent, 'spec'>): Check =>
  members({
    metadata: members({ labels: mapOf(text, isOwnKey), annotations: mapOf(text, isOwnKey) }),
    spec: members(
      {
        affinity: nullable(table),
        containers: each(container),
        dnsConfig: table,
        dnsPolicy: text,
        enableServiceLinks: flag,
        hostAliases: entries({ ip: text, hostnames: each(text) }),
        imagePullSecrets: entries({ name: text }),
        initContainers: each(container),
        nodeSelector: mapOf(text, (key) => (key === 'kubernetes.io/os' ? 'Agents run on Linux.' : undefined)),
        preemptionPolicy: text,
        priorityClassName: nullable(text),
        runtimeClassName: text,
        schedulerName: text,
        terminationGracePeriodSeconds: number,
        tolerations: nullable(openEntries),
        topologySpreadConstraints: nullable(openEntries),
        volumes: each(volume(agent)),
      },
      { hostNetwork: security, serviceAccountName: security, securityContext: security },
    ),
  })

/** The fields that `podTemplate` of an Agent must not have. */
export function podTemplateProblems(agent: Pick<Agent, 'spec'>): Problem[] {
  const problems: Problem[] = []
  if (agent.spec.podTemplate === undefined) return problems
  templateOf(agent)(agent.spec.podTemplate, 'podTemplate', (path, message, help) => {
    problems.push({ severity: 'error', path, message, help })
  })
  return problems
}
