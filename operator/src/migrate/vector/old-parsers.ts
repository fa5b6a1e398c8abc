// Vector transforms of old versions that parse a field, as programs.

import { textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { field, setLine, texts } from './tables.ts'
import type { Rewriting, Rewritten } from './transforms.ts'

const program = (text: string): Rewritten => ({ outputs: [{ name: '', steps: [{ type: 'remap', text }] }] })

/** The parts of a program that all parsers share. */
interface Parsing {
  readonly from: unknown
  readonly drops: unknown
  readonly types: unknown
  readonly target?: unknown
  /** Whether an existing target is replaced; otherwise the event passes unchanged. */
  readonly overwrites?: unknown
  /** The call, which reads `text`. */
  readonly call: string
  /** A statement that changes the result. */
  readonly after?: string
}

/** A condition that is false if the target exists and must stay. */
const isFree = (target: unknown, overwrites: unknown) =>
  typeof target === 'string' && overwrites === false ? ` && !exists(${field(target)})` : ''

/** Merges the result of a call into the event. If the call fails, the event passes unchanged. */
function parsing({
  from = 'message',
  drops,
  types,
  target,
  overwrites = true,
  call,
  after,
}: Parsing): Rewritten | undefined {
  if (typeof from !== 'string' || (target !== undefined && typeof target !== 'string')) return undefined
  const conversions = conversionsOf(types, 'parsed')
  if (conversions === undefined) return undefined
  const lines = [
    `text = string(${field(from)}) ?? ""`,
    `parsed, err = ${call}`,
    `if err == null${isFree(target, overwrites)} {`,
    ...(after === undefined ? [] : [`  ${after}`]),
    ...conversions.map((line) => `  ${line}`),
    ...(drops === false ? [] : [`  del(${field(from)})`]),
    target === undefined ? '  . = merge(., parsed)' : `  ${field(target)} = parsed`,
    '}',
  ]
  return program(lines.join('\n'))
}

/** Statements that remove characters from both ends of a text. */
function trimLines(name: string, signs: string): readonly string[] {
  const set = `[${[...signs].map((sign) => RegExp.escape(sign)).join('')}]+`
  return signs === '' ? [] : [`      ${name} = replace(${name}, r'^${set}|${set}$', "")`]
}

export const parserRewritings: readonly Rewriting[] = [
  {
    type: 'regex_parser',
    becomes: 'a `remap` with `parse_regex`',
    options: ['field', 'patterns', 'regex', 'drop_field', 'drop_failed', 'target_field', 'overwrite_target', 'types'],
    rewrite({ field: from = 'message', patterns, regex, target_field: target, types, ...others }) {
      const expressions = texts(patterns ?? regex)
      if (expressions.length === 0 || typeof from !== 'string') return undefined
      if (target !== undefined && typeof target !== 'string') return undefined
      const conversions = conversionsOf(types, 'parsed')
      if (conversions === undefined) return undefined
      const parse = (regex: string) => `parse_regex(text, r'${regex.replaceAll("'", "\\'")}')`
      const lines = [
        `text = string(${field(from)}) ?? ""`,
        `parsed, err = ${expressions.map(parse).join(' ?? ')}`,
        `if err == null${isFree(target, others['overwrite_target'])} {`,
        // A group that takes no part in the match sets no field.
        '  parsed = compact(parsed, recursive: false, string: false, object: false, array: false)',
        ...conversions.map((line) => `  ${line}`),
        ...(others['drop_field'] === false ? [] : [`  del(${field(from)})`]),
        target === undefined ? '  . = merge(., parsed)' : `  ${field(target)} = parsed`,
        ...(others['drop_failed'] === true ? ['} else { abort }'] : ['}']),
      ]
      return program(lines.join('\n'))
    },
  },
  {
    type: 'coercer',
    becomes: 'a `remap` that converts the fields',
    options: ['types', 'drop_unspecified'],
    rewrite({ types, drop_unspecified: only }) {
      const conversions = conversionsOf(types, '')
      if (conversions === undefined || conversions.length === 0) return undefined
      const names = Object.keys(isTable(types) ? types : {})
      const others = [
        'kept = {}',
        ...names.map((name) => {
          return `if exists(${field(name)}) { ${setLine(name, field(name)).replaceAll('parsed', 'kept')} }`
        }),
        '. = kept',
      ]
      return program([...conversions, ...(only === true ? others : [])].join('\n'))
    },
  },
  {
    type: 'grok_parser',
    becomes: 'a `remap` with `parse_grok`',
    options: ['field', 'pattern', 'drop_field', 'types'],
    rewrite: ({ field: from, pattern, drop_field: drops, types }) =>
      typeof pattern === 'string'
        ? parsing({ from, drops, types, call: `parse_grok(text, ${textLiteral(pattern)})` })
        : undefined,
  },
  {
    type: 'key_value_parser',
    becomes: 'a `remap` that splits the text into pairs',
    options: [
      ...['field', 'field_split', 'separator', 'drop_field', 'target_field', 'overwrite_target', 'types'],
      ...['trim_key', 'trim_value'],
    ],
    rewrite({ field: from = 'message', field_split: between, separator = ' ', drop_field: drops, types, ...others }) {
      const { target_field: target, overwrite_target: overwrites, trim_key: ofKeys, trim_value: ofValues } = others
      const names = [from, between ?? '=', separator, ofKeys ?? '', ofValues ?? '', target ?? '']
      if (!names.every((each) => typeof each === 'string')) return undefined
      const [at, sign, after, keySigns, valueSigns] = names as [string, string, string, string, string]
      // Types are named by the whole path of a field.
      const conversions = conversionsOf(types, '', true)
      if (conversions === undefined) return undefined
      const path = target === undefined ? '' : field(String(target))
      return program(
        [
          `if exists(${field(at)})${isFree(target, overwrites)} {`,
          `  text = to_string(${field(at)}) ?? encode_json(${field(at)})`,
          // An empty object whose members are unknown until it runs.
          '  parsed = filter(.) -> |_key, _value| { false }',
          `  for_each(split(text, ${textLiteral(after)})) -> |_index, pair| {`,
          `    parts = split(strip_whitespace(pair), ${textLiteral(sign || '=')}, limit: 2)`,
          '    key = strip_whitespace(string(parts[0]) ?? "")',
          '    if length(parts) == 2 && key != "" {',
          ...trimLines('key', keySigns),
          '      value = strip_whitespace(string(parts[1]) ?? "")',
          ...trimLines('value', valueSigns),
          '      parsed = object(set(parsed, split(key, "."), value) ?? null) ?? parsed',
          '    }',
          '  }',
          path === '' ? '  . = merge(., parsed, deep: true)' : `  ${path} = parsed`,
          ...conversions.map((line) => `  ${line}`),
          ...(drops === false || target === at ? [] : [`  del(${field(at)})`]),
          '}',
        ].join('\n'),
      )
    },
  },
  {
    type: 'logfmt_parser',
    becomes: 'a `remap` with `parse_logfmt`',
    options: ['field', 'drop_field', 'types'],
    // The old transform left out keys without a value, which `parse_logfmt` sets to true.
    rewrite: ({ field: from, drop_field: drops, types }) =>
      parsing({
        from,
        drops: drops === true,
        types,
        call: 'parse_logfmt(text)',
        after: 'parsed = filter(parsed) -> |_key, value| { value != true }',
      }),
  },
  {
    type: 'ansi_stripper',
    becomes: 'a `remap` with `strip_ansi_escape_codes`',
    options: ['field'],
    rewrite({ field: from = 'message' }) {
      if (typeof from !== 'string') return undefined
      const at = field(from)
      return program(`if is_string(${at}) { ${at} = strip_ansi_escape_codes!(${at}) }`)
    },
  },
  {
    type: 'split',
    becomes: 'a `remap` with `split`',
    options: ['field', 'separator', 'field_names', 'drop_field', 'types'],
    rewrite({ field: from = 'message', separator, field_names: given, drop_field: drops, types }) {
      const names = texts(given)
      const conversions = conversionsOf(types, 'parsed')
      if (names.length === 0 || conversions === undefined || typeof from !== 'string') return undefined
      const parts =
        typeof separator === 'string'
          ? `split(text, ${textLiteral(separator)})`
          : `filter(split(text, r'\\s+')) -> |_index, part| { part != "" }`
      const lines = [
        `if exists(${field(from)}) {`,
        `  text = to_string(${field(from)}) ?? encode_json(${field(from)})`,
        '  parsed = {}',
        `  parts = ${parts}`,
        ...names.map((name, index) => `  if length(parts) > ${index} { ${setLine(name, `parts[${index}]`)} }`),
        ...conversions.map((line) => `  ${line}`),
        ...(drops === true && !names.includes(from) ? [`  del(${field(from)})`] : []),
        '  . = merge(., parsed, deep: true)',
        '}',
      ]
      return program(lines.join('\n'))
    },
  },
]

/** An item of `concat`: a field, and the range of its bytes. */
function itemLines(item: string): readonly string[] {
  const [, path = '', start = '', end = ''] = /^(.*?)(?:\[(-?\d*)\.\.(-?\d*)\])?$/s.exec(item) ?? []
  const at = field(path)
  const range = `${start || '0'}${end === '' ? '' : `, ${end}`}`
  // A range outside of the text drops the event.
  const tests = [
    `error != null || part == ""`,
    ...[start, end].filter((each) => Number(each) > 0).map((each) => `length(text) < ${each}`),
  ]
  const isRange = start !== '' || end !== ''
  return [
    `if exists(${at}) {`,
    `  text = to_string(${at}) ?? encode_json(${at})`,
    ...(isRange
      ? [`  part, error = slice(text, ${range})`, `  if ${tests.join(' || ')} { abort }`]
      : ['  part = text', '  if part == "" { abort }']),
    '  parts = push(parts, part)',
    '}',
  ]
}

export const otherRewritings: readonly Rewriting[] = [
  {
    type: 'tokenizer',
    becomes: 'a `remap` that splits at white space, brackets and quotes',
    options: ['field', 'field_names', 'drop_field', 'types'],
    rewrite({ field: from = 'message', field_names: given, drop_field: drops, types }) {
      const names = texts(given)
      const conversions = conversionsOf(types, 'parsed')
      if (names.length === 0 || conversions === undefined || typeof from !== 'string') return undefined
      const lines = [
        `if exists(${field(from)}) {`,
        `  text = to_string(${field(from)}) ?? encode_json(${field(from)})`,
        '  parsed = {}',
        `  found = parse_regex_all(text, ${tokenPattern}) ?? []`,
        ...names.map((name, index) => `  if length(found) > ${index} { ${setLine(name, token(index))} }`),
        ...conversions.map((line) => `  ${line}`),
        ...(drops === true && !names.includes(from) ? [`  del(${field(from)})`] : []),
        '  . = merge(., parsed, deep: true)',
        '}',
      ]
      return program(lines.join('\n'))
    },
  },
  {
    type: 'concat',
    becomes: 'a `remap` with `join`',
    options: ['items', 'target', 'joiner'],
    rewrite({ items: given, target, joiner = ' ' }) {
      const items = texts(given)
      if (typeof target !== 'string' || typeof joiner !== 'string' || items.length === 0) return undefined
      return program(
        [
          'parts = []',
          ...items.flatMap(itemLines),
          `${field(target)} = join(parts, ${textLiteral(joiner)}) ?? ""`,
        ].join('\n'),
      )
    },
  },
  {
    type: 'aws_cloudwatch_logs_subscription_parser',
    becomes: 'a `remap` with `parse_aws_cloudwatch_log_subscription_message`',
    options: ['field'],
    rewrite({ field: from = 'message' }) {
      if (typeof from !== 'string') return undefined
      return program(
        [
          `subscription, error = parse_aws_cloudwatch_log_subscription_message(string(${field(from)}) ?? "")`,
          'if error != null || subscription.message_type != "DATA_MESSAGE" { abort }',
          'whole = .',
          '. = map_values(array!(subscription.log_events)) -> |entry| {',
          '  merge(whole, {',
          '    "message": entry.message,',
          '    "timestamp": entry.timestamp,',
          '    "id": entry.id,',
          '    "log_group": subscription.log_group,',
          '    "log_stream": subscription.log_stream,',
          '    "subscription_filters": subscription.subscription_filters,',
          '    "owner": subscription.owner',
          '  })',
          '}',
        ].join('\n'),
      )
    },
  },
]

const token = (index: number) =>
  `found[${index}].bracket || found[${index}].quote || found[${index}].word || found[${index}].rest`

/** A word, or a text in brackets or quotes, and the white space after it. If none fits, the rest of the text is one word. */
const tokenPattern = `r'(?:\\[(?P<bracket>(?:[^\\]\\\\]|\\\\[\\]\\\\])*)\\]|"(?P<quote>(?:[^"\\\\]|\\\\["\\\\])*)"|(?P<word>[^ \\t\\["]+)|(?P<rest>(?s:.+)))[ \\t]*'`

const conversionCalls: Readonly<Record<string, string>> = {
  asis: '',
  bytes: 'to_string',
  string: 'to_string',
  int: 'to_int',
  integer: 'to_int',
  float: 'to_float',
  bool: 'to_bool',
  boolean: 'to_bool',
}

/**
 * Statements for each field of `types`; undefined for unknown types. As in the old versions, a value that cannot be converted is left out.
 * @param root the object with the fields
 * @param areTexts whether all of its values are texts
 */
function conversionsOf(types: unknown, root: string, areTexts = root !== ''): readonly string[] | undefined {
  const lines: string[] = []
  for (const [name, type] of Object.entries(isTable(types) ? types : {})) {
    const [kind = '', format] =
      /^timestamp\|(.*)$/s.exec(String(type)) === null ? [String(type)] : ['timestamp', String(type).slice(10)]
    const call = Object.hasOwn(conversionCalls, kind) ? conversionCalls[kind] : undefined
    const at = `${root}${field(name)}`
    if (format === undefined && call === undefined) return undefined
    if (call === '' || (call === 'to_string' && areTexts)) continue
    const made = format === undefined ? `${call}(${at})` : `parse_timestamp(${at}, ${textLiteral(format)})`
    lines.push(
      `if exists(${at}) {`,
      `  made, failed = ${made}`,
      `  if failed == null { ${at} = made } else { del(${at}${root === '' ? '' : ', compact: true'}) }`,
      '}',
    )
  }
  return lines
}
