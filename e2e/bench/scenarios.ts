// The definitions of scenarios: a configuration file or an operator's bundle, input of standard lines, and the number of events that each
// sink must deliver.

import type { TestBundle } from '@penstock/agent/testing/bundle'

export interface Place {
  /** Folder of pod logs in the kubelet's layout. */
  readonly logsDir: string
  /** The same lines as one file. */
  readonly file: string
  readonly kubeConfig: string
  readonly dataDir: string
  /** Address of the receiving process. */
  readonly receiver: string
}

interface Described {
  readonly about: string
  /** Upper limit of CPU time per event, in P. */
  readonly target?: number
  /** Factor for the number of events, for scenarios in which an event costs so little that the start would dominate. */
  readonly scale?: number
  /** Lines per second written while the agent runs. By default, all lines exist before the start. */
  readonly pace?: number
  /** Paths at the receiver, each of which must receive all events. If empty, the agent ends by itself. */
  readonly paths: readonly string[]
}

interface ConfigScenario extends Described {
  readonly config: (place: Place) => object
}

/** An agent in operator mode runs it, with all of its pipelines. */
interface BundleScenario extends Described {
  readonly bundle: (place: Place) => TestBundle
}

export type Scenario = ConfigScenario | BundleScenario

const edits = '. = parse_json!(.message)\n.env = "prod"\n.host = "node-1"\ndel(.request_id)'

export const podLogs = (place: Place) => ({
  type: 'orchestrator_logs',
  logs_dir: place.logsDir,
  kube_config_file: place.kubeConfig,
  self_node_name: 'bench',
})

export const httpSink = (place: Place, path: string, inputs: string[], more: object = {}) => ({
  type: 'http',
  inputs,
  uri: `${place.receiver}${path}`,
  encoding: { codec: 'json' },
  framing: { method: 'newline_delimited' },
  batch: { max_bytes: 1_000_000, timeout_secs: 1 },
  request: { concurrency: 8 },
  buffer: { max_events: 10_000 },
  healthcheck: false,
  ...more,
})

const podsToHttp = (more: object) => (place: Place) => ({
  data_dir: place.dataDir,
  sources: { pods: podLogs(place) },
  transforms: { edit: { type: 'remap', inputs: ['pods'], source: edits, drop_on_error: true } },
  sinks: { out: httpSink(place, '/', ['edit'], more) },
})

/** Pipelines that read the same pods, with their own programs and sinks. */
function sharedPods(place: Place, programs: Readonly<Record<string, string>>): TestBundle {
  const names = Object.keys(programs)
  const id = (name: string, component: string) => `${name}/p/${component}`
  return {
    pipelines: Object.fromEntries(names.map((name) => [`${name}/p`, { uid: name, generation: 1, hash: name }])),
    subscriptions: names.map((name) => ({ cursor: `${name}/pods`, out: id(name, 'pods') })),
    transforms: Object.fromEntries(
      Object.entries(programs).map(([name, source]) => [
        id(name, 'edit'),
        { type: 'remap', inputs: [id(name, 'pods')], source, drop_on_error: true },
      ]),
    ),
    sinks: Object.fromEntries(names.map((name) => [id(name, 'out'), httpSink(place, `/${name}`, [id(name, 'edit')])])),
  }
}

export const scenarios = {
  tail: {
    about: 'file to `blackhole`, raw lines, checkpoints on',
    target: 0.25,
    scale: 2,
    paths: [],
    config: (place) => ({
      data_dir: place.dataDir,
      sources: { lines: { type: 'file', include: [place.file], read_to_end: true, max_line_bytes: 1_048_576 } },
      sinks: { out: { type: 'blackhole', inputs: ['lines'], buffer: { max_events: 10_000 } } },
    }),
  },
  'cri-json-http': {
    about: 'pod log lines, `parse_json` and 3 edits, `http` with NDJSON',
    target: 1.2,
    paths: ['/'],
    config: podsToHttp({}),
  },
  'object-lane': {
    about: '`cri-json-http` with objects instead of lines that stay bytes',
    target: 3.6,
    paths: ['/'],
    config: (place) => ({ ...podsToHttp({})(place), remap: { byte_lane: false } }),
  },
  'cri-json-http-gzip': { about: 'the same with gzip', paths: ['/'], config: podsToHttp({ compression: 'gzip' }) },
  'cri-json-http-zstd': {
    about: 'the same with zstd, level 1',
    paths: ['/'],
    config: podsToHttp({ compression: { algorithm: 'zstd', level: 1 } }),
  },
  'cri-json-disk': {
    about: '`cri-json-http` with a disk buffer',
    paths: ['/'],
    config: podsToHttp({ buffer: { type: 'disk', max_size: 2_000_000_000 } }),
  },
  'cri-json-loki': {
    about: 'the same to `log_aggregator` with 4 labels',
    paths: ['/loki/api/v1/push'],
    config: (place) => ({
      ...podsToHttp({})(place),
      sinks: {
        out: {
          type: 'log_aggregator',
          inputs: ['edit'],
          endpoint: place.receiver,
          labels: { env: '{{ env }}', service: '{{ service }}', level: '{{ level }}', region: '{{ region }}' },
          encoding: { codec: 'json' },
          out_of_order_action: 'accept',
          buffer: { max_events: 10_000 },
          healthcheck: false,
        },
      },
    }),
  },
  'cri-json-bulk': {
    about: 'the same to `search_engine`, daily index',
    paths: ['/_bulk'],
    config: (place) => ({
      ...podsToHttp({})(place),
      sinks: {
        out: {
          type: 'search_engine',
          inputs: ['edit'],
          endpoints: [place.receiver],
          api_version: 'v8',
          batch: { max_bytes: 1_000_000 },
          buffer: { max_events: 10_000 },
          request: { concurrency: 8 },
          healthcheck: false,
        },
      },
    }),
  },
  'cri-enriched': {
    about: 'pod log lines with all their metadata, not parsed, to NDJSON',
    paths: ['/'],
    config: (place) => ({
      data_dir: place.dataDir,
      sources: { pods: podLogs(place) },
      sinks: { out: httpSink(place, '/', ['pods']) },
    }),
  },
  'cri-json-filter': {
    about: '`cri-json-http` with a `filter` by the level, which lets all lines pass',
    paths: ['/'],
    config: (place) => ({
      ...podsToHttp({})(place),
      transforms: {
        edit: { type: 'remap', inputs: ['pods'], source: edits, drop_on_error: true },
        chosen: { type: 'filter', inputs: ['edit'], condition: '.level != "debug"' },
      },
      sinks: { out: httpSink(place, '/', ['chosen']) },
    }),
  },
  'fanout-3': {
    about: '`cri-json-http` to three sinks with different edits',
    target: 2.2,
    paths: ['/a', '/b', '/c'],
    config: (place) => ({
      data_dir: place.dataDir,
      sources: { pods: podLogs(place) },
      transforms: {
        parse: { type: 'remap', inputs: ['pods'], source: '. = parse_json!(.message)', drop_on_error: true },
        edit_a: { type: 'remap', inputs: ['parse'], source: '.env = "prod"\n.host = "node-1"\ndel(.request_id)' },
        edit_b: { type: 'remap', inputs: ['parse'], source: '.env = "test"\ndel(.trace)' },
        edit_c: { type: 'remap', inputs: ['parse'], source: '.team = "shop"\ndel(.http)' },
      },
      sinks: {
        a: httpSink(place, '/a', ['edit_a']),
        b: httpSink(place, '/b', ['edit_b']),
        c: httpSink(place, '/c', ['edit_c']),
      },
    }),
  },
  'shared-3': {
    about: 'three operator pipelines that read the same growing pod log, each with its own sink',
    pace: 10_000,
    scale: 0.25,
    paths: ['/a', '/b', '/c'],
    bundle: (place) =>
      sharedPods(place, {
        a: edits,
        b: '. = parse_json!(.message)\n.env = "test"\ndel(.trace)',
        c: '. = parse_json!(.message)\n.team = "shop"\ndel(.http)',
      }),
  },
} as const satisfies Readonly<Record<string, Scenario>>

/** Programs without input and output, in one process. */
export const programs: Readonly<Record<string, string>> = {
  'remap-edit': '`parse_json` and 4 edits',
  'remap-regex': '`parse_regex` with 7 groups and a conversion',
  'remap-filter': '`parse_json` and a condition',
  'remap-object': '`parse_json`, `for_each`, `map_keys` and `merge`',
}
