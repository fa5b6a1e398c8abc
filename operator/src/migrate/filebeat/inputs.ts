// Converts Filebeat inputs to sources, with transforms that give events the form of Filebeat.

import { textLiteral } from '@penstock/agent/config'
import { readsNothing } from '../complete.ts'
import type { Component, Step } from '../draft.ts'
import { foundPath, isAllPods, isAmong, isPodLog, variableOf, withPaths } from '../fluent-bit/tags.ts'
import { flagIn, type Mapping, option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { below, isList, isMap, millisecondsOf, type Tree, textOf } from '../loki/tree.ts'
import { regexLiteral } from '../otel/text.ts'
import { none, type Refusal } from '../page.ts'
import { type Choices, inputChoices } from './choices.ts'
import { assignments } from './conditions.ts'
import { decodesDocker, decodesToRoot, maxLineBytes, parserSteps, parsersOf } from './lines.ts'
import { joinedBy, joinedLines } from './multiline.ts'
import { tagLines } from './processors.ts'

export interface SourcePart {
  readonly component: Component
  readonly steps: readonly Step[]
}

const common: Readonly<Record<string, string>> = {
  type: 'the type',
  input_type: 'the type, in old versions',
  document_type: 'the field `type` of the event, in old versions',
  ignore_inactive: '`read_from`, and a row of the report',
  id: 'the name of the component',
  enabled: 'a disabled input is left out',
  processors: 'transforms after the source',
  fields: 'fields of the event',
  fields_under_root: 'the place of the fields',
  tags: 'a field of the event',
  index: '`bulk.index` by a field that a transform sets',
  pipeline: '`bulk.pipeline` by a field that a transform sets',
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
  'containers.ids': 'a filter transform, unless the input reads all containers',
  max_bytes: 'a remap transform that cuts longer messages',
  message_max_bytes: 'a remap transform that cuts longer messages',
  line_terminator: '`line_delimiter`; a gap for pod logs',
  combine_partial: '`auto_partial_merge`',
  keep_null: 'whether nulls of JSON stay',
  'json.add_error_key': '`error.message` of lines that are not JSON',
  'json.document_id': '`id_key`, from metadata',
  'multiline.max_lines': 'a remap transform that cuts longer messages',
  'multiline.flush_pattern': '`multiline` of the source; a gap with `match: before`',
  'multiline.skip_newline': 'a remap transform that joins the lines',
  'delete.enabled': '`remove_after_secs`; a gap for pod logs',
  'delete.grace_period': '`remove_after_secs`',
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
      'prospector.scanner.fingerprint',
      'prospector.scanner.fingerprint.enabled',
      'prospector.scanner.fingerprint.offset',
      'prospector.scanner.fingerprint.length',
      'file_identity.fingerprint',
      'take_over',
      'take_over.enabled',
      'format',
    ],
    ...['buffer_size', 'cri.flags', 'cri.parse_flags'],
    ...[
      'json.ignore_decoding_error',
      'publisher_pipeline.disable_host',
      'recursive_glob.enabled',
      'prospector.scanner.recursive_glob',
      'scan.order',
      'scan.sort',
      'allow_deprecated_use',
      'allow_deprecated_id_duplication',
      'legacy_clean_inactive',
      'prospector.scanner.resend_on_touch',
      'file_identity.inode_marker.path',
      'force_close_files',
      'close_older',
      'compression',
      'gzip_experimental',
      'rotation.external.strategy.copytruncate.suffix_regex',
      'rotation.external.strategy.copytruncate.dateformat',
      'rotation.external.strategy.copytruncate.count',
      'clean_inactive',
    ],
  ].map((name) => [name, 'the source follows files in its own way, and reads lines up to `max_line_bytes`'] as const),
)

/** Line terminators and the delimiters of a source. Without one, lines end with a line feed, or a carriage return and a line feed. */
const delimiters: Readonly<Record<string, string>> = {
  line_feed: '\n',
  vertical_tab: '\v',
  form_feed: '\f',
  carriage_return: '\r',
  carriage_return_line_feed: '\r\n',
  next_line: '\u0085',
  line_separator: '\u2028',
  paragraph_separator: '\u2029',
  null_terminator: '\0',
}

/** The delimiter of lines; undefined for the default. Reports a gap for one that the source does not have. */
function delimiterOf(part: Part, isPods: boolean, report: Report): string | undefined {
  const name = textIn(part, 'line_terminator')
  if (name === undefined || name === 'auto' || name === 'line_feed') return undefined
  const delimiter = Object.hasOwn(delimiters, name) ? delimiters[name] : undefined
  if (delimiter !== undefined && !isPods) return delimiter
  const reason = isPods ? 'lines of pods end with a line feed' : 'there is no such terminator'
  report.gap(part, `${part.name}: line_terminator ${name}`, reason, 'Set `line_delimiter` of a `file` source.')
  return undefined
}

/** The stream that an input reads; undefined for both. */
function streamOf(part: Part): string | undefined {
  const parser = parsersOf(part).find(({ name }) => name === 'container')?.tree
  const stream = textIn(part, 'stream') ?? textIn(part, 'containers.stream') ?? textOf(below(parser, 'stream'))
  return stream === 'all' ? undefined : stream
}

/** Whether an input decodes the format of container runtimes. */
const readsContainers = (part: Part): boolean =>
  ['container', 'docker'].includes(part.name) || parsersOf(part).some(({ name }) => name === 'container')

/** Files in which Docker keeps the lines of all its containers. */
const ofDocker = /^\/var\/lib\/docker\/containers\/[*/]+(?:-json)?(?:\.log)?\*?$/

/** The log of a discovered container by its identifier, which is always that of the container itself. */
const ofDiscovered = /^\/var\/log\/containers\/\*?-?\$\{data\.(?:kubernetes\.)?container\.id\}\.log$/

/** A path of Windows. */
const ofWindows = /^(?:[A-Za-z]:[\\/]|\\\\)/

/** The files of an input. */
interface Files {
  /** Whether the files are the logs of pods. */
  readonly isPods: boolean
  /** Paths of pod logs that select pods; empty if the input reads all. */
  readonly chosen: readonly string[]
}

/** Decides whether an input reads the logs of pods. Reports files of containers that no source decodes. */
function filesOf(part: Part, paths: readonly string[], report: Report): Files {
  const globs = paths.map((path) => path.replaceAll(/\$\{[^}]*\}/g, '*'))
  const isOwn = paths.some((path) => ofDiscovered.test(path))
  if (part.name === 'docker' || (globs.length > 0 && globs.every(isPodLog)))
    return { isPods: true, chosen: isOwn ? [] : paths }
  const isDecoded = readsContainers(part) || decodesDocker(part)
  if (globs.length > 0 && isDecoded && globs.every((glob) => isPodLog(glob) || ofDocker.test(glob))) {
    const reason = 'the source reads the containers of pods, and no other containers of Docker'
    if (!paths.some((path) => path.includes('${data.kubernetes.')))
      report.replaced(
        part,
        `${part.name}: ${paths.join(', ')}`,
        reason,
        'Keep Filebeat for containers outside of pods.',
      )
    return { isPods: true, chosen: [] }
  }
  if (globs.length > 0 && readsContainers(part)) {
    const reason = 'a `file` source does not decode the format of container runtimes'
    const nearest = 'Use a source of type `orchestrator_logs` for the logs of pods.'
    report.gap(part, `${part.name}: ${paths.join(', ')}`, reason, nearest)
  }
  return { isPods: false, chosen: [] }
}

/** The text of a line in the format of containerd and CRI-O. */
const inFormat =
  '(format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.9fZ") ?? "") + " " + (string(.stream) ?? "") + " F " + (string(.message) ?? "")'

/**
 * The text of a line of a pod. The source decodes the format of the container runtime, which inputs without a parser for it leave in the
 * message. The line gets it again if steps read it. Reports both.
 */
function lineOf(part: Part, isRead: boolean, report: Report): string {
  if (readsContainers(part) || decodesDocker(part)) return '.message'
  const reason = isRead
    ? 'steps read the format of the container runtime, so lines get that of containerd again; no line is partial'
    : 'the input leaves the format of the container runtime in `message`; the source removes it'
  const nearest = isRead
    ? 'Remove these steps, and write the message without the format.'
    : 'Remove steps that decode this format.'
  report.replaced(part, `${part.name}: pods`, reason, nearest)
  return isRead ? inFormat : '.message'
}

/** Reports variables in a path, which have no value. Those of discovered pods select the pod itself. */
function reportVariables(part: Part, path: string, isPods: boolean, report: Report): void {
  for (const [variable] of path.matchAll(/\$\{[^}]*\}/g)) {
    if (isPods && variable.startsWith('${data.')) continue
    const reason = isPods
      ? 'the variable has no value here, so the source reads the pods for all its values'
      : 'a resource is literal text, and the variable has no value here'
    const nearest = isPods ? 'Write its value in the path, and convert again.' : 'Write its value in `include`.'
    report.gap(part, `${part.name}: ${variable}`, reason, nearest)
  }
}

/** Identifiers of containers that an input reads; empty if it reads all, or those of a discovered pod. */
function idsOf(part: Part): readonly string[] {
  const ids = textsIn(part, 'containers.ids')
  return ids.some((id) => id === '*' || id.includes('${data.')) ? [] : ids
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

/**
 * Fields and tags that an input or the whole configuration adds.
 * @param mayHaveTags whether the line may contain a field `tags`
 */
export function ownFields(
  fields: Tree | undefined,
  underRoot: boolean,
  tags: Tree | undefined,
  report: Report,
  mayHaveTags = false,
): readonly Step[] {
  const hasTags = underRoot && isMap(fields) && isList(fields.value.get('tags'))
  const lines = [
    ...(isMap(fields)
      ? [...fields.value].flatMap(([name, item]) =>
          assignments(underRoot ? name : `fields.${name}`, item, `fields: ${name}`, report),
        )
      : []),
    // A program knows the type of a field that it has set.
    ...tagLines(tags, report, 'tags', mayHaveTags && !hasTags).map((line) =>
      hasTags ? line.replace(/array\((.*?)\) \?\? \[\]/, '$1') : line,
    ),
  ]
  return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
}

/** The kind of documents that old versions write into events. */
function documentType(part: Part): readonly Step[] {
  const type = textIn(part, 'document_type')
  return type === undefined ? [] : [{ type: 'remap', text: `.type = ${textLiteral(type)}` }]
}

/** Whether the source leaves out what files contain when it first finds them. */
function startsAtEnd(part: Part, report: Report): boolean {
  const inactive = textIn(part, 'ignore_inactive')
  if (inactive === undefined || inactive === '') return flagIn(part, 'tail_files') === true
  const reason = 'the old agent leaves out files without changes since its start; the source leaves out what is in them'
  report.replaced(part, `${part.name}: ignore_inactive`, reason, 'Set `read_from: beginning` to read it.')
  return true
}

/** The seconds after which a file that was read is removed; undefined if files stay. */
function removalOf(part: Part, isPods: boolean, report: Report): number | undefined {
  if (flagIn(part, 'delete.enabled') !== true) return undefined
  if (!isPods) return Math.round((millisecondsOf(textIn(part, 'delete.grace_period')) ?? 1_800_000) / 1000)
  const reason = 'the kubelet removes the logs of pods'
  report.gap(part, `${part.name}: delete.enabled`, reason, 'Remove the option.')
  return undefined
}

/** Whether a parser gives an empty line fields, so that Filebeat does not leave it out. */
const keepsEmpty = (part: Part): boolean =>
  parsersOf(part).some(({ name }) => name === 'ndjson' || name === 'syslog') ||
  (isMap(part.tree) && [...part.tree.value.keys()].some((name) => String(name).startsWith('json.')))

/**
 * The event in the form of Filebeat.
 * @param podPaths where the input looks for the files of pods; undefined for other files
 * @param message an expression for the text of the line
 * @param rest statements that follow
 */
function recordStep(
  name: string,
  podPaths: readonly string[] | undefined,
  message: string,
  rest: readonly string[],
): Step {
  return podPaths !== undefined
    ? {
        type: 'remap',
        text: [
          '# The event in the form of Filebeat; add_kubernetes_metadata adds the pod metadata later.',
          '%orchestrator = .orchestrator',
          `. = { "message": ${message}, "stream": .stream, "log": { "file": { "path": ${foundPath(podPaths)} } }, "input": { "type": ${textLiteral(name)} }, "timestamp": .timestamp }`,
          ...rest,
        ].join('\n'),
      }
    : {
        type: 'remap',
        text: [
          `. = { "message": .message, "log": { "file": { "path": .file } }, "input": { "type": ${textLiteral(name)} }, "timestamp": .timestamp }`,
          ...rest,
        ].join('\n'),
      }
}

/** Options that only `filestream` reads, and those that it does not read. */
const ofStreams = /^(?:parsers$|prospector\.|message_max_bytes$)/
const ofOlder = /^(?:multiline\.|json\.|exclude_files$|max_bytes$|tail_files$)/

/** The input without the options of other inputs, which Filebeat ignores. Reports them. */
function withoutOthers(part: Part, report: Report): Part {
  if (!isMap(part.tree)) return part
  const isStream = part.name === 'filestream'
  const others = isStream ? ofOlder : ofStreams
  const kept = [...part.tree.value].filter(([name, item]) => {
    if (!others.test(name)) return true
    const reason = `Filebeat ignores this option, which only \`${isStream ? 'log' : 'filestream'}\` reads`
    const nearest = isStream
      ? 'If the source must do this, set it in `parsers` or `prospector.scanner`, and convert again.'
      : 'If the source must do this, convert the input as `filestream`.'
    report.replaced(item, `${part.name}: ${name}`, reason, nearest)
    return false
  })
  return { ...part, tree: { ...part.tree, value: new Map(kept) } }
}

const logFile = (name: string, becomes: string): Mapping<[Report, Choices], SourcePart> => ({
  name,
  becomes,
  options: common,
  itself,
  build: (given, report, choices) => {
    const part = withoutOthers(given, report)
    const paths = textsIn(part, 'paths')
    const stream = streamOf(part)
    const mayHaveTags = decodesToRoot(part)
    const { isPods, chosen } = filesOf(part, paths, report)
    const excluded = [...textsIn(part, 'exclude_files'), ...textsIn(part, 'prospector.scanner.exclude_files')]
    const wanted = textsIn(part, 'prospector.scanner.include_files')
    const joinedIn = parsersOf(part).find((parser) => parser.name === 'multiline')?.tree
    const joining = (key: string) =>
      joinedIn === undefined ? textIn(part, `multiline.${key}`) : textOf(below(joinedIn, key))
    const joined = joinedBy(joinedIn ?? part.tree, joining, report)
    const charset = charsetOf(part)
    if (isPods && charset !== undefined) {
      const reason = 'the source reads logs of pods as UTF-8'
      report.gap(part, `${name}: encoding ${charset}`, reason, 'Let the program write UTF-8.')
    }
    const delimiter = delimiterOf(part, isPods, report)
    const line = isPods ? lineOf(part, choices.namesRuntime && joined === undefined, report) : '.message'
    for (const path of paths) reportVariables(part, path, isPods, report)
    for (const path of paths.filter((each) => ofWindows.test(each)))
      report.missing(part, `${name}: ${path}`, unreadPath, 'path')
    const removal = removalOf(part, isPods, report)
    const olderMs = millisecondsOf(textIn(part, 'ignore_older'))
    const shared = {
      read_from: startsAtEnd(part, report) ? 'end' : 'beginning',
      ...(olderMs === undefined || olderMs < 1000 ? {} : { ignore_older_secs: Math.round(olderMs / 1000) }),
    }
    const steps: Step[] = [
      ...(stream === undefined || !isPods
        ? []
        : [{ type: 'filter', text: `.stream == ${textLiteral(stream)}` } as const]),
      ...idSteps(idsOf(part)),
      ...(isPods || keepsEmpty(part) ? [] : [{ type: 'filter', text: '.message != ""' } as const]),
      ...fileSteps(chosen, wanted, excluded, isPods),
      recordStep(name, isPods ? paths : undefined, line, [
        ...(choices.hasSource ? ['.source = .log.file.path'] : []),
        ...(joined === undefined ? [] : joinedLines(joining)),
      ]),
      ...parserSteps(part, report, isPods),
      ...inputChoices(part, choices, report),
      ...documentType(part),
      ...choices.shared(mayHaveTags),
      ...ownFields(
        option(part, 'fields'),
        flagIn(part, 'fields_under_root') === true,
        option(part, 'tags'),
        report,
        mayHaveTags,
      ),
    ]
    const component: Component = isPods
      ? {
          type: 'orchestrator_logs',
          config: { ...shared, ...(flagIn(part, 'combine_partial') === false ? { auto_partial_merge: false } : {}) },
          ...(joined === undefined ? {} : { multiline: joined.pods }),
        }
      : {
          type: 'file',
          config: {
            include: paths.length === 0 ? readsNothing().config.include : paths,
            ...shared,
            max_line_bytes: maxLineBytes(part),
            ...(removal === undefined ? {} : { remove_after_secs: removal }),
            ...(delimiter === undefined ? {} : { line_delimiter: delimiter }),
            ...(charset === undefined ? {} : { encoding: { charset } }),
            ...(joined === undefined ? {} : { multiline: joined.file }),
          },
        }
    return { component, steps }
  },
})

/** A filter by the identifier of the container, if an input reads only some containers. */
const idSteps = (ids: readonly string[]): readonly Step[] =>
  ids.length === 0
    ? []
    : [
        {
          type: 'filter',
          text: `includes([${ids.map((id) => textLiteral(id)).join(', ')}], replace(string(.orchestrator.container_id) ?? "", r'^.*://', ""))`,
        },
      ]

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

const unreadPath = none(
  'paths',
  'the agent runs on Linux, and reads no files of Windows',
  'Keep Filebeat on these machines, with an output to a queue or file that Penstock reads.',
)

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
