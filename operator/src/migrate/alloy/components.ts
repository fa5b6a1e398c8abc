// The Alloy components that are converted, with the counterpart of each and of its options; and the components without a counterpart.

import { type PushNames, pushItself, pushOptions } from '../loki/push.ts'
import { decompression } from '../loki/refusals.ts'
import { ruleOptions } from '../loki/relabel.ts'
import { type Described, type Exception, none, type Refusal } from '../page.ts'

export interface ComponentMapping extends Described {
  readonly itself?: Readonly<Record<string, string | Exception>>
  /** Blocks that are read separately. */
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
      '`request.retry_attempts`; without it, the sink retries forever, whereas Alloy gives up after ten attempts',
  },
  itself: {
    ...pushItself,
    queue_config: 'events wait in the `buffer` of the sink',
  },
}

const account = 'the agent uses its service account'
const own = 'the source reads the pods of its own node'
const forward = { forward_to: 'the `inputs` of the named components' } as const
const kubernetesClient = { client: account, clustering: own } as const

export const components: readonly ComponentMapping[] = [
  {
    name: 'discovery.kubernetes',
    becomes: '`orchestrator_logs`, for the role `pod`, or `file`, for the role `node`, if a source of logs uses it',
    options: { role: '`pod`, `node`', namespaces: 'selectors', selectors: 'selectors' },
    itself: {
      attach_metadata: 'the source adds labels of nodes and namespaces',
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
    name: 'discovery.file',
    becomes: '`file` for each group of the files of targets, if they are among the given files',
    options: { files: 'the files of targets' },
    itself: { refresh_interval: 'the operator delivers changes to agents' },
  },
  {
    name: 'discovery.relabel',
    becomes:
      'statements of a remap transform; rules that keep or drop pods by one label become selectors of the source',
    options: { targets: 'the source', rule: 'a statement' },
    blocks: ['rule'],
  },
  {
    name: 'local.file_match',
    becomes: '`file`',
    options: { path_targets: '`include` and labels', ignore_older_than: '`ignore_older_secs`' },
    itself: { sync_period: 'the source finds new files when they appear' },
  },
  {
    name: 'loki.source.file',
    becomes: '`orchestrator_logs` for targets of pods, `file` for others',
    options: {
      ...forward,
      targets: 'the input of the source',
      encoding: '`encoding`',
      tail_from_end: '`read_from`',
      file_match: '`ignore_older_secs`',
    },
    itself: {
      decompression,
      file_watch: 'the source both watches and polls files',
      legacy_positions_file: 'the source keeps its own checkpoints',
      on_positions_file_error: 'the source keeps its own checkpoints',
    },
  },
  {
    name: 'loki.source.kubernetes',
    becomes: '`orchestrator_logs`, which reads the log files of the node instead of the API server',
    options: { ...forward, targets: 'the pods' },
    itself: kubernetesClient,
  },
  {
    name: 'loki.source.podlogs',
    becomes:
      'an `orchestrator_logs` source with a selector for each PodLogs resource among the files; a gap if there is none',
    options: {
      ...forward,
      selector: 'selects PodLogs in the files',
      namespace_selector: 'selects PodLogs by `kubernetes.io/metadata.name` of the namespace; a gap for other labels',
      tail_from_end: '`read_from`',
    },
    itself: { ...kubernetesClient, node_filter: own },
  },
  {
    name: 'loki.source.kubernetes_events',
    becomes: "`orchestrator_events` with `include_object`, and a program that writes Alloy's line",
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
    becomes: 'a remap program with a comment for each stage',
    options: forward,
    blocks: ['stage'],
  },
  {
    name: 'loki.relabel',
    becomes: 'a remap program',
    options: { ...forward, rule: 'a statement' },
    blocks: ['rule'],
    itself: { max_cache_size: 'programs need no cache' },
  },
  {
    name: 'loki.write',
    becomes: '`log_aggregator` for each endpoint',
    options: {
      endpoint: 'a sink',
      external_labels: 'labels that an event lacks',
      wal: '`buffer` of the sinks, on disk, if it is enabled',
    },
    blocks: ['endpoint'],
    itself: {
      max_streams: 'Loki limits streams',
    },
  },
  { name: 'loki.echo', becomes: '`console`', options: {} },
]

export const ruleBlock: ComponentMapping = { name: 'rule', becomes: 'a statement', options: ruleOptions }

const host = 'Keep Alloy for this input, or let the program write to a file that a `file` source reads.'
const listening = 'Keep Alloy for this input; Penstock reads files, queues and the logs of pods.'
const pulled = 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`), or keep Alloy for this input.'
const scraping =
  'Keep Alloy or a Prometheus server for metrics. Sources of metrics here: `webserver_metrics`, `eventstore_metrics`, `internal_metrics`; `remote_write_metrics` sends them.'

/** A file of targets that is not available. */
export const unreadTargets: Refusal = {
  name: 'discovery.file',
  reason: 'none of the files is a list of targets with this name',
  nearest: 'Pass the file of targets, too, and convert again. Or set the paths in a `file` source.',
  isHere: true,
}

/** Sources of logs without a counterpart. A source that reads nothing replaces them. */
export const refusedSources: readonly Refusal[] = [
  none('loki.source.journal', 'there is no source that reads the journal', host),
  ...['syslog', 'api', 'gelf', 'heroku', 'awsfirehose', 'cloudflare'].map((name) =>
    none(`loki.source.${name}`, 'there is no source that listens for this protocol', listening),
  ),
  ...['kafka', 'gcplog', 'azure_event_hubs'].map((name) =>
    none(`loki.source.${name}`, 'there is no source for this protocol', pulled),
  ),
  none(
    'loki.source.docker',
    'there is no source that reads from the Docker daemon',
    'Read the files of the containers with a `file` source, or pods with `orchestrator_logs`.',
  ),
  none('loki.source.windowsevent', 'there is no agent for Windows nodes', 'Keep Alloy on these nodes.'),
]

/** The option `write_to` of `logging`. */
export const ownLog = none(
  'logging.write_to',
  'the log of Alloy itself does not exist here',
  'Read the log of the agent with an `internal_logs` source.',
)

/** Other components, by name or prefix. */
export const refusedComponents: readonly Refusal[] = [
  none('prometheus.', 'Penstock does not scrape metrics of other programs', scraping),
  none(
    'discovery.',
    'Penstock has no service discovery of this kind',
    'Set the paths in a `file` source, or read pods with `orchestrator_logs`.',
  ),
  none('loki.rules.', 'an agent does not manage the rules of its destination', 'Keep Alloy for them.'),
  none(
    'loki.secretfilter',
    'no function has a catalogue of secret formats',
    'Mask them by pattern in a remap transform, as examples/mask-secrets does.',
  ),
  none('loki.enrich', 'a Pipeline cannot look up targets', 'Set fields in a remap transform.'),
  none('mimir.', 'an agent does not manage the rules of its destination', 'Keep Alloy for them.'),
  none('pyroscope.', 'Penstock does not collect profiles', 'Keep Alloy for them.'),
  none('faro.', 'there is no source that listens for this protocol', listening),
  none('beyla.', 'Penstock does not collect traces', 'Keep Alloy for them.'),
  none('database_observability.', 'Penstock does not query databases', 'Keep Alloy for them.'),
  {
    name: 'import.file',
    reason: 'the file that it names is not among the files, or it is not valid',
    nearest: 'Pass the file, too, and convert again.',
    isHere: true,
  },
  none(
    'import.',
    '`convert` does not read configurations from other places',
    'Copy its content into the file, and convert again.',
  ),
  {
    name: 'foreach',
    reason: 'its list is not a literal, so only Alloy knows the items',
    nearest: 'Write the components for each item, and convert again.',
    isHere: true,
  },
  none('argument', 'the argument of a module has no value outside of the module', 'Write the values in their places.'),
  none('export', 'an export has no meaning outside of a module', 'Remove it.'),
]

/** Blocks whose work the agent and the operator do in another way. */
export const replacedBlocks: Readonly<Record<string, string>> = {
  logging: 'the agent has its own log; set `logLevel` of the Agent',
  livedebugging: '`penstock tap` shows events',
  tracing: 'the agent sends no traces',
  http: 'the agent has its own API',
  remotecfg: 'the operator delivers changes to agents',
  'prometheus.exporter.self': 'the agent has its own metrics at /metrics',
  'local.file': 'its content becomes a key of the Secret',
  'remote.kubernetes.secret': 'its keys become keys of the Secret',
  'remote.kubernetes.configmap': 'its keys become keys of the Secret',
  'remote.vault': 'its keys become keys of the Secret',
  'remote.http': 'its content becomes a key of the Secret',
  'remote.s3': 'its content becomes a key of the Secret',
}
