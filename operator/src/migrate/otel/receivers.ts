// Converts receivers to sources. The first transform after a source converts its events to records in the form that `record.ts` describes.

import { isDeepStrictEqual } from 'node:util'
import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { foundPath, podLogPath } from '../fluent-bit/tags.ts'
import { type Exception, none, type Refusal } from '../page.ts'
import { events, objects } from './events.ts'
import { fieldOf } from './field.ts'
import { type Branch, branchesOf, fileRules, isPodLog, typeOfOperator, withRouters } from './joining.ts'
import { type Context, each, type Mapping, type Part, type Place, type SourcePart, seconds } from './mapping.ts'
import { followOperators, variableIn } from './operators.ts'
import { goMatch, regexLiteral, valueLiteral } from './text.ts'

const later = {
  storage: 'the source keeps its own checkpoints',
  retry_on_failure: 'a source waits while the buffers of its sinks are full',
}

export const operatorsOf = (part: Part) =>
  part.tables('operators').map((table, index) => part.within(['operators', index], table, part.id))

/** An option that adds an attribute that a source does not know. It is off by default. */
const added = (fact: string): Exception => ({
  how: 'records have no such attribute by default',
  unless: /true/,
  reason: `the source does not add ${fact}`,
  nearest: 'Leave it out; the attribute `log.file.path` has the path of the file.',
})

const filelog: Mapping<readonly SourcePart[]> = {
  name: 'filelog',
  becomes: '`orchestrator_logs` for pod logs, `file` for other files',
  options: {
    include: '`include`; for pod logs, a filter by path unless the receiver reads all pods',
    exclude: '`exclude`; for pod logs, a filter by path',
    start_at: '`read_from`',
    'multiline.line_start_pattern': '`multiline`',
    'multiline.line_end_pattern': '`multiline`',
    encoding: '`encoding.charset`',
    exclude_older_than: '`ignore_older_secs`',
    delete_after_read: '`remove_after_secs`',
    max_log_size:
      '`max_line_bytes`, by default 1 MiB for files; the source discards longer lines, whereas the collector splits them',
    preserve_leading_whitespaces: 'whether to keep white space in lines of files',
    preserve_trailing_whitespaces: 'whether to keep white space in lines of files',
    include_file_name: '`.attributes."log.file.name"`',
    include_file_path: '`.attributes."log.file.path"`',
    attributes: 'fields of `.attributes`',
    resource: 'fields of `.resource.attributes`',
    operators: 'transforms; see below',
  },
  itself: {
    ...later,
    'multiline.omit_pattern': {
      how: 'lines keep the text that the pattern matches',
      unless: /true/,
      reason: 'lines keep the text that the pattern of `multiline` matches',
      nearest: 'Remove the text in a remap transform, with `replace`.',
    },
    poll_interval: 'the source watches files',
    poll_delay: 'the source watches files',
    fingerprint_size: 'the source identifies files by their first lines',
    max_concurrent_files: 'the source reads all files',
    max_batches: 'the source reads all files',
    force_flush_period: 'the source reads the last line when it is complete',
    initial_buffer_size: 'the source sizes its buffers by itself',
    acquire_fs_lock: 'checkpoints record the lines that have been read',
    polls_to_archive: 'the source keeps its own checkpoints',
    compression: 'the source recognizes compressed files',
    include_file_name_resolved: added('the target of a symbolic link'),
    include_file_path_resolved: added('the target of a symbolic link'),
    include_file_owner_name: added('the owner of a file'),
    include_file_owner_group_name: added('the group of a file'),
    include_file_permissions: added('the permissions of a file'),
    include_file_record_number: added('the number of a line'),
    include_file_record_offset: added('the position of a line'),
  },
  expresses: ['attributes.*', 'resource.*', 'operators.value'],
  build: (part, context) => {
    const include = part
      .list('include')
      .map((path, index) => unmounted(path, part.place(['include', index]), part, context))
    const ofPods = include.filter(isPodLog)
    const others = include.filter((path) => !isPodLog(path))
    const exclude = part.list('exclude').map((path) => path.replace(mountFolder, ''))
    const reading = (paths: readonly string[]) =>
      part.within([], { ...part.config, include: paths, ...(exclude.length === 0 ? {} : { exclude }) }, part.id)
    return [
      ...(ofPods.length > 0 ? pods(reading(ofPods), context) : []),
      ...(others.length > 0 || ofPods.length === 0 ? files(reading(others), context) : []),
    ]
  },
}

/** A folder under which a container sees the logs of pods of the host. */
const mountFolder = /^\/.+?(?=\/var\/log\/(?:pods|containers)(?:\/|$))/

/** The path of logs of pods on the host. */
function unmounted(path: string, place: Place, part: Part, context: Context): string {
  const [folder] = mountFolder.exec(path) ?? []
  if (folder === undefined) return path
  const reason = `the collector sees the logs of pods below \`${folder}\`, and the source reads them at their path on the host, which \`log.file.path\` has too`
  context.replaced(place, `${part.id}: include`, reason, 'Nothing, unless a query reads `log.file.path`.')
  return path.slice(folder.length)
}

/** Fields that the configuration adds to all records, as members of an object. */
function fixedMembers(part: Part, option: 'attributes' | 'resource', context: Context): string[] {
  return Object.entries(part.table(option)).flatMap(([key, value]) => {
    const inner = typeof value === 'string' ? /^EXPR\((.*)\)$/s.exec(value)?.[1] : undefined
    if (inner !== undefined) {
      const read = variableIn(inner, part, [option, key], context)
      if (read !== undefined) return [`${textLiteral(key)}: ${read}`]
      context.gap(
        part.place([option, key]),
        `${part.id}: ${option}.${key}`,
        'the expression is used before the record has fields',
        'Set the field in a remap transform.',
      )
      return []
    }
    return [`${textLiteral(key)}: ${valueLiteral(value)}`]
  })
}

function recordStep(
  attributes: readonly string[],
  resource: readonly string[],
  before: readonly string[] = [],
  message = '.message',
): Step {
  const members = (list: readonly string[]) => (list.length === 0 ? '{}' : `{ ${list.join(', ')} }`)
  return {
    type: 'remap',
    text: [
      ...before,
      '. = {',
      `  "message": ${message},`,
      '  "timestamp": .timestamp,',
      '  "observed_timestamp": now(),',
      `  "attributes": ${members(attributes)},`,
      `  "resource": { "attributes": ${members(resource)} },`,
      '}',
    ].join('\n'),
    comments: ['The record in the form of the collector.'],
  }
}

function files(part: Part, context: Context): readonly SourcePart[] {
  const operators = withRouters(operatorsOf(part))
  return branchesOf(part, operators, context).map((branch) => filesOf(part, operators, branch, context))
}

/** Replaces the line feeds between joined lines, which lines do not contain themselves. */
const betweenLines = ({ between }: Branch): readonly string[] =>
  between === undefined ? [] : [`.message = replace(string(.message) ?? "", "\\n", ${textLiteral(between)})`]

/** The default limit of the collector, which is higher than that of the source. */
const maxLogSize = 1024 ** 2

function filesOf(part: Part, operators: readonly Part[], joined: Branch, context: Context): SourcePart {
  const encoding = part.text('encoding') ?? 'utf-8'
  const older = seconds(part.text('exclude_older_than'))
  const size = bytes(part.text('max_log_size')) ?? maxLogSize
  if (part.has('max_log_size')) {
    context.replaced(
      part.place(['max_log_size']),
      `${part.id}: max_log_size`,
      'the source discards a line beyond the limit, and the collector splits it',
      'Raise `max_line_bytes` of the source if such lines occur.',
    )
  }
  const config = {
    include: part.list('include'),
    ...(part.list('exclude').length > 0 ? { exclude: part.list('exclude') } : {}),
    read_from: part.text('start_at') === 'beginning' ? 'beginning' : 'end',
    ...(older === undefined ? {} : { ignore_older_secs: Math.ceil(older) }),
    max_line_bytes: size,
    ...(part.flag('delete_after_read', false) ? { remove_after_secs: 0 } : {}),
    ...(/^utf-?8(?:-raw)?$|^nop$|^ascii$/i.test(encoding) ? {} : { encoding: { charset: encoding } }),
    ...(joined.rules === undefined ? {} : { multiline: fileRules(joined.rules) }),
  }
  const before = [...betweenLines(joined)]
  const [leading, trailing] = ['leading', 'trailing'].map((end) => part.flag(`preserve_${end}_whitespaces`, false))
  const patterns = [...(leading ? [] : ['^\\s+']), ...(trailing ? [] : ['\\s+$'])]
  if (patterns.length > 0)
    before.push(`.message = replace(string(.message) ?? "", ${regexLiteral(patterns.join('|'))}, "")`)
  before.push('# The collector skips empty lines.', 'if .message == "" { abort }')
  if (part.flag('include_file_name', true)) before.push('name = split(string(.file) ?? "", "/")')
  const attributes = [
    ...(part.flag('include_file_name', true) ? ['"log.file.name": name[-1]'] : []),
    ...(part.flag('include_file_path', false) ? ['"log.file.path": .file'] : []),
    ...fixedMembers(part, 'attributes', context),
  ]
  const steps = [recordStep(attributes, fixedMembers(part, 'resource', context), before)]
  return {
    component: { type: 'file', config },
    follow: (source) =>
      followOperators(
        operators,
        joined.done,
        context.append([source], steps, `${part.name}-record`, part),
        context,
        joined.outputs,
      ),
  }
}

function bytes(text: string | undefined): number | undefined {
  const found = /^(\d+(?:\.\d+)?)\s*(|b|k|kb|kib|m|mb|mib|g|gb|gib)$/i.exec(text ?? '')
  if (found === null) return undefined
  const units: Readonly<Record<string, number>> = {
    '': 1,
    b: 1,
    k: 1e3,
    m: 1e6,
    g: 1e9,
    ki: 1024,
    mi: 1024 ** 2,
    gi: 1024 ** 3,
  }
  const unit = (found[2] ?? '').toLowerCase().replace(/b$/, '')
  return Math.ceil(Number(found[1]) * (units[unit] ?? 1))
}

/** Attributes that a parser for lines of the container runtime would have set. */
interface Runtime {
  readonly skipped: readonly Part[]
  readonly isContainer: boolean
  /** Lines of Docker have no tag. */
  readonly hasTag: boolean
  readonly hasMetadata: boolean
  readonly members: readonly string[]
  /** The fields with the program's own text. */
  readonly texts: readonly string[]
  readonly toBody: boolean
}

const timeOfLine = 'format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.9fZ") ?? null'

/** The parts of lines of the container runtime, in UTC and in another zone, with their values in an event. */
const runtimeParts: Readonly<Record<string, string>> = {
  '2026-01-02T03:04:05.678901234Z': timeOfLine,
  '2026-01-02T03:04:05.678901234+01:00': timeOfLine,
  stderr: '.stream',
  F: '"F"',
  '{the text}': '.message',
}
const runtimeLines = Object.keys(runtimeParts)
  .slice(0, 2)
  .map((time) => `${time} stderr F {the text}`)

/** The values that a pattern for lines of the container runtime gives to its groups; undefined for another pattern. */
function runtimeGroups(regex: string): readonly (readonly [name: string, value: string])[] | undefined {
  for (const line of runtimeLines) {
    const groups = Object.entries(goMatch(regex, line) ?? {}).map(
      ([name, text]) => [name, runtimeParts[text ?? '']] as const,
    )
    const known = groups.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
    if (known.length > 0 && known.length === groups.length) return known
  }
  return undefined
}

/** The operators that parse lines of the container runtime, which the source does itself. */
function runtimeOf(operators: readonly Part[]): Runtime | undefined {
  const container = operators.find((part) => typeOfOperator(part) === 'container')
  if (container !== undefined) {
    const hasMetadata = container.flag('add_metadata_from_filepath', true)
    const hasTag = container.text('format') !== 'docker'
    return { skipped: [container], isContainer: true, hasTag, hasMetadata, members: [], texts: [], toBody: false }
  }
  const groupsOf = (part: Part) =>
    typeOfOperator(part) === 'regexparser' && (part.text('parse_from') ?? 'body') === 'body'
      ? runtimeGroups(part.text('regex') ?? '')
      : undefined
  const router = operators.find((part) => typeOfOperator(part) === 'router')
  const targets = new Set(router?.tables('routes').flatMap(({ output }) => (Array.isArray(output) ? output : [output])))
  const isTarget = (part: Part) => targets.has(part.text('id'))
  // Later parsers read the program's own text.
  const moved = operators.findIndex((part) => part.text('to') === 'body')
  const isEarly = (part: Part, index: number) => moved < 0 || index < moved || isTarget(part)
  const parsers = operators.filter((part, index) => isEarly(part, index) && groupsOf(part) !== undefined)
  const routed = router !== undefined && parsers.some(isTarget)
  // Lines of Docker are JSON. Either a router or conditions distinguish the formats.
  const others = operators.findIndex((part) => !parsers.includes(part) && typeOfOperator(part) !== 'jsonparser')
  const isChosen = (part: Part, index: number) =>
    routed ? isTarget(part) : part.has('if') && parsers.some((each) => each.has('if')) && (others < 0 || index < others)
  const docker = operators.filter((part, index) => typeOfOperator(part) === 'jsonparser' && isChosen(part, index))
  const [first] = parsers
  if (first === undefined) return undefined
  const groups = groupsOf(first) ?? []
  const namesOf = (value: string) => groups.flatMap(([name, each]) => (each === value ? [name] : []))
  const to = first.text('parse_to') ?? 'attributes'
  const isJoin = (part: Part) => namesOf('"F"').some((name) => (part.text('is_last_entry') ?? '').includes(name))
  const joins = operators.filter((part) => typeOfOperator(part) === 'recombine' && isJoin(part))
  return {
    skipped: [...parsers, ...docker, ...joins, ...(routed ? [router] : [])],
    isContainer: false,
    hasTag: false,
    hasMetadata: false,
    members: groups.map(([name, value]) => `${textLiteral(name)}: ${value}`),
    texts: namesOf('.message').map((name) => `${to}.${name}`),
    toBody: fieldOf(to)?.root === 'body',
  }
}

/** Whether operators or statements make the program's own text the body. */
function isMoved({ texts }: Runtime, operators: readonly Part[], context: Context): boolean {
  const isText = (text: string | undefined) =>
    texts.some((each) => isDeepStrictEqual(fieldOf(each)?.path, fieldOf(text ?? '')?.path))
  const isSet = ['set(body,', 'set(log.body,'].some((text) => context.mentions(text))
  return isSet || operators.some((each) => each.text('to') === 'body' && isText(each.text('from')))
}

function pods(part: Part, context: Context): readonly SourcePart[] {
  const given = operatorsOf(part)
  const runtime = runtimeOf(given)
  const operators = withRouters(given, runtime?.texts, runtime?.skipped)
  if (runtime === undefined) {
    context.gap(
      part.place(['operators']),
      `${part.id}: no operator \`container\``,
      'in the collector, the body was the complete line of the container runtime, with time and stream',
      "The source parses that line itself, and the body contains only the program's own text. Change operators that parse the rest.",
    )
  }
  if (runtime !== undefined && !runtime.isContainer && !runtime.toBody && !isMoved(runtime, operators, context)) {
    context.gap(
      part.place(['operators']),
      `${part.id}: body`,
      'no operator moves the text into the body, so in the collector the body is the complete line of the container runtime, with time and stream',
      "The body contains only the program's own text. Change operators and statements that parse the rest.",
    )
  }
  for (const operator of runtime?.skipped ?? []) {
    if (typeOfOperator(operator) === 'container') context.reportOptions(operator, containerOperator)
  }
  if (part.has('multiline')) {
    context.gap(
      part.place(['multiline']),
      `${part.id}: multiline`,
      'the patterns expect lines of the container runtime, which begin with a time',
      "Set `multiline.custom` of the source, with patterns for the program's own text.",
    )
  }
  for (const option of ['delete_after_read', 'encoding']) {
    if (part.has(option) && !/^(?:false|utf-?8)$/i.test(part.text(option) ?? '')) {
      context.gap(
        part.place([option]),
        `${part.id}: ${option}`,
        'the source of pod logs has no such option',
        'Remove it; the kubelet removes files, and text is UTF-8.',
      )
    }
  }
  const unread = operators.filter((operator) => runtime?.skipped.includes(operator) !== true)
  return branchesOf(part, unread, context, runtime?.texts).map((branch) =>
    podsOf(part, operators, runtime, branch, context),
  )
}

/** Fields of pods that a source can select, by attributes of the resource. */
const podFields: Readonly<Record<string, string>> = {
  'k8s.namespace.name': 'metadata.namespace',
  'k8s.pod.name': 'metadata.name',
}

function podsOf(
  part: Part,
  operators: readonly Part[],
  runtime: Runtime | undefined,
  joined: Branch,
  context: Context,
): SourcePart {
  const size = bytes(part.text('max_log_size'))
  const older = seconds(part.text('exclude_older_than'))
  // Only a ClusterPipeline may select pods by fields.
  const fields = Object.entries(context.readsEnvironment ? podFields : {}).flatMap(([name, field]) => {
    const value = joined.same?.get(name)
    return value === undefined ? [] : [`${field}=${value}`]
  })
  const config = context.podOptions({
    read_from: part.text('start_at') === 'beginning' ? 'beginning' : 'end',
    ...(fields.length === 0 ? {} : { extra_field_selector: fields.join(',') }),
    ...(older === undefined ? {} : { ignore_older_secs: Math.ceil(older) }),
    ...(size === undefined ? {} : { max_line_bytes: size }),
  })
  const steps: Step[] = []
  const choice = choiceOf(part.list('include'), part.list('exclude'))
  if (choice !== undefined) steps.push({ type: 'filter', text: choice })
  steps.push(podRecord(part, runtime, joined, context))
  return {
    component: {
      type: 'orchestrator_logs',
      config,
      ...(joined.rules === undefined ? {} : { multiline: { custom: joined.rules } }),
    },
    follow: (source) => {
      const heads = context.append([source], steps, `${part.name}-record`, part)
      const done = new Set([...(runtime?.skipped ?? []), ...joined.done])
      return followOperators(operators, done, heads, context, joined.outputs)
    },
  }
}

const containerOperator = {
  name: 'container',
  options: { type: '', id: '', output: '', format: '', add_metadata_from_filepath: '' },
  itself: { max_log_size: 'the source joins partial lines up to its limit', on_error: 'the source reads all formats' },
}

function podRecord(part: Part, runtime: Runtime | undefined, joined: Branch, context: Context): Step {
  const hasMetadata = runtime?.hasMetadata === true
  const found = foundPath(part.list('include'))
  const isLink = found !== '.file'
  const attributes = [
    ...(runtime?.isContainer === true ? ['"log.iostream": .stream', ...(runtime.hasTag ? ['"logtag": "F"'] : [])] : []),
    ...(runtime?.toBody === true ? [] : (runtime?.members ?? [])),
    ...(part.flag('include_file_name', true) ? [`"log.file.name": ${isLink ? 'split(link, "/")' : 'name'}[-1]`] : []),
    ...(part.flag('include_file_path', false) ? [`"log.file.path": ${isLink ? 'link' : '.file'}`] : []),
    ...fixedMembers(part, 'attributes', context),
  ]
  const resource = [
    ...(hasMetadata
      ? [
          '"k8s.namespace.name": .orchestrator.pod_namespace',
          '"k8s.pod.name": .orchestrator.pod_name',
          '"k8s.pod.uid": .orchestrator.pod_uid',
          '"k8s.container.name": .orchestrator.container_name',
          '"k8s.container.restart_count": replace(string(name[-1]) ?? "", ".log", "")',
        ]
      : []),
    ...fixedMembers(part, 'resource', context),
  ]
  const before = [
    ...betweenLines(joined),
    // A line of Docker ends inside quotes.
    ...(part.flag('preserve_trailing_whitespaces', false) || (runtime?.isContainer === true && !runtime.hasTag)
      ? []
      : [`.message = replace(string(.message) ?? "", ${regexLiteral('\\s+$')}, "")`]),
    '# Keeps the pod metadata for the processor k8sattributes.',
    '%orchestrator = .orchestrator',
  ]
  if (isLink) before.push(`link = ${found}`)
  if (hasMetadata || part.flag('include_file_name', true)) before.push('name = split(string(.file) ?? "", "/")')
  const message = runtime?.toBody === true ? `{ ${runtime.members.join(', ')} }` : '.message'
  return recordStep(attributes, resource, before, message)
}

/** The condition that selects pods by file path; undefined if all pods are selected. */
function choiceOf(include: readonly string[], exclude: readonly string[]): string | undefined {
  const isAll = (path: string) => /^\/var\/log\/(?:pods|containers)\/[*/]+(?:\.log)?$/.test(path)
  const test = (path: string) =>
    `match(${path.startsWith('/var/log/containers') ? 'link' : 'path'}, ${regexLiteral(pathRegex(path))})`
  const tests = [
    ...(include.some(isAll) ? [] : [`(${include.map(test).join(' || ')})`]),
    ...(exclude.length === 0 ? [] : [`!(${exclude.map(test).join(' || ')})`]),
  ]
  if (tests.length === 0) return undefined
  const condition = tests.join(' && ')
  return [
    ...(/\(link/.test(condition) ? [`link = ${podLogPath('.')}`] : []),
    ...(/\(path/.test(condition) ? ['path = string(.file) ?? ""'] : []),
    condition,
  ].join('\n')
}

/** A path pattern as a regular expression. `**` matches across directories, `*` does not. */
function pathRegex(glob: string): string {
  let depth = 0
  const body = glob.replace(/\*\*\/?|\[[!^]?[^\]]+\]|[\\^$.*+?()[\]{}|,]/g, (sign) => {
    if (sign === '**/') return '(?:.*/)?'
    if (sign === '**') return '.*'
    if (sign === '*') return '[^/]*'
    if (sign === '?') return '[^/]'
    if (sign.length > 1) return sign.replace(/^\[!/, '[^')
    if (sign === '{') depth++
    if (sign === '{') return '(?:'
    if (sign === ',') return depth > 0 ? '|' : ','
    if (sign === '}' && depth > 0) {
      depth--
      return ')'
    }
    return `\\${sign}`
  })
  return `^${body}$`
}

export const receivers: readonly Mapping<readonly SourcePart[]>[] = [filelog, events, objects]

const listening =
  'Let the senders write to a file that `file` reads, or to a queue that `amqp` or `cloud_queue` reads; programs in pods write to standard output.'
const scraper = 'Collect them with Prometheus or another metrics agent; Penstock collects logs.'
const host = 'Let the program write to a file that a `file` source reads.'

export const refusedReceivers: readonly Refusal[] = [
  none(
    'apache',
    'metrics have other names here',
    'Use the source `webserver_metrics` with a metrics sink, and adapt your dashboards.',
  ),
  none(
    'otlp',
    'no source listens for OTLP',
    `Keep a collector for programs that send OTLP, with an exporter that writes to a queue (\`amqp\`), or: ${listening}`,
  ),
  ...each(
    [
      'syslog',
      'tcplog',
      'udplog',
      'fluent_forward',
      'splunk_hec',
      'webhook_event',
      'loki',
      'namedpipe',
      'awsfirehose',
      'http_check',
      'datadog',
      'cloudflare',
    ],
    'no source listens for connections',
    listening,
  ),
  ...each(
    ['jaeger', 'zipkin', 'opencensus', 'skywalking', 'otelarrow'],
    'Penstock does not collect traces',
    'Keep the collector for traces.',
  ),
  none('journald', 'there is no source that reads the journal', host),
  none(
    'otlpjsonfile',
    'no source decodes OTLP in files',
    'Read the original log files with `filelog`, or keep a collector for the OTLP files.',
  ),
  none(
    'receiver_creator',
    'sources do not start by rules on discovered pods',
    'Convert the presets or `filelog` for the logs of all pods, and select pods by `extra_label_selector` of the source.',
  ),
  none('windowseventlog', 'there is no agent for Windows nodes', 'Keep the collector on these nodes.'),
  ...each(
    ['kafka', 'pulsar', 'azureeventhub', 'googlecloudpubsub', 'solace'],
    'there is no source for this queue',
    'Use a queue with a source: `amqp`, or `cloud_queue`.',
  ),
  none('awss3', 'no source reads from object stores', 'Send the logs to `cloud_queue` directly.'),
  none('awscloudwatch', 'Penstock has no source for these logs', 'Let a subscription write them to `cloud_queue`.'),
  ...each(
    [
      'prometheus',
      'prometheus_simple',
      'hostmetrics',
      'kubeletstats',
      'k8s_cluster',
      'docker_stats',
      'filestats',
      'statsd',
      'carbon',
      'collectd',
      'influxdb',
      'podman_stats',
      'sqlquery',
      'postgresql',
      'mysql',
      'mongodb',
      'redis',
      'nginx',
      'rabbitmq',
      'elasticsearch',
      'kafkametrics',
      'httpcheck',
      'sshcheck',
      'snmp',
      'vcenter',
      'awscontainerinsights',
    ],
    'Penstock has no source for these metrics',
    scraper,
  ),
]
