// The operator's own installation for `kubectl apply`: accounts, roles, services, the Deployment, the webhooks. The chart renders
// the same objects for its default values; a test compares the two.

import { Construct } from 'constructs'
import { AgentModel } from '../api/models.ts'
import { cliRole, defaultsName, metricsName, operatorName, operatorPorts, webhookName } from './installation-names.ts'
import { type Manifest, ObjectConstruct, synthesise } from './manifest.ts'
import { OperatorDeployment } from './operator-deployment.ts'
import {
  agentNamespaceRules,
  agentRoleRules,
  cliRules,
  defaultsClusterRules,
  electionBindingRules,
  operatorRules,
  ownNamespaceRules,
  type Rule,
  userRoles,
} from './rights.ts'
import { Webhooks } from './webhooks.ts'

export interface InstallationOptions {
  readonly namespace: string
  /** Version of the images. */
  readonly version: string
}

/** Everything except the Namespace and the CRDs. */
export function renderInstallation(options: InstallationOptions): Manifest[] {
  return synthesise((chart) => new Installation(chart, options))
}

const selector = { 'app.kubernetes.io/name': operatorName, 'app.kubernetes.io/component': 'operator' }
const rbac = 'rbac.authorization.k8s.io'

class Installation extends Construct {
  readonly #options: InstallationOptions

  constructor(scope: Construct, options: InstallationOptions) {
    super(scope, 'installation')
    this.#options = options
    const { namespace, version } = options
    this.#operatorRights()
    this.#rolesOfAgents()
    this.#metricsReader()
    for (const { name, rules } of userRoles)
      this.#clusterRole(`penstock-${name}`, rules, { [`${rbac}/aggregate-to-${name}`]: 'true' })
    new ObjectConstruct(this, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: this.#metadata(defaultsName, 'defaults'),
      data: { 'resources.json': JSON.stringify([defaultAgent(namespace)]) },
    })
    this.#service(operatorName, 'operator', { name: 'agents', port: operatorPorts.agents, targetPort: 'agents' })
    this.#service(webhookName, 'webhook', { name: 'webhook', port: 443, targetPort: 'webhook' })
    this.#service('penstock-operator-metrics', 'metrics', {
      name: 'http',
      port: operatorPorts.http,
      targetPort: 'http',
    })
    new OperatorDeployment(this, { namespace, version, labels: this.#labels('operator'), selector })
    this.#disruptionBudget()
    this.#networkPolicy()
    new Webhooks(this, namespace, this.#labels('webhook'))
  }

  #operatorRights(): void {
    const account = { kind: 'ServiceAccount', name: operatorName, namespace: this.#options.namespace }
    new ObjectConstruct(this, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: this.#metadata(operatorName, 'operator'),
    })
    this.#clusterRole(operatorName, [...operatorRules, ...defaultsClusterRules])
    this.#clusterRoleBinding(operatorName, 'rbac', operatorName, account)
    const inNamespaces = 'penstock-operator-namespace'
    this.#clusterRole(inNamespaces, [...agentNamespaceRules, ...electionBindingRules])
    this.#roleBinding('penstock-operator-agents', 'ClusterRole', inNamespaces, account)
    this.#role(operatorName, ownNamespaceRules)
    this.#roleBinding(operatorName, 'Role', operatorName, account)
  }

  #rolesOfAgents(): void {
    this.#role(cliRole, cliRules)
    for (const [name, rules] of Object.entries(agentRoleRules)) this.#clusterRole(name, rules)
  }

  #metricsReader(): void {
    const role = 'penstock-metrics-reader'
    this.#clusterRole(role, [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }])
    const metadata = this.#metadata(metricsName, 'metrics')
    new ObjectConstruct(this, { apiVersion: 'v1', kind: 'ServiceAccount', metadata })
    new ObjectConstruct(this, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...metadata, annotations: { 'kubernetes.io/service-account.name': metricsName } },
      type: 'kubernetes.io/service-account-token',
    })
    const reader = { kind: 'ServiceAccount', name: metricsName, namespace: this.#options.namespace }
    this.#clusterRoleBinding(metricsName, 'metrics', role, reader)
  }

  #disruptionBudget(): void {
    new ObjectConstruct(this, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: this.#metadata(operatorName, 'operator'),
      spec: { maxUnavailable: 1, selector: { matchLabels: selector } },
    })
  }

  /** From any address: the API server may have any, and pods with a sidecar are in any namespace. */
  #networkPolicy(): void {
    new ObjectConstruct(this, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: this.#metadata(operatorName, 'operator'),
      spec: {
        podSelector: { matchLabels: { 'app.kubernetes.io/name': operatorName } },
        policyTypes: ['Ingress'],
        ingress: [{ ports: Object.values(operatorPorts).map((port) => ({ protocol: 'TCP', port })) }],
      },
    })
  }

  #service(name: string, component: string, port: object): void {
    const metadata = this.#metadata(name, component)
    new ObjectConstruct(this, { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports: [port] } })
  }

  #clusterRole(name: string, rules: readonly Rule[], more: object = {}): void {
    const metadata = { name, labels: { ...this.#labels('rbac'), ...more } }
    new ObjectConstruct(this, { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata, rules })
  }

  #role(name: string, rules: readonly Rule[]): void {
    new ObjectConstruct(this, { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: this.#metadata(name, 'rbac'), rules })
  }

  #clusterRoleBinding(name: string, component: string, role: string, subject: object): void {
    new ObjectConstruct(this, {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name, labels: this.#labels(component) },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
      subjects: [subject],
    })
  }

  #roleBinding(name: string, kind: 'Role' | 'ClusterRole', role: string, subject: object): void {
    new ObjectConstruct(this, {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: this.#metadata(name, 'rbac'),
      roleRef: { apiGroup: rbac, kind, name: role },
      subjects: [subject],
    })
  }

  #metadata(name: string, component: string) {
    return { name, namespace: this.#options.namespace, labels: this.#labels(component) }
  }

  #labels(component: string) {
    return {
      'app.kubernetes.io/name': operatorName,
      'app.kubernetes.io/component': component,
      'app.kubernetes.io/part-of': 'penstock',
      'app.kubernetes.io/version': this.#options.version,
    }
  }
}

/** The operator applies it once its kinds are served: an agent on every node, for all namespaces. */
function defaultAgent(namespace: string) {
  const agent = new AgentModel({
    metadata: { name: 'node', namespace },
    spec: { mode: 'Node', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } } },
  })
  agent.validate()
  return agent
}
