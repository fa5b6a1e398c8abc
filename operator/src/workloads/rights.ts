// The rights of the operator, of agents and of people, each with its reason; the roles and the guide's page on rights are generated from
// them.

import { kinds } from '../api/kinds.ts'
import { group } from '../api/object.ts'
import {
  authoritySecretName,
  certificateSecretName,
  configurationName,
  operatorName,
  webhookTokenSecretName,
} from './installation-names.ts'
import { leaseNames } from './names.ts'
import { agentRoles, clusterBindings, electionRole, eventsRole } from './render.ts'

export interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly verbs: readonly string[]
}

const read = ['get', 'list', 'watch'] as const
const write = ['create', 'patch', 'delete'] as const
const plurals = kinds.map((kind) => kind.plural)
const rbac = 'rbac.authorization.k8s.io'

const reasons = new WeakMap<Rule, string>()

/** A rule with its reason for the guide. */
function because(why: string, rule: Rule): Rule {
  reasons.set(rule, why)
  return rule
}

/** The reason for a rule. */
export function reasonOf(rule: Rule): string {
  const why = reasons.get(rule)
  if (why === undefined) throw new TypeError(`The rule ${JSON.stringify(rule)} has no reason.`)
  return why
}

/** Cluster-wide rights of the operator. It reads values of Secrets and ConfigMaps one by one; its lists only contain metadata. */
export const operatorRules: readonly Rule[] = [
  because('To compile the resources of all namespaces.', { apiGroups: [group], resources: plurals, verbs: read }),
  because('To write status. The operator never writes specs, labels or annotations of users.', {
    apiGroups: [group],
    resources: plurals.map((plural) => `${plural}/status`),
    verbs: ['get', 'patch'],
  }),
  because('Objects of an Agent have an owner reference to it that needs this right.', {
    apiGroups: [group],
    resources: ['agents', 'agents/finalizers'],
    verbs: ['patch', 'update'],
  }),
  because(
    'To know the labels of namespaces, the nodes, and the pods of agents. For Secrets and ConfigMaps: **every value in the cluster can be read with this right**. The operator only lists and watches metadata, and reads the values of the objects that a resource refers to, but RBAC cannot grant metadata without values. With `secrets.mode: Namespaced`, this rule does not include Secrets.',
    { apiGroups: [''], resources: ['namespaces', 'pods', 'nodes', 'secrets', 'configmaps'], verbs: read },
  ),
  because('To watch its own objects, which it selects by label. Only the roles in namespaces allow it to write them.', {
    apiGroups: [''],
    resources: ['services', 'serviceaccounts', 'persistentvolumeclaims'],
    verbs: read,
  }),
  because('As above.', { apiGroups: ['apps'], resources: ['daemonsets', 'deployments', 'statefulsets'], verbs: read }),
  because('As above.', { apiGroups: ['batch'], resources: ['jobs'], verbs: read }),
  because('As above.', { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: read }),
  because('As above.', { apiGroups: ['autoscaling'], resources: ['horizontalpodautoscalers'], verbs: read }),
  because('As above.', { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: read }),
  because(
    'To deny tenants access to the endpoints of the API server, which a control plane may change. Only this object.',
    {
      apiGroups: ['discovery.k8s.io'],
      resources: ['endpointslices'],
      resourceNames: ['kubernetes'],
      verbs: ['get'],
    },
  ),
  because('To authenticate senders of heartbeats, readers of metrics, and users of `penstock tap` and `top`.', {
    apiGroups: ['authentication.k8s.io'],
    resources: ['tokenreviews'],
    verbs: ['create'],
  }),
  because('To check their rights.', {
    apiGroups: ['authorization.k8s.io'],
    resources: ['subjectaccessreviews'],
    verbs: ['create'],
  }),
  because('To write Events about resources.', {
    apiGroups: ['events.k8s.io'],
    resources: ['events'],
    verbs: ['create', 'patch'],
  }),
  because('As above, for older clusters.', { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] }),
  because('To wait for the kinds before it starts.', {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    verbs: read,
  }),
  because('To watch its three bindings, and bindings of earlier releases. Lists cannot be limited by name here.', {
    apiGroups: [rbac],
    resources: ['clusterrolebindings'],
    verbs: ['list', 'watch'],
  }),
  because('To watch the bindings of Leases.', {
    apiGroups: [rbac],
    resources: ['rolebindings'],
    verbs: ['list', 'watch'],
  }),
  // Server-side apply names the object that it creates, so the right can be limited by name.
  because(
    "To keep the accounts of the platform's Agents in these three bindings. It cannot write any other ClusterRoleBinding.",
    {
      apiGroups: [rbac],
      resources: ['clusterrolebindings'],
      resourceNames: clusterBindings,
      verbs: ['get', ...write],
    },
  ),
  because('To bind these roles without having their rights itself. It can neither create nor change a role.', {
    apiGroups: [rbac],
    resources: ['clusterroles'],
    resourceNames: clusterBindings,
    verbs: ['bind'],
  }),
  because(
    'Its own role owns the default resources and the bindings above, so that they are deleted with the installation.',
    {
      apiGroups: [rbac],
      resources: ['clusterroles'],
      resourceNames: [operatorName],
      verbs: ['get'],
    },
  ),
  because('To keep the certificate authority up to date in its own webhook configuration.', {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    resourceNames: [configurationName],
    verbs: ['get', 'patch'],
  }),
]

/** Resources that a Role cannot grant, or not in the form above. */
const beyondNamespaces: ReadonlySet<string> = new Set([
  ...kinds.filter((kind) => !kind.namespaced).flatMap(({ plural }) => [plural, `${plural}/status`]),
  ...['namespaces', 'nodes', 'nodes/pods', 'tokenreviews', 'subjectaccessreviews', 'customresourcedefinitions'],
  'endpointslices',
  ...['clusterroles', 'clusterrolebindings', 'validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
])

const withinNamespace = (rules: readonly Rule[]): readonly Rule[] =>
  rules.flatMap((rule) => {
    const resources = (rule.resources ?? []).filter((resource) => !beyondNamespaces.has(resource))
    return resources.length === 0 ? [] : [{ ...rule, resources }]
  })

/**
 * Rights of the operator in a watched namespace, if it only has Roles. It may also read the Namespace object itself by
 * name: `namespaceItself`.
 */
export const watchedNamespaceRules: readonly Rule[] = [
  ...withinNamespace(operatorRules),
  { apiGroups: ['authorization.k8s.io'], resources: ['localsubjectaccessreviews'], verbs: ['create'] },
  // Node agents read pods here; agents of this namespace do all their work here.
  { apiGroups: [rbac], resources: ['rolebindings'], verbs: ['get', ...write] },
  { apiGroups: [rbac], resources: ['roles'], resourceNames: Object.values(agentRoles), verbs: ['bind'] },
]

/**
 * A Role in a namespace can grant access to the Namespace object by name: to read it, and to watch it at its own path.
 */
export const namespaceItself = (namespace: string): Rule => ({
  apiGroups: [''],
  resources: ['namespaces'],
  resourceNames: [namespace],
  verbs: ['get', 'watch'],
})

/** Cluster-scoped kinds that `penstock-defaults` may contain. */
export const defaultsClusterRules: readonly Rule[] = [
  because("To apply the resources in the chart's values.", {
    apiGroups: [group],
    resources: ['clustersinks', 'clusterpipelines', 'tenantpolicies'],
    verbs: write,
  }),
]

/** Rights of the operator in a namespace with Agents: it manages their workloads and bundles. */
export const agentNamespaceRules: readonly Rule[] = [
  because(
    'Bundles and the secret values of an Agent are Secrets; its account, its Service and the certificate authority belong to it. **An account that may create pods and Secrets in a namespace can use every account and every Secret in it**: see the sections on namespaces.',
    {
      apiGroups: [''],
      resources: ['secrets', 'configmaps', 'serviceaccounts', 'services'],
      verbs: [...read, ...write, 'update'],
    },
  ),
  because('To remove drained volumes, for Agents with `whenScaled: Drain`.', {
    apiGroups: [''],
    resources: ['persistentvolumeclaims'],
    verbs: [...read, 'delete'],
  }),
  because('To run the pods of Agents. This is **the right to run any pod in the namespace**.', {
    apiGroups: ['apps'],
    resources: ['daemonsets', 'deployments', 'statefulsets'],
    verbs: [...read, ...write],
  }),
  because('To run Jobs that drain the volumes of removed pods.', {
    apiGroups: ['batch'],
    resources: ['jobs'],
    verbs: [...read, ...write],
  }),
  because('Budgets of Aggregators.', {
    apiGroups: ['policy'],
    resources: ['poddisruptionbudgets'],
    verbs: [...read, ...write],
  }),
  because('Autoscalers of Aggregators.', {
    apiGroups: ['autoscaling'],
    resources: ['horizontalpodautoscalers'],
    verbs: [...read, ...write],
  }),
  because('With `networkPolicy.mode: Generated`.', {
    apiGroups: ['networking.k8s.io'],
    resources: ['networkpolicies'],
    verbs: [...read, ...write],
  }),
  // Server-side apply names the object that it creates, so the right can be limited by name.
  because('To create the Leases in which the replicas of Aggregators record their leader.', {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    resourceNames: leaseNames,
    verbs: ['get', 'create', 'patch'],
  }),
  because('If the cluster has PodMonitors.', {
    apiGroups: ['monitoring.coreos.com'],
    resources: ['podmonitors'],
    verbs: [...read, ...write],
  }),
  because("For Agents in the chart's values.", { apiGroups: [group], resources: ['agents'], verbs: write }),
]

/**
 * With ClusterRoles, also the right to bind an Aggregator to the role for its Leases, only in its namespace. Bindings have the
 * names of Leases, so that the operator can neither change nor delete any other binding there.
 */
export const electionBindingRules: readonly Rule[] = [
  because(
    'To let an Aggregator write its Lease. The binding has the name of the Lease, so the operator cannot access any other binding of the namespace.',
    { apiGroups: [rbac], resources: ['rolebindings'], resourceNames: leaseNames, verbs: ['get', ...write] },
  ),
  because('To bind that role without having its rights.', {
    apiGroups: [rbac],
    resources: ['clusterroles'],
    resourceNames: [electionRole],
    verbs: ['bind'],
  }),
]

/** Rights of the operator in its own namespace, with or without Agents in it. */
export const ownNamespaceRules: readonly Rule[] = [
  because('Its certificates, and the secret in the paths of the webhooks.', {
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: [authoritySecretName, certificateSecretName, webhookTokenSecretName],
    verbs: ['get', 'create', 'patch'],
  }),
  because('To store the last good versions of Pipelines, and the authors of ClusterPipelines.', {
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: [...read, ...write],
  }),
  because("Agents in the chart's values are in this namespace unless they set another.", {
    apiGroups: [group],
    resources: ['agents'],
    verbs: write,
  }),
  because("To elect the leader among the operator's replicas.", {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: [...read, ...write, 'update'],
  }),
]

/**
 * For users of `penstock tap` and `penstock top`: access to one port of the operator through the API server, and to nothing
 * else in its namespace. The operator itself authenticates them and checks their rights.
 */
export const cliRules: readonly Rule[] = [
  because('To connect to one port of the operator, which itself authenticates callers and checks their rights.', {
    apiGroups: [''],
    resources: ['services/proxy'],
    resourceNames: [`https:${operatorName}:agents`],
    verbs: ['get'],
  }),
]

const reviews: readonly Rule[] = [
  because('To authenticate readers of the metrics of an agent.', {
    apiGroups: ['authentication.k8s.io'],
    resources: ['tokenreviews'],
    verbs: ['create'],
  }),
  because('To check their rights.', {
    apiGroups: ['authorization.k8s.io'],
    resources: ['subjectaccessreviews'],
    verbs: ['create'],
  }),
]

// Only with PUT, which names the object that it creates.
const electionRules: readonly Rule[] = [
  because('To elect the replica that runs singleton sources.', {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    resourceNames: leaseNames,
    verbs: ['get', 'create', 'update'],
  }),
]

const eventRules: readonly Rule[] = [
  because('For the source `orchestrator_events`.', {
    apiGroups: ['events.k8s.io'],
    resources: ['events'],
    verbs: read,
  }),
]

/** The roles of agents. They are fixed: the operator may bind them, but can neither create nor change a role. */
export const agentRoleRules: Readonly<Record<string, readonly Rule[]>> = {
  [agentRoles.Node]: [
    because('To know the pods whose logs it reads, and their labels.', {
      apiGroups: [''],
      resources: ['pods', 'namespaces', 'nodes'],
      verbs: read,
    }),
    because('To request the pods of its node from the kubelet, with `node.metadata.source: Kubelet`.', {
      apiGroups: [''],
      resources: ['nodes/pods'],
      verbs: ['get'],
    }),
    ...reviews,
  ],
  [agentRoles.Aggregator]: reviews,
  [electionRole]: electionRules,
  [eventsRole]: eventRules,
}

/**
 * The same with only Roles: node agents have theirs in each watched namespace, together with `namespaceItself`. The others have theirs
 * in their own namespace, where they may write Leases and read events.
 */
export const agentNamespacedRules: Readonly<Record<string, readonly Rule[]>> = {
  [agentRoles.Node]: withinNamespace(agentRoleRules[agentRoles.Node] ?? []),
  [agentRoles.Aggregator]: withinNamespace([
    ...(agentRoleRules[agentRoles.Aggregator] ?? []),
    ...electionRules,
    ...eventRules,
  ]),
}

/** The right to read `/metrics` if there are only Roles: the resource exists only for this check. */
export const metricsReaderRules: readonly Rule[] = [{ apiGroups: [group], resources: ['metrics'], verbs: ['get'] }]

const authored = ['pipelines', 'sources', 'sinks', 'agents']

/** Roles for people, aggregated into the built-in ones. Platform kinds are not included. */
export const userRoles: readonly { readonly name: string; readonly rules: readonly Rule[] }[] = [
  { name: 'view', rules: [{ apiGroups: [group], resources: authored, verbs: read }] },
  {
    name: 'edit',
    rules: [
      {
        apiGroups: [group],
        resources: authored,
        verbs: ['create', 'delete', 'deletecollection', 'patch', 'update', ...read],
      },
      { apiGroups: [group], resources: ['agents/scale'], verbs: ['get', 'patch', 'update'] },
      { apiGroups: [group], resources: ['pipelines/tap'], verbs: ['create'] },
    ],
  },
  {
    name: 'admin',
    rules: [
      {
        apiGroups: [group],
        resources: authored,
        verbs: ['create', 'delete', 'deletecollection', 'patch', 'update', ...read],
      },
      { apiGroups: [group], resources: ['agents/scale'], verbs: ['get', 'patch', 'update'] },
      { apiGroups: [group], resources: ['pipelines/tap'], verbs: ['create'] },
    ],
  },
]
