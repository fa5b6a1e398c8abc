// The flags of `run`, which is the agent itself, and those by which every command finds a configuration.

import type { Flag, Flags, ParsedArgs } from '../command-line/flags.ts'
import { details } from '../telemetry/exposition.ts'
import { colorChoices } from '../terminal.ts'

/** Flags that say where the configuration is. */
export const configFlags = {
  config: {
    type: 'string',
    multiple: true,
    short: 'c',
    value: 'PATH',
    env: 'PENSTOCK_CONFIG',
    help: 'File, glob or directory of the configuration; the extension gives the format. May be repeated.',
    replacedBy: 'bundle',
  },
  'config-dir': {
    type: 'string',
    multiple: true,
    short: 'C',
    value: 'DIR',
    env: 'PENSTOCK_CONFIG_DIR',
    help: 'Directory with whole configurations, and folders in which each file is one component. May be repeated.',
    replacedBy: 'bundle',
  },
  'config-toml': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Configuration in TOML, whatever the name of the file.',
    replacedBy: 'bundle',
  },
  'config-yaml': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Configuration in YAML, whatever the name of the file.',
    replacedBy: 'bundle',
  },
  'config-json': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Configuration in JSON, whatever the name of the file.',
    replacedBy: 'bundle',
  },
} as const satisfies Flags

export const flagTable = {
  ...configFlags,
  bundle: {
    type: 'string',
    value: 'DIR',
    env: 'PENSTOCK_BUNDLE',
    help: 'Folder with the bundle that an operator has written, instead of a configuration. The agent reloads each Pipeline on its own.',
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
    help: 'Address of the operator to which the agent reports. Without it, the agent sends no reports.',
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
    help: 'Where the agent serves health, metrics and events (0.0.0.0:8686). If empty, it serves none.',
    needs: 'bundle',
  },
  'log-volume': {
    type: 'string',
    value: 'DIR',
    help: 'Volume with the log files of the other containers in the pod. The agent reads nothing outside of it.',
    needs: 'bundle',
  },
  'log-paths': {
    type: 'string',
    value: 'GLOBS',
    help: 'Files for sources that name none.',
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
    help: 'How long the operator must report that nothing needs the buffers and positions of removed Pipelines before the agent removes them (600).',
    needs: 'bundle',
  },
  drain: {
    type: 'boolean',
    help: 'Deliver the events in the buffers below --data-dir, then end. No source runs.',
    needs: 'bundle',
  },
  'kubelet-address': {
    type: 'string',
    value: 'ADDRESS',
    help: 'Address of the kubelet, from which the agent gets the pods of its node instead of from the API server (port 10250).',
    needs: 'bundle',
  },
  namespaces: {
    type: 'string',
    value: 'NAMES',
    help: 'Namespaces in which the account has Roles, where it has no ClusterRole. The agent follows pods in each of them, knows no labels of nodes, and asks the operator who may read metrics.',
    needs: 'bundle',
  },
  'max-rotated-files': {
    type: 'string',
    number: 'any',
    help: 'How many rotated files of a container may wait to be read (all). If there are more, the agent gives up the oldest.',
    needs: 'bundle',
  },
  lease: {
    type: 'string',
    value: 'NAME',
    help: 'Lease in the namespace of the pod, by which the agents that share the bundle choose the one that runs sources marked `singleton`. Without it, each agent runs them.',
    needs: 'bundle',
  },
  'metrics-detail': {
    type: 'string',
    oneOf: details,
    help: 'Which series `/metrics` has: one for each Pipeline of a bundle, for each component, or for each component and origin of its events (container).',
  },
  'metric-prefix': {
    type: 'string',
    value: 'TEXT',
    help: 'Text before every name on `/metrics`. In a configuration, this is `api.metric_prefix`.',
    needs: 'bundle',
  },
  'require-healthy': {
    type: 'boolean',
    short: 'r',
    env: 'PENSTOCK_REQUIRE_HEALTHY',
    help: 'End with exit code 78 if a health check fails at start. With --bundle: do not load a Pipeline whose check fails; the others run.',
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
    help: 'Reload when a file of the configuration changes.',
    replacedBy: 'bundle',
  },
  'watch-config-method': {
    type: 'string',
    oneOf: ['recommended', 'poll'],
    env: 'PENSTOCK_WATCH_CONFIG_METHOD',
    help: 'How the agent detects changes: by events of the file system (recommended), or by polling (poll).',
    replacedBy: 'bundle',
  },
  'watch-config-poll-interval-seconds': {
    type: 'string',
    number: 'any',
    minimum: 1,
    value: 'SECONDS',
    env: 'PENSTOCK_WATCH_CONFIG_POLL_INTERVAL_SECONDS',
    help: 'How often the method `poll` looks (30).',
    replacedBy: 'bundle',
  },
  'graceful-shutdown-limit-secs': {
    type: 'string',
    number: 'any',
    value: 'SECONDS',
    env: 'PENSTOCK_GRACEFUL_SHUTDOWN_LIMIT_SECS',
    help: 'How long the agent, when it stops, may take to deliver pending events (60).',
  },
  'no-graceful-shutdown-limit': {
    type: 'boolean',
    env: 'PENSTOCK_NO_GRACEFUL_SHUTDOWN_LIMIT',
    help: 'When the agent stops, let it deliver all pending events, however long it takes.',
  },
  'internal-log-rate-limit': {
    type: 'string',
    number: 'any',
    short: 'i',
    value: 'SECONDS',
    env: 'PENSTOCK_INTERNAL_LOG_RATE_LIMIT',
    help: 'How long the log leaves out further messages of one component that are equal (10). 0 logs all of them.',
  },
  threads: {
    type: 'string',
    number: 'any',
    short: 't',
    minimum: 1,
    env: 'PENSTOCK_THREADS',
    help: 'Accepted for compatibility: events are handled by one thread.',
  },
  verbose: { type: 'boolean', multiple: true, short: 'v', help: 'Log more. If given twice, log everything.' },
  quiet: {
    type: 'boolean',
    multiple: true,
    short: 'q',
    help: 'Log warnings and errors only. If given twice, log errors only.',
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

/** By heading of the help, the flags below it. */
export function runFlagGroups(): ReadonlyMap<string, Flags> {
  const groups = new Map<string, Record<string, Flag>>()
  for (const [name, flag] of Object.entries<Flag>(flagTable)) {
    const heading =
      flag.needs === 'log-volume' || name === 'log-volume'
        ? 'Beside the containers of a pod, with --bundle and --log-volume:'
        : flag.needs !== undefined || name === 'bundle'
          ? 'Under an operator, with --bundle:'
          : 'Flags:'
    groups.set(heading, { ...groups.get(heading), [name]: flag })
  }
  return new Map(['Flags:', ...groups.keys()].map((heading) => [heading, groups.get(heading) ?? {}]))
}

export type RunFlags = ParsedArgs<typeof flagTable>['flags']
