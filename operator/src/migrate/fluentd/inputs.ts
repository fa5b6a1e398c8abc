// Converts Fluentd inputs to sources, with transforms that give events the form of Fluentd's records.

import { textLiteral } from '@penstock/agent/config'
import { readsNothing } from '../complete.ts'
import type { Gap, Step } from '../draft.ts'
import { type Joined, startingWith } from '../fluent-bit/joining.ts'
import { ownName } from '../fluent-bit/own-time.ts'
import type { Context, Plugin, SourcePart } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { foundPath, isPodLog, podsAt } from '../fluent-bit/tags.ts'
import { none, type Refusal } from '../page.ts'
import { isOn, listOf, type Plugged } from './element.ts'
import {
  alternatives,
  nestedOptions,
  ownFirstLines,
  parsedBy,
  parseItself,
  parseOptions,
  parsing,
  withFailure,
} from './parsers.ts'
import { jsonIn } from './ruby.ts'

/** Parameters that all plugins have. */
export const common: Readonly<Record<string, string>> = {
  '@type': 'the type',
  type: 'the type',
  '@id': 'the name of the component',
  id: 'the name of the component',
  '@label': 'selects filters and matches',
  weight: 'the share of a store of `roundrobin`',
}

export const always: Readonly<Record<string, string>> = {
  '@log_level': 'the agent has one log level',
  log_level: 'the agent has one log level',
}

/** The context of a Fluentd mapping. */
export interface FluentdPlugin<Result> extends Omit<Plugin<Result>, 'build'> {
  readonly build: (section: Plugged, context: Context, gaps: Gap[]) => Result
}

/** Parser options in the syntax of Fluentd before 1.0. */
export const oldFormat = Object.fromEntries(
  Object.entries(parseOptions)
    .map(([name, becomes]) => [name.slice('parse.'.length), becomes] as const)
    .filter(([name]) => !/^@|^type$|\./.test(name)),
)

const runtimeFormats = new Set(['cri', 'docker', 'containerd'])

/** Whether lines of containers end in a line feed for Fluentd: Docker writes it into its JSON. */
export function endsLines(section: Plugged): boolean {
  const [first] = alternatives(section)
  const read = (name: string) => first && lastValue(first.section, `${first.prefix}${name}`)
  const format = read('@type') ?? read('type') ?? read('format') ?? lastValue(section, 'format') ?? 'json'
  return ['json', 'docker'].includes(format.toLowerCase())
}

const tail: FluentdPlugin<SourcePart> = {
  name: 'tail',
  becomes: '`orchestrator_logs` for pod logs, `file` for other files',
  options: {
    ...common,
    ...parseOptions,
    parse: 'the type',
    tag: 'selects filters and matches',
    path: '`include`, with wildcards for parts of the date; for pod logs, a filter by the names of pods unless the input reads all pods',
    exclude_path: '`exclude`; for pod logs a filter',
    ...oldFormat,
    format: "a remap transform; the source reads the runtime's own format",
    expression: 'the expression',
    time_format: 'the format of the time',
    time_key: 'the field for the time',
    keep_time_key: 'whether to keep the time field',
    path_key: 'a field of the record',
    read_from_head: '`read_from`',
    emit_unmatched_lines: 'a field with the text of a line that does not match; without it, such a line is dropped',
    from_encoding: '`encoding.charset`; a gap for pod logs',
    encoding: '`encoding.charset`; a gap for pod logs',
    rotate_wait: '`rotate_wait_secs`',
    limit_recently_modified: '`ignore_older_secs`',
    ...Object.fromEntries(nestedOptions.map((option) => [option, 'a remap transform for the text of the line'])),
    'parse.merge_cri_fields': 'whether the record contains the fields of the runtime',
  },
  itself: {
    ...always,
    ...parseItself,
    ...Object.fromEntries(
      [
        ['pos_file', 'the source keeps its own checkpoints'],
        ['pos_file_compaction_interval', 'the source keeps its own checkpoints'],
        ['refresh_interval', 'the source finds new files when they appear'],
        ['follow_inodes', 'the source identifies files by content, not by name'],
        ['enable_watch_timer', 'the source both watches and polls files'],
        ['enable_stat_watcher', 'the source both watches and polls files'],
        ['multiline_flush_interval', '`timeoutMs` of `multiline`'],
        ['skip_refresh_on_startup', 'the source finds new files when they appear'],
        ['ignore_repeated_permission_error', 'the agent logs an error once per file'],
        ['open_on_every_update', 'the source closes idle files'],
        ['read_lines_limit', 'the source reads files in turn'],
        ['read_bytes_limit_per_second', 'the source reads files in turn'],
        ['max_line_size', 'lines are read up to `max_line_bytes` of the source'],
        ['path_timezone', 'the source reads the files of all dates'],
        ['glob_policy', 'paths may contain all wildcards'],
      ].map(([name, how]) => [name, how as string]),
    ),
  },
  build: (section, context, gaps) => {
    const paths = datedPaths(section, context)
    const readFrom = isOn(lastValue(section, 'read_from_head'), false) ? 'beginning' : 'end'
    const older = wholeSecondsOf(lastValue(section, 'limit_recently_modified'))
    const shared = { read_from: readFrom, ...(older === undefined ? {} : { ignore_older_secs: older }) }
    const charset = charsetOf(section)
    if (paths.length > 0 && paths.every(isPodLog)) {
      if (charset !== undefined) {
        const reason = 'the source reads logs of pods as UTF-8'
        context.gap(section, `tail: encoding ${charset}`, reason, 'Let the program write UTF-8.')
      }
      return podLogs(section, context, gaps, paths, shared)
    }
    const pathKey = lastValue(section, 'path_key')
    const first = firstLine(section, context)
    const own = pathKey === undefined ? '' : `${textLiteral(pathKey)}: .file, `
    const steps: Step[] = []
    const hasFormat = section.entries.some(({ key }) => key === 'parse.@type' || key === 'format')
    const at = hasFormat && lastValue(section, 'parse.@type') === undefined ? formatless(section) : section
    const keepsUnmatched = isOn(lastValue(section, 'emit_unmatched_lines'), false)
    // A line whose time is not valid is dropped in any case.
    const lines = parsedBy(at, 'string(.message) ?? ""', context, gaps, keepsUnmatched ? 'abort' : undefined)
    const name = keepsUnmatched && lines !== undefined ? 'unmatched_line' : 'message'
    // A single line is the format `none`, which matches every line.
    const dropsUnmatched = !keepsUnmatched && lines !== undefined && lines.length > 1
    const unmatched = [
      ...(dropsUnmatched ? ['%is_parsed = is_object(parsed)'] : []),
      `if !is_object(parsed) { parsed = { "${name}": .message } }`,
    ]
    steps.push({
      type: 'remap',
      text: [
        ...(lines ?? ['parsed = null']),
        ...((lastValue(section, 'tag') ?? '').includes('*') ? ['%file = .file'] : []),
        ...unmatched,
        `. = merge({ ${own}"timestamp": .timestamp }, object!(parsed))`,
      ].join('\n'),
    })
    if (dropsUnmatched) steps.push({ type: 'filter', text: '%is_parsed == true' })
    const rotate = wholeSecondsOf(lastValue(section, 'rotate_wait'))
    const excluded = listOf(lastValue(section, 'exclude_path'))
    const config = {
      include: paths.length === 0 ? readsNothing().config.include : paths,
      ...(excluded.length === 0 ? {} : { exclude: excluded }),
      ...shared,
      ...(rotate === undefined ? {} : { rotate_wait_secs: rotate }),
      ...(charset === undefined ? {} : { encoding: { charset } }),
      ...(first === undefined ? {} : { multiline: first.file }),
    }
    return { component: { type: 'file', config }, steps }
  },
}

/** Wildcards for parts of the date in a path. */
const dateParts: Readonly<Record<string, string>> = {
  Y: '[0-9][0-9][0-9][0-9]',
  ...Object.fromEntries([...'mdHMSyC'].map((sign) => [sign, '[0-9][0-9]'])),
  j: '[0-9][0-9][0-9]',
  F: '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]',
  '%': '%',
}

/** The paths of files. Fluentd fills in the current date, and so reads the files of one period at a time. */
function datedPaths(section: Plugged, context: Context): readonly string[] {
  const paths = listOf(lastValue(section, 'path'))
  const dated = paths.map((path) =>
    path.replace(/%[-_0^#]?([A-Za-z%])/g, (_, sign: string) =>
      Object.hasOwn(dateParts, sign) ? (dateParts[sign] ?? '*') : '*',
    ),
  )
  if (dated.join() !== paths.join()) {
    const reason =
      'Fluentd reads only the files with the current date in their paths; the source reads those of all dates'
    context.replaced(section, 'tail: path', reason, 'Set `ignore_older_secs` of the source to leave out old files.')
  }
  return dated
}

/** The character set of lines; undefined for UTF-8, and for bytes that stay as they are. */
function charsetOf(section: Plugged): string | undefined {
  const name = (lastValue(section, 'from_encoding') ?? lastValue(section, 'encoding'))?.toLowerCase()
  const isPlain = name === undefined || ['utf-8', 'utf8', 'ascii-8bit', 'binary', 'us-ascii'].includes(name)
  return isPlain ? undefined : name
}

/** The syntax before Fluentd 1.0: options of the parser are next to the other options. */
function formatless(section: Plugged): Plugged {
  const own = section.entries.filter(({ key }) => !/^@?type$/.test(key) && Object.hasOwn(parseOptions, `parse.${key}`))
  return { ...section, entries: [...section.entries, ...own.map((entry) => ({ ...entry, key: `parse.${entry.key}` }))] }
}

/** The seconds of a duration, such as `90`, `0.5` or `1m`. */
export function secondsOf(text: string | undefined): number | undefined {
  const found = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text ?? '')
  if (found === null) return undefined
  return Number(found[1]) * { '': 1, s: 1, m: 60, h: 3600, d: 86_400 }[found[2] as '' | 's' | 'm' | 'h' | 'd']
}

function wholeSecondsOf(text: string | undefined): number | undefined {
  const seconds = secondsOf(text)
  return seconds === undefined ? undefined : Math.floor(seconds)
}

/** The fields that the parser of the lines of containers gives. */
interface RuntimeLine {
  /** The field with the text. */
  readonly key: string
  readonly isCri: boolean
  readonly hasLogtag: boolean
}

/** The source parses the lines of containers itself. Parsers for other lines are reported. */
function runtimeLine(section: Plugged, context: Context): RuntimeLine {
  const all = alternatives(section).map(({ section: each, prefix }) => {
    const read = (name: string) => lastValue(each, `${prefix}${name}`)
    const format = read('@type') ?? read('type') ?? read('format') ?? lastValue(section, 'format') ?? 'json'
    const expression = read('expression') ?? (format.startsWith('/') ? format : '')
    const type = format.toLowerCase()
    const hasGroups = /\(\?<stream>/.test(expression) && /\(\?<(log|message)>/.test(expression)
    return {
      type,
      text: expression || format,
      expression,
      isRuntime: type === 'json' || runtimeFormats.has(type) || hasGroups,
    }
  })
  const own = all.filter(({ isRuntime }) => isRuntime)
  const read = own.length === 0 ? all : own
  const types = read.map(({ type }) => type)
  const expression = read.map((each) => each.expression).join(' ')
  const isCri = types.includes('cri')
  const key = (isCri && !types.includes('json')) || /\(\?<message>/.test(expression) ? 'message' : 'log'
  const others = all.filter(({ isRuntime }) => !isRuntime)
  const subject = `tail: parse ${others.map(({ text }) => text).join(', ')}`
  const nearest = `If the text of a line must be parsed, parse the field \`${key}\` in a remap transform.`
  if (others.length > 0 && all[0]?.isRuntime === true) {
    const reason = `Fluentd uses it only for lines that \`${all[0].text}\` does not read; the source reads all lines of the container runtime, and gives them the fields of that parser`
    context.replaced(section, subject, reason, nearest)
  } else if (others.length > 0) {
    const reason = 'the parser expects the complete line of the container runtime, which the source parses itself'
    context.gap(section, subject, reason, nearest)
  }
  return { key, isCri, hasLogtag: /\(\?<logtag>/.test(expression) }
}

function podLogs(
  section: Plugged,
  context: Context,
  gaps: Gap[],
  paths: readonly string[],
  shared: Readonly<Record<string, unknown>>,
): SourcePart {
  const { key, isCri, hasLogtag } = runtimeLine(section, context)
  const pathKey = lastValue(section, 'path_key')
  const isMerged = isOn(lastValue(section, 'parse.merge_cri_fields'), true)
  const fields = [
    `${textLiteral(key)}: .message`,
    ...(isMerged ? ['"stream": .stream'] : []),
    '"timestamp": .timestamp',
    ...((isCri && isMerged) || hasLogtag ? ['"logtag": "F"'] : []),
    ...(pathKey === undefined ? [] : [`${textLiteral(pathKey)}: ${foundPath(paths)}`]),
    ...keptTime(section, context),
  ]
  const choice = podsAt(paths, listOf(lastValue(section, 'exclude_path')))
  const steps: Step[] = [
    ...(choice === undefined ? [] : [{ type: 'filter', text: choice } as const]),
    {
      type: 'remap',
      text: [
        '# The record in the form of Fluentd; the filter kubernetes_metadata adds the pod metadata later.',
        '%orchestrator = .orchestrator',
        // Tags for the files behind the links contain the path.
        ...(paths.some((path) => !path.startsWith('/var/log/containers/')) &&
        (lastValue(section, 'tag') ?? '').includes('*')
          ? ['%file = .file']
          : []),
        `. = { ${fields.join(', ')} }`,
        ...(key === 'message' ? innerLines(section, context, gaps) : []),
      ].join('\n'),
    },
  ]
  return { component: { type: 'orchestrator_logs', config: shared }, steps }
}

/** The lines of the parser for the text of a container's line. A text that it does not read is dropped. */
function innerLines(section: Plugged, context: Context, gaps: Gap[]): readonly string[] {
  const type = lastValue(section, 'parse.parse.@type')
  const isSame = type === 'none' && (lastValue(section, 'parse.parse.message_key') ?? 'message') === 'message'
  const lines =
    type === undefined || isSame ? undefined : parsing(section, 'parse.parse.', 'string(.message) ?? ""', context, gaps)
  if (lines === undefined) return []
  const end = isOn(lastValue(section, 'emit_unmatched_lines'), false) ? '}' : '} else { abort }'
  return [
    ...withFailure(lines, undefined),
    'if is_object(parsed) { . = merge(., object!(parsed))',
    'del(.message)',
    end,
  ]
}

/**
 * The time text of the container's line, if the record keeps it: always under its name if the parser takes the time from another field, and
 * otherwise with `keep_time_key`. The parser `cri` keeps it unless the option or an inner parser says otherwise.
 */
function keptTime(section: Plugged, context: Context): readonly string[] {
  const [name] = alternatives(section).flatMap(({ section: each, prefix }) => {
    const read = (key: string) => lastValue(each, `${prefix}${key}`) ?? lastValue(section, key)
    const format = lastValue(each, `${prefix}@type`) ?? lastValue(each, `${prefix}type`) ?? read('format') ?? 'json'
    const isCri = format === 'cri' && lastValue(section, 'parse.parse.@type') === undefined
    const wanted = read('time_key') ?? 'time'
    const expression = read('expression') ?? (format.startsWith('/') ? format : undefined)
    const isIn = expression === undefined ? wanted === 'time' : expression.includes(`(?<${wanted}>`)
    if (isIn) return isOn(read('keep_time_key'), isCri) ? [wanted] : []
    const own = expression === undefined ? 'time' : /\(\?<(\w*time\w*)>/.exec(expression)?.[1]
    if (own === undefined || expression?.includes('(?<stream>') === false) return []
    const reason = `the line of the container has no field \`${wanted}\`, so Fluentd keeps its field \`${own}\` and takes the time of reading; the source takes the time of the line`
    const nearest = 'Nothing, unless you compare times with those of Fluentd.'
    context.replaced(section, `tail: time_key ${wanted}`, reason, nearest)
    return [own]
  })
  const value = 'format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.fZ") ?? null'
  return name === undefined ? [] : [`${textLiteral(ownName(name))}: ${value}`]
}

/** Patterns for first and further lines as `multiline` of a source; undefined if that is not possible. */
export function joinedBy(start: string, timeoutMs: number, section: Plugged, context: Context): Joined | undefined {
  const slashed = /^\/(.*)\/([imx]*)$/s.exec(start)
  const text = slashed === null ? start : `${slashed[2] === '' ? '' : `(?${slashed[2]})`}${slashed[1]}`
  const { problem, ...joined } = startingWith(text, timeoutMs)
  if (problem === undefined) return joined
  context.gap(
    section,
    `${section.type}: ${start}`,
    problem,
    'Set `multiline.custom` of the source, with patterns that use neither look-ahead nor look-behind.',
  )
  return undefined
}

function firstLine(section: Plugged, context: Context): Joined | undefined {
  const names = ['parse.format_firstline', 'format_firstline', 'parse.multiline_start_regexp', 'multiline_start_regexp']
  const type =
    lastValue(section, 'parse.@type') ?? lastValue(section, 'parse.type') ?? lastValue(section, 'format') ?? ''
  const own = Object.hasOwn(ownFirstLines, type) ? ownFirstLines[type] : undefined
  const start = names.map((name) => lastValue(section, name)).find((text) => text !== undefined) ?? own
  if (start === undefined) return undefined
  const wait = secondsOf(lastValue(section, 'multiline_flush_interval')) ?? 5
  return joinedBy(start, Math.max(1, Math.round(wait * 1000)), section, context)
}

/** The records of a list in JSON; a single record is a list with one item. */
function linesOf(text: string): readonly string[] {
  const records = text.trim().startsWith('[') ? jsonIn(text) : undefined
  return Array.isArray(records) && records.length > 0 ? records.map((each) => JSON.stringify(each)) : [text]
}

const sample: FluentdPlugin<SourcePart> = {
  name: 'sample',
  becomes: '`demo_logs`',
  options: {
    ...common,
    tag: 'selects filters and matches',
    sample: 'the lines',
    dummy: 'the lines',
    rate: '`interval`',
  },
  itself: {
    ...always,
    auto_increment_key: {
      how: 'lines are not numbered',
      unless: /./,
      reason: 'the source does not number its lines',
      nearest: 'Set the field in a remap transform, for example to `uuid_v7()`.',
    },
    size: {
      how: 'one line at a time',
      unless: /^(?!1$)/,
      reason: 'the source makes one event at a time',
      nearest: 'Divide `interval` of the source by this number.',
    },
  },
  build: (section) => {
    const text = lastValue(section, 'sample') ?? lastValue(section, 'dummy') ?? '{"message":"sample"}'
    const rate = Number(lastValue(section, 'rate') ?? 1)
    return {
      component: {
        type: 'demo_logs',
        config: { format: 'shuffle', lines: linesOf(text), interval: rate > 0 ? 1 / rate : 1 },
      },
      steps: [
        {
          type: 'remap',
          text: 'parsed = parse_json(.message) ?? null\nif is_object(parsed) { . = merge({ "timestamp": .timestamp }, object!(parsed)) }',
        },
      ],
    }
  },
}

export const inputs: readonly FluentdPlugin<SourcePart>[] = [tail, sample, { ...sample, name: 'dummy' }]

const listening = 'Keep Fluentd as the receiver, with an output to a queue or file that Penstock reads.'
const host = 'Keep Fluentd for this input, or let the program write to a file that a `file` source reads.'

/** Inputs that only expose Fluentd itself. */
export const replacedInputs: Readonly<Record<string, string>> = {
  prometheus: 'The agents expose their own metrics; `penstock top` also shows them.',
  prometheus_monitor: 'The agents expose their own metrics.',
  prometheus_output_monitor: 'The agents expose their own metrics.',
  prometheus_tail_monitor: 'The agents expose their own metrics.',
  monitor_agent: 'Use `penstock status` and `penstock top`.',
  debug_agent: 'Use `penstock tap`.',
}

export const refusedInputs: readonly Refusal[] = [
  ...['forward', 'http', 'tcp', 'udp', 'syslog', 'unix', 'secure_forward', 'beats', 'gelf'].map((name) =>
    none(name, 'there is no source that listens for this protocol', listening),
  ),
  none('systemd', 'there is no source that reads the journal', host),
  none('exec', 'there is no source that starts programs', host),
  none('windows_eventlog', 'there is no source that reads this log', host),
  none('windows_eventlog2', 'there is no source that reads this log', host),
  none('kafka', 'there is no source for this protocol', 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`).'),
  none(
    'kafka_group',
    'there is no source for this protocol',
    'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`).',
  ),
  none('s3', 'there is no source that reads objects', 'Send the content through a queue, or convert the objects.'),
  ...'rdkafka_group rabbitmq amqp mqtt sqs gcloud_pubsub kinesis cloudwatch_logs sql mongo_tail elasticsearch opensearch'
    .split(' ')
    .map((name) =>
      none(name, 'there is no source for this system', 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`).'),
    ),
  ...['opentelemetry', 'statsd', 'snmp', 'netflow', 'snmptrap'].map((name) =>
    none(name, 'there is no source that listens for this protocol', listening),
  ),
  ...['exec_filter', 'http_pull', 'dstat', 'heartbeat', 'object_space', 'docker_events'].map((name) =>
    none(name, 'there is no source that generates events at an interval', host),
  ),
  ...['kubernetes_metrics', 'cadvisor', 'kubernetes_summary_metrics'].map((name) =>
    none(name, 'there is no source for metrics of nodes and programs', 'Let your Prometheus server scrape them.'),
  ),
  none('kubernetes_events', '`convert` does not convert this input', 'Use the source `orchestrator_events`.'),
  none('kubernetes_objects', 'Penstock does not collect Kubernetes objects', 'Use `orchestrator_events` for Events.'),
]
