// The options of the source, and the checks that their types cannot express.

import type { OptionProblem } from '../../component.ts'
import { parsePath } from '../../event/path.ts'
import { zoneProblems } from '../../formats/timezone.ts'
import {
  bool,
  bytes,
  fieldPath,
  group,
  list,
  oneOf,
  optional,
  type Parsed,
  path,
  seconds,
  text,
  uint,
} from '../../schema/options.ts'
import { compileGlob, maxAlternatives } from '../../tailing/glob.ts'
import { multiline, multilineProblems } from '../../tailing/multiline.ts'
import { metadataPreset, namespaceAnnotationFields, nodeAnnotationFields, podAnnotationFields } from './annotate.ts'

export const podLogOptions = {
  auto_partial_merge: bool('Whether to join lines that the container runtime has split.', { default: true }),
  data_dir: optional(
    path(
      'Directory for positions; must be writable. The global `data_dir` if not given.',
      { use: 'folder' },
      { means: { owner: 'operator', fixed: true } },
    ),
  ),
  delay_deletion_ms: uint(
    'Milliseconds that the metadata of a deleted pod is kept. Agents of an operator keep it until the files are read; lines written later than this after the deletion lack the metadata.',
    { zero: 'the metadata is removed at once', default: 60000, limit: 'keptMilliseconds' },
  ),
  include_paths_glob_patterns: list(path('A glob pattern.', { use: 'glob', within: 'pod logs' }), 'Files to read.', {
    default: ['**/*'],
  }),
  exclude_paths_glob_patterns: list(path('A glob pattern.', { use: 'glob', within: 'pod logs' }), 'Files to exclude.', {
    default: ['**/*.gz', '**/*.tmp'],
  }),
  extra_field_selector: optional(
    text('Field selector for pods, in addition to the node.', {
      means: { owner: 'cluster' },
      examples: ['metadata.namespace=shop'],
    }),
  ),
  extra_label_selector: optional(text('Label selector for pods.', { examples: ['app=web'] })),
  extra_namespace_label_selector: optional(
    text('Label selector for the namespaces of pods.', {
      means: { owner: 'cluster' },
      examples: ['team=shop'],
    }),
  ),
  fingerprint_lines: uint('Number of first lines that identify a file. A file with fewer lines is not read.', {
    default: 1,
    minimum: 1,
    limit: 'fingerprintLines',
  }),
  glob_minimum_cooldown_ms: uint(
    'Milliseconds between two scans of all folders. Agents of an operator share the scans, at most one in 30 s. New files are found sooner if the system reports them.',
    { default: 60000, minimum: 1, means: { tenantMinimum: 1000 } },
  ),
  ignore_older_secs: optional(
    uint('Files not written for this many seconds count as read.', {
      zero: 'lines written before the source found their file are not read',
      aliases: ['ignore_older'],
    }),
  ),
  ingestion_timestamp_field: optional(fieldPath('Field for the time at which the agent read the line. Empty: none.')),
  insert_namespace_fields: bool('Whether to watch namespaces and add their labels.', { default: true }),
  internal_metrics: group(
    { include_file_tag: bool('Whether metrics include the path of the file.', { default: false }) },
    'Labels of the metrics of this source.',
  ),
  kube_config_file: optional(
    path(
      'Path of a kubeconfig. If not given, the service account of the pod is used.',
      { use: 'read' },
      { means: { owner: 'operator', fixed: true } },
    ),
  ),
  logs_dir: path(
    'Directory with the pod folders. A symbolic link in it is read only if its target is a file below the directory or a Docker log (`<id>/<id>-json.log`).',
    { use: 'folder' },
    { default: '/var/log/pods', means: { owner: 'operator', fixed: true } },
  ),
  max_line_bytes: bytes('Longest line in bytes, prefix included; longer ones are discarded.', {
    default: 32768,
    minimum: 1,
    limit: 'lineBytes',
  }),
  max_merged_line_bytes: optional(
    bytes(
      'Longest line in bytes after its parts are joined. If not given, lines over 4 MiB are passed on in pieces; all but the last have the field `_partial`.',
      { minimum: 1, limit: 'mergedLineBytes' },
    ),
  ),
  max_merged_line_action: oneOf(
    ['drop', 'truncate'],
    'Handling of a joined line that is too long: `drop` discards it, `truncate` cuts it and appends `..TRUNCATED`.',
    { default: 'drop' },
  ),
  max_read_bytes: optional(
    bytes(
      'Bytes read from one file before the next file has its turn; a longer line is still read as a whole. If not given, the limit is 2048 and is checked after each chunk of 128 KiB. Small limits cost time at each turn.',
      { minimum: 1, limit: 'readBytes' },
    ),
  ),
  metadata: metadataPreset(),
  multiline: multiline(),
  namespace_annotation_fields: namespaceAnnotationFields(),
  node_annotation_fields: nodeAnnotationFields(),
  oldest_first: bool('Whether to read older files of a container to their end before newer ones.', {
    default: true,
  }),
  pod_annotation_fields: podAnnotationFields(),
  read_from: oneOf(['beginning', 'end'], 'Where the first start begins to read files that already exist.', {
    default: 'beginning',
  }),
  rotate_wait_secs: optional(
    seconds('Seconds after which a removed file is closed, even if it was not read to its end.', {
      zero: 'at once',
    }),
  ),
  self_node_name: optional(
    text('Name of the node. The environment variable AGENT_SELF_NODE_NAME if not given.', {
      means: { owner: 'operator', fixed: true },
      examples: ['node-1'],
    }),
  ),
  timezone: optional(
    text(
      'Time zone of times without a zone: a name of the TZ database, or `local`. The global `timezone` if not given.',
      { examples: ['Europe/Berlin'] },
    ),
  ),
  use_apiserver_cache: bool(
    'Whether the API server answers lists from its cache, which lowers its load but may return slightly old data.',
    { default: false, means: { fixed: true } },
  ),
}

export type PodLogOptions = Parsed<typeof podLogOptions>

/** Checks options that are valid alone but not together. */
export function checkPodLogOptions(options: PodLogOptions): OptionProblem[] {
  const problems: OptionProblem[] = []
  for (const name of ['include_paths_glob_patterns', 'exclude_paths_glob_patterns'] as const) {
    options[name].forEach((pattern, index) => {
      if (compileGlob(pattern) !== undefined) return
      problems.push({
        path: `${name}.${index}`,
        message: `The pattern "${pattern}" has an unclosed bracket or brace, or too many braces: the limits are 64 braces and ${maxAlternatives} alternatives.`,
      })
    })
  }
  const fields: [string, string | undefined][] = [['ingestion_timestamp_field', options.ingestion_timestamp_field]]
  for (const table of ['pod', 'namespace', 'node'] as const) {
    const members: Readonly<Record<string, string>> = options[`${table}_annotation_fields`]
    for (const [name, text] of Object.entries(members)) fields.push([`${table}_annotation_fields.${name}`, text])
  }
  for (const [option, text] of fields) {
    if (text === undefined || text === '') continue
    const parsed = parsePath(text)
    if (parsed?.root === 'event' && parsed.segments.length > 0) continue
    problems.push({
      path: option,
      message: `"${text}" is not a path to a field of the event.`,
      help: 'Write a path such as `.orchestrator.pod_name`, or an empty string for no field.',
    })
  }
  return [...problems, ...zoneProblems('timezone', options.timezone), ...multilineProblems(options.multiline)]
}
