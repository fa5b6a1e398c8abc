// Converts Fluentd filters to remap and filter transforms. Programs change the record: all fields of the event except `timestamp`, which is
// the time that Fluentd keeps outside of the record.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Gap, Step } from '../draft.ts'
import { ownName } from '../fluent-bit/own-time.ts'
import { failed } from '../fluent-bit/parsed-time.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { pattern } from '../fluent-bit/text.ts'
import { type Described, none, type Refusal } from '../page.ts'
import { childrenOf, isOn, listOf, type Plugged, parameter } from './element.ts'
import { fieldFilters } from './field-filters.ts'
import { always, common, oldFormat } from './inputs.ts'
import { parsedBy, parseItself, parseOptions, withoutFirstLines } from './parsers.ts'
import { readsOwnFields, recordLines } from './records.ts'
import { recordPath } from './ruby.ts'
import { floatIn } from './ruby-methods.ts'
import { rubyRegex } from './ruby-text.ts'
import type { Element } from './syntax.ts'
import { podFileSamples, type Tag } from './tags.ts'

export interface FilterPlugin {
  readonly name: string
  readonly becomes: string
  readonly options: Readonly<Record<string, string>>
  readonly itself?: NonNullable<Described['itself']>
  readonly build: (section: Plugged, context: Context, gaps: Gap[], tag: Tag | undefined) => readonly Step[]
}

/** Prefixes of options with user-defined names, such as `record.env`. */
export const openOptions = ['record.', 'fields.', 'label.', 'labels.', 'headers.', 'hash_value_field.'] as const

/** Fluentd compares values as texts. An array or an object is JSON here. */
function matches(path: readonly string[], regex: string): string {
  const field = fieldLiteral(path)
  return `is_object(parse_grok(to_string(${field}) ?? encode_json(${field}), ${pattern(regex)}) ?? null)`
}

interface Rule {
  readonly key: string
  readonly pattern: string
  readonly at: Element | Plugged
}

const grep: FilterPlugin = {
  name: 'grep',
  becomes: 'a filter transform',
  options: {
    ...common,
    regexp: 'keeps events that match',
    exclude: 'drops events that match',
    and: '`&&`',
    or: '`||`',
    ...Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [
        [`regexp${index + 1}`, 'keeps events that match'],
        [`exclude${index + 1}`, 'drops events that match'],
      ]).flat() as [string, string][],
    ),
  },
  itself: always,
  build: (section, context) => {
    const { element } = section
    const tests = (rules: readonly Rule[]) =>
      rules.flatMap(({ key, pattern: regex, at }) => {
        const path = recordPath(key)
        if (path !== undefined && regex !== '') return [matches(path, regex)]
        context.gap(
          at,
          `grep: ${key}`,
          'the field or the expression is not valid',
          'Rewrite the step as a filter transform.',
        )
        return []
      })
    const of = (parent: Element, name: string): Rule[] =>
      childrenOf(parent, name).map((child) => ({
        key: parameter(child, 'key') ?? '',
        pattern: parameter(child, 'pattern') ?? '',
        at: child,
      }))
    const numbered = (name: string): Rule[] =>
      section.entries
        .filter(({ key }) => new RegExp(`^${name}\\d+$`).test(key))
        .map(({ value }) => {
          const found = /^(\S+)\s+(.*)$/s.exec(value)
          return { key: found?.[1] ?? value, pattern: found?.[2] ?? '', at: section }
        })
    const kept = tests([...of(element, 'regexp'), ...numbered('regexp')])
    const gone = tests([...of(element, 'exclude'), ...numbered('exclude')])
    const conditions = [...kept, ...gone.map((test) => `!${test}`)]
    for (const [name, operator] of [
      ['and', ' && '],
      ['or', ' || '],
    ] as const) {
      for (const group of childrenOf(element, name)) {
        const stay = tests(of(group, 'regexp'))
        const go = tests(of(group, 'exclude'))
        if (stay.length > 0) conditions.push(`(${stay.join(operator)})`)
        if (go.length > 0) conditions.push(`!(${go.join(operator)})`)
      }
    }
    return conditions.length === 0 ? [] : [{ type: 'filter', text: conditions.join(' && ') }]
  },
}

function removals(keys: readonly string[], section: Plugged, context: Context): string[] {
  return keys.flatMap((key) => {
    const path = recordPath(key)
    if (path !== undefined) return [`del(${fieldLiteral(path)})`]
    context.gap(
      section,
      `${section.type}: ${key}`,
      'a program cannot refer to the field',
      'Remove it in a remap transform.',
    )
    return []
  })
}

/** Statements of `<replace>`: a Ruby expression, and a text with `\\1` for groups. */
function replacements(section: Plugged, context: Context): string[] {
  return childrenOf(section.element, 'replace').flatMap((child) => {
    const path = recordPath(parameter(child, 'key') ?? '')
    const regex = /^\/(.*)\/([imx]*)$/s.exec(parameter(child, 'expression') ?? '')
    if (path === undefined || regex === null) {
      context.gap(
        child,
        `${section.type}: replace`,
        'the field or the expression is not valid',
        'Use `replace` in a remap transform.',
      )
      return []
    }
    const at = fieldLiteral(path)
    const flags = regex[2] === '' ? '' : `(?${(regex[2] ?? '').replace('m', 's')})`
    const by = (parameter(child, 'replace') ?? '').replaceAll('$', '$$$$').replace(/\\(?:(\d)|k<(\w+)>)/g, '$${$1$2}')
    const call = `replace(string!(${at}), r'${flags}${rubyRegex(regex[1] ?? '')}', ${textLiteral(by)})`
    return [`if is_string(${at}) { ${at} = ${call} }`]
  })
}

const preparation = {
  how: 'functions of modules need no preparation',
  unless: /^(?!\s*require\s+["'][\w/]+["']\s*$)/,
  reason: 'code that runs once, at the start, has no counterpart',
  nearest: 'Compute the value in each expression that reads it.',
} as const

/** Whether code changes the record. */
const changesRecord = /\.delete\(|\]\s*=(?![=~>])|\.each\b|\.tap\b/

export const transformer = (name: string, removed: string): FilterPlugin => ({
  name,
  becomes: 'a remap transform',
  options: {
    ...common,
    record: 'the fields to set',
    [removed]: '`del`',
    renew_record: 'whether to remove other fields',
    keep_keys: 'fields to keep in any case',
    whitelist_keys: 'a filter of fields',
    renew_time_key: 'the time of the event',
    ...(name === 'record_modifier'
      ? {}
      : { enable_ruby: 'without it, placeholders are names, such as `record["a"]`; other placeholders have no value' }),
    remove_keys: '`del`',
    auto_typecast: 'whether a value that is one placeholder keeps its type',
    replace: '`replace`',
  },
  itself: {
    ...always,
    char_encoding: {
      how: 'texts are UTF-8',
      unless: /^(?!(?:[^:]*:)?utf-?8$)/i,
      reason: 'texts are UTF-8',
      nearest: 'Set `encoding.charset` of a `file` source to the character set of its files.',
    },
    caching: 'programs are compiled',
    ...(name === 'record_modifier'
      ? { enable_ruby: 'placeholders always contain Ruby', prepare_value: preparation }
      : {}),
  },
  build: (section, context, _gaps, tag) => {
    const isModifier = name === 'record_modifier'
    const isStepwise =
      isModifier && (readsOwnFields(section) || section.entries.some(({ value }) => changesRecord.test(value)))
    const isReformer = name === 'record_reformer'
    const isRuby = isModifier || isOn(lastValue(section, 'enable_ruby'), isReformer)
    const { lines, after, names, kept } = recordLines(section, context, tag, { isRuby, isStepwise, isReformer })
    const comments = kept.length === 0 ? {} : { comments: ['GAP: the transform does not set these fields:', ...kept] }
    const text = [...lines, ...after]
    const removedKeys = [...new Set([removed, 'remove_keys'])].flatMap((key) => listOf(lastValue(section, key)))
    if (isOn(lastValue(section, 'renew_record'), false)) {
      const kept = ['timestamp', ...listOf(lastValue(section, 'keep_keys')).map(ownName)]
      const base = `filter(.) -> |key, _value| { includes(${JSON.stringify(kept)}, key) }`
      text.push(`base = ${base}`, names.length === 0 ? '. = base' : '. = merge(base, changed)')
    } else if (names.length > 0 && !isStepwise) text.push('. = merge(., changed)')
    // The plugin reads the one option only if the other one is not set.
    const only = removedKeys.length > 0 ? [] : listOf(lastValue(section, 'whitelist_keys')).map(ownName)
    if (only.length > 0) {
      text.push(`. = filter(.) -> |key, _value| { includes(${JSON.stringify([...only, 'timestamp'])}, key) }`)
    }
    const renewed = lastValue(section, 'renew_time_key')
    if (renewed !== undefined) {
      const at = fieldLiteral([ownName(renewed)])
      const number = floatIn(`to_string(${at}) ?? ""`)
      const micros = isReformer ? `to_int(${number}) * 1000000` : `to_int(${number} * 1000000.0)`
      text.push(`if exists(${at}) { .timestamp = from_unix_timestamp(${micros}, unit: "microseconds") ?? .timestamp }`)
    }
    text.push(...replacements(section, context))
    text.push(...removals(removedKeys, section, context))
    if (text.length === 0) return kept.length === 0 ? [] : [{ type: 'remap', text: '.', ...comments }]
    return [{ type: 'remap', text: text.join('\n'), ...comments }]
  },
})

const own = "the source uses the agent's access to the API server"

const kubernetes: FilterPlugin = {
  name: 'kubernetes_metadata',
  becomes: 'a remap transform that uses the metadata of `orchestrator_logs`',
  options: {
    ...common,
    skip_labels: 'whether to include labels',
    skip_pod_labels: 'whether to include labels of the pod',
    skip_namespace_labels: 'whether to include labels of the namespace',
    skip_container_metadata: 'whether to include metadata of the image',
    skip_namespace_metadata: 'whether to include labels of the namespace',
    annotation_match: 'which annotations to include',
    de_dot: 'dots in the names of labels are replaced',
    de_dot_separator: 'the replacement',
    de_slash: 'slashes in the names of labels are replaced',
    de_slash_separator: 'the replacement',
    merge_json_log: '`parse_json` of the line',
    preserve_json_log: 'whether to keep the line',
    merge_json_log_key: 'the field with the line',
  },
  itself: {
    ...always,
    ...Object.fromEntries(
      [
        ...['kubernetes_url', 'verify_ssl', 'ca_file', 'client_cert', 'client_key', 'bearer_token_file', 'secret_dir'],
        ...[
          'cache_size',
          'cache_ttl',
          'watch',
          'watch_retry_interval',
          'watch_retry_max_times',
          'use_journal',
          'stats_interval',
        ],
        ...[
          'tag_to_kubernetes_name_regexp',
          'container_name_to_kubernetes_regexp',
          'apiVersion',
          'allow_orphans',
          'orphaned_namespace_name',
        ],
        ...[
          'orphaned_namespace_id',
          'lookup_from_k8s_field',
          'ssl_partial_chain',
          'open_timeout',
          'read_timeout',
          'test_api_adapter',
        ],
        ...['include_namespace_metadata', 'skip_master_url', 'watch_retry_exponential_backoff_base'],
      ].map((option) => [option, own] as const),
    ),
  },
  build: (section, context, _gaps, tag) => {
    const skips = (name: string) => isOn(lastValue(section, name), false)
    const unknown = [
      ...(skips('skip_master_url') ? [] : ['master_url']),
      ...(skips('skip_namespace_metadata') ? [] : ['namespace_id']),
    ]
    if (unknown.length > 0) {
      const fields = unknown.map((name) => `\`kubernetes.${name}\``).join(' and ')
      const nearest = 'Set it in a remap transform if a later step or the destination reads it.'
      context.replaced(section, `kubernetes_metadata: ${unknown.join(', ')}`, `the record gets no ${fields}`, nearest)
    }
    const facts = [
      ['container_name', 'container_name'],
      ['namespace_name', 'pod_namespace'],
      ['pod_name', 'pod_name'],
      ...(skips('skip_container_metadata')
        ? []
        : [
            ['container_image', 'container_image'],
            ['container_image_id', 'container_image_id'],
          ]),
      ['pod_id', 'pod_uid'],
      ['pod_ip', 'pod_ip'],
      ['host', 'pod_node_name'],
      ...(skips('skip_labels') || skips('skip_pod_labels') ? [] : [['labels', 'pod_labels']]),
      ...(['skip_namespace_metadata', 'skip_labels', 'skip_namespace_labels'].some(skips)
        ? []
        : [['namespace_labels', 'namespace_labels']]),
      ...(listOf(lastValue(section, 'annotation_match')).length === 0 ? [] : [['annotations', 'pod_annotations']]),
    ].map(([to, from]) => `  ${textLiteral(to ?? '')}: %orchestrator.${from},`)
    const lines = [
      '.docker.container_id = replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', "")',
      '.kubernetes = filter({',
      ...facts,
      '}) -> |_key, value| { value != null && value != {} && value != "" }',
    ]
    const chosen = listOf(lastValue(section, 'annotation_match'))
    if (chosen.length > 0) {
      const tests = chosen.map((regex) => `is_object(parse_grok(key, ${pattern(regex)}) ?? null)`).join(' || ')
      lines.push(
        `if is_object(.kubernetes.annotations) { .kubernetes.annotations = filter(object!(.kubernetes.annotations)) -> |key, _value| { ${tests} } }`,
      )
    }
    // Older versions of the plugin replace dots in labels by `_` unless an option disables it; newer versions keep them.
    const signs = [
      ...(isOn(lastValue(section, 'de_dot'), false) ? [['.', lastValue(section, 'de_dot_separator') ?? '_']] : []),
      ...(isOn(lastValue(section, 'de_slash'), false) ? [['/', lastValue(section, 'de_slash_separator') ?? '__']] : []),
    ]
    for (const [sign, other] of signs) {
      lines.push(
        `if is_object(.kubernetes.labels) { .kubernetes.labels = map_keys(object!(.kubernetes.labels)) -> |key| { replace(key, ${textLiteral(sign ?? '')}, ${textLiteral(other ?? '')}) } }`,
      )
    }
    if (isOn(lastValue(section, 'merge_json_log'), false)) {
      const at = fieldLiteral([lastValue(section, 'merge_json_log_key') ?? 'log'])
      lines.push(
        `merged = parse_json(string(${at}) ?? "") ?? null`,
        'if is_object(merged) {',
        '  if exists(merged.timestamp) { merged.log_timestamp = del(merged.timestamp) }',
        '  . = merge(., object!(merged))',
        ...(isOn(lastValue(section, 'preserve_json_log'), true) ? [] : [`  del(${at})`]),
        '}',
      )
    }
    // The plugin adds nothing to records whose tags are not those of pods.
    const isOfPods = tag?.isOfPods === true || tag?.samples === podFileSamples
    const whole = isOfPods ? lines : ['if %orchestrator.pod_name != null {', ...lines.map(indented), '}']
    return [{ type: 'remap', text: whole.join('\n') }]
  },
}

const indented = (line: string) => `  ${line}`

const parser: FilterPlugin = {
  name: 'parser',
  becomes:
    'a remap transform; without `reserve_data`, also a filter transform, because events that do not match are dropped',
  options: {
    ...common,
    ...withoutFirstLines(parseOptions),
    ...withoutFirstLines(oldFormat),
    parse: 'the type',
    key_name: 'the field to parse',
    reserve_data: 'whether to keep other fields, and events that do not match',
    reserve_time: 'whether to keep the time of the event',
    remove_key_name_field: 'whether to remove the field',
    hash_value_field: 'the object for the members',
    inject_key_prefix: 'the prefix for the names of members',
    format: 'the type',
    expression: 'the expression',
    time_format: 'the format of the time',
  },
  itself: {
    ...always,
    ...parseItself,
    replace_invalid_sequence: 'texts are UTF-8 already',
    suppress_parse_error_log: 'lines that do not match are counted',
    emit_invalid_record_to_error:
      '`reserve_data` decides about events that do not match; if there is a label `@ERROR`, they also go there',
  },
  build: (section, context, gaps) => {
    const path = recordPath(lastValue(section, 'key_name') ?? 'log')
    const at = section.entries.some(({ key }) => key === 'parse.@type')
      ? section
      : {
          ...section,
          entries: [
            ...section.entries,
            ...section.entries
              .filter(({ key }) => !/^@?type$/.test(key))
              .map((entry) => ({ ...entry, key: `parse.${entry.key}` })),
          ],
        }
    const keepsOthers = isOn(lastValue(section, 'reserve_data'), false)
    const marks = section.marksFailures === true
    const isMarked = marks && keepsOthers
    // If other events stay, an event with a time that is not valid is discarded nevertheless.
    const onFailure = isMarked ? failed : keepsOthers ? 'abort' : undefined
    const field = path === undefined ? '' : fieldLiteral(path)
    const inner = path === undefined ? undefined : parsedBy(at, `string(${field}) ?? ""`, context, gaps, onFailure)
    if (inner === undefined || path === undefined) return []
    const [start = '', ...rest] = inner
    const lines = [
      ...(isMarked ? ['has_failed = false'] : []),
      start,
      `if is_string(${field}) {`,
      ...rest.map((line) => `  ${line}`),
      '}',
    ]
    const keepsTime = isOn(lastValue(section, 'reserve_time'), false)
    const isGone = isOn(lastValue(section, 'remove_key_name_field'), false)
    const prefix = lastValue(section, 'inject_key_prefix')
    const under = lastValue(section, 'hash_value_field')
    // Fluentd keeps an event that does not match together with its other fields.
    const program = [
      ...(keepsTime ? ['time_before = .timestamp'] : []),
      ...lines,
      ...(keepsOthers && !marks ? [] : ['%is_parsed = is_object(parsed)']),
      ...(isMarked ? ['%has_failed = has_failed'] : []),
      'if is_object(parsed) {',
      ...(keepsTime ? ['  .timestamp = time_before'] : []),
      ...(isGone && keepsOthers ? [`  del(${fieldLiteral(path)})`] : []),
      // Only a field of the record itself has another name.
      ...(prefix === undefined && under === undefined
        ? []
        : ['  if exists(parsed.log_timestamp) { parsed.timestamp = del(parsed.log_timestamp) }']),
      ...(prefix === undefined
        ? []
        : [`  parsed = map_keys(object!(parsed)) -> |key| { ${textLiteral(prefix)} + key }`]),
      ...(under === undefined ? [] : [`  parsed = { ${textLiteral(under)}: parsed }`]),
      `  . = merge(${keepsOthers ? '.' : '{ "timestamp": .timestamp }'}, object!(parsed))`,
      under === undefined || !keepsOthers ? '}' : `} else { .${textLiteral(under)} = {} }`,
    ].join('\n')
    const step: Step = { type: 'remap', text: program }
    if (!keepsOthers) return [step, { type: 'filter', text: '%is_parsed == true' }]
    return isMarked ? [step, { type: 'filter', text: '%has_failed == false' }] : [step]
  },
}

const dedot: FilterPlugin = {
  name: 'dedot',
  becomes: 'a remap transform',
  options: {
    ...common,
    de_dot_separator: 'the replacement',
    de_dot_nested: 'whether to include nested objects',
    de_dot: 'whether to replace dots',
  },
  itself: always,
  build: (section) => {
    if (!isOn(lastValue(section, 'de_dot'), true)) return []
    const sign = textLiteral(lastValue(section, 'de_dot_separator') ?? '_')
    const deep = isOn(lastValue(section, 'de_dot_nested'), false) ? ', recursive: true' : ''
    return [{ type: 'remap', text: `. = map_keys(.${deep}) -> |key| { replace(key, ".", ${sign}) }` }]
  },
}

const flatten: FilterPlugin = {
  name: 'flatten_hash',
  becomes: 'a remap transform',
  options: { ...common, separator: 'between names' },
  itself: { ...always, flatten_array: 'items of lists become members by index' },
  build: (section) => [
    {
      type: 'remap',
      text: `time = .timestamp\n. = flatten(., separator: ${textLiteral(lastValue(section, 'separator') ?? '.')})\n.timestamp = time`,
    },
  ],
}

const ids: FilterPlugin = {
  name: 'elasticsearch_genid',
  becomes: 'a remap transform with `uuid_v4`, or a hash of fields',
  options: {
    ...common,
    hash_id_key: 'the field',
    use_record_as_seed: 'a hash',
    use_entire_record: 'a hash',
    record_keys: 'the fields of the hash',
    include_time_in_seed: 'whether the time is part of the hash',
  },
  itself: {
    ...always,
    include_tag_in_seed: 'an id depends on the fields',
    hash_type: 'ids are hashes of another form than those of the plugin',
    separator: 'ids are hashes of another form than those of the plugin',
  },
  build: (section) => {
    const at = fieldLiteral([lastValue(section, 'hash_id_key') ?? '_hash'])
    const keys = listOf(lastValue(section, 'record_keys'))
    if (
      !isOn(lastValue(section, 'use_record_as_seed'), false) &&
      !isOn(lastValue(section, 'use_entire_record'), false)
    ) {
      return [{ type: 'remap', text: `${at} = uuid_v4()` }]
    }
    const seed =
      keys.length === 0
        ? 'encode_json(filter(.) -> |key, _value| { key != "timestamp" })'
        : keys.map((key) => `(to_string(${fieldLiteral([key])}) ?? "")`).join(' + "_" + ')
    const time = isOn(lastValue(section, 'include_time_in_seed'), false) ? ' + (to_string(.timestamp) ?? "")' : ''
    return [{ type: 'remap', text: `${at} = sha1(${seed}${time})` }]
  },
}

const stdout: FilterPlugin = {
  name: 'stdout',
  becomes: 'nothing: use `penstock tap`',
  options: common,
  itself: { ...always, 'format.@type': 'lines of `penstock tap`', output_type: 'lines of `penstock tap`' },
  build: (section, context) => {
    context.replaced(section, 'filter stdout', 'it only prints events', 'Use `penstock tap`.')
    return []
  },
}

export const filters: readonly FilterPlugin[] = [
  stdout,

  grep,
  transformer('record_transformer', 'remove_keys'),
  transformer('record_modifier', 'remove_keys'),
  kubernetes,
  parser,
  dedot,
  flatten,
  ids,
  ...fieldFilters,
]

export const refusedFilters: readonly Refusal[] = [
  none(
    'throttle',
    'no transform limits the rate of events',
    'Limit requests with `request.rate_limit_num` of the sink. This slows the source down and discards nothing.',
  ),
  none('prometheus', 'no transform derives metrics from events', 'Count at the destination.'),
  none('geoip', 'Penstock has no tables of IP addresses', 'Look up addresses at the destination.'),
  ...['ec2_metadata', 'gcloud_metadata', 'docker_metadata', 'ecs_metadata'].map((name) =>
    none(name, 'Penstock does not look up metadata of the machine', 'Set fields in a remap transform.'),
  ),
  ...['redis', 'lookup'].map((name) =>
    none(name, 'a transform does not look up values elsewhere', 'Set fields in a remap transform.'),
  ),
  ...['dedup', 'uniq', 'suppress'].map((name) =>
    none(name, 'a transform processes one event at a time', 'Let the destination detect duplicates.'),
  ),
  ...['jq', 'lua', 'viaq_data_model', 'enhance_k8s_metadata', 'k8s_sumologic', 'kubernetes_sumologic'].map((name) =>
    none(name, 'Penstock does not run programs of this plugin', 'Rewrite the step as a remap transform.'),
  ),
  none('systemd_entry', 'there is no source that reads the journal', 'Keep Fluentd for it.'),
  {
    name: 'detect_exceptions',
    reason: 'sources join lines',
    nearest: 'Set `multiline` of the source.',
    isHere: true,
  },
]
