// All metrics of the agent, with their types, help and labels. `/metrics` shows the names, after `api.metric_prefix` if it is set. Only the
// code that updates a metric repeats its name.

export type MetricType = 'counter' | 'gauge' | 'histogram'

export interface MetricDefinition {
  readonly type: MetricType
  /** One sentence for the reference and for `# HELP`. */
  readonly help: string
  /** Labels in addition to those of the component. */
  readonly labels: readonly string[]
  /** False for metrics of the agent as a whole. */
  readonly component: boolean
  /** The metric for which this is an old name. */
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

/** All metrics of the agent. */
export const metricTable = {
  // All components.
  component_received_bytes_total: counter('Raw bytes received from the origin of a source.', [
    'protocol',
    'endpoint',
    'uri',
    'file',
    'pod_name',
    'container_name',
    'pod_namespace',
    'peer_addr',
  ]),
  component_received_events_total: counter('Events received.', origin),
  component_received_event_bytes_total: counter('Estimated JSON size of the events received, in bytes.', origin),
  component_received_events_count: histogram('Number of events in a batch inside the agent (not the batch of a sink).'),
  component_sent_bytes_total: counter('Raw bytes sent to the destination, after compression.', [
    'protocol',
    'endpoint',
    'file',
  ]),
  component_sent_events_total: counter('Events emitted.', ['output']),
  component_sent_event_bytes_total: counter('Estimated JSON size of the events emitted, in bytes.', ['output']),
  byte_lane_events_total: counter(
    'Events of programs that can process a text as bytes, by outcome: `bytes`, processed as bytes; `few_shapes`, converted to objects, because generated code is faster for lines of few shapes or components need the fields; `text`, converted to objects, because of unusual text.',
    ['reason'],
  ),
  component_errors_total: counter('Errors.', [...errorLabels, 'endpoint']),
  component_discarded_events_total: counter(
    'Discarded events: intentionally (`true`), such as by a filter, or because of an error (`false`).',
    ['intentional'],
  ),
  utilization: gauge('Fraction of time that the component is busy, from 0 to 1, as a moving average.'),
  source_lag_time_seconds: histogram('Seconds between the timestamp of an event and its arrival.'),
  log_lag_seconds: gauge(
    'Seconds since the oldest unread line was written to a log file; 0 if there are no unread lines.',
  ),
  source_send_latency_seconds: histogram('Seconds that a source waited to send a batch because of back-pressure.'),

  // Buffers of sinks.
  buffer_received_events_total: counter('Events received by the buffer.', buffer),
  buffer_received_event_bytes_total: counter('Bytes received by the buffer.', buffer),
  buffer_sent_events_total: counter('Events sent by the buffer.', buffer),
  buffer_sent_event_bytes_total: counter('Bytes sent by the buffer.', buffer),
  buffer_discarded_events_total: counter(
    'Events dropped by a buffer that does not block (`true`), or lost by a disk buffer (`false`).',
    [...buffer, 'intentional'],
  ),
  buffer_discarded_event_bytes_total: counter('Bytes dropped by a buffer that does not block.', [
    ...buffer,
    'intentional',
  ]),
  buffer_errors_total: counter('Errors of the buffer.', ['buffer_id', ...errorLabels]),
  buffer_events: gauge('Events in the buffer.', buffer),
  buffer_byte_size: gauge('Bytes in the buffer.', buffer),
  buffer_max_event_size: gauge('Maximum number of events in the buffer.', buffer),
  buffer_max_byte_size: gauge('Maximum size of the buffer in bytes.', buffer),

  // Requests of HTTP sinks.
  http_client_requests_sent_total: counter('Requests sent.', ['method']),
  http_client_responses_total: counter('Responses received.', ['status']),
  http_client_rtt_seconds: histogram('Round-trip time of requests, in seconds.'),
  http_client_response_rtt_seconds: histogram('Round-trip time of requests with a response, in seconds.', ['status']),
  http_client_errors_total: counter('Requests without a response.', ['error_kind']),
  http_client_error_rtt_seconds: histogram('Time until a request failed, in seconds.', ['error_kind']),
  adaptive_concurrency_limit: gauge('Maximum number of concurrent requests.'),
  adaptive_concurrency_in_flight: histogram('Number of concurrent requests when a request was sent.'),
  adaptive_concurrency_observed_rtt: histogram('Round-trip times of individual requests, in seconds.'),
  adaptive_concurrency_averaged_rtt: histogram('Mean round-trip time in a window, in seconds.'),
  adaptive_concurrency_past_rtt_mean: histogram('Moving average of round-trip times, in seconds.'),
  adaptive_concurrency_reached_limit: histogram('Whether the limit was reached in a window, 1 or 0.'),
  adaptive_concurrency_back_pressure: histogram('Whether the destination signaled back-pressure in a window, 1 or 0.'),
  active_endpoints: gauge('Number of configured endpoints that are in use.'),
  http_bad_requests_total: counter('Requests that the destination rejected with status 400.'),
  streams_total: counter('Streams sent to the log aggregator.'),
  rewritten_timestamp_events_total: counter('Events whose timestamp was increased to keep their stream in order.'),

  // Transforms.
  tag_value_limit_exceeded_total: counter('Tag values of metric events beyond `value_limit`.'),

  // Sources that scrape or consume.
  http_error_response_total: counter('Responses of a scraped address with a status other than 200.', ['endpoint']),
  http_request_errors_total: counter('Failed requests to a scraped address.', ['endpoint']),
  parse_errors_total: counter('Values from a scraped address that could not be parsed.', ['endpoint']),
  sqs_message_delete_failed_total: counter('Messages that could not be deleted from the queue.'),
  consumer_offset_updates_failed_total: counter('Acknowledgements that the broker did not accept.'),

  // Files.
  open_files: gauge('Number of open files.'),
  shared_reads_total: counter('Chunks of files that another pipeline of the agent had already read.'),
  sink_wait_seconds: gauge(
    "Seconds since a sink's full buffer last accepted events, while its inputs wait for it; 0 if none waits. A source that waits also sends nothing to its other sinks.",
  ),
  shared_read_bytes: gauge('Bytes of chunks and their parsed content that are kept for other pipelines.'),
  files_added_total: counter('Files found and read from the beginning.', ['file']),
  files_resumed_total: counter('Files found and read from a checkpoint.', ['file']),
  files_unwatched_total: counter('Files no longer watched.', ['file']),
  files_deleted_total: counter('Files deleted after they were read.', ['file']),
  checkpoints_total: counter('File positions written to disk.'),
  checksum_errors_total: counter('Files too short to fingerprint.', ['file']),
  fingerprint_read_errors_total: counter('Files whose beginning could not be read.', ['file']),
  file_delete_errors_total: counter('Files that could not be deleted.', ['file']),
  k8s_docker_format_parse_failures_total: counter('Invalid lines in the docker format.'),
  k8s_event_annotation_failures_total: counter('Events with an unknown pod.'),
  k8s_event_namespace_annotation_failures_total: counter('Events with an unknown namespace.'),
  k8s_event_node_annotation_failures_total: counter('Events with an unknown node.'),
  k8s_format_picker_edge_cases_total: counter('Lines whose log format could not be detected.'),
  k8s_merged_line_truncated_total: counter('Merged lines that exceeded the maximum length.'),
  k8s_pod_metadata_reduced_total: counter(
    'Times that the agent kept reduced metadata of a pod, because its namespace had reached its memory share.',
  ),
  k8s_reflector_relists_total: counter('Times that the agent read a list from the Kubernetes API again.', ['resource']),

  log_bytes_written_total: counter('Bytes written to the log files, calculated from their sizes.', ['namespace']),
  log_bytes_lost_total: counter('Bytes of log files that were lost before the agent read them.', [
    'namespace',
    'reason',
  ]),
  rate_limited_lines_total: counter('Lines dropped because a container or pipeline exceeded its rate limit.', [
    'limit',
  ]),

  // The agent with a bundle.
  config_revision_info: gauge('Constant 1. The label is the revision of the active bundle.', ['revision'], agent),
  config_last_reload_success: gauge('Whether the agent activated the last bundle completely, 1 or 0.', [], agent),
  config_reloads_total: counter('Bundles activated, completely or partly.', ['result'], agent),
  config_pipelines: gauge('Number of pipelines in the bundle, by state.', ['state'], agent),
  config_delivery_info: gauge(
    'Constant 1. The label is the delivery of the active bundle: mounted or stream.',
    ['delivery'],
    agent,
  ),
  config_stream_failures_total: counter('Failed requests to the operator for the bundle.', [], agent),
  buffer_utilization: gauge('Utilization of the fullest sink buffer, from 0 to 1.', [], agent),
  singleton_leader: gauge('Whether this replica is the leader, which runs the singleton sources, 1 or 0.', [], agent),
  singleton_lease_failures_total: counter('Failures to read or write the Lease that elects the leader.', [], agent),
  heartbeat_failures_total: counter('Heartbeats that the operator did not accept.', [], agent),

  // The agent.
  started_total: counter('Starts of the agent.', [], agent),
  stopped_total: counter('Stops of the agent.', [], agent),
  quit_total: counter('Immediate stops of the agent, without waiting.', [], agent),
  uptime_seconds: gauge('Seconds since the agent started.', [], agent),
  build_info: gauge('Constant 1. The labels identify the build.', ['version', 'arch', 'revision'], agent),
  reloads_total: counter('Configurations activated while running.', [], agent),
  config_reloaded_total: counter('Configurations activated while running.', [], {
    component: false,
    twinOf: 'reloads_total',
  }),
  config_reload_rejected_total: counter('Configurations rejected while running.', ['reason'], agent),
  config_load_errors_total: counter('Configurations that could not be read.', [], agent),
  recover_errors_total: counter('Failures to rebuild the active configuration.', [], agent),
  api_started_total: counter('Starts of the observation server.', [], agent),
  process_resident_memory_bytes: gauge('Memory of the process, in bytes.', [], agent),
  event_loop_stall_seconds: histogram('Stalls of the event loop of at least one second, in seconds.', [], agent),
  process_cpu_seconds_total: counter('CPU time of the process, in seconds.', [], agent),
  data_dir_size_bytes: gauge('Size of the file system of `data_dir`, in bytes.', [], agent),
  data_dir_available_bytes: gauge('Space that is left on the file system of `data_dir`, in bytes.', [], agent),
  metric_series_limited_total: counter(
    'Series that were not created, because their metric has 10,000 series or all metrics use 32 MiB. Their labels for files, pods, namespaces and addresses get the value `other`.',
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
