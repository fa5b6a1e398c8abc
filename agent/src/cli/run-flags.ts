// The flags of `run`, which starts the agent, and those that locate the configuration for every command.

import type { Flag, Flags, ParsedArgs } from '../command-line/flags.ts'
import { details } from '../telemetry/exposition.ts'
import { colorChoices } from '../terminal.ts'

/** Flags that locate the configuration. */
export const configFlags = {
  config: {
    type: 'string',
    multiple: true,
    short: 'c',
    value: 'PATH',
    env: 'PENSTOCK_CONFIG',
    help: 'File, glob or directory of the configuration; the extension determines the format. May be repeated.',
    replacedBy: 'bundle',
  },
  'config-dir': {
    type: 'string',
    multiple: true,
    short: 'C',
    value: 'DIR',
    env: 'PENSTOCK_CONFIG_DIR',
    help: 'Directory with complete configurations, and sub-directories with one component per file. May be repeated.',
    replacedBy: 'bundle',
  },
  'config-toml': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Configuration in TOML, regardless of the file name.',
    replacedBy: 'bundle',
  },
  'config-yaml': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Configuration in YAML, regardless of the file name.',
    replacedBy: 'bundle',
  },
  'config-json': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Configuration in JSON, regardless of the file name.',
    replacedBy: 'bundle',
  },
} as const satisfies Flags

export const flagTable = {
  ...configFlags,
  bundle: {
    type: 'string',
    value: 'DIR',
    env: 'PENSTOCK_BUNDLE',
    help: "Folder with an operator's bundle, replaces a configuration. The agent reloads each Pipeline separately.",
  },
  secrets: {
    type: 'string',
    value: 'DIR',
    env: 'PENSTOCK_SECRETS',
    help: 'Folder with the secret values of the bundle.',
    needs: 'bundle',
  },
  operator: {
    type: 'string',
    value: 'URL',
    env: 'PENSTOCK_OPERATOR',
    help: 'Address of the operator to report to. Without it, the agent sends no reports.',
    needs: 'bundle',
  },
  'operator-token': {
    type: 'string',
    value: 'FILE',
    help: 'File with the token for the operator (/var/run/secrets/penstock.dev/token).',
    needs: 'operator',
  },
  'operator-ca': {
    type: 'string',
    value: 'FILE',
    help: 'File with the certificate authority of the operator, PEM (/var/run/secrets/penstock.dev/ca.crt).',
    needs: 'operator',
  },
  'data-dir': {
    type: 'string',
    value: 'DIR',
    help: 'Folder for positions and buffers (/var/lib/penstock).',
    needs: 'bundle',
  },
  'logs-dir': {
    type: 'string',
    value: 'DIR',
    help: "Folder of the pods' logs (/var/log/pods).",
    needs: 'bundle',
  },
  'kube-config': {
    type: 'string',
    value: 'FILE',
    help: 'Kubeconfig for the Kubernetes API. Without it, the agent uses the service account of its pod.',
    needs: 'bundle',
  },
  'api-address': {
    type: 'string',
    value: 'ADDRESS',
    help: 'Address on which the agent serves health, metrics and events (0.0.0.0:8686). If empty, it serves none.',
    needs: 'bundle',
  },
  'log-volume': {
    type: 'string',
    value: 'DIR',
    help: "Volume with the log files of the pod's other containers. The agent reads no files outside it.",
    needs: 'bundle',
  },
  'log-paths': {
    type: 'string',
    value: 'GLOBS',
    help: 'Files for sources that set none.',
    needs: 'log-volume',
  },
  pipelines: {
    type: 'string',
    value: 'NAMES',
    help: 'Pipelines to run (all).',
    needs: 'log-volume',
  },
  'drain-seconds': {
    type: 'string',
    number: 'any',
    value: 'SECONDS',
    help: 'How long the agent waits for further log lines when it stops (20).',
    needs: 'log-volume',
  },
  'removed-drain-seconds': {
    type: 'string',
    number: 'any',
    value: 'SECONDS',
    help: 'How long sinks of removed Pipelines may deliver pending events (60). After that, events on disk stay there.',
    needs: 'bundle',
  },
  'leftover-seconds': {
    type: 'string',
    number: 'any',
    value: 'SECONDS',
    help: 'How long the operator must report the buffers and positions of removed Pipelines as no longer needed before the agent removes them (600).',
    needs: 'bundle',
  },
  drain: {
    type: 'boolean',
    help: 'Deliver the events in the buffers below --data-dir, and then exit. No source runs.',
    needs: 'bundle',
  },
  'kubelet-address': {
    type: 'string',
    value: 'ADDRESS',
    help: 'Address of the kubelet. The agent gets the pods of its node from there instead of from the API server (port 10250).',
    needs: 'bundle',
  },
  namespaces: {
    type: 'string',
    value: 'NAMES',
    help: 'Namespaces in which the account has Roles, if it has no ClusterRole. The agent watches pods in each of them, has no node labels, and asks the operator who may read metrics.',
    needs: 'bundle',
  },
  'max-rotated-files': {
    type: 'string',
    number: 'any',
    help: 'How many unread rotated files of a container may exist (all). Beyond that, the agent skips the oldest.',
    needs: 'bundle',
  },
  lease: {
    type: 'string',
    value: 'NAME',
    help: 'Lease in the namespace of the pod, by which the agents that share the bundle elect the one that runs sources marked `singleton`. Without it, each agent runs them.',
    needs: 'bundle',
  },
  'metrics-detail': {
    type: 'string',
    oneOf: details,
    help: 'Level of detail of `/metrics`: one series for each Pipeline of a bundle, for each component, or for each component and origin of its events (container).',
  },
  'metric-prefix': {
    type: 'string',
    value: 'TEXT',
    help: 'Prefix of every metric name on `/metrics`. In a configuration, use `api.metric_prefix`.',
    needs: 'bundle',
  },
  'require-healthy': {
    type: 'boolean',
    short: 'r',
    env: 'PENSTOCK_REQUIRE_HEALTHY',
    help: 'Exit with code 78 if a health check fails at start. With --bundle: do not load a Pipeline whose check fails; the others run.',
  },
  'allow-empty-config': {
    type: 'boolean',
    env: 'PENSTOCK_ALLOW_EMPTY_CONFIG',
    help: 'Start even without sources or sinks, and wait for a reload.',
    replacedBy: 'bundle',
  },
  'watch-config': {
    type: 'boolean',
    short: 'w',
    env: 'PENSTOCK_WATCH_CONFIG',
    help: 'Reload when a configuration file changes.',
    replacedBy: 'bundle',
  },
  'watch-config-method': {
    type: 'string',
    oneOf: ['recommended', 'poll'],
    env: 'PENSTOCK_WATCH_CONFIG_METHOD',
    help: 'How the agent detects changes: by file system events (recommended), or by polling (poll).',
    replacedBy: 'bundle',
  },
  'watch-config-poll-interval-seconds': {
    type: 'string',
    number: 'any',
    minimum: 1,
    value: 'SECONDS',
    env: 'PENSTOCK_WATCH_CONFIG_POLL_INTERVAL_SECONDS',
    help: 'Interval of the method `poll` (30).',
    replacedBy: 'bundle',
  },
  'graceful-shutdown-limit-secs': {
    type: 'string',
    number: 'any',
    value: 'SECONDS',
    env: 'PENSTOCK_GRACEFUL_SHUTDOWN_LIMIT_SECS',
    help: 'How long the agent may take to deliver pending events when it stops (60).',
  },
  'no-graceful-shutdown-limit': {
    type: 'boolean',
    env: 'PENSTOCK_NO_GRACEFUL_SHUTDOWN_LIMIT',
    help: 'Deliver all pending events when the agent stops, however long it takes.',
  },
  'internal-log-rate-limit': {
    type: 'string',
    number: 'any',
    short: 'i',
    value: 'SECONDS',
    env: 'PENSTOCK_INTERNAL_LOG_RATE_LIMIT',
    help: 'How long the log suppresses repeated messages of a component (10). 0 logs all of them.',
  },
  threads: {
    type: 'string',
    number: 'any',
    short: 't',
    minimum: 1,
    env: 'PENSTOCK_THREADS',
    help: 'Accepted for compatibility: one thread processes all events.',
  },
  verbose: { type: 'boolean', multiple: true, short: 'v', help: 'Log more. Repeat to log everything.' },
  quiet: {
    type: 'boolean',
    multiple: true,
    short: 'q',
    help: 'Log only warnings and errors. Repeat to log only errors.',
  },
  'log-format': {
    type: 'string',
    oneOf: ['text', 'json'],
    env: 'PENSTOCK_LOG_FORMAT',
    help: 'Format of the log on standard error (text).',
  },
  color: {
    type: 'string',
    oneOf: colorChoices,
    env: 'PENSTOCK_COLOR',
    help: 'Whether to colour the log (auto).',
  },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

/** The flags below each heading of the help. */
export function runFlagGroups(): ReadonlyMap<string, Flags> {
  const groups = new Map<string, Record<string, Flag>>()
  for (const [name, flag] of Object.entries<Flag>(flagTable)) {
    const heading =
      flag.needs === 'log-volume' || name === 'log-volume'
        ? 'In a sidecar container, with --bundle and --log-volume:'
        : flag.needs !== undefined || name === 'bundle'
          ? 'With an operator and --bundle:'
          : 'Flags:'
    groups.set(heading, { ...groups.get(heading), [name]: flag })
  }
  return new Map(['Flags:', ...groups.keys()].map((heading) => [heading, groups.get(heading) ?? {}]))
}

export type RunFlags = ParsedArgs<typeof flagTable>['flags']
