// The processors that add the origin of a record: `k8sattributes` uses the metadata of the source of pod logs, and `resourcedetection`
// adds metadata of the machine.

import { textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Step } from '../draft.ts'
import { nodeRead, readReport, variableRead } from '../environment.ts'
import type { Context, Mapping, Part } from './mapping.ts'
import { fieldAt } from './record.ts'
import { regexLiteral } from './text.ts'

type Steps = readonly Step[]

const account = 'the agent uses its service account'
const owner = (kind: string) => [`if starts_with(owner, "${kind}/") { name = replace(owner, r'^${kind}/', "") }`]

const cronJob =
  "if match(owner, r'^Job/.*-[0-9]+$') { name = replace(replace(owner, r'^Job/', \"\"), r'-[0-9]+$', \"\") }"
const deployment =
  "if match(owner, r'^ReplicaSet/.*-[a-z0-9]+$') { name = replace(replace(owner, r'^ReplicaSet/', \"\"), r'-[a-z0-9]+$', \"\") }"

const tag = [
  'tag = replace(image, r\'@.*$\', "")',
  'tag = if match(tag, r\':[^:/]*$\') { replace(tag, r\'^.*:\', "") } else { "" }',
]

/** The collector reads an image without a tag as its latest one. */
const latest = 'if tag == "" { tag = "latest" }'

/**
 * Lines that set `name` to the value of an attribute, by attribute name. A single text is an expression. The values of a container give
 * way to those of its pod.
 */
const ofContainers: Readonly<Record<string, string | readonly string[]>> = {
  'k8s.container.name': '%orchestrator.container_name',
  'container.id': ['if container != "" { name = replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', "") }'],
  'container.image.name': ['if image != "" { name = replace(image, r\'(?::[^:/@]*)?(?:@.*)?$\', "") }'],
  'container.image.tag': [...tag, latest, 'if image != "" { name = tag }'],
  'container.image.tags': [...tag, latest, 'if image != "" { name = [tag] }'],
  'container.image.repo_digests': [
    'if %orchestrator.container_image_id != null { name = [%orchestrator.container_image_id] }',
  ],
  'service.version': [
    ...tag,
    'digest = if contains(image, "@") { replace(image, r\'^.*@\', "") } else { "" }',
    'name = if tag != "" && digest != "" { tag + "@" + digest } else { tag + digest }',
    'if name == "" { name = null }',
  ],
  'service.instance.id': [
    'name = join!(compact([string(%orchestrator.pod_namespace) ?? "", string(%orchestrator.pod_name) ?? "", string(%orchestrator.container_name) ?? ""]), ".")',
  ],
}

const ofPods: Readonly<Record<string, string | readonly string[]>> = {
  'k8s.namespace.name': '%orchestrator.pod_namespace',
  'k8s.pod.name': '%orchestrator.pod_name',
  'k8s.pod.uid': '%orchestrator.pod_uid',
  'k8s.pod.ip': '%orchestrator.pod_ip',
  'k8s.pod.start_time': '%orchestrator.pod_creation_timestamp',
  'k8s.node.name': '%orchestrator.pod_node_name',
  'k8s.deployment.name': [deployment],
  'k8s.replicaset.name': owner('ReplicaSet'),
  'k8s.daemonset.name': owner('DaemonSet'),
  'k8s.statefulset.name': owner('StatefulSet'),
  'k8s.job.name': owner('Job'),
  'k8s.cronjob.name': [cronJob],
  'service.namespace': '%orchestrator.pod_namespace',
  'service.name': [
    'name = %orchestrator.pod_name',
    ...['ReplicaSet', 'DaemonSet', 'StatefulSet', 'Job'].flatMap(owner),
    deployment,
    cronJob,
  ],
}

const facts: Readonly<Record<string, string | readonly string[]>> = { ...ofContainers, ...ofPods }

/** Labels with the values of attributes, the last of which wins. They replace those of the pod and of its container. */
const ofLabels: Readonly<Record<string, readonly string[]>> = {
  'service.name': ['app.kubernetes.io/name', 'app.kubernetes.io/instance'],
  'service.version': ['app.kubernetes.io/version'],
}

const metadataByDefault = [
  'k8s.namespace.name',
  'k8s.pod.name',
  'k8s.pod.uid',
  'k8s.pod.start_time',
  'k8s.deployment.name',
  'k8s.node.name',
  'container.image.name',
  'container.image.tag',
]

const sources: Readonly<Record<string, string>> = {
  'pod labels': 'pod_labels',
  'pod annotations': 'pod_annotations',
  'namespace labels': 'namespace_labels',
  'node labels': 'node_labels',
}

/** The beginning of the name of an attribute without a name of its own. It has a singular since semantic conventions of 2025. */
function prefixOf(from: string, option: 'labels' | 'annotations', context: Context): string {
  const [older, newer] = [`k8s.${from}.${option}.`, `k8s.${from}.${option.slice(0, -1)}.`]
  return context.mentions(newer) && !context.mentions(older) ? newer : older
}

/** The value of a label or an annotation, or the part of it that a rule names. */
function ruleValue(rule: Part, at: string): string {
  const regex = rule.text('regex')
  if (regex === undefined) return at
  return `(string(get(parse_regex(string(${at}) ?? "", ${regexLiteral(regex)}) ?? {}, ["value"]) ?? null) ?? "")`
}

/** Rules that extract labels or annotations, of pods or of other objects. */
function ruleLines(part: Part, option: 'labels' | 'annotations', isOfPods: boolean, context: Context): string[] {
  return part.tables(`extract.${option}`).flatMap((table, index) => {
    const rule = part.within(['extract', option, index], table, part.id)
    const from = rule.text('from') ?? 'pod'
    if ((from === 'pod') !== isOfPods) return []
    const source = Object.hasOwn(sources, `${from} ${option}`) ? sources[`${from} ${option}`] : undefined
    if (source === undefined) {
      context.gap(
        rule.place(),
        `${part.id}: ${option} of ${from}`,
        `the source does not read the ${option} of a ${from}`,
        'Put the value into a label of the pod.',
      )
      return []
    }
    const key = rule.text('key')
    const regex = rule.text('key_regex')
    const prefix = prefixOf(from, option, context)
    if (key !== undefined) {
      const to = `known.${textLiteral(rule.text('tag_name') || `${prefix}${key}`)}`
      const at = `%orchestrator.${source}.${textLiteral(key)}`
      return [`if ${at} != null { ${to} = ${ruleValue(rule, at)} }`]
    }
    if (regex === undefined) return []
    const name = rule.text('tag_name') || undefined
    const made =
      name === undefined
        ? `${textLiteral(prefix)} + key`
        : `replace(key, ${regexLiteral(`^(?:${regex})$`)}, ${textLiteral(name)})`
    return [
      `for_each(object(%orchestrator.${source}) ?? {}) -> |key, value| {`,
      `  if match(key, ${regexLiteral(`^(?:${regex})$`)}) { known = set!(known, [${made}], ${ruleValue(rule, 'value')}) }`,
      '}',
    ]
  })
}

/** Lines for the attributes of `all` that are wanted. */
function factLines(all: typeof facts, wanted: readonly string[]): string[] {
  return wanted.flatMap((attribute) => {
    const known = Object.hasOwn(all, attribute) ? all[attribute] : undefined
    if (known === undefined) return []
    const at = `known.${textLiteral(attribute)}`
    return typeof known === 'string'
      ? [`if ${known} != null { ${at} = ${known} }`]
      : ['name = null', ...known, `if name != null { ${at} = name }`]
  })
}

/** Annotations whose names name attributes. */
const ownAnnotations = [
  'for_each(object(%orchestrator.pod_annotations) ?? {}) -> |key, value| {',
  '  name = replace(key, r\'^resource\\.opentelemetry\\.io/\', "")',
  '  if name != key { known = set!(known, [name], value) }',
  '}',
]

/** Statements that collect attributes in `known`. Later ones win. */
function knownLines(part: Part, context: Context): string[] {
  const wanted = part.has('extract.metadata') ? part.list('extract.metadata') : metadataByDefault
  for (const [index, attribute] of wanted.entries()) {
    if (Object.hasOwn(facts, attribute)) continue
    context.gap(
      part.place(['extract', 'metadata', index]),
      `${part.id}: ${attribute}`,
      'the source does not read this value',
      `Remove it. The source reads ${Object.keys(ofPods).slice(0, 6).join(', ')} and more.`,
    )
  }
  if (wanted.includes('k8s.pod.start_time')) context.readCreation()
  const labelLines = wanted.flatMap((attribute) =>
    (Object.hasOwn(ofLabels, attribute) ? (ofLabels[attribute] ?? []) : []).map((label) => {
      const at = `%orchestrator.pod_labels.${textLiteral(label)}`
      return `if ${at} != null { known.${textLiteral(attribute)} = ${at} }`
    }),
  )
  return [
    ...ruleLines(part, 'labels', false, context),
    ...ruleLines(part, 'annotations', false, context),
    ...factLines(ofContainers, wanted),
    ...factLines(ofPods, wanted),
    ...ruleLines(part, 'labels', true, context),
    ...labelLines,
    ...ruleLines(part, 'annotations', true, context),
    ...(part.flag('extract.otel_annotations', false) ? ownAnnotations : []),
  ]
}

/** Variables that lines may read. */
const variables: Readonly<Record<string, string>> = {
  owner: 'owner = string(%orchestrator.pod_owner) ?? ""',
  image: 'image = string(%orchestrator.container_image) ?? ""',
  container: 'container = string(%orchestrator.container_id) ?? ""',
}

/** Whether an association uses attributes of records. Addresses of connections have no lines of files. */
const isByAttribute = (part: Part) =>
  (JSON.stringify(part.get('pod_association')) ?? '').includes('"resource_attribute"')

/** Pods that the collector ignores by default. */
const excludedByDefault = ['jaeger-agent', 'jaeger-collector']

/** A condition for pods without metadata. A pattern may match a part of the name. */
function excludedPods(part: Part): string | undefined {
  if (!part.has('exclude')) return undefined
  const given = part.tables('exclude.pods').flatMap(({ name }) => (name === undefined ? [] : [String(name)]))
  const patterns = part.has('exclude.pods') ? given : excludedByDefault
  if (patterns.length === 0) return undefined
  const name = 'string(%orchestrator.pod_name) ?? ""'
  return `(${patterns.map((pattern) => `match(${name}, ${regexLiteral(pattern)})`).join(' || ')})`
}

/** Conditions for the labels of pods with metadata. */
function labelTests(part: Part): string[] {
  return part.tables('filter.labels').flatMap(({ key, value, op }) => {
    if (key === undefined) return []
    const label = fieldAt(['pod_labels', String(key)]).replace(/^\./, '%orchestrator.')
    const text = textLiteral(String(value ?? ''))
    const tests: Readonly<Record<string, string>> = {
      'not-equals': `${label} != ${text}`,
      exists: `${label} != null`,
      'does-not-exist': `${label} == null`,
    }
    return [tests[String(op ?? '')] ?? `${label} == ${text}`]
  })
}

export const k8sAttributes: Mapping<Steps> = {
  name: 'k8sattributes',
  becomes: 'a remap transform that uses the metadata of `orchestrator_logs`; records from other sources stay unchanged',
  options: {
    'extract.metadata': 'which metadata to add',
    'extract.labels':
      'labels of the pod, its namespace or its node. Without `tag_name`, the attribute is `k8s.pod.labels.KEY`, or `k8s.pod.label.KEY` if the configuration uses only that newer name',
    'extract.annotations': 'annotations of the pod, with names as for labels',
    'extract.otel_annotations': 'whether annotations `resource.opentelemetry.io/…` become attributes',
    'filter.namespace': 'records of pods in other namespaces stay unchanged',
    'filter.labels': 'records of pods with other labels stay unchanged',
    'exclude.pods': 'records of pods whose names match stay unchanged',
    passthrough: 'whether to add nothing, because lines of files have no address of a connection',
  },
  itself: {
    auth_type: account,
    context: account,
    'filter.node_from_env_var': 'the source reads the pods of its node',
    'filter.node': 'the source reads the pods of its node',
    pod_association: 'the source determines the pod from the file',
    wait_for_metadata: 'lines wait for the metadata of their pod',
    wait_for_metadata_timeout: 'lines wait for the metadata of their pod',
    watch_sync_period: 'the source watches the pods of its node',
    pod_delete_grace_period: 'the source keeps the metadata of a pod until its files have been read',
    'extract.deployment_name_from_replicaset': 'the name of a Deployment comes from its ReplicaSet',
  },
  build: (part, context) => {
    // The collector only adds the address of a connection then.
    if (part.flag('passthrough', false)) return []
    if (!isByAttribute(part)) {
      const reason =
        'by default, the collector finds a pod by the address of the connection, which lines of files lack, so it added nothing'
      context.replaced(
        part.place(),
        `${part.id}: pod_association`,
        reason,
        'Remove the transform to keep records unchanged.',
      )
    }
    const lines = knownLines(part, context)
    if (lines.length === 0) return []
    const isUsed = (name: string) =>
      lines.some((line) => new RegExp(`(?<![.%])\\b${name}\\b`).test(line.replace(/"[^"]*"|r'[^']*'/g, '')))
    const used = [
      'known = {}',
      ...Object.entries(variables).flatMap(([name, line]) => (isUsed(name) ? [line] : [])),
      ...lines,
      '# Attributes that the record already has stay as they are.',
      'given = object(.resource.attributes) ?? {}',
      'kept = filter(given) -> |_key, value| { value != null && value != "" }',
      '.resource.attributes = merge(merge(given, known), kept)',
    ]
    const excluded = excludedPods(part)
    const namespace = part.text('filter.namespace')
    const tests = [
      ...(excluded === undefined ? [] : [`!${excluded}`]),
      ...(namespace === undefined ? [] : [`%orchestrator.pod_namespace == ${textLiteral(namespace)}`]),
      ...labelTests(part),
    ]
    const text = tests.length === 0 ? used : [`if ${tests.join(' && ')} {`, ...used.map((line) => `  ${line}`), '}']
    return [{ type: 'remap', text: text.join('\n'), comments: ["The pod metadata, with the collector's names."] }]
  },
}

const detectors: Readonly<Record<string, readonly string[]>> = {
  env: [],
  system: ['host.name', 'os.type'],
  k8snode: ['k8s.node.name'],
  k8s_node: ['k8s.node.name'],
}

const variable = 'OTEL_RESOURCE_ATTRIBUTES'
const noMachine = 'Penstock does not look up metadata of the machine'
const ownAttributes = 'Set the attributes in `.resource.attributes` in a remap transform.'
const noVariable = `programs of a namespaced Pipeline cannot read \`${variable}\``

/** Statements that set the attributes in the environment variable, as `key=value,key=value`. */
const environmentLines = (keeps: boolean): readonly string[] => [
  [
    `for_each(split(${variableRead(variable)}, ",")) -> |_index, pair| {`,
    "  found = parse_regex(pair, r'^\\s*(?P<key>[^=]+?)\\s*=\\s*(?P<value>.*?)\\s*$') ?? {}",
    '  key = string(found.key) ?? ""',
    `  if key != ""${keeps ? ' && (get(.resource.attributes, [key]) ?? null) == null' : ''} {`,
    '    .resource.attributes = set!(.resource.attributes, [key], decode_percent(string(found.value) ?? ""))',
    '  }',
    '}',
  ].join('\n'),
]

/** Statements for the name of the node; lines of files are of the host of the agent. */
const hostLines = ['host = %orchestrator.pod_node_name', 'if host == null { host = get_hostname() ?? null }']

export const resourceDetection: Mapping<Steps> = {
  name: 'resourcedetection',
  becomes: 'a remap transform with the name of the node; a gap for metadata of a cloud',
  options: {
    detectors:
      '`host.name` (the node of a pod, or the host of the agent for files) and `os.type` for `system`, `k8s.node.name` for `k8snode`, the environment of the agent for `env`',
    override: 'whether to replace existing attributes',
    'system.resource_attributes': 'whether to add `host.name` and `os.type`',
  },
  itself: {
    timeout: 'the transform sends no requests',
    refresh_interval: 'the transform sends no requests',
    'system.hostname_sources': 'the host name is the name of the node',
    'k8snode.auth_type': account,
    'k8snode.node_from_env_var': account,
    attributes: 'the detectors determine the attributes',
  },
  build: (part, context) => {
    const values: Readonly<Record<string, string>> = {
      'host.name': context.readsEnvironment ? 'host' : '%orchestrator.pod_node_name',
      'k8s.node.name': context.readsEnvironment ? nodeRead(true) : '%orchestrator.pod_node_name',
      'os.type': '"linux"',
    }
    const keeps = !part.flag('override', true)
    const isSystem = part.list('detectors').includes('system')
    const chosen = Object.entries(part.table('system.resource_attributes')).map(([name, given]) => ({
      name,
      isEnabled: String(isTable(given) ? given.enabled : undefined) === 'true',
    }))
    for (const { name, isEnabled } of chosen) {
      if (!isEnabled || !isSystem || (detectors.system ?? []).includes(name)) continue
      const place = part.place(['system', 'resource_attributes', name])
      context.missing(place, `${part.id}: ${name}`, { reason: noMachine, nearest: ownAttributes }, 'attribute')
    }
    const isOff = (attribute: string) => chosen.some(({ name, isEnabled }) => name === attribute && !isEnabled)
    const lines = part.list('detectors').flatMap((detector, index) => {
      const known = Object.hasOwn(detectors, detector) ? detectors[detector] : undefined
      if (detector === 'env' && context.readsEnvironment) {
        const { reason, nearest } = readReport(variable)
        context.replaced(part.place(['detectors', index]), `${part.id}: ${detector}`, reason, nearest)
        return environmentLines(keeps)
      }
      if (known === undefined || detector === 'env') {
        const isVariable = detector === 'env'
        const refusal = {
          reason: isVariable ? noVariable : noMachine,
          nearest: ownAttributes,
          isHere: isVariable,
        }
        context.missing(part.place(['detectors', index]), `${part.id}: ${detector}`, refusal, 'detector')
      }
      return (known ?? []).flatMap((attribute) => {
        if (detector === 'system' && isOff(attribute)) return []
        const at = fieldAt(['resource', 'attributes', attribute])
        const value = values[attribute] ?? 'null'
        const tests = [...(/^["(]/.test(value) ? [] : [`${value} != null`]), ...(keeps ? [`!exists(${at})`] : [])]
        const line = tests.length === 0 ? `${at} = ${value}` : `if ${tests.join(' && ')} { ${at} = ${value} }`
        return value === 'host' ? [...hostLines, line] : [line]
      })
    })
    return lines.length === 0 ? [] : [{ type: 'remap', text: [...new Set(lines)].join('\n') }]
  },
}
