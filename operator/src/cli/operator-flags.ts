// Flags of `penstock operator`, and the settings that they make.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { heartbeatPeriods } from '@penstock/agent/bundle'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { compileSelector } from '@penstock/agent/kube'
import { version } from '@penstock/agent/program'
import type { OperatorSettings } from '../context.ts'
import type { ClientAuthority } from '../webhook/server.ts'
import { durationMs, oneOf, type parseFlags } from './arguments.ts'

export const options = {
  help: { type: 'boolean', short: 'h', default: false },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  namespace: { type: 'string' },
  'agent-namespaces': { type: 'string' },
  'watch-namespaces': { type: 'string' },
  'watch-namespace-selector': { type: 'string' },
  'rbac-scope': { type: 'string', default: 'Cluster' },
  'secrets-mode': { type: 'string', default: 'All' },
  'leader-election': { type: 'string', default: 'true' },
  'ref-grace-period': { type: 'string', default: '10m' },
  'http-address': { type: 'string', default: '127.0.0.1:8080' },
  'heartbeat-address': { type: 'string', default: '' },
  'heartbeat-url': { type: 'string', default: '' },
  'heartbeat-period': { type: 'string', default: '30s' },
  'status-period': { type: 'string', default: '30s' },
  'webhook-address': { type: 'string', default: '' },
  'webhook-client-ca': { type: 'string', default: '' },
  'webhook-client-names': { type: 'string' },
  'agent-image': { type: 'string', default: `penstock/agent:${version}` },
  'network-policies': { type: 'boolean', default: false },
  'allow-metadata-services': { type: 'boolean', default: false },
  'metrics-token-secret': { type: 'string', default: '' },
  'cluster-name': { type: 'string', default: '' },
  'authorize-cluster-pipelines': { type: 'boolean', default: false },
  'kube-qps': { type: 'string', default: '50' },
  'kube-burst': { type: 'string', default: '100' },
  'log-level': { type: 'string', default: 'info' },
  'log-format': { type: 'string', default: 'json' },
} as const

export const usage = `Usage: penstock operator [FLAGS]

Reconciles Pipelines, Sources, Sinks, Agents and TenantPolicies of a cluster.

Where
  --kubeconfig FILE               the cluster; else KUBECONFIG, the pod's service account, ~/.kube/config
  --context NAME                  context of the kubeconfig
  --namespace NAME                namespace of the operator: its Lease, kept versions, defaults
                                  (POD_NAMESPACE, that of the context, or penstock-system)
  --watch-namespaces A,B          only these namespaces; Cluster kinds are off then
  --watch-namespace-selector S    only namespaces with these labels
  --agent-namespaces A,B          namespaces in which Agents of mode Node are honoured (that of the operator)
  --cluster-name NAME             what \`fieldRef: clusterName\` means

Rights
  --rbac-scope SCOPE              Cluster; Namespaced: its rights come from Roles in the namespaces to watch, in its own and in
                                  those of Agents. Nothing beyond them is read or asked: no webhooks, no labels of nodes
  --secrets-mode MODE             All; Label: only Secrets labelled penstock.dev/allow=true; Namespaced: those that
                                  RoleBindings open
  --authorize-cluster-pipelines   who applies a ClusterPipeline needs the verb \`collect\` on penstock.dev/logs, as long as
                                  it is to run; needs the webhooks, which see who it is
  --ref-grace-period TIME         how long the last good version runs on when what it refers to is gone (10m)
  --leader-election BOOL          false for a single process (true)
  --kube-qps N, --kube-burst N    requests to the API server a second, and at once (50, 100)

Addresses
  --http-address HOST:PORT        /healthz, /readyz, /metrics (127.0.0.1:8080); empty: none
  --heartbeat-address HOST:PORT   where agents report; empty: nowhere
  --heartbeat-url URL             under which agents reach it
  --heartbeat-period TIME         how often each agent reports, from 1s to 5m (30s); one that has not for three such
                                  periods is stale
  --status-period TIME            how often a status is written in which figures alone have changed (30s)
  --webhook-address HOST:PORT     admission webhooks; empty: none. They answer requests to their secret paths alone, which the
                                  operator writes into the webhook configurations
  --webhook-client-ca FILE        besides, the API server must show a certificate of this authority (PEM)
  --webhook-client-names A,B      and its common name, or a name for DNS, must be one of these (any)
  --metrics-token-secret NAME     Secret beside an Agent whose \`token\` its PodMonitor gives to scrapers
  --network-policies              a NetworkPolicy for each Agent without \`networkPolicy\`: in goes its own port alone, out everything but
                                  to the metadata services of clouds
  --allow-metadata-services       with these policies, agents reach metadata services as well
  --agent-image IMAGE             of Agents that name none (penstock/agent:${version})

  --log-level LEVEL               error, warn, info, debug, trace (info)
  --log-format FORMAT             json, text (json)
`

type Values = ReturnType<typeof parseFlags<typeof options>>['values']

/** What the flags say: nothing is opened before all of them are checked. */
export function flagsOf(values: Values) {
  const settings = settingsOf(values)
  return {
    connection: { kubeconfig: values.kubeconfig, context: values.context },
    logLevel: oneOf('log-level', values['log-level'], ['silent', 'error', 'warn', 'info', 'debug', 'trace']),
    logFormat: oneOf('log-format', values['log-format'], ['json', 'text']),
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

/** Whose certificate the webhooks ask for; undefined: nobody's. */
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

/** The settings, but for what the kubeconfig says where no flag does. */
function settingsOf(values: Values): (ownNamespace: string | undefined) => OperatorSettings {
  const rolesOnly = oneOf('rbac-scope', values['rbac-scope'], ['Cluster', 'Namespaced']) === 'Namespaced'
  if (rolesOnly) refuseClusterScope(values, list(values['watch-namespaces']) ?? [])
  const agentNamespaces = list(values['agent-namespaces'])
  const settings = {
    watchNamespaces: list(values['watch-namespaces']),
    watchNamespaceSelector: selectorOf('watch-namespace-selector', values['watch-namespace-selector']),
    rolesOnly,
    secretsMode: oneOf('secrets-mode', values['secrets-mode'], ['All', 'Label', 'Namespaced']),
    leaderElection: oneOf('leader-election', values['leader-election'], ['true', 'false']) === 'true',
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
    const namespace = values.namespace ?? process.env['POD_NAMESPACE'] ?? ownNamespace ?? 'penstock-system'
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

/** What no Role can grant. */
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
