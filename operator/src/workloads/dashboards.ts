// Dashboards of the chart. A test compares their metrics with those that the agent and the operator declare.

export interface Panel {
  readonly title: string
  /** The description for a reader, and when to act. */
  readonly description: string
  readonly expr: string
  readonly legend: string
  readonly unit: 'cps' | 'Bps' | 'bytes' | 'percentunit' | 's' | 'short' | 'dateTimeFromNow'
  readonly type?: 'timeseries' | 'stat'
  /** The thresholds for yellow and for red; `min`: red below this value; or the reason why no value is bad on its own. */
  readonly thresholds: readonly [number, number] | { readonly min: number } | string
}

export interface Variable {
  readonly name: string
  readonly label: string
  /** A metric whose label values are the choices. */
  readonly query: string
  readonly regex?: string
  /** The expression that matches all. */
  readonly all: string
}

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly variables: readonly Variable[]
  readonly panels: readonly Panel[]
}

/** Jobs of this product: the names of the monitors that the operator and the chart create. No other series are selected. */
export const ownJobs = '.*penstock.*'

const cluster: Variable = {
  name: 'cluster',
  label: 'Cluster',
  query: `label_values(up{job=~"${ownJobs}"}, cluster)`,
  all: '.*',
}

const agentVariables: readonly Variable[] = [
  cluster,
  {
    name: 'node',
    label: 'Node',
    query: `label_values(build_info{job=~"${ownJobs}", cluster=~"$cluster"}, node)`,
    all: '.*',
  },
  {
    name: 'namespace',
    label: 'Namespace',
    query: `label_values(component_received_events_total{job=~"${ownJobs}", cluster=~"$cluster"}, component_id)`,
    regex: '/^([^\\/]+)\\//',
    all: '.*',
  },
  {
    name: 'pipeline',
    label: 'Pipeline',
    query: `label_values(component_received_events_total{job=~"${ownJobs}", component_id=~"$namespace/.*"}, component_id)`,
    regex: '/^([^\\/]+\\/[^\\/]+)\\//',
    all: '.*',
  },
]

/** The rate at which a panel turns red if the value should be zero. */
const any = 0.001
const ofLoad = 'It follows the load.'
const ofAgents = 'Agents differ in what they may use.'

/** The selected agents. */
const agents = `job=~"${ownJobs}", cluster=~"$cluster", node=~"$node"`
/** The components of the selected Pipelines. */
const components = `${agents}, component_id=~"$namespace(/.*)?", component_id=~"$pipeline(/.*)?"`

const byComponent = 'sum by (component_id)'

const agentsDashboard: Dashboard = {
  uid: 'penstock-agents',
  title: 'Penstock / Agents',
  variables: agentVariables,
  panels: [
    {
      title: 'Agents that answer',
      description: 'Agents that Prometheus scrapes. The number falls when agents are down or not scraped.',
      expr: `sum(up{${agents}})`,
      legend: 'agents',
      unit: 'short',
      type: 'stat',
      thresholds: { min: 1 },
    },
    {
      title: 'Agents whose last configuration failed to load',
      description:
        'They continue with their previous configuration. `kubectl penstock status` shows the Pipelines and the messages.',
      expr: `count(config_last_reload_success{${agents}} == 0) or vector(0)`,
      legend: 'agents',
      unit: 'short',
      type: 'stat',
      thresholds: [1, 1],
    },
    {
      title: 'Events received',
      description: 'Events that sources have read.',
      expr: `${byComponent} (rate(component_received_events_total{${components}, component_kind="source"}[5m]))`,
      legend: '{{component_id}}',
      unit: 'cps',
      thresholds: ofLoad,
    },
    {
      title: 'Events delivered',
      description: 'Events accepted by destinations.',
      expr: `${byComponent} (rate(component_sent_events_total{${components}, component_kind="sink"}[5m]))`,
      legend: '{{component_id}}',
      unit: 'cps',
      thresholds: ofLoad,
    },
    {
      title: 'Bytes sent',
      description: 'Bytes of requests, after compression.',
      expr: `${byComponent} (rate(component_sent_bytes_total{${components}}[5m]))`,
      legend: '{{component_id}}',
      unit: 'Bps',
      thresholds: ofLoad,
    },
    {
      title: 'Events lost',
      description:
        'Events that failed, that a destination rejected, or that an agent had to drop. The log of the agent has the reasons.',
      expr: `${byComponent} (rate(component_discarded_events_total{${components}, intentional="false"}[5m]))`,
      legend: '{{component_id}}',
      unit: 'cps',
      thresholds: [any, any],
    },
    {
      title: 'Events discarded on purpose',
      description: 'Filters and programs discard events on purpose, and so do full buffers that may.',
      expr: `${byComponent} (rate(component_discarded_events_total{${components}, intentional="true"}[5m]))`,
      legend: '{{component_id}}',
      unit: 'cps',
      thresholds: 'Filters discard events on purpose.',
    },
    {
      title: 'Bytes lost before they were read, by reason',
      description: 'Log files that were rotated away or deleted before an agent had read them.',
      expr: `sum by (component_id, reason) (rate(log_bytes_lost_total{${components}}[5m]))`,
      legend: '{{component_id}} {{reason}}',
      unit: 'Bps',
      thresholds: [1, 1],
    },
    {
      title: 'Lines dropped by limits',
      description: '`limits` of Pipelines with `onLimit: Drop`.',
      expr: `sum by (component_id, limit) (rate(rate_limited_lines_total{${components}}[5m]))`,
      legend: '{{component_id}} {{limit}}',
      unit: 'cps',
      thresholds: 'The author of the Pipeline has chosen the limit.',
    },
    {
      title: 'Errors',
      description: 'Errors by type, including retried requests.',
      expr: `sum by (component_id, error_type) (rate(component_errors_total{${components}}[5m]))`,
      legend: '{{component_id}} {{error_type}}',
      unit: 'cps',
      thresholds: [any, 1],
    },
    {
      title: 'Part of buffers that is full',
      description:
        'The fullest buffer of a sink, by bytes or events. At 100 % its sources wait, or new events are discarded.',
      expr: `max by (component_id) (buffer_byte_size{${components}} / (buffer_max_byte_size{${components}} > 0)) or max by (component_id) (buffer_events{${components}} / (buffer_max_event_size{${components}} > 0))`,
      legend: '{{component_id}}',
      unit: 'percentunit',
      thresholds: [0.75, 0.9],
    },
    {
      title: 'Events waiting in buffers',
      description: 'Events that sinks hold in memory or on disk.',
      expr: `${byComponent} (buffer_events{${components}})`,
      legend: '{{component_id}}',
      unit: 'short',
      thresholds: 'Buffers differ in size; the panel before it shows how full they are.',
    },
    {
      title: 'Age of the oldest unread log line',
      description: 'A source that is far behind loses lines when their files are rotated away.',
      expr: `max by (component_id) (log_lag_seconds{${components}})`,
      legend: '{{component_id}}',
      unit: 's',
      thresholds: [60, 300],
    },
    {
      title: 'Reading delay, p99',
      description: '99th percentile of the time from an event to its reading.',
      expr: `histogram_quantile(0.99, sum by (component_id, le) (rate(source_lag_time_seconds_bucket{${components}}[5m])))`,
      legend: '{{component_id}}',
      unit: 's',
      thresholds: [60, 300],
    },
    {
      title: 'CPU of agents',
      description: 'Cores in use.',
      expr: `sum by (instance, node) (rate(process_cpu_seconds_total{${agents}}[5m]))`,
      legend: '{{node}} {{instance}}',
      unit: 'short',
      thresholds: ofAgents,
    },
    {
      title: 'Memory of agents',
      description: 'Resident memory of the process. Compare it with the memory limit of the Agent.',
      expr: `max by (instance, node) (process_resident_memory_bytes{${agents}})`,
      legend: '{{node}} {{instance}}',
      unit: 'bytes',
      thresholds: ofAgents,
    },
    {
      title: 'Part of the disk that is used',
      description:
        'The file system of the data folder, on most nodes that of the logs, too. With less than 10 % left, agents close deleted log files, and the kubelet evicts pods.',
      expr: `max by (instance, node) (1 - data_dir_available_bytes{${agents}} / (data_dir_size_bytes{${agents}} > 0))`,
      legend: '{{node}} {{instance}}',
      unit: 'percentunit',
      thresholds: [0.85, 0.9],
    },
    {
      title: 'Agents by revision of their configuration',
      description:
        'Two revisions at a time mean a rollout; a third one that stays means an agent without a connection to the operator.',
      expr: `count by (revision) (config_revision_info{${agents}})`,
      legend: '{{revision}}',
      unit: 'short',
      thresholds: 'A rollout has two revisions at a time.',
    },
    {
      title: 'Heartbeats that the operator did not accept',
      description: 'Agents without heartbeats count as silent, and rollouts wait for them.',
      expr: `sum by (instance) (rate(heartbeat_failures_total{${agents}}[5m]))`,
      legend: '{{instance}}',
      unit: 'cps',
      thresholds: [any, 0.1],
    },
  ],
}

const operators = `job=~"${ownJobs}", cluster=~"$cluster"`

const operatorDashboard: Dashboard = {
  uid: 'penstock-operator',
  title: 'Penstock / Operator',
  variables: [cluster],
  panels: [
    {
      title: 'Pipelines that are not ready',
      description: 'By reason. The guide explains each on its troubleshooting page.',
      expr: `max by (kind, reason) (penstock_conditions{${operators}, kind=~"Pipeline|ClusterPipeline", type="Ready", status="False"})`,
      legend: '{{kind}} {{reason}}',
      unit: 'short',
      thresholds: [1, 1],
    },
    {
      title: 'Agents by state',
      description: 'Desired, ready, with the newest revision, failed, and silent agents.',
      expr: `max by (agent, state) (penstock_agents{${operators}})`,
      legend: '{{agent}} {{state}}',
      unit: 'short',
      thresholds: 'The states are compared with each other.',
    },
    {
      title: 'Rollouts',
      description: 'State of the newest version of Pipelines: rolling out, rolled back, failed on nodes.',
      expr: `max by (kind, reason) (penstock_conditions{${operators}, type="Programmed", status="False"})`,
      legend: '{{kind}} {{reason}}',
      unit: 'short',
      thresholds: 'A rollout takes minutes; an alert fires when one was rolled back.',
    },
    {
      title: 'End of the certificate',
      description: 'The operator renews its own certificate after two thirds of its lifetime.',
      expr: `min(penstock_certificate_expiry_timestamp_seconds{${operators}}) * 1000`,
      legend: 'ends',
      unit: 'dateTimeFromNow',
      type: 'stat',
      thresholds: 'A date has none; an alert fires a week before the end.',
    },
    {
      title: 'Reconciles',
      description: 'Reconciles of the controllers, by result.',
      expr: `sum by (controller, result) (rate(controller_runtime_reconcile_total{${operators}}[5m]))`,
      legend: '{{controller}} {{result}}',
      unit: 'cps',
      thresholds: ofLoad,
    },
    {
      title: 'Waiting keys',
      description:
        'Objects waiting to be reconciled. A persistently high number means that the operator cannot keep up.',
      expr: `sum by (name) (workqueue_depth{${operators}})`,
      legend: '{{name}}',
      unit: 'short',
      thresholds: [100, 1000],
    },
    {
      title: 'Requests to the API server',
      description: 'By method and status code; 429 means that the API server throttles the operator.',
      expr: `sum by (method, code) (rate(rest_client_requests_total{${operators}}[5m]))`,
      legend: '{{method}} {{code}}',
      unit: 'cps',
      thresholds: ofLoad,
    },
    {
      title: 'Delay of the event loop, p99',
      description: 'Delay of webhooks and heartbeats.',
      expr: `max by (instance) (penstock_event_loop_delay_p99_seconds{${operators}})`,
      legend: '{{instance}}',
      unit: 's',
      thresholds: [0.2, 1],
    },
    {
      title: 'CPU of operators',
      description: 'Cores in use.',
      expr: `sum by (instance) (rate(process_cpu_seconds_total{${operators}}[5m]) and on (instance) penstock_event_loop_delay_p99_seconds{${operators}})`,
      legend: '{{instance}}',
      unit: 'short',
      thresholds: ofLoad,
    },
    {
      title: 'Memory of operators',
      description: 'Resident memory of the process.',
      expr: `max by (instance) (process_resident_memory_bytes{${operators}} and on (instance) penstock_event_loop_delay_p99_seconds{${operators}})`,
      legend: '{{instance}}',
      unit: 'bytes',
      thresholds: 'The limit is a value of the chart.',
    },
  ],
}

export const dashboards: readonly Dashboard[] = [agentsDashboard, operatorDashboard]
