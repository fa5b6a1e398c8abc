// The flags of `run`, which is the agent itself, and those by which every command finds a configuration.

import type { Flags, ParsedArgs } from '../command-line/flags.ts'
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
    help: 'File, glob or directory of the configuration; the format by extension. May be repeated.',
    replacedBy: 'bundle',
  },
  'config-dir': {
    type: 'string',
    multiple: true,
    short: 'C',
    value: 'DIR',
    env: 'PENSTOCK_CONFIG_DIR',
    help: 'Directory with whole configurations and folders of single components. May be repeated.',
    replacedBy: 'bundle',
  },
  'config-toml': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'File in TOML, whatever its name.',
    replacedBy: 'bundle',
  },
  'config-yaml': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'File in YAML, whatever its name.',
    replacedBy: 'bundle',
  },
  'config-json': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'File in JSON, whatever its name.',
    replacedBy: 'bundle',
  },
} as const satisfies Flags

export const flagTable = {
  ...configFlags,
  bundle: {
    type: 'string',
    value: 'DIR',
    env: 'PENSTOCK_BUNDLE',
    help: 'Folder with the bundle that an operator has written, in place of a configuration. Pipelines are reloaded one by one.',
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
    help: 'Token for the operator (/var/run/secrets/penstock.dev/token).',
    needs: 'operator',
  },
  'operator-ca': {
    type: 'string',
    value: 'FILE',
    help: 'Authority of the operator, PEM (/var/run/secrets/penstock.dev/ca.crt).',
    needs: 'operator',
  },
  'data-dir': {
    type: 'string',
    value: 'DIR',
    help: 'With --bundle: folder for state (/var/lib/penstock).',
    needs: 'bundle',
  },
  'logs-dir': {
    type: 'string',
    value: 'DIR',
    help: "With --bundle: folder of the pods' logs (/var/log/pods).",
    needs: 'bundle',
  },
  'kube-config': {
    type: 'string',
    value: 'FILE',
    help: 'With --bundle: how to reach the Kubernetes API; by the service account of the pod if not given.',
    needs: 'bundle',
  },
  'api-address': {
    type: 'string',
    value: 'ADDRESS',
    help: 'With --bundle: where health, metrics and events are served (0.0.0.0:8686); empty: nowhere.',
    needs: 'bundle',
  },
  'log-volume': {
    type: 'string',
    value: 'DIR',
    help: 'With --bundle, beside the containers of a pod: the volume with their log files. Nothing outside of it is read.',
    needs: 'bundle',
  },
  'log-paths': {
    type: 'string',
    value: 'GLOBS',
    help: 'With --log-volume: files for sources that name none.',
    needs: 'log-volume',
  },
  pipelines: {
    type: 'string',
    value: 'NAMES',
    help: 'With --log-volume: the Pipelines to run (all).',
    needs: 'log-volume',
  },
  'drain-seconds': {
    type: 'string',
    number: 'any',
    help: 'With --log-volume: how long a stop may wait for lines that are still to come (20).',
    needs: 'log-volume',
  },
  'removed-drain-seconds': {
    type: 'string',
    number: 'any',
    help: 'With --bundle: how long sinks of removed Pipelines may deliver pending events (60). After that, events on disk stay there.',
    needs: 'bundle',
  },
  'leftover-seconds': {
    type: 'string',
    number: 'any',
    help: 'With --bundle: how long the operator must say that nothing needs the buffers and positions of removed Pipelines any more before they are removed, too (600).',
    needs: 'bundle',
  },
  drain: {
    type: 'boolean',
    help: 'With --bundle: deliver what the buffers in --data-dir hold, and end. No source runs.',
    needs: 'bundle',
  },
  'kubelet-address': {
    type: 'string',
    value: 'ADDRESS',
    help: 'With --bundle: the kubelet of the node, which is asked for its pods in place of the API server (port 10250).',
    needs: 'bundle',
  },
  namespaces: {
    type: 'string',
    value: 'NAMES',
    help: 'With --bundle: the account has Roles in these namespaces and no ClusterRole. Pods and labels are followed in each of them, labels of nodes are not known, and the operator is asked who may read metrics.',
    needs: 'bundle',
  },
  'max-rotated-files': {
    type: 'string',
    number: 'any',
    help: 'With --bundle: how many rotated files of a container may wait to be read; of more, the oldest is given up. All if not given.',
    needs: 'bundle',
  },
  lease: {
    type: 'string',
    value: 'NAME',
    help: 'With --bundle: the Lease, in the namespace of the pod, by which the agents that share the bundle choose the one of them that runs sources marked `singleton`. Each runs them if not given.',
    needs: 'bundle',
  },
  'metrics-detail': {
    type: 'string',
    oneOf: details,
    help: 'How fine `/metrics` is: a series for each pipeline of a bundle, each component, or each component and where its events come from (container).',
  },
  'metric-prefix': {
    type: 'string',
    value: 'TEXT',
    help: 'With --bundle: text before every name on `/metrics`. A configuration has `api.metric_prefix`.',
    needs: 'bundle',
  },
  'require-healthy': {
    type: 'boolean',
    short: 'r',
    env: 'PENSTOCK_REQUIRE_HEALTHY',
    help: 'End at once, with code 78, if a health check fails at start. With --bundle: a Pipeline whose check fails is not loaded, and the others run.',
  },
  'allow-empty-config': {
    type: 'boolean',
    env: 'PENSTOCK_ALLOW_EMPTY_CONFIG',
    help: 'Start without sources or sinks, and wait for a reload.',
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
    help: 'How changes are noticed: `recommended` asks the system, `poll` looks at intervals.',
    replacedBy: 'bundle',
  },
  'watch-config-poll-interval-seconds': {
    type: 'string',
    number: 'any',
    minimum: 1,
    env: 'PENSTOCK_WATCH_CONFIG_POLL_INTERVAL_SECONDS',
    help: 'Seconds between two looks (30).',
    replacedBy: 'bundle',
  },
  'graceful-shutdown-limit-secs': {
    type: 'string',
    number: 'any',
    env: 'PENSTOCK_GRACEFUL_SHUTDOWN_LIMIT_SECS',
    help: 'Seconds that a stop may take to deliver what is on the way (60).',
  },
  'no-graceful-shutdown-limit': {
    type: 'boolean',
    env: 'PENSTOCK_NO_GRACEFUL_SHUTDOWN_LIMIT',
    help: 'Let a stop take as long as it needs.',
  },
  'internal-log-rate-limit': {
    type: 'string',
    number: 'any',
    short: 'i',
    env: 'PENSTOCK_INTERNAL_LOG_RATE_LIMIT',
    help: 'Seconds for which equal messages of a component are held back (10); 0: never.',
  },
  threads: {
    type: 'string',
    number: 'any',
    short: 't',
    minimum: 1,
    env: 'PENSTOCK_THREADS',
    help: 'Most threads for events; this version uses one.',
  },
  verbose: { type: 'boolean', multiple: true, short: 'v', help: 'Log more; twice: all.' },
  quiet: { type: 'boolean', multiple: true, short: 'q', help: 'Log warnings and errors only; twice: errors only.' },
  'log-format': {
    type: 'string',
    oneOf: ['text', 'json'],
    env: 'PENSTOCK_LOG_FORMAT',
    help: 'Form of the log on standard error (text).',
  },
  color: {
    type: 'string',
    oneOf: colorChoices,
    env: 'PENSTOCK_COLOR',
    help: 'Whether the log is coloured (auto).',
  },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

export type RunFlags = ParsedArgs<typeof flagTable>['flags']
