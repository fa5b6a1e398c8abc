// The processors that add the origin of a record: `k8sattributes` uses the metadata of the source of pod logs, and `resourcedetection`
// adds metadata of the machine.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { readReport, variableRead } from '../environment.ts'
import type { Context, Mapping, Part } from './mapping.ts'
import { fieldAt } from './record.ts'
import { regexLiteral } from './text.ts'

type Steps = readonly Step[]

const account = 'the agent uses its service account'
const owner = (kind: string) => [`if starts_with(owner, "${kind}/") { name = replace(owner, r'^${kind}/', "") }`]

/** Lines that set `name` to the value of an attribute, by attribute name. A single text is an expression. */
const facts: Readonly<Record<string, string | readonly string[]>> = {
  'k8s.namespace.name': '%orchestrator.pod_namespace',
  'k8s.pod.name': '%orchestrator.pod_name',
  'k8s.pod.uid': '%orchestrator.pod_uid',
  'k8s.pod.ip': '%orchestrator.pod_ip',
  'k8s.node.name': '%orchestrator.pod_node_name',
  'k8s.container.name': '%orchestrator.container_name',
  'container.id': ['if container != "" { name = replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', "") }'],
  'container.image.name': ['if image != "" { name = replace(image, r\'@.*$|:[^:/]*$\', "") }'],
  'container.image.tag': [
    'tag = replace(image, r\'@.*$\', "")',
    "if match(tag, r':[^:/]*$') { name = replace(tag, r'^.*:', \"\") }",
  ],
  'container.image.tags': [
    'tag = replace(image, r\'@.*$\', "")',
    "if match(tag, r':[^:/]*$') { name = [replace(tag, r'^.*:', \"\")] }",
  ],
  'container.image.repo_digests': [
    'if %orchestrator.container_image_id != null { name = [%orchestrator.container_image_id] }',
  ],
  'k8s.deployment.name': [
    "if match(owner, r'^ReplicaSet/.*-[a-z0-9]+$') { name = replace(replace(owner, r'^ReplicaSet/', \"\"), r'-[a-z0-9]+$', \"\") }",
  ],
  'k8s.replicaset.name': owner('ReplicaSet'),
  'k8s.daemonset.name': owner('DaemonSet'),
  'k8s.statefulset.name': owner('StatefulSet'),
  'k8s.job.name': owner('Job'),
  'k8s.cronjob.name': [
    "if match(owner, r'^Job/.*-[0-9]+$') { name = replace(replace(owner, r'^Job/', \"\"), r'-[0-9]+$', \"\") }",
  ],
}

const metadataByDefault = [
  'k8s.namespace.name',
  'k8s.pod.name',
  'k8s.pod.uid',
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

/** Rules that extract labels or annotations. */
function ruleLines(part: Part, option: 'labels' | 'annotations', context: Context): string[] {
  return part.tables(`extract.${option}`).flatMap((table, index) => {
    const rule = part.within(['extract', option, index], table, part.id)
    const from = rule.text('from') ?? 'pod'
    const source = sources[`${from} ${option}`]
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
    const prefix = `k8s.${from}.${option}.`
    if (rule.has('regex')) {
      context.gap(
        rule.place(['regex']),
        `${part.id}: regex`,
        'only a part of the value is used, which is not supported',
        'Use `parse_regex` in a remap transform.',
      )
    }
    if (key !== undefined) {
      const to = fieldAt(['resource', 'attributes', rule.text('tag_name') ?? `${prefix}${key}`])
      const at = `%orchestrator.${source}.${textLiteral(key)}`
      return [`if ${at} != null { ${to} = ${at} }`]
    }
    if (regex === undefined) return []
    const name = rule.text('tag_name')
    const made =
      name === undefined
        ? `${textLiteral(prefix)} + key`
        : `replace(key, ${regexLiteral(`^(?:${regex})$`)}, ${textLiteral(name)})`
    return [
      `for_each(object(%orchestrator.${source}) ?? {}) -> |key, value| {`,
      `  if match(key, ${regexLiteral(`^(?:${regex})$`)}) { .resource.attributes = set!(.resource.attributes, [${made}], value) }`,
      '}',
    ]
  })
}

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

export const k8sAttributes: Mapping<Steps> = {
  name: 'k8sattributes',
  becomes: 'a remap transform that uses the metadata of `orchestrator_logs`; records from other sources stay unchanged',
  options: {
    'extract.metadata': 'which metadata to add',
    'extract.labels': 'labels of the pod, its namespace or its node',
    'extract.annotations': 'annotations of the pod',
    'extract.otel_annotations': 'whether annotations `resource.opentelemetry.io/…` become attributes',
    'exclude.pods': 'records of pods whose names match stay unchanged',
  },
  itself: {
    auth_type: account,
    context: account,
    passthrough: account,
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
    if (!part.has('pod_association')) {
      const reason =
        'by default, the collector finds a pod by the address of the connection, which lines of files lack, so it added nothing'
      context.replaced(
        part.place(),
        `${part.id}: pod_association`,
        reason,
        'Remove the transform to keep records unchanged.',
      )
    }
    const wanted = part.has('extract.metadata') ? part.list('extract.metadata') : metadataByDefault
    const lines = [
      'if !exists(.resource.attributes) { .resource.attributes = {} }',
      'owner = string(%orchestrator.pod_owner) ?? ""',
      'image = string(%orchestrator.container_image) ?? ""',
      'container = string(%orchestrator.container_id) ?? ""',
    ]
    for (const [index, attribute] of wanted.entries()) {
      const known = Object.hasOwn(facts, attribute) ? facts[attribute] : undefined
      if (known === undefined) {
        context.gap(
          part.place(['extract', 'metadata', index]),
          `${part.id}: ${attribute}`,
          'the source does not read this value',
          `Remove it. The source reads ${Object.keys(facts).slice(0, 6).join(', ')} and more.`,
        )
        continue
      }
      const at = fieldAt(['resource', 'attributes', attribute])
      if (typeof known === 'string') lines.push(`if ${known} != null { ${at} = ${known} }`)
      else lines.push('name = null', ...known, `if name != null { ${at} = name }`)
    }
    lines.push(...ruleLines(part, 'labels', context), ...ruleLines(part, 'annotations', context))
    if (part.flag('extract.otel_annotations', false)) {
      lines.push(
        'for_each(object(%orchestrator.pod_annotations) ?? {}) -> |key, value| {',
        '  name = replace(key, r\'^resource\\.opentelemetry\\.io/\', "")',
        '  if name != key { .resource.attributes = set!(.resource.attributes, [name], value) }',
        '}',
      )
    }
    const needed = (name: string) =>
      lines.slice(4).some((line) => new RegExp(`\\b${name}\\b`).test(line.replace(/"[^"]*"/g, '')))
    const used = lines.filter((line) => {
      const name = /^(owner|image|container) = /.exec(line)?.[1]
      return name === undefined || needed(name)
    })
    const excluded = excludedPods(part)
    const text = excluded === undefined ? used : [`if !${excluded} {`, ...used.map((line) => `  ${line}`), '}']
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

export const resourceDetection: Mapping<Steps> = {
  name: 'resourcedetection',
  becomes: 'a remap transform with the name of the node; a gap for metadata of a cloud',
  options: {
    detectors:
      '`host.name` and `os.type` for `system`, `k8s.node.name` for `k8snode`, the environment of the agent for `env`',
    override: 'whether to replace existing attributes',
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
      'host.name': '%orchestrator.pod_node_name',
      'k8s.node.name': '%orchestrator.pod_node_name',
      'os.type': '"linux"',
    }
    const keeps = !part.flag('override', true)
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
          reason: isVariable ? noVariable : 'Penstock does not look up metadata of the machine',
          nearest: 'Set the attributes in `.resource.attributes` in a remap transform.',
          isHere: isVariable,
        }
        context.missing(part.place(['detectors', index]), `${part.id}: ${detector}`, refusal, 'detector')
      }
      return (known ?? []).map((attribute) => {
        const at = fieldAt(['resource', 'attributes', attribute])
        const value = values[attribute] ?? 'null'
        const tests = [...(value.startsWith('"') ? [] : [`${value} != null`]), ...(keeps ? [`!exists(${at})`] : [])]
        return tests.length === 0 ? `${at} = ${value}` : `if ${tests.join(' && ')} { ${at} = ${value} }`
      })
    })
    return lines.length === 0 ? [] : [{ type: 'remap', text: [...new Set(lines)].join('\n') }]
  },
}
