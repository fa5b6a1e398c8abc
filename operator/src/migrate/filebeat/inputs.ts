// Converts Filebeat inputs to sources, with transforms that give events the form of Filebeat.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { readsNothing } from '../complete.ts'
import type { Component, Step } from '../draft.ts'
import { isPodLog } from '../fluent-bit/inputs.ts'
import { isAllPods, isAmong, variableOf, withPaths } from '../fluent-bit/tags.ts'
import { flagIn, type Mapping, option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { below, isList, isMap, itemsOf, millisecondsOf, type Tree, textOf } from '../loki/tree.ts'
import { regexLiteral } from '../otel/text.ts'
import type { Refusal } from '../page.ts'
import { type Choices, inputChoices } from './choices.ts'
import { assigned, fieldOf } from './conditions.ts'
import { expansion, intoRoot } from './decoders.ts'
import { joinedBy } from './multiline.ts'
import { tagLines } from './processors.ts'

export interface SourcePart {
  readonly component: Component
  readonly steps: readonly Step[]
}

const common: Readonly<Record<string, string>> = {
  type: 'the type',
  id: 'the name of the component',
  enabled: 'a disabled input is left out',
  processors: 'transforms after the source',
  fields: 'fields of the event',
  fields_under_root: 'the place of the fields',
  tags: 'a field of the event',
  index: '`bulk.index` by a field that a transform sets',
  pipeline: 'a sink for each pipeline, after a filter',
  paths: '`include`; for pod logs, a filter by the names of pods unless the input reads all pods',
  exclude_files: 'a filter transform',
  'prospector.scanner.exclude_files': 'a filter transform',
  'prospector.scanner.include_files': 'a filter transform',
  include_lines: 'a filter transform',
  exclude_lines: 'a filter transform',
  ignore_older: '`ignore_older_secs`',
  tail_files: '`read_from`',
  stream: 'a filter transform',
  parsers: '`multiline` of the source, and remap transforms',
  'multiline.pattern': '`multiline` of the source',
  'multiline.negate': '`multiline` of the source',
  'multiline.match': '`multiline` of the source',
  'multiline.timeout': '`multiline` of the source',
  'multiline.type': '`multiline` of the source',
  'multiline.count_lines': '`multiline` of the source, for two lines; a gap for more',
  'json.keys_under_root': 'a remap transform',
  'json.overwrite_keys': 'a remap transform',
  'json.message_key': 'a remap transform; filters of lines read this field',
  'json.expand_keys': 'a remap transform',
  encoding: '`encoding.charset`; a gap for pod logs',
  'containers.path': 'the source reads all pods',
  'containers.stream': 'a filter transform',
  'containers.ids': 'the source reads all pods',
}

const itself: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...[
      'scan_frequency',
      'prospector.scanner.check_interval',
      'prospector.scanner.symlinks',
      'symlinks',
      'harvester_limit',
      'harvester_buffer_size',
      'backoff',
      'max_backoff',
      'backoff_factor',
      'backoff.init',
      'backoff.max',
      'close_inactive',
      'close_renamed',
    ],
    ...[
      'close_removed',
      'close_eof',
      'close_timeout',
      'clean_inactive',
      'clean_removed',
      'close.on_state_change.inactive',
      'close.on_state_change.removed',
      'close.on_state_change.renamed',
      'close.reader.on_eof',
      'close.reader.after_interval',
    ],
    ...[
      'file_identity',
      'file_identity.native',
      'file_identity.path',
      'prospector.scanner.fingerprint.enabled',
      'prospector.scanner.fingerprint.offset',
      'prospector.scanner.fingerprint.length',
      'file_identity.fingerprint',
      'take_over',
      'take_over.enabled',
      'format',
    ],
    ...[
      'message_max_bytes',
      'max_bytes',
      'buffer_size',
      'line_terminator',
      'combine_partial',
      'cri.flags',
      'cri.parse_flags',
      'multiline.max_lines',
      'multiline.flush_pattern',
      'multiline.skip_newline',
      'json.add_error_key',
    ],
    ...[
      'json.ignore_decoding_error',
      'publisher_pipeline.disable_host',
      'keep_null',
      'recursive_glob.enabled',
      'prospector.scanner.recursive_glob',
      'scan.order',
      'scan.sort',
      'allow_deprecated_use',
      'clean_inactive',
    ],
  ].map((name) => [name, 'the source follows files in its own way, and reads lines up to `max_line_bytes`'] as const),
)

/** Decodes a line of JSON into fields. */
function jsonLines(read: (name: string) => string | undefined, target: string): string[] {
  const overwrites = read('overwrite_keys') === 'true'
  const key = read('message_key')
  return [
    'decoded = parse_json(string(.message) ?? "") ?? null',
    ...expansion(read('expand_keys') === 'true'),
    'if is_object(decoded) {',
    ...(target === ''
      ? ['  del(.message)', ...intoRoot(overwrites).map((line) => `  ${line}`)]
      : [
          `  ${fieldOf(target)} = decoded`,
          ...(key === undefined ? ['  del(.message)'] : [`  .message = decoded.${textLiteral(key)}`]),
        ]),
    '}',
  ]
}

/** @param text the text of the line, as an expression */
const lineSteps = (part: Part, text: string): readonly Step[] => {
  const filters = (option: string, sign: '' | '!', operator: string): readonly Step[] => {
    const tests = textsIn(part, option).map((regex) => `${sign}match(${text}, ${regexLiteral(regex)})`)
    return tests.length === 0 ? [] : [{ type: 'filter', text: tests.join(operator) }]
  }
  return [...filters('include_lines', '', ' || '), ...filters('exclude_lines', '!', ' && ')]
}

/** Names of character sets that differ from those of the source. */
const charsets: Readonly<Record<string, string>> = {
  'utf-16-bom': 'utf-16le',
  'utf-16le-bom': 'utf-16le',
  'utf-16be-bom': 'utf-16be',
  koi8r: 'koi8-r',
  koi8u: 'koi8-u',
}

/** The character set of lines; undefined for UTF-8. */
function charsetOf(part: Part): string | undefined {
  const name = textIn(part, 'encoding')?.toLowerCase()
  return name === undefined || ['plain', 'utf-8', 'utf8'].includes(name) ? undefined : (charsets[name] ?? name)
}

/** Fields and tags that an input or the whole configuration adds. */
export function ownFields(
  fields: Tree | undefined,
  underRoot: boolean,
  tags: Tree | undefined,
  report: Report,
): readonly Step[] {
  const lines = [
    ...(isMap(fields)
      ? [...fields.value].map(([name, item]) => {
          const value = assigned(item, `fields: ${name}`, report)
          return `${fieldOf(underRoot ? name : `fields.${name}`)} = ${value}`
        })
      : []),
    // A program knows the type of a field that it has set.
    ...tagLines(tags, report).map((line) =>
      underRoot && isMap(fields) && isList(fields.value.get('tags'))
        ? line.replace(/array\((.*?)\) \?\? \[\]/, '$1')
        : line,
    ),
  ]
  return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
}

/** The event in the form of Filebeat. */
function recordStep(name: string, isPods: boolean): Step {
  return isPods
    ? {
        type: 'remap',
        text: [
          '# The event in the form of Filebeat; add_kubernetes_metadata adds the pod metadata later.',
          '%orchestrator = .orchestrator',
          '. = { "message": .message, "stream": .stream, "log": { "file": { "path": .file } }, "input": { "type": "container" }, "timestamp": .timestamp }',
        ].join('\n'),
      }
    : {
        type: 'remap',
        text: `. = { "message": .message, "log": { "file": { "path": .file } }, "input": { "type": ${textLiteral(name)} }, "timestamp": .timestamp }`,
      }
}

/** The steps that decode JSON and filter lines. Filters read the line, or the field that the configuration names after the decoding. */
function decodedAndFiltered(part: Part, ndjson: Tree | undefined): readonly Step[] {
  const hasJson =
    ndjson !== undefined || (isMap(part.tree) && [...part.tree.value].some(([key]) => key.startsWith('json.')))
  const readJson = (key: string) => (ndjson === undefined ? textIn(part, `json.${key}`) : textOf(below(ndjson, key)))
  const target =
    ndjson !== undefined
      ? (textOf(below(ndjson, 'target')) ?? '')
      : flagIn(part, 'json.keys_under_root') === true
        ? ''
        : 'json'
  const json: readonly Step[] = hasJson ? [{ type: 'remap', text: jsonLines(readJson, target).join('\n') }] : []
  const messageKey = hasJson ? readJson('message_key') : undefined
  return messageKey === undefined
    ? [...lineSteps(part, 'string(.message) ?? ""'), ...json]
    : [
        ...json,
        ...lineSteps(
          part,
          `string(${fieldLiteral([target, messageKey].filter((name) => name !== ''))}) ?? string(.message) ?? ""`,
        ),
      ]
}

const logFile = (name: string, becomes: string): Mapping<[Report, Choices], SourcePart> => ({
  name,
  becomes,
  options: common,
  itself,
  build: (part, report, choices) => {
    const paths = textsIn(part, 'paths')
    const stream = textIn(part, 'stream') ?? textIn(part, 'containers.stream')
    const isPods =
      name === 'docker' || (paths.length > 0 && paths.every((path) => isPodLog(path.replaceAll(/\$\{[^}]*\}/g, '*'))))
    const excluded = [...textsIn(part, 'exclude_files'), ...textsIn(part, 'prospector.scanner.exclude_files')]
    const wanted = textsIn(part, 'prospector.scanner.include_files')
    const parsers = itemsOf(option(part, 'parsers')).flatMap((item) => (isMap(item) ? [...item.value] : []))
    const joinedIn = parsers.find(([parser]) => parser === 'multiline')
    const joined =
      joinedIn === undefined
        ? joinedBy(part.tree, (key) => textIn(part, `multiline.${key}`), report)
        : joinedBy(joinedIn[1], (key) => textOf(below(joinedIn[1], key)), report)
    for (const [parser, item] of parsers) {
      if (!['container', 'ndjson', 'multiline'].includes(parser)) {
        report.gap(
          item,
          `parser ${parser}`,
          'the parser has no counterpart',
          'Parse the field `message` in a remap transform.',
        )
      }
    }
    const ndjson = parsers.find(([parser]) => parser === 'ndjson')?.[1]
    const charset = charsetOf(part)
    if (isPods && charset !== undefined) {
      const reason = 'the source reads logs of pods as UTF-8'
      report.gap(part, `${name}: encoding ${charset}`, reason, 'Let the program write UTF-8.')
    }
    const olderMs = millisecondsOf(textIn(part, 'ignore_older'))
    const shared = {
      read_from: flagIn(part, 'tail_files') === true ? 'end' : 'beginning',
      ...(olderMs === undefined || olderMs < 1000 ? {} : { ignore_older_secs: Math.round(olderMs / 1000) }),
    }
    const steps: Step[] = [
      ...(stream === undefined || stream === 'all' || !isPods
        ? []
        : [{ type: 'filter', text: `.stream == ${textLiteral(stream)}` } as const]),
      ...fileSteps(isPods ? paths : [], wanted, excluded, isPods),
      recordStep(name, isPods),
      ...decodedAndFiltered(part, ndjson),
      ...inputChoices(part, choices, report),
      ...ownFields(option(part, 'fields'), flagIn(part, 'fields_under_root') === true, option(part, 'tags'), report),
    ]
    const component: Component = isPods
      ? { type: 'orchestrator_logs', config: shared, ...(joined === undefined ? {} : { multiline: joined.pods }) }
      : {
          type: 'file',
          config: {
            include: paths.length === 0 ? readsNothing().config.include : paths,
            ...shared,
            ...(charset === undefined ? {} : { encoding: { charset } }),
            ...(joined === undefined ? {} : { multiline: joined.file }),
          },
        }
    return { component, steps }
  },
})

/** A filter by file name, if an input reads only some files. */
function fileSteps(
  paths: readonly string[],
  wanted: readonly string[],
  excluded: readonly string[],
  isPods: boolean,
): Step[] {
  const globs = paths.map((path) => path.replaceAll(/\$\{[^}]*\}/g, '*'))
  // Excluded files are named as the input finds them.
  const variable = isPods && globs.every((glob) => variableOf(glob) === 'name') ? 'name' : 'path'
  const isFound = (regexes: readonly string[]) => regexes.map((regex) => `match(${variable}, ${regexLiteral(regex)})`)
  const tests = [
    ...(globs.length === 0 || globs.some(isAllPods) || !isPods ? [] : [`(${isAmong(globs)})`]),
    ...(wanted.length === 0 ? [] : [`(${isFound(wanted).join(' || ')})`]),
    ...isFound(excluded).map((test) => `!${test}`),
  ]
  return tests.length === 0 ? [] : [{ type: 'filter', text: withPaths(tests.join(' && ')) }]
}

export const inputs: readonly Mapping<[Report, Choices], SourcePart>[] = [
  logFile('container', '`orchestrator_logs`'),
  logFile('filestream', '`orchestrator_logs` for pod logs, `file` for other files'),
  logFile('log', '`orchestrator_logs` for pod logs, `file` for other files'),
  logFile('docker', '`orchestrator_logs`'),
]

const none = (name: string, reason: string, nearest: string): Refusal => ({ name, reason, nearest })
const listening = 'Keep Filebeat for this input, with an output to a queue or file that Penstock reads.'

export const refusedInputs: readonly Refusal[] = [
  none('stdin', 'a Pipeline has no standard input', 'For a trial, run `penstock run --input -`.'),
  ...['tcp', 'udp', 'syslog', 'unix', 'http_endpoint', 'lumberjack', 'netflow', 'mqtt'].map((name) =>
    none(name, 'there is no source that listens for this protocol', listening),
  ),
  ...['journald', 'winlog', 'etw'].map((name) =>
    none(name, 'there is no source that reads this log', 'Keep Filebeat for it.'),
  ),
  ...['kafka', 'redis'].map((name) =>
    none(name, 'there is no source for this protocol', 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`).'),
  ),
  none(
    'aws-s3',
    'there is no source that reads objects',
    'Send the content through a queue, and read it with `cloud_queue`.',
  ),
  ...[
    'aws-cloudwatch',
    'gcp-pubsub',
    'gcs',
    'azure-eventhub',
    'azure-blob-storage',
    'httpjson',
    'cel',
    'o365audit',
    'cloudfoundry',
    'entity-analytics',
    'salesforce',
    'streaming',
    'websocket',
    'cometd',
    'benchmark',
    'sql',
  ].map((name) => none(name, 'there is no source for this service', 'Keep Filebeat for it.')),
]
