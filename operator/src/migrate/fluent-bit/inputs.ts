// Converts Fluent Bit inputs to sources. `orchestrator_logs` reads pod logs and knows the pod without a file name. The first transform
// then gives each event the fields of Fluent Bit's record, so that filters and outputs find the fields that they name.

import { textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Step } from '../draft.ts'
import { none, type Refusal } from '../page.ts'
import { bare, type Joined, multilineOf, runtimeParsers, startingWith } from './joining.ts'
import { apart, reportOwnTime } from './own-time.ts'
import { findParser, parserLines } from './parsers.ts'
import { type Context, common, type Plugin, type SourcePart, tagged } from './plugin.ts'
import { charsetOf, firstLinesOfDocker, ownParser, podLogs, reportIgnored, seconds } from './pod-logs.ts'
import { bytesOf, entriesOf, isOn, lastValue, listOf as list, type Section } from './sections.ts'
import { isOfFile, isPodLog } from './tags.ts'

const account = 'the agent uses its service account'

/** The default of `max_line_bytes`. Fluent Bit has a lower default. */
const defaultLine = 102_400

const tail: Plugin<SourcePart> = {
  name: 'tail',
  becomes: '`orchestrator_logs` for pod logs, `file` for other files',
  options: {
    ...common,
    ...tagged,
    tag_regex: 'selects filters and outputs, together with `Tag`',
    path: '`include`; for pod logs, a filter by the names of pods unless the input reads all pods',
    exclude_path: '`exclude`; for pod logs a filter',
    parser: "a remap transform; the source reads the runtime's own format",
    'multiline.parser': '`multiline`; the source reads docker and cri itself',
    multiline: '`multiline` with the expression of the first parser',
    multiline_flush: 'the timeout of `multiline`',
    parser_firstline: '`multiline`, and a remap transform',
    docker_mode_parser: '`multiline` with the part of its expression for the text of the line; a gap for other files',
    ...Object.fromEntries(
      Array.from({ length: 9 }, (_, index) => [`parser_${index + 1}`, 'a remap transform for further lines']),
    ),
    path_key: 'a field of the record',
    offset_key: '`offset_key`; a gap for pod logs',
    read_from_head: '`read_from`',
    key: 'the name of the field for the line',
    docker_mode_flush: 'the timeout of `multiline`, with `Docker_Mode_Parser`',
    rotate_wait: '`rotate_wait_secs`',
    buffer_max_size: '`max_line_bytes`; for pod logs, whose runtime splits longer lines, without effect',
    ignore_older: '`ignore_older_secs`',
    skip_empty_lines: 'a filter transform',
    'unicode.encoding': '`encoding.charset`; a gap for pod logs',
    'generic.encoding': '`encoding.charset`; a gap for pod logs',
  },
  itself: {
    refresh_interval: 'the source finds new files when they appear',
    db: 'the source keeps its own checkpoints',
    'db.sync': 'as `db`',
    'db.locking': 'as `db`',
    'db.journal_mode': 'as `db`',
    mem_buf_limit: 'a source waits while the buffers of its sinks are full',
    'storage.type': 'see `buffer` of sinks',
    'storage.pause_on_chunks_overlimit': 'a source waits while the buffers of its sinks are full',
    log_level: 'the agent has one log level',
    buffer_chunk_size: 'the source sizes its buffers by itself',
    static_batch_size: 'the source reads files in turn',
    event_batch_size: 'the source reads files in turn',
    file_cache_advise: 'the source reads files once',
    watcher_interval: 'the source both watches and polls files',
    progress_check_interval: 'the source both watches and polls files',
    progress_check_interval_nsec: 'the source both watches and polls files',
    'db.compare_filename': 'the source identifies files by content, not by name',
    read_newly_discovered_files_from_head: {
      how: 'the source reads new files from their beginning',
      unless: /^(?:off|false|no|0)$/i,
      reason: 'the source reads files that appear later from their beginning',
      nearest: 'Remove the option.',
    },
    exit_on_eof: {
      how: 'the source waits for further lines',
      unless: /^(?:on|true|yes|1)$/i,
      reason: 'agents run until they are stopped',
      nearest: 'Use `penstock run` for one pass over a file.',
    },
    truncate_long_lines: {
      how: 'the source discards and counts lines longer than `max_line_bytes`',
      unless: /^(?:on|true|yes|1)$/i,
      reason: 'Fluent Bit keeps the beginning of a line that is too long; the source discards the line',
      nearest: 'Set `max_line_bytes` of the source.',
    },
    skip_long_lines:
      'the source discards and counts lines longer than `max_line_bytes`, and continues with the next line',
    inotify_watcher: 'the source both watches and polls files',
    docker_mode: 'the source joins lines that the runtime has split; a gap for files other than pod logs',
    threaded: 'sources do not block each other',
  },
  build: (section, context) => {
    // In a path, two asterisks are one for Fluent Bit, so they match a single name.
    const paths = list(section, 'path').map((path) => path.replace(/\*{2,}/g, '*'))
    const excluded = list(section, 'exclude_path')
    reportLongLines(section, context)
    reportQuotes(section, [...paths, ...excluded], context)
    const joined = multilineOf(section, context)
    const older = seconds(lastValue(section, 'ignore_older'))
    const readFrom = isOn(lastValue(section, 'read_from_head'), false) ? 'beginning' : 'end'
    const shared = { read_from: readFrom, ...(older === undefined ? {} : { ignore_older_secs: older }) }
    if (paths.length > 0 && paths.every(isPodLog)) {
      const rules = joined ?? firstLinesOfDocker(section, context)
      return podLogs(section, context, { paths, excluded, shared, joined: rules })
    }
    const key = lastValue(section, 'key') ?? 'log'
    const charset = charsetOf(section)
    reportPlaces(section, paths, context)
    const firstLine = entriesOf(section, 'docker_mode_parser').at(-1)
    if (firstLine !== undefined) {
      const reason = 'the source of files does not read the format of Docker'
      context.gap(firstLine, `docker_mode_parser ${firstLine.value}`, reason, 'Set `multiline` of the source.')
    }
    const pathKey = lastValue(section, 'path_key')
    const offset = lastValue(section, 'offset_key')
    const fields = [
      `${textLiteral(key)}: .message`,
      ...(pathKey === undefined ? [] : [`${textLiteral(pathKey)}: .file`]),
      ...(offset === undefined ? [] : [`${textLiteral(offset)}: .offset`]),
    ]
    const file = isOfFile(section) ? '%file = .file\n' : ''
    const steps: Step[] = [{ type: 'remap', text: `${file}. = { ${fields.join(', ')}, "timestamp": .timestamp }` }]
    reportRuntime(section, context)
    const first = firstLines(section, context)
    reportIgnored(section, context)
    const parser = ownParser(section)
    const lines =
      first !== undefined
        ? first.lines
        : parser === undefined
          ? undefined
          : parserLines(parser, `string(.${textLiteral(key)}) ?? ""`, context, section)
    if (isOn(lastValue(section, 'skip_empty_lines'), false)) {
      steps.unshift({ type: 'filter', text: '.message != ""' })
    }
    if (lines !== undefined) {
      const kept = [
        ...(pathKey === undefined ? [] : [`${textLiteral(pathKey)}: .${textLiteral(pathKey)}`]),
        ...(offset === undefined ? [] : [`${textLiteral(offset)}: .${textLiteral(offset)}`]),
        '"timestamp": .timestamp',
      ]
      steps.push({
        type: 'remap',
        text: [...lines, `if is_object(parsed) { . = merge({ ${kept.join(', ')} }, object!(parsed)) }`].join('\n'),
      })
    }
    const rotate = seconds(lastValue(section, 'rotate_wait'))
    const longest = bytesOf(lastValue(section, 'buffer_max_size')) ?? 0
    const config = {
      include: paths,
      ...(offset === undefined ? {} : { offset_key: 'offset' }),
      ...(excluded.length > 0 ? { exclude: excluded.map((glob) => excludedAt(glob, paths)) } : {}),
      ...shared,
      ...(rotate === undefined ? {} : { rotate_wait_secs: rotate }),
      ...(longest > defaultLine ? { max_line_bytes: longest } : {}),
      ...(charset === undefined ? {} : { encoding: { charset } }),
      ...(joined === undefined && first === undefined ? {} : { multiline: (first?.joined ?? joined)?.file }),
    }
    return { component: { type: 'file', config }, steps }
  },
}

/** Reports patterns in quotes, which Fluent Bit does not remove. */
function reportQuotes(section: Section, patterns: readonly string[], context: Context): void {
  for (const pattern of patterns.filter((each) => /^["']|["']$/.test(each))) {
    const reason = 'Fluent Bit takes the quotes for a part of the pattern, so it matches no usual name of a file'
    const nearest = 'Nothing to do for the same events. To match the files, remove the quotes, and convert again.'
    context.replaced(section, `tail: pattern ${pattern}`, reason, nearest)
  }
}

/** Reports paths that mean other places than for Fluent Bit. */
function reportPlaces(section: Section, paths: readonly string[], context: Context): void {
  const isOfWindows = (path: string) => /^[A-Za-z]:[\\/]/.test(path)
  if (paths.some(isOfWindows)) context.missing(section, `tail: path ${paths.join(', ')}`, windows)
  for (const path of paths.filter((each) => !/^[/$"']/.test(each) && !isOfWindows(each))) {
    const reason = 'Fluent Bit finds the files below its working directory, and the source below that of the agent'
    context.replaced(section, `tail: path ${path}`, reason, 'Write the whole path.')
  }
}

function reportLongLines(section: Section, context: Context): void {
  const entry = entriesOf(section, 'skip_long_lines').at(-1)
  if (entry === undefined || isOn(entry.value, true)) return
  const reason =
    'Fluent Bit stops reading a file at a line that is too long; the source discards the line and continues'
  context.replaced(entry, 'tail: skip_long_lines', reason, 'Remove the option.')
}

/** Reports options for lines in the format of a container runtime, which only the source of pods reads. */
function reportRuntime(section: Section, context: Context): void {
  const named = list(section, 'multiline.parser').filter((name) => runtimeParsers.has(name))
  const subjects = [
    ...named.map((name) => `multiline.parser ${name}`),
    ...(isOn(lastValue(section, 'docker_mode'), false) ? ['docker_mode'] : []),
  ]
  for (const subject of subjects) {
    const reason =
      'the source of files does not read the format of a container runtime, and does not join lines that it has split'
    context.gap(
      section,
      subject,
      reason,
      'Read the logs of pods below `/var/log/containers`, or parse lines in a remap transform.',
    )
  }
}

const windows = none(
  'tail',
  'agents run on Linux, so the source finds no file with such a path',
  'Keep Fluent Bit on nodes with Windows.',
)

/**
 * A pattern of files to exclude. In Fluent Bit, an asterisk also matches `/`, which has no effect on paths that have as many `/` as the
 * pattern.
 */
function excludedAt(glob: string, paths: readonly string[]): string {
  const depth = (text: string) => text.split('/').length
  if (paths.every((path) => depth(path) === depth(glob))) return glob
  const [start = '', ...others] = glob.split(/\*+/)
  const rest = others.map((part, index) => (start === '' && index === 0 ? `/**/*${part}` : `{*,*/**/*}${part}`))
  return `${start}${rest.join('')}`
}

const newline = textLiteral('\n')

/**
 * The older way to join lines: a parser reads the first line. The text of further lines is appended to the last field that it found, unless
 * other parsers match these lines.
 */
function firstLines(section: Section, context: Context): { joined: Joined; lines: readonly string[] } | undefined {
  if (!isOn(lastValue(section, 'multiline'), false)) return undefined
  const name = lastValue(section, 'parser_firstline') ?? ''
  const definition = findParser(name, context)
  const regex = definition === undefined ? '' : (lastValue(definition, 'regex') ?? '')
  const at = `string(.${textLiteral(lastValue(section, 'key') ?? 'log')}) ?? ""`
  const parsed = parserLines(name, 'first', context, section)
  const timeout = 1000 * (seconds(lastValue(section, 'multiline_flush')) ?? 4)
  // A source needs no groups, and its expressions use another syntax for names.
  const { problem, ...joined } = startingWith(bare(regex.replace(/\(\?<\w+>/g, '(')), timeout)
  const groups = [...regex.matchAll(/\(\?<(\w+)>/g)].map(([, group = '']) => group)
  const kept = groups.findLast((group) => group !== lastValue(definition ?? section, 'time_key'))
  if (parsed === undefined || problem !== undefined || kept === undefined) {
    const reason = problem ?? `the parser \`${name}\` has no expression with a named group for the text`
    context.gap(section, 'tail: Multiline', reason, 'Set `multiline` of the source, and parse in a remap transform.')
    return undefined
  }
  const others = section.entries.filter(({ key }) => /^parser_\d$/.test(key))
  const further = others.flatMap((entry) => {
    const lines = parserLines(entry.value, 'line', context, entry)
    return lines === undefined
      ? []
      : [...lines, 'if is_object(parsed) {', '  whole = merge(whole, object!(parsed))', '  isTaken = true', '}']
  })
  const last = `whole.${textLiteral(kept)}`
  return {
    joined,
    lines: [
      `texts = split(${at}, ${newline})`,
      'first = string(get(texts, [0]) ?? null) ?? ""',
      ...parsed,
      'if is_object(parsed) {',
      '  whole = object!(parsed)',
      '  for_each(texts) -> |index, _text| {',
      '    line = string(get(texts, [index]) ?? null) ?? ""',
      '    isTaken = false',
      '    if index > 0 {',
      ...further.map((line) => `    ${line}`),
      `    if !isTaken { ${last} = (string(${last}) ?? "") + ${newline} + line }`,
      '    }',
      '  }',
      '  parsed = whole',
      '}',
    ],
  }
}

const events: Plugin<SourcePart> = {
  name: 'kubernetes_events',
  becomes: '`orchestrator_events`, and a remap transform that renames fields to their names in the API',
  options: { ...common, ...tagged, kube_namespace: '`namespaces`' },
  itself: {
    kube_url: account,
    kube_ca_file: account,
    kube_ca_path: account,
    kube_token_file: account,
    kube_request_limit: account,
    kube_retention_time: account,
    interval_sec: account,
    interval_nsec: account,
    'tls.verify': account,
    db: 'the source keeps its own checkpoints',
    'db.sync': 'as `db`',
  },
  build: (section, context) => {
    context.replaced(
      section,
      'kubernetes_events',
      'the record has only the fields that the source reads, under their names in the API: `source`, `kind` and `metadata.resourceVersion` are missing',
      'Compare the results with `penstock run`.',
    )
    const object = (at: string) =>
      `filter({ "apiVersion": ${at}.api_version, "kind": ${at}.kind, "namespace": ${at}.namespace, "name": ${at}.name, "uid": ${at}.uid, "fieldPath": ${at}.field_path }) -> |_key, value| { value != null }`
    const at = '.orchestrator'
    const text = [
      `metadata = filter({ "name": ${at}.event_name, "namespace": ${at}.event_namespace, "uid": ${at}.event_uid }) -> |_key, value| { value != null }`,
      `regarding = ${object(`${at}.regarding`)}`,
      `related = ${object(`${at}.related`)}`,
      `record = { "metadata": metadata, "involvedObject": regarding, "related": related, "message": .message, "type": ${at}.type, "reason": ${at}.reason, "action": ${at}.action, "count": ${at}.count, "firstTimestamp": ${at}.first_timestamp, "lastTimestamp": ${at}.last_timestamp, "reportingComponent": ${at}.reporting_controller, "reportingInstance": ${at}.reporting_instance, "timestamp": .timestamp }`,
      '. = filter(record) -> |_key, value| { value != null && value != {} }',
    ].join('\n')
    const namespace = lastValue(section, 'kube_namespace')
    const config = namespace === undefined ? {} : { config: { namespaces: [namespace] } }
    return { component: { type: 'orchestrator_events', ...config }, steps: [{ type: 'remap', text }] }
  },
}

const dummy: Plugin<SourcePart> = {
  name: 'dummy',
  becomes: '`demo_logs`, and a remap transform',
  options: {
    ...common,
    ...tagged,
    dummy: '`lines`',
    rate: '`interval`, unless an interval is given',
    interval_sec: '`interval`',
    interval_nsec: '`interval`',
    samples: '`count`',
  },
  itself: {
    copies: {
      how: 'one record at a time',
      unless: /^(?!1$)/,
      reason: 'the source generates one record at a time',
      nearest: 'Set a shorter `interval` of the source.',
    },
    threaded: 'sources do not block each other',
  },
  build: (section, context) => {
    const given = lastValue(section, 'dummy') ?? '{"message":"dummy"}'
    const line = objectText(given)
    if (line === undefined) {
      context.gap(section, 'dummy: dummy', 'the record is not a JSON object', 'Correct `lines` of the source.')
    }
    const number = (key: string) => Math.trunc(Number(lastValue(section, key) ?? 0)) || 0
    const [rate, count] = [number('rate'), number('samples')]
    const interval = number('interval_sec') + number('interval_nsec') / 1e9
    const config = {
      format: 'shuffle',
      lines: [line ?? '{"message":"dummy"}'],
      interval: interval > 0 ? interval : 1 / Math.max(rate, 1),
      ...(count > 0 ? { count } : {}),
    }
    const isOwn = line !== undefined && Object.hasOwn(JSON.parse(line) as object, 'timestamp')
    if (isOwn) reportOwnTime(section, 'dummy: timestamp', context)
    const text = [
      'record = object!(parse_json!(string!(.message)))',
      ...(isOwn ? [apart('record')] : []),
      '. = merge(record, { "timestamp": .timestamp })',
    ].join('\n')
    return { component: { type: 'demo_logs', config }, steps: [{ type: 'remap', text }] }
  },
}

/** A JSON object as one line. */
function objectText(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isTable(value) ? JSON.stringify(value) : undefined
  } catch {
    return undefined // The caller reports it.
  }
}

export const inputs: readonly Plugin<SourcePart>[] = [tail, events, dummy]

const host = 'Keep Fluent Bit for this input, or let the program write to a file that a `file` source reads.'
const listening = 'Keep Fluent Bit as the receiver, with an output to a queue or file that Penstock reads.'
const figures = 'Use the node exporter and a Prometheus server; on nodes, Penstock reads only logs.'

const protocols = 'forward http tcp udp syslog opentelemetry elasticsearch splunk mqtt unix_socket'.split(' ')
const metricProtocols = ['statsd', 'collectd', 'prometheus_remote_write']
const figureInputs = [
  ...'cpu mem disk netif proc thermal health docker winstat'.split(' '),
  ...['node', 'process', 'windows'].map((name) => `${name}_exporter_metrics`),
  ...['nginx', 'podman', 'gpu'].map((name) => `${name}_metrics`),
  'prometheus_scrape',
  'prometheus_textfile',
]

export const refusedInputs: readonly Refusal[] = [
  none('systemd', 'there is no source that reads the journal', host),
  none('kmsg', 'there is no source that reads kernel messages', host),
  none('exec', 'there is no source that starts programs', host),
  none('docker_events', 'there is no source for events of the container runtime', host),
  none('serial', 'there is no source that reads devices', host),
  none('stdin', 'a Pipeline runs on agents, whose standard input is empty', host),
  ...['winevtlog', 'winlog', 'etw', 'ebpf', 'ebpf_event'].map((name) =>
    none(name, 'there is no source for events of the operating system', host),
  ),
  ...['head', 'exec_wasi', 'random', 'event_type', 'event_test'].map((name) =>
    none(name, 'there is no source that generates records at an interval', host),
  ),
  none('blob', 'no source reads binary files', host),
  none('fluentbit_logs', 'agents write their own logs to standard error', 'Read the pods of the agents.'),
  none('calyptia_fleet', 'the operator delivers the configuration to agents', 'Apply the Pipeline to the cluster.'),
  ...[...protocols, ...metricProtocols].map((name) =>
    none(name, 'there is no source that listens for this protocol', listening),
  ),
  ...figureInputs.map((name) => none(name, 'there is no source for metrics of nodes and programs', figures)),
  none('kafka', 'there is no source for this protocol', 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`).'),
]
