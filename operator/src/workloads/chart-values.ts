// The values of the chart, each declared once: name, default, text and form. values.yaml, values.schema.json and the table in the
// chart's README are generated from this list.

import { ownJobs } from './dashboards.ts'

interface Form {
  readonly [keyword: string]: unknown
}

export interface ChartValue {
  /** Path from the root, such as `webhook.failurePolicy`. */
  readonly name: string
  readonly fallback: unknown
  readonly about: string
  readonly form: Form
}

const value = (name: string, fallback: unknown, form: Form, about: string): ChartValue => ({
  name,
  fallback,
  about,
  form,
})

const text: Form = { type: 'string' }
const flag: Form = { type: 'boolean' }
const count: Form = { type: 'integer', minimum: 0 }
const open: Form = { type: 'object', additionalProperties: true }
const texts: Form = { type: 'object', additionalProperties: { type: 'string' } }
const names: Form = { type: 'array', items: { type: 'string' } }
const objects: Form = { type: 'array', items: { type: 'object', additionalProperties: true } }
const metricPrefix: Form = { type: 'string', pattern: '^([a-zA-Z_:][a-zA-Z0-9_:]*)?$' }
const digest: Form = { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' }
const choice = (...values: string[]): Form => ({ type: 'string', enum: values })
const dnsName = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'
const named = (more: Record<string, Form> = {}): Form => ({
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['name', 'spec'],
    properties: { name: { type: 'string', pattern: dnsName }, labels: texts, annotations: texts, ...more, spec: open },
  },
})

const chartValues: readonly ChartValue[] = [
  value('image.repository', 'penstock/operator', text, 'Image of the operator.'),
  value('image.tag', '', text, 'Its tag; if empty, the version of the chart.'),
  value('image.digest', '', digest, 'Its digest, such as `sha256:…`; overrides the tag.'),
  value('image.pullPolicy', 'IfNotPresent', choice('Always', 'IfNotPresent', 'Never'), 'When to pull the image.'),
  value('agentImage.repository', 'penstock/agent', text, 'Image of agents that do not set one.'),
  value('agentImage.tag', '', text, 'Its tag; if empty, the version of the chart.'),
  value('agentImage.digest', '', digest, 'Its digest, such as `sha256:…`; overrides the tag.'),
  value(
    'imagePullSecrets',
    [],
    { type: 'array', items: { type: 'object', additionalProperties: false, properties: { name: text } } },
    "Secrets for pulling the operator's image.",
  ),
  value('replicas', 2, count, 'Number of operator replicas. One of them leads; all serve webhooks and agents.'),
  value(
    'leaderElection.enabled',
    true,
    flag,
    'Whether operators elect a leader. If disabled, only one replica is allowed.',
  ),
  value(
    'watch.namespaces',
    [],
    names,
    'Namespaces whose resources are used; all if empty. Listing namespaces disables Cluster kinds.',
  ),
  value('watch.selector', '', text, 'Label selector for the namespaces whose resources are used.'),
  value('agentNamespaces', [], names, 'Namespaces in which Agents may have mode Node; if empty, that of the release.'),
  value(
    'tenantAgents.enabled',
    false,
    flag,
    "Whether Agents of mode Aggregator and Sidecar are allowed in every namespace. The operator may then create pods and read and write Secrets in all namespaces, including kube-system: control over the operator means control over the cluster. A RoleBinding in each namespace with Agents grants less; see the guide's page on rights.",
  ),
  value(
    'secrets.mode',
    'All',
    choice('All', 'Label', 'Namespaced'),
    'Which Secrets may be used: all, those labelled `penstock.dev/allow: "true"`, or those in namespaces where the platform has bound `penstock-operator-secrets`.',
  ),
  value('clusterName', '', text, 'Name of the cluster, for `valueFrom.fieldRef` with `clusterName`.'),
  value(
    'heartbeatPeriod',
    '30s',
    text,
    'Interval between reports of an agent. An agent that misses three reports counts as lost.',
  ),
  value('logLevel', 'info', choice('trace', 'debug', 'info', 'warn', 'error'), 'Log level of the operator.'),
  value(
    'authorizeClusterPipelines',
    false,
    flag,
    'Whether the user who applies a ClusterPipeline needs the verb `collect` on `logs` of `penstock.dev`. Needs the webhooks.',
  ),
  value(
    'resources',
    { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '512Mi' } },
    open,
    'Resources of the operator.',
  ),
  value(
    'podSecurityContext',
    { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    open,
    "Security context of the operator's pods.",
  ),
  value(
    'securityContext',
    { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
    open,
    "Security context of the operator's container.",
  ),
  value('nodeSelector', {}, texts, 'Nodes for the operator.'),
  value('tolerations', [], objects, 'Tolerations of the operator.'),
  value('affinity', {}, open, "Affinity of the operator's pods."),
  value('topologySpreadConstraints', [], objects, "Topology spread of the operator's replicas; over nodes if empty."),
  value('priorityClassName', '', text, "Priority of the operator's pods."),
  value(
    'podDisruptionBudget.enabled',
    true,
    flag,
    'Whether a PodDisruptionBudget allows the eviction of only one operator at a time.',
  ),
  value(
    'networkPolicy.enabled',
    true,
    flag,
    'Whether to create NetworkPolicies for the operator, and for every Agent without its own setting, which only allow traffic to their own ports. No effect if the cluster network does not enforce them.',
  ),
  value(
    'networkPolicy.allowMetadataServices',
    false,
    flag,
    'Whether agents may connect to the metadata services of clouds, which provide credentials of the node, or of the pod on some clouds.',
  ),
  value(
    'metrics.token.create',
    true,
    flag,
    'Whether to create a ServiceAccount that may only read `/metrics`, with its token in the Secret `penstock-metrics`, which the monitors use.',
  ),
  value(
    'metrics.service.enabled',
    true,
    flag,
    "Whether to create a Service for the operator's metrics; a ServiceMonitor also creates it.",
  ),
  value('metrics.serviceMonitor.enabled', false, flag, 'Whether to create a ServiceMonitor for the operator.'),
  value('metrics.serviceMonitor.labels', {}, texts, 'Its labels.'),
  value('metrics.serviceMonitor.interval', '30s', text, 'Time between scrapes.'),
  value('metrics.podMonitor.enabled', false, flag, 'Whether to create a PodMonitor for the operator instead.'),
  value('metrics.podMonitor.labels', {}, texts, 'Its labels.'),
  value('metrics.podMonitor.interval', '30s', text, 'Time between scrapes.'),
  value('metrics.prometheusRule.enabled', false, flag, 'Whether to create alert rules.'),
  value('metrics.prometheusRule.labels', {}, texts, 'Their labels.'),
  value(
    'metrics.prometheusRule.jobs',
    ownJobs,
    text,
    'Regular expression for the label `job` in the series of operator and agents; the default matches the generated monitors.',
  ),
  value(
    'metrics.prometheusRule.metricPrefix',
    '',
    metricPrefix,
    "Prefix of the agents' metric names: `spec.monitoring.metricPrefix` of the Agents, if set.",
  ),
  value(
    'metrics.prometheusRule.runbooks',
    '',
    text,
    'Address of the folder with this guide, such as `https://git.example.com/penstock/operator/guide/`, for `runbook_url` of the alerts.',
  ),
  value('metrics.dashboards.enabled', false, flag, 'Whether to create dashboards, each in a ConfigMap.'),
  value('metrics.dashboards.jobs', ownJobs, text, 'The same as `metrics.prometheusRule.jobs`.'),
  value('metrics.dashboards.metricPrefix', '', metricPrefix, 'The same as `metrics.prometheusRule.metricPrefix`.'),
  value(
    'metrics.dashboards.labels',
    { grafana_dashboard: '1' },
    texts,
    'Labels with which Grafana finds the dashboards.',
  ),
  value(
    'webhook.enabled',
    true,
    flag,
    'Whether to use webhooks, which validate resources when they are applied, and add sidecars. All other features work without them.',
  ),
  value(
    'webhook.replicas',
    0,
    count,
    'Replicas of a separate Deployment for webhooks. If 0, the operators serve them.',
  ),
  value(
    'webhook.failurePolicy',
    'Ignore',
    choice('Ignore', 'Fail'),
    'How the API server treats resources while no webhook is available.',
  ),
  value(
    'webhook.certManager.enabled',
    false,
    flag,
    'Whether cert-manager, rather than the operator, issues the certificates.',
  ),
  value('webhook.certManager.issuerRef', {}, open, 'Its issuer; self-signed if empty.'),
  value(
    'webhook.clientCertificate.secret',
    '',
    text,
    'Secret in the release namespace with `ca.crt`: the authority of the client certificate that the API server must present to the webhooks, in addition to their secret paths. The API server must be configured to present one. If empty, none is required.',
  ),
  value(
    'webhook.clientCertificate.names',
    [],
    names,
    'Names, one of which the client certificate must have as its common name or DNS name; any if empty.',
  ),
  value(
    'rbac.scope',
    'Cluster',
    choice('Cluster', 'Namespaced'),
    'Scope of the rights of operator and agents: `Namespaced` renders Roles in `watch.namespaces`, `agentNamespaces` and the namespace of the release, and no ClusterRole. It needs `watch.namespaces` and `webhook.enabled=false`.',
  ),
  value(
    'rbac.aggregate',
    true,
    flag,
    "Whether the cluster's roles view, edit and admin include Pipelines, Sources, Sinks and Agents.",
  ),
  value(
    'rbac.removeOldBindings',
    false,
    flag,
    'Whether the operator may delete any ClusterRoleBinding, to remove those that releases up to 0.1 created for each Agent. Enable it only for one upgrade. Alternatively, run `kubectl delete clusterrolebindings -l app.kubernetes.io/managed-by=penstock,penstock.dev/agent-namespace`.',
  ),
  value(
    'podSecurity.labelNamespace',
    false,
    flag,
    'Whether to render the namespace of the release with Pod Security level `privileged`, which Node agents need for `hostPath`. `helm install` then needs `--take-ownership`.',
  ),
  value(
    'openshift.enabled',
    false,
    flag,
    'Whether to create a SecurityContextConstraints for Node agents, and its binding.',
  ),
  value('crds.install', true, flag, 'Whether the CRDs are part of this release.'),
  value('crds.keep', true, flag, 'Whether CRDs, and with them all resources, remain after the release is uninstalled.'),
  value(
    'agents',
    [
      {
        name: 'node',
        spec: { mode: 'Node', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } } },
      },
    ],
    named({ namespace: text }),
    'Agents created with the release. The default is one on every node for all namespaces, so that users only add Pipelines.',
  ),
  value('clusterSinks', [], named(), 'ClusterSinks created with the release.'),
  value('clusterPipelines', [], named(), 'ClusterPipelines created with the release.'),
  value('tenantPolicies', [], named(), 'TenantPolicies created with the release.'),
  value('extraObjects', [], objects, 'Additional objects of any kind.'),
  value('commonLabels', {}, texts, 'Labels of all objects.'),
  value('commonAnnotations', {}, texts, 'Annotations of all objects.'),
]

interface Tree {
  [name: string]: Tree | ChartValue
}

const isValue = (entry: Tree | ChartValue): entry is ChartValue => typeof entry['name'] === 'string' && 'form' in entry

function treeOf(values: readonly ChartValue[]): Tree {
  const root: Tree = {}
  for (const one of values) {
    const keys = one.name.split('.')
    let at = root
    for (const key of keys.slice(0, -1)) {
      at[key] ??= {}
      at = at[key] as Tree
    }
    at[keys.at(-1) as string] = one
  }
  return root
}

/** values.yaml, with a description above each value. */
export function valuesFile(): string {
  const lines = ['# Values of the chart. Generated from operator/src/workloads/chart-values.ts.']
  const write = (tree: Tree, indent: string) => {
    for (const [key, entry] of Object.entries(tree)) {
      if (indent === '') lines.push('')
      if (isValue(entry)) {
        // JSON is valid YAML: one line for each value of any form.
        lines.push(`${indent}# ${entry.about}`, `${indent}${key}: ${JSON.stringify(entry.fallback)}`)
      } else {
        lines.push(`${indent}${key}:`)
        write(entry, `${indent}  `)
      }
    }
  }
  write(treeOf(chartValues), '')
  return `${lines.join('\n')}\n`
}

/** values.schema.json: undeclared values are rejected. */
export function valuesSchema(): string {
  const schemaOf = (tree: Tree): object => ({
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      Object.entries(tree).map(([key, entry]) => [
        key,
        isValue(entry) ? { description: entry.about, default: entry.fallback, ...entry.form } : schemaOf(entry),
      ]),
    ),
  })
  const root = treeOf(chartValues)
  const schema = schemaOf(root) as { properties: Record<string, object> }
  // Helm puts these two there.
  schema.properties['global'] = { type: 'object' }
  return `${JSON.stringify({ $schema: 'http://json-schema.org/draft-07/schema#', title: 'Values of the penstock chart', ...schema }, undefined, 2)}\n`
}

/** The table of the chart's README. */
export function valuesTable(): string {
  const cell = (entry: unknown) => JSON.stringify(entry).replaceAll('|', '\\|')
  const rows = chartValues.map(({ name, fallback, about }) => `| \`${name}\` | \`${cell(fallback)}\` | ${about} |`)
  return ['| Value | Default | Description |', '|---|---|---|', ...rows].join('\n')
}
