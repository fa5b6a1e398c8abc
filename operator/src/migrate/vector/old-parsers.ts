// Vector transforms of old versions that parse a field, as programs.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Rewriting, Rewritten } from './transforms.ts'

const program = (text: string): Rewritten => ({ outputs: [{ name: '', steps: [{ type: 'remap', text }] }] })
const field = (path: string) => fieldLiteral(path.replace(/^\./, '').split('.'))
const texts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((each) => typeof each === 'string')

/** The parts of a program that all parsers share. */
interface Parsing {
  readonly from: unknown
  readonly drops: unknown
  readonly types: unknown
  readonly target?: unknown
  /** The call, which reads `text`. */
  readonly call: string
  /** A statement that changes the result. */
  readonly after?: string
}

/** Merges the result of a call into the event. If the call fails, the event passes unchanged. */
function parsing({ from = 'message', drops, types, target, call, after }: Parsing): Rewritten | undefined {
  if (typeof from !== 'string' || (target !== undefined && typeof target !== 'string')) return undefined
  const conversions = conversionsOf(types, 'parsed')
  if (conversions === undefined) return undefined
  const lines = [
    `text = string(${field(from)}) ?? ""`,
    `parsed, err = ${call}`,
    'if err == null {',
    ...(after === undefined ? [] : [`  ${after}`]),
    ...conversions.map((line) => `  ${line}`),
    ...(drops === false ? [] : [`  del(${field(from)})`]),
    target === undefined ? '  . = merge(., parsed)' : `  ${field(target)} = parsed`,
    '}',
  ]
  return program(lines.join('\n'))
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
        'if err == null {',
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
      if (conversions === undefined || conversions.length === 0 || only === true) return undefined
      return program(conversions.join('\n'))
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
    becomes: 'a `remap` with `parse_key_value`',
    options: ['field', 'field_split', 'separator', 'drop_field', 'target_field', 'overwrite_target', 'types'],
    rewrite({ field: from, field_split: between = '=', separator: after = ' ', drop_field: drops, types, ...others }) {
      if (typeof between !== 'string' || typeof after !== 'string') return undefined
      const delimiters = `key_value_delimiter: ${textLiteral(between)}, field_delimiter: ${textLiteral(after)}`
      const call = `parse_key_value(text, ${delimiters}, accept_standalone_key: false)`
      return parsing({ from, drops, types, target: others['target_field'], call })
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
        drops,
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
      const conversions = conversionsOf(types, '')
      if (names.length === 0 || conversions === undefined || typeof from !== 'string') return undefined
      const parts =
        typeof separator === 'string'
          ? `split(text, ${textLiteral(separator)})`
          : `filter(split(text, r'\\s+')) -> |_index, part| { part != "" }`
      const lines = [
        `text, err = string(${field(from)})`,
        'if err == null {',
        `  parts = ${parts}`,
        ...(drops === false || names.includes(from) ? [] : [`  del(${field(from)})`]),
        ...names.map((name, index) => `  if length(parts) > ${index} { ${field(name)} = parts[${index}] }`),
        ...conversions.map((line) => `  ${line}`),
        '}',
      ]
      return program(lines.join('\n'))
    },
  },
]

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
 * A statement for each field of `types`; undefined for unknown types. A value that cannot be converted stays unchanged.
 * @param root the object with the fields; all its values are texts unless it is the event
 */
function conversionsOf(types: unknown, root: string): readonly string[] | undefined {
  const lines: string[] = []
  for (const [name, type] of Object.entries(isTable(types) ? types : {})) {
    const [kind = '', format] =
      /^timestamp\|(.*)$/s.exec(String(type)) === null ? [String(type)] : ['timestamp', String(type).slice(10)]
    const call = Object.hasOwn(conversionCalls, kind) ? conversionCalls[kind] : undefined
    const at = `${root}${field(name)}`
    if (format !== undefined)
      lines.push(`if exists(${at}) { ${at} = parse_timestamp(${at}, ${textLiteral(format)}) ?? ${at} }`)
    else if (call === undefined) return undefined
    else if (call !== '' && (call !== 'to_string' || root === ''))
      lines.push(`if exists(${at}) { ${at} = ${call}(${at}) ?? ${at} }`)
  }
  return lines
}
