// Pod metadata: the fields that `add_kubernetes_metadata` and autodiscovery add to events.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, type Part, textIn, textsIn } from '../loki/context.ts'
import { block, type Processor, when } from './processor.ts'

const own = "the source uses the agent's access to the API server"

export const addKubernetes: Processor = {
  name: 'add_kubernetes_metadata',
  becomes: 'a remap transform that uses the metadata of `orchestrator_logs`',
  options: {
    ...when,
    'labels.dedot': 'dots in the names of labels become `_`',
    'annotations.dedot': 'dots in the names of annotations become `_`',
    namespace: 'only pods of this namespace get metadata',
    include_annotations: 'which annotations to include',
    include_labels: 'which labels to include',
    exclude_labels: 'which labels to exclude',
    'add_resource_metadata.namespace.enabled': 'whether to add the labels of the namespace',
    'add_resource_metadata.deployment': 'whether to add the name of the deployment',
    'add_resource_metadata.node.enabled': 'whether to add the labels of the node',
    'add_resource_metadata.namespace.include_labels': 'which of them to include',
    'add_resource_metadata.namespace.exclude_labels': 'which of them to exclude',
    'add_resource_metadata.node.include_labels': 'which of them to include',
    'add_resource_metadata.node.exclude_labels': 'which of them to exclude',
  },
  itself: Object.fromEntries(
    [
      ...[
        'host',
        'node',
        'in_cluster',
        'kube_config',
        'kube_client_options',
        'kube_client_options.qps',
        'kube_client_options.burst',
        'scope',
        'matchers',
        'indexers',
        'default_matchers.enabled',
        'default_indexers.enabled',
        'cleanup_timeout',
        'sync_period',
      ],
      ...[
        'add_resource_metadata.namespace',
        'add_resource_metadata.node',
        'add_resource_metadata.cronjob',
        'use_kubelet',
        'enabled',
        'unique',
        'add_resource_metadata',
        'in_cluster.enabled',
        'use_kubeadm',
        'wait_for_metadata',
        'wait_for_metadata_timeout',
        'wait_for_metadata_retry_period',
        'identifier',
        'leader_lease',
        'include_pod_uid',
        'include_creator_metadata',
      ],
    ].map((name) => [name, own] as const),
  ),
  // Files that are not the logs of pods have no metadata. Filebeat leaves an event that has some already, such as from discovery.
  build: (part) => {
    const namespace = textIn(part, 'namespace') ?? ''
    const isIn = namespace === '' ? '' : ` && %orchestrator.pod_namespace == ${textLiteral(namespace)}`
    return [block(`!exists(.kubernetes) && is_object(%orchestrator)${isIn}`, podMetadata(part))]
  },
}

/** Statements that add the metadata of the pod. */
export function podMetadata(part: Part): readonly string[] {
  const labelsIn = (prefix: string): Labels => ({
    included: textsIn(part, `${prefix}include_labels`),
    excluded: textsIn(part, `${prefix}exclude_labels`),
  })
  const of = (kind: 'namespace' | 'node') =>
    flagIn(part, `add_resource_metadata.${kind}.enabled`) === false
      ? undefined
      : labelsIn(`add_resource_metadata.${kind}.`)
  const annotated = (name: string) => (flagIn(part, 'annotations.dedot') === false ? name : name.replaceAll('.', '_'))
  const annotations = textsIn(part, 'include_annotations').map((name) => [name, annotated(name)] as const)
  return kubernetesLines(annotations, flagIn(part, 'labels.dedot') !== false, {
    pod: labelsIn(''),
    namespace: of('namespace'),
    node: of('node'),
    deployment: flagIn(part, 'add_resource_metadata.deployment') !== false,
  })
}

/** Names of labels; without included ones, all are included. */
interface Labels {
  readonly included: readonly string[]
  readonly excluded: readonly string[]
}

const allLabels: Labels = { included: [], excluded: [] }

/** The object whose labels an event gets, with its field and the path in the event. */
const labelled = {
  pod: { field: '%orchestrator.pod_labels', path: '.kubernetes.labels' },
  namespace: { field: '%orchestrator.namespace_labels', path: '.kubernetes.namespace_labels' },
  node: { field: '%orchestrator.node_labels', path: '.kubernetes.node.labels' },
} as const

/** An expression for some labels; undefined if the event gets none. */
function labelsOf(field: string, labels: Labels | undefined): string | undefined {
  if (labels === undefined) return undefined
  const { included, excluded } = labels
  const list = (names: readonly string[]) => `[${names.map(textLiteral).join(', ')}]`
  const tests = [
    ...(included.length === 0 ? [] : [`includes(${list(included)}, key)`]),
    ...(excluded.length === 0 ? [] : [`!includes(${list(excluded)}, key)`]),
  ]
  return tests.length === 0 ? field : `filter(object(${field}) ?? {}) -> |key, _value| { ${tests.join(' && ')} }`
}

/** The fields of the container. */
const containerFields =
  '"id": replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', ""), "image": { "name": %orchestrator.container_image }'
const runtimeField = '"runtime": replace(string(%orchestrator.container_id) ?? "", r\'://.*$\', "")'

export const addDocker: Processor = {
  name: 'add_docker_metadata',
  becomes: 'a remap transform that sets `container` of pods; its name and labels are those of the container runtime',
  options: when,
  itself: Object.fromEntries(
    ['host', 'match_fields', 'match_pids', 'match_source', 'match_short_id', 'match_source_index', 'match_host_cgroup']
      .concat(['match_cgroup_prefix', 'cleanup_timeout', 'labels.dedot', 'ssl', 'cgroup_prefixes', 'hostfs'])
      .map((name) => [name, own] as const),
  ),
  build: () => [
    `if is_string(%orchestrator.container_id) { .container = merge(object(.container) ?? {}, { ${containerFields} }, deep: true) }`,
  ],
}

/** The lines of a program that sets `kubernetes` and `container` as Filebeat does; it adds the labels of namespace and node by default. */
function kubernetesLines(
  annotations: readonly (readonly [string, string])[],
  dedots: boolean,
  labels: Readonly<Record<'pod' | 'namespace' | 'node', Labels | undefined>> & { readonly deployment: boolean } = {
    pod: allLabels,
    namespace: allLabels,
    node: allLabels,
    deployment: true,
  },
): readonly string[] {
  const pod = labelsOf(labelled.pod.field, labels.pod)
  const namespace = labelsOf(labelled.namespace.field, labels.namespace)
  const node = labelsOf(labelled.node.field, labels.node)
  const isSet = 'value != null && value != {}'
  return [
    'given = { "kubernetes": .kubernetes, "container": .container }',
    '.kubernetes = filter({',
    '  "namespace": %orchestrator.pod_namespace,',
    ...(namespace === undefined ? [] : [`  "namespace_labels": ${namespace},`]),
    '  "pod": filter({ "name": %orchestrator.pod_name, "uid": %orchestrator.pod_uid, "ip": %orchestrator.pod_ip }) -> |_key, value| { value != null },',
    `  "node": filter({ "name": %orchestrator.pod_node_name${node === undefined ? '' : `, "labels": ${node}`} }) -> |_key, value| { ${isSet} },`,
    '  "container": filter({ "name": %orchestrator.container_name }) -> |_key, value| { value != null },',
    `  "labels": ${pod},`,
    `}) -> |_key, value| { ${isSet} }`,
    ...ownerLines(labels.deployment),
    ...(dedots
      ? (['pod', 'namespace', 'node'] as const)
          .filter((kind) => labels[kind] !== undefined)
          .map((kind) => labelled[kind].path)
          .map(
            (path) =>
              `if is_object(${path}) { ${path} = map_keys(object!(${path})) -> |key| { replace(key, ".", "_") } }`,
          )
      : []),
    ...annotations.map(
      ([name, written]) =>
        `if exists(${fieldOf2(name)}) { .kubernetes.annotations.${textLiteral(written)} = ${fieldOf2(name)} }`,
    ),
    `.container = { ${containerFields}, ${runtimeField} }`,
    // Other members that the event has already stay.
    ...['kubernetes', 'container'].map(
      (name) =>
        `if is_object(given.${name}) { .${name} = merge(object!(given.${name}), object!(.${name}), deep: true) }`,
    ),
  ]
}

/** Statements for the name of the owner. The name of a ReplicaSet is that of its Deployment and a hash. */
const ownerLines = (addsDeployment: boolean): readonly string[] => [
  'owner = split(string(%orchestrator.pod_owner) ?? "", "/")',
  'kind = downcase(string(owner[0]) ?? "")',
  'if includes(["replicaset", "statefulset", "daemonset", "job"], kind) {',
  '  .kubernetes = object(set(.kubernetes, [kind, "name"], owner[1]) ?? null) ?? .kubernetes',
  '}',
  ...(addsDeployment
    ? [
        'hash = "-" + (string(%orchestrator.pod_labels."pod-template-hash") ?? "")',
        'if kind == "replicaset" && hash != "-" && ends_with(string(owner[1]) ?? "", hash) {',
        '  .kubernetes.deployment.name = replace(string(owner[1]) ?? "", hash, "", count: 1)',
        '}',
      ]
    : []),
]

const fieldOf2 = (name: string): string => `%orchestrator.pod_annotations.${textLiteral(name)}`
