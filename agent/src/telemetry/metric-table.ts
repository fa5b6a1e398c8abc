// Every metric of the agent with its type, help and labels. `/metrics` shows the names bare, or after `api.metric_prefix`; only the
// calls that count repeat them.

export type MetricType = 'counter' | 'gauge' | 'histogram'

export interface MetricDefinition {
  readonly type: MetricType
  /** One sentence for the reference and for `# HELP`. */
  readonly help: string
  /** Labels besides those of the component. */
  readonly labels: readonly string[]
  /** False for metrics of the agent as a whole. */
  readonly component: boolean
  /** The metric that it repeats under an old name. */
  readonly twinOf?: string
}

type Extra = Partial<Pick<MetricDefinition, 'component' | 'twinOf'>>

const define =
  (type: MetricType) =>
  (help: string, labels: readonly string[] = [], extra: Extra = {}): MetricDefinition => ({
    type,
    help,
    labels,
    component: true,
    ...extra,
  })
const counter = define('counter')
const gauge = define('gauge')
const histogram = define('histogram')

/** Tags for the origin of events. */
export const originLabels = [
  'container_name',
  'file',
  'mode',
  'peer_addr',
  'peer_path',
  'pod_name',
  'pod_namespace',
  'uri',
] as const
const origin = originLabels
const agent = { component: false }
const errorLabels = ['error_code', 'error_type', 'stage']
const buffer = ['buffer_id', 'stage']

const deprecated = (name: string, labels: readonly string[]): MetricDefinition =>
  counter(`Deprecated; use ${name}.`, labels, { twinOf: name })

/** Every metric of the agent. */
export const metricTable = {
  // Every component.
  component_received_bytes_total: counter('Raw bytes accepted from the origin of a source.', [
    'protocol',
    'endpoint',
    'uri',
    'file',
    'pod_name',
    'container_name',
    'pod_namespace',
    'peer_addr',
  ]),
  component_received_events_total: counter('Events accepted.', origin),
  component_received_event_bytes_total: counter('Estimated JSON size of the events accepted, in bytes.', origin),
  component_received_events_count: histogram('Events per batch inside the agent (not the batch of a sink).'),
  component_sent_bytes_total: counter('Raw bytes sent to the destination, after compression.', [
    'protocol',
    'endpoint',
    'file',
  ]),
  component_sent_events_total: counter('Events emitted.', ['output']),
  component_sent_event_bytes_total: counter('Estimated JSON size of the events emitted, in bytes.', ['output']),
  byte_lane_events_total: counter(
    'Events of programs that may leave a text as bytes: `bytes`: left so; `few_shapes`: made as objects, because generated code is faster for lines of few shapes, or components ask for the fields; `text`: made as objects, because the text is odd.',
    ['reason'],
  ),
  component_errors_total: counter('Errors.', [...errorLabels, 'endpoint']),
  component_discarded_events_total: counter(
    'Events that will not go on: intentional (`true`), such as by a filter, or because of an error (`false`).',
    ['intentional'],
  ),
  utilization: gauge('Part of its time in which the component works, from 0 to 1: a moving average.'),
  source_lag_time_seconds: histogram('Seconds between the timestamp of an event and its arrival.'),
  log_lag_seconds: gauge(
    'Seconds since the oldest line was written that waits in a log file to be read; 0: none waits.',
  ),
  source_send_latency_seconds: histogram('Seconds for which a source was held back when it handed on a batch.'),

  // Buffers of sinks.
  buffer_received_events_total: counter('Events taken in by the buffer.', buffer),
  buffer_received_event_bytes_total: counter('Bytes taken in by the buffer.', buffer),
  buffer_sent_events_total: counter('Events handed out by the buffer.', buffer),
  buffer_sent_event_bytes_total: counter('Bytes handed out by the buffer.', buffer),
  buffer_discarded_events_total: counter(
    'Events dropped by a buffer that does not block (`true`), or lost by one on disk (`false`).',
    [...buffer, 'intentional'],
  ),
  buffer_discarded_event_bytes_total: counter('Bytes dropped by a buffer that does not block.', [
    ...buffer,
    'intentional',
  ]),
  buffer_errors_total: counter('Errors of the buffer.', ['buffer_id', ...errorLabels]),
  buffer_events: gauge('Events in the buffer.', buffer),
  buffer_byte_size: gauge('Bytes in the buffer.', buffer),
  buffer_max_event_size: gauge('Most events that the buffer holds.', buffer),
  buffer_max_byte_size: gauge('Most bytes that the buffer holds.', buffer),

  // Requests of HTTP sinks.
  http_client_requests_sent_total: counter('Requests sent.', ['method']),
  http_client_responses_total: counter('Responses received.', ['status']),
  http_client_rtt_seconds: histogram('Round-trip time of requests, in seconds.'),
  http_client_response_rtt_seconds: histogram('Round-trip time of requests that were answered, in seconds.', [
    'status',
  ]),
  http_client_errors_total: counter('Requests that were not answered.', ['error_kind']),
  http_client_error_rtt_seconds: histogram('Time until a request failed, in seconds.', ['error_kind']),
  adaptive_concurrency_limit: gauge('Requests that may be in flight.'),
  adaptive_concurrency_in_flight: histogram('Requests in flight when one was sent.'),
  adaptive_concurrency_observed_rtt: histogram('Round-trip time of single requests, in seconds.'),
  adaptive_concurrency_averaged_rtt: histogram('Mean round-trip time of a window, in seconds.'),
  adaptive_concurrency_past_rtt_mean: histogram('Moving average of round-trip times, in seconds.'),
  adaptive_concurrency_reached_limit: histogram('Whether the limit was reached in a window, 1 or 0.'),
  adaptive_concurrency_back_pressure: histogram('Whether the destination pushed back in a window, 1 or 0.'),
  active_endpoints: gauge('Endpoints that are in use, of those configured.'),
  http_bad_requests_total: counter('Requests that the destination answered with 400.'),
  streams_total: counter('Streams sent to the log aggregator.'),
  rewritten_timestamp_events_total: counter('Events whose timestamp was moved up to keep their stream in order.'),

  // Transforms.
  tag_value_limit_exceeded_total: counter('Tags of metric events with a value beyond `value_limit`.'),

  // Sources that scrape or consume.
  http_error_response_total: counter('Responses of a scraped address that were not 200.', ['endpoint']),
  http_request_errors_total: counter('Requests to a scraped address that failed.', ['endpoint']),
  parse_errors_total: counter('Values of a scraped address that could not be read.', ['endpoint']),
  sqs_message_delete_failed_total: counter('Messages that could not be deleted from the queue.'),
  consumer_offset_updates_failed_total: counter('Acknowledgements that the broker did not take.'),

  // Files.
  open_files: gauge('Files held open.'),
  shared_reads_total: counter('Chunks of files that another pipeline of the agent had read already.'),
  shared_read_bytes: gauge(
    'Bytes of chunks that were read, and of what was parsed of them, that wait for other pipelines.',
  ),
  files_added_total: counter('Files found and watched from their beginning.', ['file']),
  files_resumed_total: counter('Files found and watched from a checkpoint.', ['file']),
  files_unwatched_total: counter('Files that are watched no more.', ['file']),
  files_deleted_total: counter('Files deleted after they were read.', ['file']),
  checkpoints_total: counter('Positions of files written to disk.'),
  checksum_errors_total: counter('Files too short to fingerprint.', ['file']),
  fingerprint_read_errors_total: counter('Files whose beginning could not be read.', ['file']),
  file_delete_errors_total: counter('Files that could not be deleted.', ['file']),
  k8s_docker_format_parse_failures_total: counter('Lines that are not valid in the docker format.'),
  k8s_event_annotation_failures_total: counter('Events whose pod was not known.'),
  k8s_event_namespace_annotation_failures_total: counter('Events whose namespace was not known.'),
  k8s_event_node_annotation_failures_total: counter('Events whose node was not known.'),
  k8s_format_picker_edge_cases_total: counter('Lines from which the format of the log could not be detected.'),
  k8s_merged_line_truncated_total: counter('Merged lines that were too long.'),
  k8s_pod_metadata_reduced_total: counter(
    'Times that the agent kept less of a pod than there is, because its namespace has taken its share.',
  ),
  k8s_reflector_relists_total: counter('Times a list of the Kubernetes API was read anew.', ['resource']),

  log_bytes_written_total: counter('Bytes written to the log files that are read, by their sizes.', ['namespace']),
  log_bytes_lost_total: counter('Bytes of log files that were given up before they were read.', [
    'namespace',
    'reason',
  ]),
  rate_limited_lines_total: counter('Lines dropped because a container or pipeline is over its limit.', ['limit']),

  // The agent with a bundle.
  config_revision_info: gauge('Constant 1; the label is the revision of the active bundle.', ['revision'], agent),
  config_last_reload_success: gauge('Whether all of the last bundle could be put in force, 1 or 0.', [], agent),
  config_reloads_total: counter('Bundles put in force, wholly or in part.', ['result'], agent),
  config_pipelines: gauge('Pipelines of the bundle.', ['state'], agent),
  config_delivery_info: gauge(
    'Constant 1; the label is the delivery of the active bundle: mounted or stream.',
    ['delivery'],
    agent,
  ),
  config_stream_failures_total: counter('Times that the operator could not be asked for the bundle.', [], agent),
  buffer_utilization: gauge('Part of the fullest buffer of a sink that is taken, from 0 to 1.', [], agent),
  singleton_leader: gauge(
    'Whether this agent is the one of several that runs the sources of which one runs each, 1 or 0.',
    [],
    agent,
  ),
  singleton_lease_failures_total: counter(
    'Times that the Lease by which agents choose one of them could not be read or written.',
    [],
    agent,
  ),
  heartbeat_failures_total: counter('Heartbeats that the operator did not accept.', [], agent),

  // The agent.
  started_total: counter('Starts of the agent.', [], agent),
  stopped_total: counter('Stops of the agent.', [], agent),
  quit_total: counter('Stops of the agent that did not wait.', [], agent),
  uptime_seconds: gauge('Seconds since the start.', [], agent),
  build_info: gauge('Constant 1; the labels identify the build.', ['version', 'arch', 'revision'], agent),
  reloads_total: counter('Configurations put in force while running.', [], agent),
  config_reloaded_total: counter('Configurations put in force while running.', [], {
    component: false,
    twinOf: 'reloads_total',
  }),
  config_reload_rejected_total: counter('Configurations refused while running.', ['reason'], agent),
  config_load_errors_total: counter('Configurations that could not be read.', [], agent),
  recover_errors_total: counter('Times the configuration in force could not be built again.', [], agent),
  api_started_total: counter('Starts of the observation server.', [], agent),
  process_resident_memory_bytes: gauge('Memory of the process, in bytes.', [], agent),
  event_loop_stall_seconds: histogram('Seconds for which the event loop stood still, from one second on.', [], agent),
  process_cpu_seconds_total: counter('CPU time of the process, in seconds.', [], agent),
  data_dir_size_bytes: gauge('Size of the file system of `data_dir`, in bytes.', [], agent),
  data_dir_available_bytes: gauge('Space that is left on the file system of `data_dir`, in bytes.', [], agent),
  metric_series_limited_total: counter(
    'Series that were not made because their metric has 10,000, or all metrics take 32 MiB. Labels with names of files, pods, namespaces and addresses have the value `other` in their place.',
    ['metric'],
    agent,
  ),

  // Old names.
  events_in_total: deprecated('component_received_events_total', origin),
  events_out_total: deprecated('component_sent_events_total', ['output']),
  processed_events_total: deprecated('component_received_events_total', origin),
  processed_bytes_total: deprecated('component_received_bytes_total or component_sent_bytes_total', []),
  processing_errors_total: deprecated('component_errors_total', errorLabels),
  events_discarded_total: deprecated('component_discarded_events_total', ['intentional']),
} satisfies Record<string, MetricDefinition>
