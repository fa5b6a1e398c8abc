// Settings at the top level of a configuration, declared in the vocabulary of component options.

import { enrichmentOption } from '../enrichment/options.ts'
import type { Tables } from '../enrichment/tables.ts'
import type { Environment } from '../environment.ts'
import { parsePath } from '../event/path.ts'
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
  timezone: text('Time zone of times that name none: a name of the TZ database, or `local`.', {
    default: 'local',
    examples: ['UTC', 'Europe/Berlin'],
  }),
  log_schema: group(
    {
      message_key: fieldPath('Field of the text of an event.', { default: 'message' }),
      timestamp_key: fieldPath('Field of the time of an event.', { default: 'timestamp' }),
      host_key: fieldPath('Field of the host that an event came from.', { default: 'host' }),
      source_type_key: fieldPath('Field of the type of the source of an event.', { default: 'source_type' }),
      metadata_key: fieldPath('Field of the details of events that a program dropped.', { default: 'metadata' }),
    },
    'Names of the well-known fields of log events.',
  ),
  proxy: proxy(),
  acknowledgements: either(
    bool('Shorthand for `enabled`.'),
    group({ enabled: bool('Whether sources wait.', { default: false }) }, 'End-to-end acknowledgement.'),
    'Whether sources wait for their sinks before they acknowledge events at their origin. Sinks can override it.',
    { default: { enabled: false } },
  ),
  healthchecks: group(
    {
      enabled: bool('Whether destinations are checked at start.', { default: true }),
      require_healthy: bool('Whether a failed check ends the agent, as `--require-healthy` does.', { default: false }),
    },
    'Checks of destinations at start.',
  ),
  expire_metrics_secs: optional(
    seconds("Seconds after which an idle series of the agent's own metrics is forgotten; without it, never.", {
      exclusiveMinimum: 0,
    }),
  ),
  api: group(
    {
      enabled: bool('Whether the observation server runs.', { default: false }),
      address: text('Address that it listens on.', { default: '127.0.0.1:8686' }),
      metric_prefix: text('Text before every name on `/metrics`, for names that no other program has.', {
        default: '',
        examples: ['penstock_'],
      }),
    },
    'The observation server: `/health`, `/ready`, `/metrics`, and what `top` and `tap` read.',
  ),
  remap: group(
    {
      network: bool(
        'Whether programs may call functions that need the network. Such a program runs in a worker of its own: only the events of its transform wait for answers.',
        { default: false },
      ),
      byte_lane: bool(
        'Whether programs that only move the members of a JSON text leave the text as bytes where lines have many shapes. The events are the same; `false` is for comparisons.',
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

/** For each option, the replacement under an operator: a bundle contains none of these options. */
export const underOperator: Readonly<Record<keyof typeof globalOptions, string>> = {
  data_dir: 'The flag `--data-dir` names the directory; `spec.node.dataDir` of the Agent sets it.',
  timezone: 'The variable `TZ` of the agent names the zone. Components have an option of their own.',
  log_schema: 'The names are the default ones. Components have options for other fields.',
  proxy: 'The variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the agent, and `proxy` of each component.',
  acknowledgements: 'The option `acknowledgements` of each sink.',
  healthchecks: 'The option `healthcheck` of each sink, and the flag `--require-healthy`.',
  expire_metrics_secs: 'The agent removes the series of a Pipeline with the Pipeline.',
  api: 'The flag `--api-address` says where the server listens, and `--metric-prefix` what precedes the names of metrics; `spec.monitoring.metricPrefix` of the Agent sets that.',
  remap: 'Programs never use the network.',
  enrichment_tables: 'Pipelines have no tables.',
  secret: 'Pipelines refer to Secrets by `valueFrom` and `secrets`.',
  wildcard_matching: 'The operator resolves wildcards of `inputs`, and refuses those that match nothing.',
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

/** The name that a path of one segment stands for; other paths are refused by the check. */
function fieldName(text: string): string {
  const name = parsePath(text)?.segments[0]
  return typeof name === 'string' ? name : text
}

export function localTimezone(environment: Environment): string {
  const zone = environment['TZ']
  return zone !== undefined && isTimezone(zone) ? zone : Temporal.Now.timeZoneId()
}

export function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false // there is no other way to find out
  }
}
