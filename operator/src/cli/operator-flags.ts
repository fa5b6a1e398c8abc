// Flags of `penstock operator`, and the settings that they produce.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { heartbeatPeriods } from '@penstock/agent/bundle'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { compileSelector } from '@penstock/agent/kube'
import { type Flags as FlagTable, flagHelp, type ParsedArgs, version } from '@penstock/agent/program'
import type { OperatorSettings } from '../context.ts'
import type { ClientAuthority } from '../webhook/server.ts'
import { durationMs } from './arguments.ts'

const flagsByTopic = {
  Where: {
    kubeconfig: {
      type: 'string',
      value: 'FILE',
      help: "Kubeconfig (KUBECONFIG, then the pod's service account, then ~/.kube/config).",
    },
    context: { type: 'string', value: 'NAME', help: 'Context of the kubeconfig.' },
    namespace: {
      type: 'string',
      env: 'POD_NAMESPACE',
      value: 'NAME',
      help: 'Namespace of the operator, for its Lease, stored versions and defaults (that of the context, or penstock-system).',
    },
    'watch-namespaces': { type: 'string', value: 'A,B', help: 'Watch only these namespaces, and no Cluster kinds.' },
    'watch-namespace-selector': { type: 'string', value: 'S', help: 'Watch only namespaces with these labels.' },
    'agent-namespaces': {
      type: 'string',
      value: 'A,B',
      help: 'Namespaces in which Agents may have mode Node (that of the operator).',
    },
    'cluster-name': { type: 'string', default: '', value: 'NAME', help: 'Value of `fieldRef: clusterName`.' },
  },
  Rights: {
    'rbac-scope': {
      type: 'string',
      default: 'Cluster',
      oneOf: ['Cluster', 'Namespaced'],
      value: 'SCOPE',
      help: [
        'Cluster, or Namespaced: the operator only has Roles in its own namespace, in the watched ones and in those of Agents,',
        'which excludes webhooks and node labels (Cluster).',
      ].join(' '),
    },
    'secrets-mode': {
      type: 'string',
      default: 'All',
      oneOf: ['All', 'Label', 'Namespaced'],
      value: 'MODE',
      help: 'Which Secrets the operator reads: All, Label (only those labelled penstock.dev/allow=true), or Namespaced (those that RoleBindings allow) (All).',
    },
    'authorize-cluster-pipelines': {
      type: 'boolean',
      help: [
        'Require that the user who applies a ClusterPipeline has the verb `collect` on penstock.dev/logs, as long as it runs.',
        'This needs the webhooks, which record the identity.',
      ].join(' '),
    },
    'ref-grace-period': {
      type: 'string',
      default: '10m',
      value: 'TIME',
      help: 'How long the last good version keeps running after an object that it refers to was deleted (10m).',
    },
    'leader-election': {
      type: 'string',
      default: 'true',
      oneOf: ['true', 'false'],
      value: 'BOOL',
      help: 'Whether replicas elect a leader; false for a single process (true).',
    },
    'kube-qps': {
      type: 'string',
      default: '50',
      value: 'N',
      help: 'Maximum requests to the API server per second (50).',
    },
    'kube-burst': {
      type: 'string',
      default: '100',
      value: 'N',
      help: 'Maximum burst of requests to the API server (100).',
    },
  },
  Addresses: {
    'http-address': {
      type: 'string',
      default: '127.0.0.1:8080',
      value: 'HOST:PORT',
      help: 'Address for /healthz, /readyz and /metrics (127.0.0.1:8080). If empty, they are disabled.',
    },
    'heartbeat-address': {
      type: 'string',
      default: '',
      value: 'HOST:PORT',
      help: 'Address to which agents report. If empty, reports are disabled.',
    },
    'heartbeat-url': {
      type: 'string',
      default: '',
      value: 'URL',
      help: 'URL at which agents reach the operator.',
    },
    'heartbeat-period': {
      type: 'string',
      default: '30s',
      value: 'TIME',
      help: 'How often each agent reports, from 1s to 5m (30s). An agent that has not reported for three periods is stale.',
    },
    'status-period': {
      type: 'string',
      default: '30s',
      value: 'TIME',
      help: 'How often to write a status in which only figures have changed (30s).',
    },
    'webhook-address': {
      type: 'string',
      default: '',
      value: 'HOST:PORT',
      help: [
        'Address of the admission webhooks. If empty, they are disabled. They only answer at secret paths,',
        'which the operator writes to the webhook configurations.',
      ].join(' '),
    },
    'webhook-client-ca': {
      type: 'string',
      default: '',
      value: 'FILE',
      help: 'Require a client certificate of this authority (PEM) from the API server.',
    },
    'webhook-client-names': {
      type: 'string',
      value: 'A,B',
      help: 'Require one of these names in the client certificate, as common name or DNS name (any).',
    },
    'metrics-token-secret': {
      type: 'string',
      default: '',
      value: 'NAME',
      help: 'Secret in the namespace of each Agent whose `token` PodMonitors give to scrapers.',
    },
    'network-policies': {
      type: 'boolean',
      help: [
        "Create a NetworkPolicy for each Agent without `networkPolicy`. It allows traffic to the Agent's port,",
        'and from the Agent to all addresses except the metadata services of clouds.',
      ].join(' '),
    },
    'allow-metadata-services': {
      type: 'boolean',
      help: 'Allow metadata services in these policies too.',
    },
    'agent-image': {
      type: 'string',
      default: `penstock/agent:${version}`,
      value: 'IMAGE',
      help: `Default image of Agents (penstock/agent:${version}).`,
    },
  },
  Logs: {
    'log-level': {
      type: 'string',
      default: 'info',
      oneOf: ['silent', 'error', 'warn', 'info', 'debug', 'trace'],
      value: 'LEVEL',
      help: 'Level of the log: error, warn, info, debug or trace (info).',
    },
    'log-format': {
      type: 'string',
      default: 'json',
      oneOf: ['json', 'text'],
      value: 'FORMAT',
      help: 'Format of the log: json or text (json).',
    },
  },
} as const satisfies Readonly<Record<string, FlagTable>>

export const options = {
  ...flagsByTopic.Where,
  ...flagsByTopic.Rights,
  ...flagsByTopic.Addresses,
  ...flagsByTopic.Logs,
} as const satisfies FlagTable

export const usage = `Usage: penstock operator [FLAGS]

Runs the operator, which reconciles the Pipelines, Sources, Sinks, Agents and TenantPolicies of a cluster.

${Object.entries(flagsByTopic)
  .map(([topic, flags]) => `${topic}:\n${flagHelp(flags, 34)}\n`)
  .join('\n')}`

/** `penstock webhook` has the same flags; those for agents and for the leader have no effect there. */
export const webhookUsage = usage
  .replace('penstock operator', 'penstock webhook')
  .replace(
    /\nRuns the operator.*\n/,
    '\nServes the admission webhooks in a separate process. It accepts the flags of the operator, needs `--webhook-address`, and changes nothing.\n',
  )

type Values = ParsedArgs<typeof options>['flags']

/** The values of the flags: all are checked before anything is opened. */
export function flagsOf(values: Values) {
  const settings = settingsOf(values)
  return {
    connection: { kubeconfig: values.kubeconfig, context: values.context },
    logLevel: values['log-level'],
    logFormat: values['log-format'],
    perSecond: positive('kube-qps', values['kube-qps']),
    burst: positive('kube-burst', values['kube-burst']),
    statusPeriodMs: timeOf('status-period', values['status-period']),
    webhookClients: clientsOf(values['webhook-client-ca'], values['webhook-client-names']),
    settings,
  }
}

export type OperatorFlagValues = ReturnType<typeof flagsOf>

function list(text: string | undefined): string[] | undefined {
  const items = (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  return items.length === 0 ? undefined : items
}

/** The client certificate that the webhooks require; undefined: none. */
function clientsOf(file: string, names: string | undefined): ClientAuthority | undefined {
  if (file === '') {
    if (names === undefined) return undefined
    throw new PenstockError('PEN_USAGE', '`--webhook-client-names` needs `--webhook-client-ca FILE`.')
  }
  try {
    const ca = readFileSync(file, 'utf8')
    new X509Certificate(ca)
    return { ca, names: list(names) ?? [] }
  } catch (cause) {
    const problem = `\`--webhook-client-ca\` takes a file with certificates in PEM; ${file}: ${errorText(cause)}`
    throw new PenstockError('PEN_USAGE', problem, { cause })
  }
}

/** The settings, except those taken from the kubeconfig in the absence of a flag. */
function settingsOf(values: Values): (ownNamespace: string | undefined) => OperatorSettings {
  const rolesOnly = values['rbac-scope'] === 'Namespaced'
  if (rolesOnly) refuseClusterScope(values, list(values['watch-namespaces']) ?? [])
  const agentNamespaces = list(values['agent-namespaces'])
  const settings = {
    watchNamespaces: list(values['watch-namespaces']),
    watchNamespaceSelector: selectorOf('watch-namespace-selector', values['watch-namespace-selector']),
    rolesOnly,
    secretsMode: values['secrets-mode'],
    leaderElection: values['leader-election'] === 'true',
    refGracePeriodMs: timeOf('ref-grace-period', values['ref-grace-period']),
    httpAddress: addressOf('http-address', values['http-address']),
    heartbeatAddress: addressOf('heartbeat-address', values['heartbeat-address']),
    heartbeatUrl: urlOf('heartbeat-url', values['heartbeat-url']),
    heartbeatPeriodMs: periodOf(values['heartbeat-period']),
    webhookAddress: addressOf('webhook-address', values['webhook-address']),
    agentImage: values['agent-image'],
    agentNetworkPolicy: !values['network-policies']
      ? undefined
      : values['allow-metadata-services']
        ? ('Metadata' as const)
        : ('NoMetadata' as const),
    metricsTokenSecret: values['metrics-token-secret'],
    clusterName: values['cluster-name'],
    authorizeClusterPipelines: values['authorize-cluster-pipelines'],
  }
  return (ownNamespace) => {
    const namespace = values.namespace ?? ownNamespace ?? 'penstock-system'
    return { ...settings, namespace, agentNamespaces: agentNamespaces ?? [namespace] }
  }
}

/** Listening address as `HOST:PORT`; empty: disabled. */
function addressOf(flag: string, value: string): string {
  const port = /^(?:\[[^\]]+\]|[^:[\]/@\s]+):(\d+)$/.exec(value)?.[1]
  if (value === '' || (port !== undefined && Number(port) <= 65_535 && URL.canParse(`tcp://${value}`))) return value
  throw new PenstockError('PEN_USAGE', `\`--${flag}\` takes HOST:PORT, such as 0.0.0.0:8080; found \`${value}\`.`)
}

function urlOf(flag: string, value: string): string {
  if (value === '' || /^https?:$/.test(URL.parse(value)?.protocol ?? '')) return value
  throw new PenstockError(
    'PEN_USAGE',
    `\`--${flag}\` takes a URL such as https://penstock-operator.penstock-system.svc:9443; found \`${value}\`.`,
  )
}

function selectorOf(flag: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  try {
    if (value.trim() === '') throw new PenstockError('PEN_USAGE', 'It names no label.')
    compileSelector(value)
    return value
  } catch (cause) {
    throw new PenstockError('PEN_USAGE', `\`--${flag}\`: ${errorText(cause)}`, { cause })
  }
}

function timeOf(flag: string, value: string): number {
  try {
    return durationMs(value)
  } catch (cause) {
    throw new PenstockError('PEN_USAGE', `\`--${flag}\`: ${errorText(cause)}`, { cause })
  }
}

/**
 * An agent watches pods and labels of each namespace over one connection, on which API servers allow 100 concurrent requests.
 */
const maxNamespaces = 40

/** The rights that a Role cannot grant. */
function refuseClusterScope(values: Values, namespaces: readonly string[]): void {
  const refuse = (problem: string) => {
    throw new PenstockError('PEN_USAGE', `\`--rbac-scope Namespaced\` ${problem}`)
  }
  if (namespaces.length === 0) refuse('needs the namespaces to watch: `--watch-namespaces A,B`.')
  if (namespaces.length > maxNamespaces)
    refuse(`supports at most ${maxNamespaces} namespaces to watch; found ${namespaces.length}.`)
  if (values['webhook-address'] !== '')
    refuse('does not support webhooks, which are registered for the whole cluster: omit `--webhook-address`.')
  if (values['authorize-cluster-pipelines'])
    refuse('does not read ClusterPipelines: omit `--authorize-cluster-pipelines`.')
}

function periodOf(text: string): number {
  const ms = timeOf('heartbeat-period', text)
  if (ms >= heartbeatPeriods.minMs && ms <= heartbeatPeriods.maxMs) return ms
  throw new PenstockError('PEN_USAGE', `\`--heartbeat-period\` takes a time from 1s to 5m; found \`${text}\`.`)
}

function positive(flag: string, value: string): number {
  const number = Number(value)
  if (number > 0) return number
  throw new PenstockError('PEN_USAGE', `\`--${flag}\` takes a number above zero; found \`${value}\`.`)
}
