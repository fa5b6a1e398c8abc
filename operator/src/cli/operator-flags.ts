// Flags of `penstock operator`, and the settings that they make.

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
      help: "the cluster; else KUBECONFIG, the pod's service account, ~/.kube/config",
    },
    context: { type: 'string', value: 'NAME', help: 'context of the kubeconfig' },
    namespace: {
      type: 'string',
      env: 'POD_NAMESPACE',
      value: 'NAME',
      help: 'namespace of the operator: its Lease, kept versions, defaults\n(that of the context, or penstock-system)',
    },
    'watch-namespaces': { type: 'string', value: 'A,B', help: 'only these namespaces; Cluster kinds are off then' },
    'watch-namespace-selector': { type: 'string', value: 'S', help: 'only namespaces with these labels' },
    'agent-namespaces': {
      type: 'string',
      value: 'A,B',
      help: 'namespaces in which Agents of mode Node are honoured (that of the operator)',
    },
    'cluster-name': { type: 'string', default: '', value: 'NAME', help: 'what `fieldRef: clusterName` means' },
  },
  Rights: {
    'rbac-scope': {
      type: 'string',
      default: 'Cluster',
      oneOf: ['Cluster', 'Namespaced'],
      value: 'SCOPE',
      help: [
        'Cluster; Namespaced: its rights come from Roles in the namespaces to watch, in its own and in',
        'those of Agents. Nothing beyond them is read or asked: no webhooks, no labels of nodes',
      ].join('\n'),
    },
    'secrets-mode': {
      type: 'string',
      default: 'All',
      oneOf: ['All', 'Label', 'Namespaced'],
      value: 'MODE',
      help: 'All; Label: only Secrets labelled penstock.dev/allow=true; Namespaced: those that\nRoleBindings open',
    },
    'authorize-cluster-pipelines': {
      type: 'boolean',
      help: [
        'who applies a ClusterPipeline needs the verb `collect` on penstock.dev/logs, as long as',
        'it is to run; needs the webhooks, which see who it is',
      ].join('\n'),
    },
    'ref-grace-period': {
      type: 'string',
      default: '10m',
      value: 'TIME',
      help: 'how long the last good version runs on when what it refers to is gone (10m)',
    },
    'leader-election': {
      type: 'string',
      default: 'true',
      oneOf: ['true', 'false'],
      value: 'BOOL',
      help: 'false for a single process (true)',
    },
    'kube-qps': { type: 'string', default: '50', value: 'N', help: 'requests to the API server a second (50)' },
    'kube-burst': { type: 'string', default: '100', value: 'N', help: 'requests to the API server at once (100)' },
  },
  Addresses: {
    'http-address': {
      type: 'string',
      default: '127.0.0.1:8080',
      value: 'HOST:PORT',
      help: '/healthz, /readyz, /metrics (127.0.0.1:8080); empty: none',
    },
    'heartbeat-address': {
      type: 'string',
      default: '',
      value: 'HOST:PORT',
      help: 'where agents report; empty: nowhere',
    },
    'heartbeat-url': { type: 'string', default: '', value: 'URL', help: 'under which agents reach it' },
    'heartbeat-period': {
      type: 'string',
      default: '30s',
      value: 'TIME',
      help: 'how often each agent reports, from 1s to 5m (30s); one that has not for three such\nperiods is stale',
    },
    'status-period': {
      type: 'string',
      default: '30s',
      value: 'TIME',
      help: 'how often a status is written in which figures alone have changed (30s)',
    },
    'webhook-address': {
      type: 'string',
      default: '',
      value: 'HOST:PORT',
      help: [
        'admission webhooks; empty: none. They answer requests to their secret paths alone, which the',
        'operator writes into the webhook configurations',
      ].join('\n'),
    },
    'webhook-client-ca': {
      type: 'string',
      default: '',
      value: 'FILE',
      help: 'besides, the API server must show a certificate of this authority (PEM)',
    },
    'webhook-client-names': {
      type: 'string',
      value: 'A,B',
      help: 'and its common name, or a name for DNS, must be one of these (any)',
    },
    'metrics-token-secret': {
      type: 'string',
      default: '',
      value: 'NAME',
      help: 'Secret beside an Agent whose `token` its PodMonitor gives to scrapers',
    },
    'network-policies': {
      type: 'boolean',
      help: [
        'a NetworkPolicy for each Agent without `networkPolicy`: in goes its own port alone, out everything but',
        'to the metadata services of clouds',
      ].join('\n'),
    },
    'allow-metadata-services': {
      type: 'boolean',
      help: 'with these policies, agents reach metadata services as well',
    },
    'agent-image': {
      type: 'string',
      default: `penstock/agent:${version}`,
      value: 'IMAGE',
      help: `of Agents that name none (penstock/agent:${version})`,
    },
  },
  Logs: {
    'log-level': {
      type: 'string',
      default: 'info',
      oneOf: ['silent', 'error', 'warn', 'info', 'debug', 'trace'],
      value: 'LEVEL',
      help: 'error, warn, info, debug, trace (info)',
    },
    'log-format': {
      type: 'string',
      default: 'json',
      oneOf: ['json', 'text'],
      value: 'FORMAT',
      help: 'json, text (json)',
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

Reconciles Pipelines, Sources, Sinks, Agents and TenantPolicies of a cluster.

${Object.entries(flagsByTopic)
  .map(([topic, flags]) => `${topic}\n${flagHelp(flags, 34)}\n`)
  .join('\n')}`

/** `penstock webhook` has the same flags; those of agents and of a leader have no effect there. */
export const webhookUsage = usage
  .replace('penstock operator', 'penstock webhook')
  .replace(
    /\nReconciles .*\n/,
    '\nAnswers the admission webhooks apart from the operators, whose flags it takes. It needs `--webhook-address`, and writes nothing.\n',
  )

type Values = ParsedArgs<typeof options>['flags']

/** The values of the flags: nothing is opened before all of them are checked. */
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

export type Flags = ReturnType<typeof flagsOf>

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

/** The settings, except those that come from the kubeconfig without a flag. */
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

/** Where to listen, as `HOST:PORT`; empty: nowhere. */
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
    if (value.trim() === '') throw new PenstockError('PEN_USAGE', 'No label is named.')
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

/** An agent follows pods and labels of each namespace over one connection, in which API servers allow 100 requests at a time. */
const maxNamespaces = 40

/** The rights that no Role can grant. */
function refuseClusterScope(values: Values, namespaces: readonly string[]): void {
  const refuse = (problem: string) => {
    throw new PenstockError('PEN_USAGE', `\`--rbac-scope Namespaced\` ${problem}`)
  }
  if (namespaces.length === 0) refuse('needs the namespaces to watch: `--watch-namespaces A,B`.')
  if (namespaces.length > maxNamespaces)
    refuse(`takes at most ${maxNamespaces} namespaces to watch; found ${namespaces.length}.`)
  if (values['webhook-address'] !== '')
    refuse('goes without webhooks, whose registration belongs to the cluster: leave `--webhook-address` out.')
  if (values['authorize-cluster-pipelines'])
    refuse('reads no ClusterPipelines: leave `--authorize-cluster-pipelines` out.')
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
