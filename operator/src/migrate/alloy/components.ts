// The components of Alloy that are converted, with what becomes of each and of its options; and those without a counterpart.

import { type PushNames, pushItself, pushOptions } from '../loki/push.ts'
import { ruleOptions } from '../loki/relabel.ts'
import type { Described, Exception, Refusal } from '../page.ts'

export interface ComponentMapping extends Described {
  readonly itself?: Readonly<Record<string, string | Exception>>
  /** Blocks that are read apart. */
  readonly blocks?: readonly string[]
}

export const endpointNames: PushNames = {
  wait: 'batch_wait',
  size: 'batch_size',
  timeout: 'remote_timeout',
  backoff: [],
  minWait: 'min_backoff_period',
  maxWait: 'max_backoff_period',
  retries: 'max_backoff_retries',
}
const { external_labels: _, ...push } = pushOptions(endpointNames)
export const endpoint: ComponentMapping = {
  name: 'endpoint',
  becomes: '`log_aggregator`',
  options: {
    ...push,
    min_backoff_period: '`request.retry_initial_backoff_secs`',
    max_backoff_period: '`request.retry_max_duration_secs`',
    max_backoff_retries:
      '`request.retry_attempts`; without it the sink retries without limit, where Alloy gives up after ten tries',
  },
  itself: {
    ...pushItself,
    queue_config: 'events wait in the `buffer` of the sink',
  },
}

const account = 'the agent uses its service account'
const own = 'the source reads the pods of its own node'
const forward = { forward_to: 'the `inputs` of what it names' } as const
const kubernetesClient = { client: account, clustering: own } as const

export const components: readonly ComponentMapping[] = [
  {
    name: 'discovery.kubernetes',
    becomes: '`orchestrator_logs` behind a source of logs, for the role `pod`',
    options: { role: '`pod`', namespaces: 'selectors', selectors: 'selectors' },
    itself: {
      attach_metadata: 'the source adds the labels of nodes and namespaces',
      kubeconfig_file: account,
      api_server: account,
      basic_auth: account,
      bearer_token: account,
      bearer_token_file: account,
      authorization: account,
      tls_config: account,
      proxy_url: account,
      follow_redirects: account,
      enable_http2: account,
    },
  },
  {
    name: 'discovery.relabel',
    becomes: 'statements of a remap transform; selectors of the source for rules that keep or drop pods by one label',
    options: { targets: 'the source', rule: 'a statement' },
    blocks: ['rule'],
  },
  {
    name: 'local.file_match',
    becomes: '`file`',
    options: { path_targets: '`include` and labels', ignore_older_than: '`ignore_older_secs`' },
    itself: { sync_period: 'new files are seen when they appear' },
  },
  {
    name: 'loki.source.file',
    becomes: '`orchestrator_logs` for targets of pods, `file` for others',
    options: {
      ...forward,
      targets: 'what is read',
      encoding: '`encoding`',
      tail_from_end: '`read_from`',
    },
    itself: {
      file_watch: 'the source watches and reads at intervals',
      file_match: 'new files are seen when they appear',
      legacy_positions_file: 'positions are kept by themselves',
      on_positions_file_error: 'positions are kept by themselves',
    },
  },
  {
    name: 'loki.source.kubernetes',
    becomes: '`orchestrator_logs`, which reads the files of the node in place of the API server',
    options: { ...forward, targets: 'the pods' },
    itself: kubernetesClient,
  },
  {
    name: 'loki.source.podlogs',
    becomes: '`orchestrator_logs`, and a gap for the rules in PodLogs',
    options: forward,
    itself: { ...kubernetesClient, node_filter: own },
  },
  {
    name: 'loki.source.kubernetes_events',
    becomes: '`orchestrator_events` with `include_object`, and the line of Alloy',
    options: {
      ...forward,
      job_name: 'the label `job`',
      namespaces: '`namespaces`',
      log_format: '`logfmt` or `json`',
    },
    itself: { client: account },
  },
  {
    name: 'loki.process',
    becomes: 'a program of remap, with a comment for each stage',
    options: forward,
    blocks: ['stage'],
  },
  {
    name: 'loki.relabel',
    becomes: 'a program of remap',
    options: { ...forward, rule: 'a statement' },
    blocks: ['rule'],
    itself: { max_cache_size: 'programs keep nothing' },
  },
  {
    name: 'loki.write',
    becomes: '`log_aggregator` for each endpoint',
    options: { endpoint: 'a sink', external_labels: 'labels that an event lacks' },
    blocks: ['endpoint'],
    itself: {
      max_streams: 'streams are limited by Loki',
      wal: 'events wait in the `buffer` of the sink; `type: disk` survives a restart',
    },
  },
  { name: 'loki.echo', becomes: '`console`', options: {} },
]

export const ruleBlock: ComponentMapping = { name: 'rule', becomes: 'a statement', options: ruleOptions }

const none = (name: string, reason: string, nearest: string): Refusal => ({ name, reason, nearest })
const host = 'Keep Alloy for it, or let the program write to a file that a `file` source reads.'
const listening = 'Keep Alloy for it; Penstock reads files, queues and the logs of pods.'
const pulled = 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`), or keep Alloy for it.'
const scraping =
  'Keep Alloy or a Prometheus server for metrics. Sources of metrics here: `webserver_metrics`, `eventstore_metrics`, `internal_metrics`; `remote_write_metrics` sends them.'

/** Sources of logs without a counterpart: a source that reads nothing is in their place. */
export const refusedSources: readonly Refusal[] = [
  none('loki.source.journal', 'there is no source of the journal', host),
  ...['syslog', 'api', 'gelf', 'heroku', 'awsfirehose', 'cloudflare'].map((name) =>
    none(`loki.source.${name}`, 'there is no source that listens for it', listening),
  ),
  ...['kafka', 'gcplog', 'azure_event_hubs'].map((name) =>
    none(`loki.source.${name}`, 'there is no source for the protocol', pulled),
  ),
  none(
    'loki.source.docker',
    'there is no source of the Docker daemon',
    'Read the files of the containers by a `file` source, or pods by `orchestrator_logs`.',
  ),
  none('loki.source.windowsevent', 'there are no agents for nodes with Windows', 'Keep Alloy on these nodes.'),
]

/** Other components, by their names or what these begin with. */
export const refusedComponents: readonly Refusal[] = [
  none('prometheus.', 'metrics of other programs are not scraped', scraping),
  none(
    'otelcol.',
    'there is no source or sink of the protocol',
    'Read pods by `orchestrator_logs`, and send to `log_aggregator` or `http`; keep Alloy for traces.',
  ),
  none(
    'discovery.',
    'targets are not asked for',
    'Give the paths to a `file` source, or read pods by `orchestrator_logs`.',
  ),
  none('loki.rules.', 'rules of the destination are no part of an agent', 'Keep Alloy for them.'),
  none(
    'loki.secretfilter',
    'no function knows the forms of secrets',
    'Mask them by their form in a remap transform, as examples/mask-secrets does.',
  ),
  none('loki.enrich', 'a Pipeline has no tables of targets', 'Set fields in a remap transform.'),
  none('mimir.', 'rules of the destination are no part of an agent', 'Keep Alloy for them.'),
  none('pyroscope.', 'profiles are not collected', 'Keep Alloy for them.'),
  none('faro.', 'there is no source that listens for it', listening),
  none('beyla.', 'traces are not collected', 'Keep Alloy for them.'),
  none('database_observability.', 'databases are not asked', 'Keep Alloy for them.'),
  none(
    'import.',
    'configurations in other places are not read',
    'Write what it brings in the file, and convert again.',
  ),
  {
    name: 'foreach',
    reason: 'its list is not written out, so only Alloy knows the items',
    nearest: 'Write the components for each item, and convert again.',
    isHere: true,
  },
  none('argument', 'a module has no values here', 'Write the values in their places.'),
  none('export', 'a module exports nothing here', 'Leave it out.'),
]

/** Blocks whose work the agent and the operator do in their own way. */
export const replacedBlocks: Readonly<Record<string, string>> = {
  logging: 'the agent logs by itself; `logLevel` of the Agent',
  livedebugging: '`penstock tap` shows events',
  tracing: 'the agent sends no traces',
  http: 'the agent listens by itself',
  remotecfg: 'the operator brings changes to agents',
  'prometheus.exporter.self': 'the agent has its own metrics at /metrics',
  'local.file': 'its content becomes a key of the Secret',
  'remote.kubernetes.secret': 'its keys become keys of the Secret',
  'remote.kubernetes.configmap': 'its keys become keys of the Secret',
  'remote.vault': 'its keys become keys of the Secret',
  'remote.http': 'its content becomes a key of the Secret',
  'remote.s3': 'its content becomes a key of the Secret',
}
