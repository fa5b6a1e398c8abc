// The values of the chart, each declared once: name, default, text and form. values.yaml, values.schema.json and the table in the
// chart's README come from this list.

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
  value('image.tag', '', text, 'Its tag; the version of the chart if empty.'),
  value('image.digest', '', digest, 'Its digest, such as `sha256:…`; goes before the tag.'),
  value('image.pullPolicy', 'IfNotPresent', choice('Always', 'IfNotPresent', 'Never'), 'When the image is pulled.'),
  value('agentImage.repository', 'penstock/agent', text, 'Image of agents that name none.'),
  value('agentImage.tag', '', text, 'Its tag; the version of the chart if empty.'),
  value('agentImage.digest', '', digest, 'Its digest; goes before the tag.'),
  value(
    'imagePullSecrets',
    [],
    { type: 'array', items: { type: 'object', additionalProperties: false, properties: { name: text } } },
    "Secrets for pulling the operator's image.",
  ),
  value('replicas', 2, count, 'Operators. One of them leads; all answer webhooks and agents.'),
  value('leaderElection.enabled', true, flag, 'Whether operators agree on a leader. Without it there may be one only.'),
  value(
    'watch.namespaces',
    [],
    names,
    'Namespaces whose resources count; all if empty. With a list, Cluster kinds are off.',
  ),
  value('watch.selector', '', text, 'Label selector of the namespaces whose resources count.'),
  value(
    'agentNamespaces',
    [],
    names,
    'Namespaces in which Agents of mode Node are honoured; that of the release if empty.',
  ),
  value(
    'tenantAgents.enabled',
    false,
    flag,
    'Whether Agents of mode Aggregator and Sidecar work in every namespace. The operator then may create pods and read and write Secrets in all namespaces, kube-system too: control over the operator is control over the cluster. A RoleBinding in each namespace that wants Agents grants less: guide, rights.',
  ),
  value(
    'secrets.mode',
    'All',
    choice('All', 'Label', 'Namespaced'),
    'Which Secrets may be used: all, those labelled `penstock.dev/allow: "true"`, or those of namespaces where the platform has bound `penstock-operator-secrets`.',
  ),
  value('clusterName', '', text, 'Name of the cluster, for `valueFrom.fieldRef` with `clusterName`.'),
  value(
    'heartbeatPeriod',
    '30s',
    text,
    'How often each agent reports. One that has not for three such periods is lost.',
  ),
  value('logLevel', 'info', choice('trace', 'debug', 'info', 'warn', 'error'), 'How much the operator logs.'),
  value(
    'authorizeClusterPipelines',
    false,
    flag,
    'Whether who applies a ClusterPipeline needs the verb `collect` on `logs` of `penstock.dev`. Needs the webhooks.',
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
    "Security of the operator's pods.",
  ),
  value(
    'securityContext',
    { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
    open,
    "Security of the operator's container.",
  ),
  value('nodeSelector', {}, texts, 'Nodes for the operator.'),
  value('tolerations', [], objects, 'Taints that the operator tolerates.'),
  value('affinity', {}, open, "Affinity of the operator's pods."),
  value('topologySpreadConstraints', [], objects, 'How the operators spread; over nodes if empty.'),
  value('priorityClassName', '', text, "Priority of the operator's pods."),
  value('podDisruptionBudget.enabled', true, flag, 'Whether evictions leave all operators but one.'),
  value(
    'networkPolicy.enabled',
    true,
    flag,
    'NetworkPolicies for the operator, and for every Agent that says nothing about its own: their own ports alone are reached. Without effect where the network of the cluster has none.',
  ),
  value(
    'networkPolicy.allowMetadataServices',
    false,
    flag,
    'Whether agents reach the metadata services of clouds, which give credentials of the node, or of the pod on some clouds.',
  ),
  value(
    'metrics.token.create',
    true,
    flag,
    'A ServiceAccount that may read `/metrics` and nothing else, with its token in Secret `penstock-metrics`, which the monitors name.',
  ),
  value(
    'metrics.service.enabled',
    true,
    flag,
    'A Service for the metrics of the operator; there is one with a ServiceMonitor, too.',
  ),
  value('metrics.serviceMonitor.enabled', false, flag, 'A ServiceMonitor for the operator.'),
  value('metrics.serviceMonitor.labels', {}, texts, 'Its labels.'),
  value('metrics.serviceMonitor.interval', '30s', text, 'Time between scrapes.'),
  value('metrics.podMonitor.enabled', false, flag, 'A PodMonitor for the operator instead.'),
  value('metrics.podMonitor.labels', {}, texts, 'Its labels.'),
  value('metrics.podMonitor.interval', '30s', text, 'Time between scrapes.'),
  value('metrics.prometheusRule.enabled', false, flag, 'Alert rules.'),
  value('metrics.prometheusRule.labels', {}, texts, 'Their labels.'),
  value(
    'metrics.prometheusRule.jobs',
    ownJobs,
    text,
    'Expression for the label `job` of the series of operator and agents; the default matches the monitors that are made for them.',
  ),
  value(
    'metrics.prometheusRule.metricPrefix',
    '',
    metricPrefix,
    'Text before the names of the metrics of agents: `spec.monitoring.metricPrefix` of the Agents, if they have one.',
  ),
  value(
    'metrics.prometheusRule.runbooks',
    '',
    text,
    'Address of the folder with this guide, such as `https://git.example.com/penstock/operator/guide/`, for `runbook_url` of the alerts.',
  ),
  value('metrics.dashboards.enabled', false, flag, 'Dashboards, each in a ConfigMap.'),
  value('metrics.dashboards.jobs', ownJobs, text, 'As `metrics.prometheusRule.jobs`.'),
  value('metrics.dashboards.metricPrefix', '', metricPrefix, 'As `metrics.prometheusRule.metricPrefix`.'),
  value('metrics.dashboards.labels', { grafana_dashboard: '1' }, texts, 'Labels by which the dashboards are found.'),
  value('webhook.enabled', true, flag, 'Validation when resources are applied, and sidecars. All else works without.'),
  value('webhook.replicas', 0, count, 'Pods of a Deployment of their own for webhooks; 0: the operators answer them.'),
  value('webhook.failurePolicy', 'Ignore', choice('Ignore', 'Fail'), 'Handling of resources while no webhook answers.'),
  value('webhook.certManager.enabled', false, flag, 'Whether cert-manager makes the certificates, not the operator.'),
  value('webhook.certManager.issuerRef', {}, open, 'Its issuer; one that signs itself if empty.'),
  value(
    'webhook.clientCertificate.secret',
    '',
    text,
    'Secret of the release namespace with `ca.crt`: the authority of the certificate that the API server must show to the webhooks, besides their secret paths. Needs an API server that is configured to show one; none if empty.',
  ),
  value(
    'webhook.clientCertificate.names',
    [],
    names,
    'Names, one of which that certificate must have as its common name or as a name for DNS; any if empty.',
  ),
  value(
    'rbac.scope',
    'Cluster',
    choice('Cluster', 'Namespaced'),
    'Where the rights of operator and agents come from: `Namespaced` renders Roles in `watch.namespaces`, `agentNamespaces` and the namespace of the release, and no ClusterRole. It needs `watch.namespaces` and `webhook.enabled=false`.',
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
    'Whether the operator may delete any ClusterRoleBinding, to remove those that releases up to 0.1 made for each Agent. For one upgrade; without it run `kubectl delete clusterrolebindings -l app.kubernetes.io/managed-by=penstock,penstock.dev/agent-namespace` yourself.',
  ),
  value(
    'podSecurity.labelNamespace',
    false,
    flag,
    'Whether the namespace of the release is rendered with Pod Security level `privileged`, which Node agents need for `hostPath`. `helm install` then needs `--take-ownership`.',
  ),
  value('openshift.enabled', false, flag, 'A SecurityContextConstraints for Node agents, and its binding.'),
  value('crds.install', true, flag, 'Whether the CRDs are part of this release.'),
  value('crds.keep', true, flag, 'Whether CRDs, and with them all resources, outlive the release.'),
  value(
    'agents',
    [
      {
        name: 'node',
        spec: { mode: 'Node', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } } },
      },
    ],
    named({ namespace: text }),
    'Agents that come with the release: one on every node for all namespaces, so that a Pipeline is all that a user adds.',
  ),
  value('clusterSinks', [], named(), 'ClusterSinks that come with the release.'),
  value('clusterPipelines', [], named(), 'ClusterPipelines that come with the release.'),
  value('tenantPolicies', [], named(), 'TenantPolicies that come with the release.'),
  value('extraObjects', [], objects, 'Further objects of any kind.'),
  value('commonLabels', {}, texts, 'Labels of every object.'),
  value('commonAnnotations', {}, texts, 'Annotations of every object.'),
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

/** values.yaml, each value with its text above it. */
export function valuesFile(): string {
  const lines = ['# Values of the chart. Generated from operator/src/workloads/chart-values.ts.']
  const write = (tree: Tree, indent: string) => {
    for (const [key, entry] of Object.entries(tree)) {
      if (indent === '') lines.push('')
      if (isValue(entry)) {
        // JSON is YAML: one line for each value of any form.
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

/** values.schema.json: nothing that is not declared is accepted. */
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
  return ['| Value | Default | What it is |', '|---|---|---|', ...rows].join('\n')
}
