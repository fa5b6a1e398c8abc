// The agent's own metrics: every name with its type, help and labels in one table, and the store of their values.
// A series is looked up once and then is a number to add to; reading happens only when somebody asks. `/metrics` shows the
// names bare; nothing else in the house spells them but the calls that count.
// Values of some labels come from data, such as names of files. Beyond a bound further values share the series of `other`, so that
// sums stay right: series that have long been idle are added to it first, then new ones go there.

export type MetricType = 'counter' | 'gauge' | 'histogram'

export interface MetricDefinition {
  readonly type: MetricType
  /** One sentence for the reference and for `# HELP`. */
  readonly help: string
  /** Labels beside those of the component. */
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

  // Sources that scrape or consume.
  http_error_response_total: counter('Responses of a scraped address that were not 200.', ['endpoint']),
  http_request_errors_total: counter('Requests to a scraped address that failed.', ['endpoint']),
  parse_errors_total: counter('Values of a scraped address that could not be read.', ['endpoint']),
  sqs_message_delete_failed_total: counter('Messages that could not be deleted from the queue.'),
  consumer_offset_updates_failed_total: counter('Acknowledgements that the broker did not take.'),

  // Files.
  open_files: gauge('Files held open.'),
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
  heartbeat_failures_total: counter('Heartbeats that the operator did not take.', [], agent),

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

export type MetricName = keyof typeof metricTable
export type Labels = Readonly<Record<string, string>>

/** Labels whose values come from data. */
const dataLabels: ReadonlySet<string> = new Set([
  'container_name',
  'endpoint',
  'file',
  'namespace',
  'peer_addr',
  'peer_path',
  'pod_name',
  'pod_namespace',
  'uri',
])
const otherValue = 'other'

/** Series of one metric, and estimated bytes of all series, that values from data may make. */
const maxSeries = 10_000
const maxSeriesBytes = 32 << 20
/** Bytes of a series beside the characters of its labels. */
const seriesBytes = 500
/** A series that did not change between two looks for room is idle. */
const lookForRoomMs = 600_000

/** Upper bounds of the agent's own histograms: 0.015625 · 2^n. */
export const histogramBounds: readonly number[] = Array.from({ length: 20 }, (_, index) => 0.015625 * 2 ** index)

/** A counter or gauge with its labels: a number that its component adds to. */
export class Series {
  readonly labels: Labels
  #value = 0
  readonly #read: (() => number) | undefined
  readonly #family: Family
  /** False once it was forgotten for being idle; the next change brings it back. */
  #listed = true
  /** Its mark at the last look for room. */
  lastMark = Number.NaN

  constructor(family: Family, labels: Labels, read?: () => number) {
    this.#family = family
    this.labels = labels
    this.#read = read
  }

  /** Worked out when it is read: nobody would bring it back once it was forgotten. */
  get computed(): boolean {
    return this.#read !== undefined
  }

  get value(): number {
    return this.#read === undefined ? this.#value : this.#read()
  }

  add(by: number): void {
    this.#value += by
    if (!this.#listed) this.#relist()
  }

  set(value: number): void {
    this.#value = value
    if (!this.#listed) this.#relist()
  }

  #relist(): void {
    this.#listed = true
    this.#family.list(this)
  }

  /** Hands its count over. */
  moveTo(other: Series): void {
    other.add(this.#value)
    this.#value = 0
  }

  /** Changes whenever the series does. */
  get mark(): number {
    return this.value
  }

  unlisted(): void {
    this.#listed = false
  }
}

/** A histogram with its labels. */
export class HistogramSeries {
  readonly labels: Labels
  /** Observations by the first bound that is not below them; the last is infinite. */
  readonly buckets = new Float64Array(histogramBounds.length + 1)
  sum = 0
  count = 0
  readonly #family: Family
  #listed = true
  /** Its mark at the last look for room. */
  lastMark = Number.NaN

  constructor(family: Family, labels: Labels) {
    this.#family = family
    this.labels = labels
  }

  observe(value: number): void {
    let index = 0
    while (index < histogramBounds.length && value > (histogramBounds[index] as number)) index++
    this.buckets[index] = (this.buckets[index] as number) + 1
    this.sum += value
    this.count++
    if (!this.#listed) {
      this.#listed = true
      this.#family.list(this)
    }
  }

  get mark(): number {
    return this.count
  }

  /** Hands its observations over. */
  moveTo(other: HistogramSeries): void {
    for (let index = 0; index < this.buckets.length; index++) {
      other.buckets[index] = (other.buckets[index] as number) + (this.buckets[index] as number)
    }
    other.sum += this.sum
    other.count += this.count
    this.buckets.fill(0)
    this.sum = 0
    this.count = 0
  }

  unlisted(): void {
    this.#listed = false
  }
}

type AnySeries = Series | HistogramSeries

/** All series of one metric. */
class Family {
  readonly name: string
  readonly definition: MetricDefinition
  readonly series = new Map<string, AnySeries>()
  /** What each series showed at the last sweep, for expiry. */
  readonly seen = new Map<string, { mark: number; since: number }>()
  /** Estimated bytes of all families. */
  readonly #total: { bytes: number }
  lookedForRoom = Number.NEGATIVE_INFINITY

  constructor(name: string, definition: MetricDefinition, total: { bytes: number }) {
    this.name = name
    this.definition = definition
    this.#total = total
  }

  list(series: AnySeries, key = seriesKey(series.labels)): void {
    if (!this.series.has(key)) this.#total.bytes += seriesBytes + 2 * key.length
    this.series.set(key, series)
    this.seen.delete(key)
  }

  unlist(key: string, series: AnySeries): void {
    this.series.delete(key)
    this.seen.delete(key)
    this.#total.bytes -= seriesBytes + 2 * key.length
    series.unlisted()
  }

  get full(): boolean {
    return this.series.size >= maxSeries || this.#total.bytes >= maxSeriesBytes
  }
}

/** The labels with `other` for values from data; undefined if there are none. */
function withoutData(labels: Labels): Labels | undefined {
  let limited: Record<string, string> | undefined
  for (const name in labels) {
    if (!dataLabels.has(name) || labels[name] === otherValue) continue
    limited ??= { ...labels }
    limited[name] = otherValue
  }
  return limited
}

function seriesKey(labels: Labels): string {
  const names = Object.keys(labels).sort()
  let key = ''
  // With their lengths: values may be data.
  for (const name of names) {
    const value = String(labels[name])
    key += `${name.length}:${name}${value.length}:${value}`
  }
  return key
}

/** One series as a reader sees it. */
export type Sample =
  | { readonly labels: Labels; readonly value: number }
  | {
      readonly labels: Labels
      readonly histogram: {
        readonly buckets: readonly { readonly upperLimit: number; readonly count: number }[]
        readonly sum: number
        readonly count: number
      }
    }

export interface MetricSnapshot {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly samples: readonly Sample[]
}

/** The metrics of one running agent. Counters go on through reloads. */
export class Metrics {
  readonly #families = new Map<string, Family>()
  readonly #total = { bytes: 0 }
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Estimated bytes of all series. */
  get bytes(): number {
    return this.#total.bytes
  }

  #family(name: string, type: MetricType): Family {
    let family = this.#families.get(name)
    if (family === undefined) {
      const definition = (metricTable as Record<string, MetricDefinition>)[name]
      if (definition === undefined) throw new TypeError(`The metric ${name} is not in the table of metrics.`)
      if (definition.type !== type) throw new TypeError(`The metric ${name} is a ${definition.type}, not a ${type}.`)
      family = new Family(name, definition, this.#total)
      this.#families.set(name, family)
    }
    return family
  }

  #series(name: string, type: 'counter' | 'gauge', labels: Labels, read?: () => number): Series {
    const family = this.#family(name, type)
    const key = seriesKey(labels)
    const known = family.series.get(key)
    if (known !== undefined && read === undefined) return known as Series
    if (read === undefined && family.full) {
      const limited = this.#limited(family, labels)
      if (limited !== undefined) return this.#series(name, type, limited)
    }
    const series = new Series(family, labels, read)
    family.list(series, key)
    return series
  }

  /** Labels for a series that its family has no room for; undefined if there is room, or must be. */
  #limited(family: Family, labels: Labels): Labels | undefined {
    const limited = withoutData(labels)
    if (limited === undefined) return undefined
    this.#makeRoom(family)
    if (!family.full) return undefined
    this.counter('metric_series_limited_total', { metric: family.name }).add(1)
    return limited
  }

  /** Adds idle series to those of `other`. */
  #makeRoom(family: Family): void {
    const now = this.#now()
    if (now - family.lookedForRoom < lookForRoomMs) return
    family.lookedForRoom = now
    for (const [key, series] of family.series) {
      const { mark } = series
      if (mark !== series.lastMark) {
        series.lastMark = mark
        continue
      }
      const limited = withoutData(series.labels)
      if (limited === undefined || (series instanceof Series && series.computed)) continue
      family.unlist(key, series)
      if (series instanceof HistogramSeries) series.moveTo(this.histogram(family.name, limited))
      else if (family.definition.type === 'counter') series.moveTo(this.counter(family.name, limited))
    }
  }

  counter(name: string, labels: Labels = {}): Series {
    return this.#series(name, 'counter', labels)
  }

  gauge(name: string, labels: Labels = {}): Series {
    return this.#series(name, 'gauge', labels)
  }

  /** A gauge or counter that is worked out when it is read. Takes the place of one with the same labels. */
  computed(name: string, labels: Labels, read: () => number): void {
    const type = (metricTable as Record<string, MetricDefinition>)[name]?.type
    this.#series(name, type === 'counter' ? 'counter' : 'gauge', labels, read)
  }

  histogram(name: string, labels: Labels = {}): HistogramSeries {
    const family = this.#family(name, 'histogram')
    const key = seriesKey(labels)
    const known = family.series.get(key)
    if (known !== undefined) return known as HistogramSeries
    if (family.full) {
      const limited = this.#limited(family, labels)
      if (limited !== undefined) return this.histogram(name, limited)
    }
    const series = new HistogramSeries(family, labels)
    family.list(series, key)
    return series
  }

  /** Sum over the series of a metric that carry these labels. */
  sum(name: string, labels: Labels = {}): number {
    const wanted = Object.entries(labels)
    let sum = 0
    for (const series of this.#families.get(name)?.series.values() ?? []) {
      if (series instanceof Series && wanted.every(([label, value]) => series.labels[label] === value)) {
        sum += series.value
      }
    }
    return sum
  }

  /** Sums of some counters for every component that has one. */
  byComponent<const N extends string>(
    names: readonly N[],
    counts: (labels: Labels) => boolean = () => true,
  ): Map<string, Record<N, number>> {
    const sums = new Map<string, Record<N, number>>()
    for (const name of names) {
      for (const series of this.#families.get(name)?.series.values() ?? []) {
        const id = series.labels['component_id']
        if (id === undefined || !(series instanceof Series) || !counts(series.labels)) continue
        let sum = sums.get(id)
        if (sum === undefined) {
          sum = Object.fromEntries(names.map((each) => [each, 0])) as Record<N, number>
          sums.set(id, sum)
        }
        sum[name] += series.value
      }
    }
    return sums
  }

  /** Everything there is now, old names included. */
  snapshot(): MetricSnapshot[] {
    const snapshots: MetricSnapshot[] = []
    for (const [name, definition] of Object.entries(metricTable) as [string, MetricDefinition][]) {
      const families = this.#origins(name, definition)
      const samples: Sample[] = []
      for (const family of families) for (const series of family.series.values()) samples.push(sample(series))
      if (samples.length > 0) snapshots.push({ name, type: definition.type, help: definition.help, samples })
    }
    return snapshots
  }

  #origins(name: string, definition: MetricDefinition): Family[] {
    const names =
      name === 'processed_bytes_total'
        ? ['component_received_bytes_total', 'component_sent_bytes_total']
        : [definition.twinOf ?? name]
    return names.map((origin) => this.#families.get(origin)).filter((family) => family !== undefined)
  }

  /**
   * Forgets series that have not changed for this time. Call it from time to time; a series continues from its
   * old value when it changes again.
   */
  expire(now: number, idleMs: number): void {
    for (const family of this.#families.values()) {
      if (!family.definition.component) continue
      for (const [key, series] of family.series) {
        if (series instanceof Series && series.computed) continue
        const mark = series.mark
        const seen = family.seen.get(key)
        if (seen === undefined || seen.mark !== mark) {
          family.seen.set(key, { mark, since: now })
        } else if (now - seen.since >= idleMs) {
          family.unlist(key, series)
        }
      }
    }
  }

  /** Forgets the series of a component that is gone. */
  forget(componentId: string): void {
    for (const family of this.#families.values()) {
      for (const [key, series] of family.series) {
        if (series.labels['component_id'] === componentId) family.unlist(key, series)
      }
    }
  }
}

function sample(series: AnySeries): Sample {
  if (series instanceof Series) return { labels: series.labels, value: series.value }
  const buckets = histogramBounds.map((upperLimit, index) => ({ upperLimit, count: series.buckets[index] as number }))
  buckets.push({ upperLimit: Number.POSITIVE_INFINITY, count: series.buckets[histogramBounds.length] as number })
  return { labels: series.labels, histogram: { buckets, sum: series.sum, count: series.count } }
}
