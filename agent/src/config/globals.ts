// Settings at the top level of a configuration, declared in the vocabulary of component options.

import { enrichmentOption } from '../enrichment/options.ts'
import type { Tables } from '../enrichment/tables.ts'
import type { Environment } from '../environment.ts'
import { parsePath } from '../event/path.ts'
import { findZone } from '../formats/timezone.ts'
import { environmentProxy, mergeProxy } from '../net/proxy.ts'
import type { ProgramRules } from '../remap/rules.ts'
import { proxy } from '../schema/groups.ts'
import { bool, either, fieldPath, group, oneOf, optional, type Parsed, path, seconds, text } from '../schema/options.ts'
import { secretOption } from '../secrets/backends.ts'
import type { ConfigGlobals } from './config.ts'

export const defaultDataDir = '/var/lib/penstock/'

export const globalOptions = {
  data_dir: path(
    'Directory for state that survives a restart: checkpoints and disk buffers.',
    { use: 'folder' },
    {
      default: defaultDataDir,
    },
  ),
  timezone: text('Time zone for times without one: a name from the TZ database, or `local`.', {
    default: 'local',
    examples: ['UTC', 'Europe/Berlin'],
  }),
  log_schema: group(
    {
      message_key: fieldPath('Field for the text of an event.', { default: 'message' }),
      timestamp_key: fieldPath('Field for the time of an event.', { default: 'timestamp' }),
      host_key: fieldPath('Field for the host that an event came from.', { default: 'host' }),
      source_type_key: fieldPath('Field for the type of source that an event came from.', { default: 'source_type' }),
      metadata_key: fieldPath('Field for the reason why a program dropped an event.', { default: 'metadata' }),
    },
    'Names of the well-known fields of log events.',
  ),
  proxy: proxy(),
  acknowledgements: either(
    bool('Shorthand for `enabled`.'),
    group({ enabled: bool('Whether sources wait.', { default: false }) }, 'End-to-end acknowledgement.'),
    'Whether sources wait for their sinks before they acknowledge events at their origin. A sink can override the setting.',
    { default: { enabled: false } },
  ),
  healthchecks: group(
    {
      enabled: bool('Whether the agent checks destinations when it starts.', { default: true }),
      require_healthy: bool('Whether a failed check stops the agent, as with `--require-healthy`.', { default: false }),
    },
    'Health checks of destinations when the agent starts.',
  ),
  expire_metrics_secs: optional(
    seconds('Seconds after which the agent removes an idle series of its own metrics; if not set, it never does.', {
      exclusiveMinimum: 0,
    }),
  ),
  api: group(
    {
      enabled: bool('Whether the observation server runs.', { default: false }),
      address: text('Address on which the server listens.', { default: '127.0.0.1:8686' }),
      metric_prefix: text(
        'Prefix for every metric name on `/metrics`, to keep the names distinct from those of other programs.',
        {
          default: '',
          examples: ['penstock_'],
        },
      ),
    },
    'The observation server: `/health`, `/ready`, `/metrics`, and what `top` and `tap` read.',
  ),
  remap: group(
    {
      network: bool(
        'Whether programs may call functions that need the network. Such a program runs in its own worker, so only the events of its transform wait for answers.',
        { default: false },
      ),
      byte_lane: bool(
        'Whether a program that only moves members of a JSON text processes lines of many shapes as bytes. The resulting events are the same; `false` is for comparisons.',
        { default: true },
      ),
    },
    'The remap language.',
  ),
  enrichment_tables: enrichmentOption,
  secret: secretOption,
  wildcard_matching: oneOf(['strict', 'relaxed'], 'Whether a wildcard in `inputs` must match something.', {
    default: 'strict',
  }),
} as const

export type GlobalOptions = Parsed<typeof globalOptions>

/** The replacement for each option under an operator, because bundles contain none of these options. */
export const underOperator: Readonly<Record<keyof typeof globalOptions, string>> = {
  data_dir: 'The flag `--data-dir` sets the directory. In an Agent, set `spec.node.dataDir`.',
  timezone: 'The environment variable `TZ` of the agent sets the zone. Components have their own option.',
  log_schema: 'The default names apply. Components have options for other fields.',
  proxy:
    'Set the environment variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the agent, or `proxy` on each component.',
  acknowledgements: 'Set `acknowledgements` on each sink.',
  healthchecks: 'Set `healthcheck` on each sink, and the flag `--require-healthy`.',
  expire_metrics_secs: 'The agent removes the series of a Pipeline when the Pipeline is deleted.',
  api: 'The flag `--api-address` sets the address of the server, and `--metric-prefix` the prefix of metric names. In an Agent, set `spec.monitoring.metricPrefix`.',
  remap: 'Programs cannot use the network.',
  enrichment_tables: 'Pipelines cannot have enrichment tables.',
  secret: 'Pipelines refer to Secrets with `valueFrom` and `secrets`.',
  wildcard_matching: 'The operator resolves wildcards in `inputs`, and rejects a wildcard that matches nothing.',
}

/** The globals that components see. */
export function globalsOf(
  options: GlobalOptions,
  environment: Environment,
  tables?: Tables,
  programs?: ProgramRules,
): ConfigGlobals {
  const { log_schema: schema, acknowledgements } = options
  return {
    dataDir: options.data_dir,
    timezone: options.timezone === 'local' ? localTimezone(environment) : options.timezone,
    logSchema: {
      messageKey: fieldName(schema.message_key),
      timestampKey: fieldName(schema.timestamp_key),
      hostKey: fieldName(schema.host_key),
      sourceTypeKey: fieldName(schema.source_type_key),
      metadataKey: fieldName(schema.metadata_key),
    },
    proxy: mergeProxy(options.proxy, environmentProxy(environment)),
    acknowledgements: typeof acknowledgements === 'boolean' ? acknowledgements : acknowledgements.enabled,
    healthchecks: { enabled: options.healthchecks.enabled, requireHealthy: options.healthchecks.require_healthy },
    api: options.api,
    expireMetricsSecs: options.expire_metrics_secs,
    remap: options.remap,
    programs,
    tables,
    tableNames: Object.keys(options.enrichment_tables ?? {}),
  }
}

/** The field name in a path of one segment. The check rejects all other paths. */
function fieldName(text: string): string {
  const name = parsePath(text)?.segments[0]
  return typeof name === 'string' ? name : text
}

export function localTimezone(environment: Environment): string {
  const zone = environment['TZ']
  return zone !== undefined && findZone(zone) !== undefined ? zone : Temporal.Now.timeZoneId()
}
