// Converters: OTTL functions that return a value.

import { textLiteral } from '@penstock/agent/config'
import { escapedText } from '../../escape.ts'
import { columnLines } from '../csv.ts'
import { pairLines } from '../key-value.ts'
import { parseLines } from '../parse-time.ts'
import {
  floatsIn,
  goLayout,
  matchesNothing,
  regexLiteral,
  renamedGroups,
  strptimeLayout,
  withGroupNames,
} from '../text.ts'
import type { Kind, Lines, Value } from './code.ts'
import { indexOf, isEmpty, parseSeverity, sliceToMap, toBoolean } from './collections.ts'
import { type Converter, textAt, valueAt } from './converter.ts'
import { duration, lengthIn } from './durations.ts'
import { constantText, required } from './editors.ts'
import { base64Encode, coalesce, extractGrokPatterns, truncateTime } from './more-converters.ts'
import { Unconvertible } from './syntax.ts'

/** A function of one text that cannot fail. */
const ofText = (call: string, kind: Kind = 'text', options = ''): Converter => ({
  becomes: `\`${call}\``,
  parameters: ['target'],
  run: (program, lines, values) => ({ code: `${call}(${textAt(program, lines, values)}${options})`, kind }),
})

/** A type check. */
const isKind = (call: string): Converter => ({
  becomes: `\`${call}\``,
  parameters: ['target'],
  run: (program, lines, values) => ({ code: `${call}(${valueAt(program, lines, values).code})`, kind: 'boolean' }),
})

/** A component of a time as a number. */
const partOfTime = (format: string): Converter => ({
  becomes: '`format_timestamp`',
  parameters: ['time'],
  run: (program, lines, values) => {
    const time = lines.as(valueAt(program, lines, values, 'time'), 'time')
    const text = lines.fallible(`format_timestamp(${time.code}, ${textLiteral(format)})`, 'text')
    return lines.fallible(`to_int(${text.code})`, 'integer')
  },
})

const unixTime = (unit: string): Converter => ({
  becomes: '`to_unix_timestamp`',
  parameters: ['time'],
  run: (program, lines, values) => {
    const time = lines.as(valueAt(program, lines, values, 'time'), 'time')
    return { code: `to_unix_timestamp(${time.code}, unit: "${unit}")`, kind: 'integer' }
  },
})

/** Converts a text or a number to a number; other values become null. */
const toNumber = (call: string): Converter => ({
  becomes: `\`${call}\``,
  parameters: ['target'],
  run: (program, lines, values) => {
    const value = lines.keep(valueAt(program, lines, values))
    if (call === 'to_float') program.hasFloats = true
    if (value.kind === 'map' || value.kind === 'list' || value.kind === 'null') return { code: 'null', kind: 'null' }
    const name = lines.newName('number')
    lines.add(`${name} = null`)
    const made =
      value.kind === 'any' || value.kind === 'text' ? `${call}(${value.code}) ?? null` : `${call}(${value.code})`
    lines.add(`if ${value.code} != null { ${name} = ${made} }`)
    return { code: name, kind: 'any' }
  },
})

const edgeTest = (call: string, parameter: string): Converter => ({
  becomes: `\`${call}\``,
  parameters: ['target', parameter],
  run: (program, lines, values) => {
    const target = textAt(program, lines, values)
    return { code: `${call}(${target}, ${textAt(program, lines, values, parameter)})`, kind: 'boolean' }
  },
})

/** Removes a prefix or suffix of a text, if present. */
const trimEdge = (pattern: (escaped: string) => string, parameter: string): Converter => ({
  becomes: '`replace`',
  parameters: ['target', parameter],
  run: (program, lines, values) => {
    const escaped = escapedText(constantText(values, parameter))
    return { code: `replace(${textAt(program, lines, values)}, ${regexLiteral(pattern(escaped))}, "")`, kind: 'text' }
  },
})

const isMatch: Converter = {
  becomes: '`match`',
  parameters: ['target', 'pattern'],
  run: (program, lines, values) => {
    const pattern = constantText(values, 'pattern')
    const value = valueAt(program, lines, values)
    const test = `match(${lines.textOf(value)}, ${regexLiteral(pattern)})`
    const isAbsent = value.kind === 'any' && matchesNothing(pattern)
    return { code: isAbsent ? `(${value.code} != null && ${test})` : test, kind: 'boolean' }
  },
}

const concat: Converter = {
  becomes: '`join`',
  parameters: ['values', 'delimiter'],
  run: (program, lines, values) => {
    const list = required(values, 'values')
    if (list.type !== 'list') throw new Unconvertible('the first argument must be a literal list')
    const parts = list.items.map((item) => {
      const value = lines.keep(program.value(item, lines))
      if (value.kind === 'map' || value.kind === 'list') return '""'
      if (value.kind !== 'any') return value.kind === 'null' ? '"<nil>"' : lines.textOf(value)
      const name = lines.newName('part')
      // Objects and lists add nothing.
      lines.add(`${name} = if ${value.code} == null { "<nil>" } else { to_string(${value.code}) ?? "" }`)
      return name
    })
    const delimiter = textAt(program, lines, values, 'delimiter')
    return lines.fallible(`join([${parts.join(', ')}], ${delimiter})`, 'text')
  },
}

const extractPatterns: Converter = {
  becomes: '`parse_regex`',
  parameters: ['target', 'pattern'],
  run: (program, lines, values) => {
    const { pattern, names } = withGroupNames(constantText(values, 'pattern'))
    const regex = regexLiteral(pattern)
    // A text that does not match has no groups; the statement does not fail.
    const found = lines.keep({ code: `parse_regex(${textAt(program, lines, values)}, ${regex}) ?? {}`, kind: 'map' })
    const groups = renamedGroups(found.code, names)
    return { code: `map_values(${groups}) -> |group| { if group == null { "" } else { group } }`, kind: 'map' }
  },
}

const parseJson: Converter = {
  becomes: '`parse_json`, with floats in place of integers',
  parameters: ['target'],
  run: (program, lines, values) => {
    const { code } = lines.fallible(`parse_json(${textAt(program, lines, values)})`, 'any')
    program.hasFloats = true
    lines.add(
      `if is_object(${code}) {`,
      `  ${code} = ${floatsIn(`object!(${code})`)}`,
      `} else if is_array(${code}) {`,
      `  ${code} = ${floatsIn(`array!(${code})`)}`,
      `} else if is_integer(${code}) { ${code} = to_float!(${code}) }`,
    )
    return { code, kind: 'any' }
  },
}

const parseKeyValue: Converter = {
  becomes: 'statements that split pairs',
  parameters: ['target', 'delimiter', 'pair_delimiter'],
  run: (program, lines, values) => {
    const [delimiter = '', between = ''] = [
      values.has('delimiter') ? constantText(values, 'delimiter') : '=',
      values.has('pair_delimiter') ? constantText(values, 'pair_delimiter') : ' ',
    ]
    const text = lines.keep({ code: textAt(program, lines, values), kind: 'text' }).code
    lines.add(...pairLines(text, delimiter, between))
    lines.open('is_object(parsed)')
    const name = lines.newName('pairs')
    lines.add(`${name} = object!(parsed)`)
    return { code: name, kind: 'map' }
  },
}

const parseCsv: Converter = {
  becomes: '`parse_csv`',
  parameters: ['target', 'headers', 'delimiter', 'headerDelimiter', 'mode'],
  run: (program, lines, values) => {
    const delimiter = values.has('delimiter') ? constantText(values, 'delimiter') : ','
    const between = values.has('headerDelimiter') ? constantText(values, 'headerDelimiter') : delimiter
    const names = constantText(values, 'headers').split(between)
    const mode = values.has('mode') ? constantText(values, 'mode') : 'strict'
    if (mode !== 'strict' && mode !== 'lazyQuotes' && mode !== 'ignoreQuotes')
      throw new Unconvertible(`the mode \`${mode}\` is unknown`)
    const text = lines.keep({ code: textAt(program, lines, values), kind: 'text' }).code
    lines.add(...columnLines(text, delimiter, mode))
    lines.open(`length(columns) == ${names.length}`)
    return { code: `object_from_array(zip([${names.map(textLiteral).join(', ')}], columns))`, kind: 'map' }
  },
}

const time: Converter = {
  becomes: '`parse_timestamp`',
  parameters: ['target', 'format', 'location', 'locale'],
  run: (program, lines, values) => {
    const format = constantText(values, 'format')
    const layout = format.includes('%') ? strptimeLayout(format) : goLayout(format)
    const text = textAt(program, lines, values)
    const location = values.has('location') ? constantText(values, 'location') : undefined
    const parsed = parseLines(text, layout, location)
    if (parsed === undefined) throw new Unconvertible('names of zones, such as `CET`, are only converted for UTC')
    lines.add(...parsed)
    lines.open('error == null')
    return lines.keep({ code: 'time', kind: 'time' })
  },
}

const formatTime: Converter = {
  becomes: '`format_timestamp`',
  parameters: ['time', 'format'],
  run: (program, lines, values) => {
    const moment = lines.as(valueAt(program, lines, values, 'time'), 'time')
    const layout = strptimeLayout(constantText(values, 'format')).replaceAll('%S%.f', '%S').replaceAll('%#z', '%:z')
    return lines.fallible(`format_timestamp(${moment.code}, ${textLiteral(layout)})`, 'text')
  },
}

const substring: Converter = {
  becomes: '`slice`',
  parameters: ['target', 'start', 'length'],
  run: (program, lines, values) => {
    const [start, length] = ['start', 'length'].map((name) => {
      const node = required(values, name)
      if (node.type !== 'number') throw new Unconvertible(`\`${name}\` must be a literal number`)
      return node.value
    })
    const text = textAt(program, lines, values)
    lines.open(`length(${text}) >= ${(start ?? 0) + (length ?? 0)}`)
    return lines.fallible(`slice(${text}, ${start}, ${(start ?? 0) + (length ?? 0)})`, 'text')
  },
}

const cases: Readonly<Record<string, string>> = {
  upper: 'upcase',
  lower: 'downcase',
  snake: 'snakecase',
  camel: 'pascalcase',
}

const convertCase: Converter = {
  becomes: '`upcase`, `downcase`, `snakecase` or `pascalcase`',
  parameters: ['target', 'toCase'],
  run: (program, lines, values) => {
    const call = cases[constantText(values, 'toCase')]
    if (call === undefined) throw new Unconvertible('the case is unknown')
    return { code: `${call}(${textAt(program, lines, values)})`, kind: 'text' }
  },
}

const length: Converter = {
  becomes: '`length`',
  parameters: ['target'],
  run: (program, lines, values) => {
    const value = valueAt(program, lines, values)
    if (value.kind === 'any') {
      const kept = lines.keep(value)
      lines.open(`is_string(${kept.code}) || is_object(${kept.code}) || is_array(${kept.code})`)
      return lines.fallible(`length(${kept.code})`, 'integer')
    }
    if (value.kind !== 'text' && value.kind !== 'map' && value.kind !== 'list') {
      throw new Unconvertible('only texts, lists and objects have a length')
    }
    return { code: `length(${value.code})`, kind: 'integer' }
  },
}

/** Variants of Base64 by their names in OTTL. All decoders accept missing padding. */
const base64Charsets: Readonly<Record<string, string>> = {
  base64: 'standard',
  'base64-raw': 'standard',
  'base64-url': 'url_safe',
  'base64-raw-url': 'url_safe',
}

const decode: Converter = {
  becomes: '`decode_base64`; UTF-8 text stays unchanged',
  parameters: ['value', 'encoding'],
  run: (program, lines, values) => {
    const encoding = constantText(values, 'encoding')
    const text = textAt(program, lines, values, 'value')
    if (/^(?:us-ascii|ascii|utf-?8)$/i.test(encoding)) return { code: text, kind: 'text' }
    const charset = Object.hasOwn(base64Charsets, encoding) ? base64Charsets[encoding] : undefined
    if (charset === undefined) throw new Unconvertible(`the encoding \`${encoding}\` has no counterpart`)
    return lines.fallible(`decode_base64(${text}, charset: "${charset}")`, 'text')
  },
}

const isInCidr: Converter = {
  becomes: '`ip_cidr_contains`',
  parameters: ['target', 'networks'],
  run: (program, lines, values) => {
    const list = required(values, 'networks')
    if (list.type !== 'list') throw new Unconvertible('`networks` must be a literal list')
    const networks = list.items.map((item) => lines.as(program.value(item, lines), 'text').code)
    const target = textAt(program, lines, values)
    return lines.fallible(`ip_cidr_contains([${networks.join(', ')}], ${target})`, 'boolean')
  },
}

/** The parts of an address, of which only the path is always present. */
const urlPattern =
  '^(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?:(?P<user>[^@/?#]*)@)?(?P<domain>\\[[^\\]]*\\]|[^:/?#]*)(?::(?P<port>[0-9]*))?)?(?P<path>[^?#]*)(?:\\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?$'

const url: Converter = {
  becomes: '`parse_regex`, with the names of the semantic conventions',
  parameters: ['url'],
  run: (program, lines, values) => {
    const text = lines.keep({ code: textAt(program, lines, values, 'url'), kind: 'text' }).code
    const found = lines.fallible(`parse_regex(${text}, r'${urlPattern}')`, 'map').code
    const [made, names] = [lines.newName('url'), lines.newName('user')]
    lines.add(
      `${names} = split(string(${found}.user) ?? "", ":", limit: 2)`,
      `${made} = { "url.scheme": ${found}.scheme, "url.domain": ${found}.domain, "url.query": ${found}.query, "url.fragment": ${found}.fragment, "url.user_info": ${found}.user, "url.username": ${names}[0], "url.password": ${names}[1], "url.port": to_int(${found}.port) ?? null }`,
      `if is_nullish(${found}.port) { ${made}."url.port" = null }`,
      `${made}."url.extension" = replace(string(${found}.path) ?? "", r'^.*\\.([^./]+)$|^.*$', "$1")`,
      `${made} = filter(${made}) -> |_key, value| { value != null && value != "" }`,
    )
    return { code: `merge(${made}, { "url.original": ${text}, "url.path": ${found}.path })`, kind: 'map' }
  },
}

/** An integer as text with zeros up to a width, which includes the sign. */
function padded(lines: Lines, { code }: Value, width: number): string {
  const name = lines.newName('digits')
  const pad = (to: number) => (to < 2 ? name : `replace("${'0'.repeat(to)}" + ${name}, r'^0*([0-9]{${to},})$', "$1")`)
  lines.add(
    `${name} = to_string(abs(${code}))`,
    `${name} = if ${code} < 0 { "-" + ${pad(width - 1)} } else { ${pad(width)} }`,
  )
  return name
}

const format: Converter = {
  becomes: 'texts that are joined; only for `%s`, `%d` (also with zeros, such as `%02d`) and `%v`',
  parameters: ['formatString', 'args'],
  run: (program, lines, values) => {
    const list = required(values, 'args')
    if (list.type !== 'list') throw new Unconvertible('the arguments must be a literal list')
    const parts = constantText(values, 'formatString').split(/(%\d*[a-zA-Z%])/)
    const items = [...list.items]
    const texts = parts.flatMap((part) => {
      if (!/^%\d*[a-zA-Z%]$/.test(part)) return part === '' ? [] : [textLiteral(part)]
      if (part === '%%') return ['"%"']
      const item = items.shift()
      if (item === undefined) throw new Unconvertible('the format has more parts than there are arguments')
      const value = program.value(item, lines)
      if (part === '%s') return [lines.as(value, 'text').code]
      if (part === '%d') return [`to_string(${lines.as(value, 'integer').code})`]
      const width = /^%0(\d+)d$/.exec(part)?.[1]
      if (width !== undefined) return [padded(lines, lines.keep(lines.as(value, 'integer')), Number(width))]
      if (part === '%v') return [lines.textOf(value)]
      throw new Unconvertible(`\`${part}\` has no counterpart`)
    })
    if (items.length > 0) throw new Unconvertible('there are more arguments than parts of the format')
    return { code: texts.length === 0 ? '""' : `(${texts.join(' + ')})`, kind: 'text' }
  },
}

const fixed = (code: string, kind: Kind, becomes: string): Converter => ({
  becomes,
  parameters: [],
  run: () => ({ code, kind }),
})

export const converters: Readonly<Record<string, Converter>> = {
  IsMatch: isMatch,
  IsString: isKind('is_string'),
  IsMap: isKind('is_object'),
  IsList: isKind('is_array'),
  IsBool: isKind('is_boolean'),
  IsInt: isKind('is_integer'),
  IsDouble: isKind('is_float'),
  IsEmpty: isEmpty,
  HasPrefix: edgeTest('starts_with', 'prefix'),
  HasSuffix: edgeTest('ends_with', 'suffix'),
  ContainsValue: {
    becomes: '`includes`',
    parameters: ['target', 'item'],
    run: (program, lines, values) => {
      const list = lines.as(valueAt(program, lines, values), 'list')
      return { code: `includes(${list.code}, ${valueAt(program, lines, values, 'item').code})`, kind: 'boolean' }
    },
  },
  Index: indexOf,
  ParseJSON: parseJson,
  ParseKeyValue: parseKeyValue,
  ParseCSV: parseCsv,
  ParseInt: {
    becomes: '`parse_int`',
    parameters: ['target', 'base'],
    run: (program, lines, values) => {
      const base = required(values, 'base')
      if (base.type !== 'number') throw new Unconvertible('`base` must be a literal number')
      return lines.fallible(`parse_int(${textAt(program, lines, values)}, ${base.value})`, 'integer')
    },
  },
  ParseSeverity: parseSeverity,
  ExtractPatterns: extractPatterns,
  ExtractGrokPatterns: extractGrokPatterns,
  Coalesce: coalesce,
  Concat: concat,
  Split: {
    becomes: '`split`',
    parameters: ['target', 'delimiter'],
    run: (program, lines, values) => ({
      code: `split(${textAt(program, lines, values)}, ${textLiteral(constantText(values, 'delimiter'))})`,
      kind: 'list',
    }),
  },
  Substring: substring,
  Len: length,
  ToUpperCase: ofText('upcase'),
  ToLowerCase: ofText('downcase'),
  ToSnakeCase: ofText('snakecase'),
  ToCamelCase: ofText('pascalcase'),
  ConvertCase: convertCase,
  Trim: {
    becomes: '`replace`',
    parameters: ['target', 'replacement'],
    run: (program, lines, values) => {
      const set = values.has('replacement') ? constantText(values, 'replacement') : ' '
      const escaped = `[${set.replace(/[\\\]^-]/g, '\\$&')}]`
      return {
        code: `replace(${textAt(program, lines, values)}, ${regexLiteral(`^${escaped}+|${escaped}+$`)}, "")`,
        kind: 'text',
      }
    },
  },
  TrimPrefix: trimEdge((escaped) => `^${escaped}`, 'prefix'),
  TrimSuffix: trimEdge((escaped) => `${escaped}$`, 'suffix'),
  String: {
    becomes: '`to_string`',
    parameters: ['target'],
    run: (program, lines, values) => {
      const value = lines.keep(valueAt(program, lines, values))
      if (value.kind !== 'any') return { code: lines.textOf(value), kind: 'text' }
      const name = lines.newName('text')
      lines.add(`${name} = if ${value.code} == null { null } else { ${lines.textOf(value)} }`)
      return { code: name, kind: 'any' }
    },
  },
  Bool: toBoolean,
  Int: toNumber('to_int'),
  Double: toNumber('to_float'),
  SHA1: ofText('sha1'),
  SHA256: ofText('sha2', 'text', ', variant: "SHA-256"'),
  SHA512: ofText('sha2', 'text', ', variant: "SHA-512"'),
  MD5: ofText('md5'),
  Base64Encode: base64Encode,
  Base64Decode: {
    becomes: '`decode_base64`',
    parameters: ['target'],
    run: (program, lines, values) => lines.fallible(`decode_base64(${textAt(program, lines, values)})`, 'text'),
  },
  Decode: decode,
  Hex: {
    becomes: '`encode_base16`, for texts only',
    parameters: ['value'],
    run: (program, lines, values) => ({
      code: `encode_base16(${textAt(program, lines, values, 'value')})`,
      kind: 'text',
    }),
  },
  IsInCIDR: isInCidr,
  URL: url,
  Format: format,
  UUID: fixed('uuid_v4()', 'text', '`uuid_v4`'),
  UUIDv7: fixed('uuid_v7()', 'text', '`uuid_v7`'),
  Now: fixed('now()', 'time', '`now`'),
  Time: time,
  FormatTime: formatTime,
  TruncateTime: truncateTime,
  Duration: duration,
  Hours: lengthIn(3_600_000_000_000, true),
  Minutes: lengthIn(60_000_000_000, true),
  Seconds: lengthIn(1_000_000_000, true),
  Milliseconds: lengthIn(1_000_000, false),
  Microseconds: lengthIn(1_000, false),
  Nanoseconds: lengthIn(1, false),
  UnixSeconds: unixTime('seconds'),
  UnixMilli: unixTime('milliseconds'),
  UnixMicro: unixTime('microseconds'),
  UnixNano: unixTime('nanoseconds'),
  Unix: {
    becomes: '`from_unix_timestamp`',
    parameters: ['seconds', 'nanoseconds'],
    run: (program, lines, values) => {
      if (values.has('nanoseconds')) throw new Unconvertible('only whole seconds can become a time')
      const seconds = lines.as(valueAt(program, lines, values, 'seconds'), 'integer')
      return lines.fallible(`from_unix_timestamp(${seconds.code})`, 'time')
    },
  },
  Year: partOfTime('%Y'),
  Month: partOfTime('%-m'),
  Day: partOfTime('%-d'),
  Hour: partOfTime('%-H'),
  Minute: partOfTime('%-M'),
  Second: partOfTime('%-S'),
  Nanosecond: partOfTime('%f'),
  Weekday: partOfTime('%w'),
  Keys: {
    becomes: '`keys`',
    parameters: ['target'],
    run: (program, lines, values) => ({
      code: `keys(${lines.as(valueAt(program, lines, values), 'map').code})`,
      kind: 'list',
    }),
  },
  Values: {
    becomes: '`values`',
    parameters: ['target'],
    run: (program, lines, values) => ({
      code: `values(${lines.as(valueAt(program, lines, values), 'map').code})`,
      kind: 'list',
    }),
  },
  SliceToMap: sliceToMap,
  ToKeyValueString: {
    becomes: '`encode_key_value`',
    parameters: ['target', 'delimiter', 'pair_delimiter'],
    run: (program, lines, values) => {
      const map = lines.as(valueAt(program, lines, values), 'map')
      const delimiter = values.has('delimiter') ? constantText(values, 'delimiter') : '='
      const pair = values.has('pair_delimiter') ? constantText(values, 'pair_delimiter') : ' '
      return {
        code: `encode_key_value(${map.code}, key_value_delimiter: ${textLiteral(delimiter)}, field_delimiter: ${textLiteral(pair)})`,
        kind: 'text',
      }
    },
  },
  TraceID: fixedHex(),
  SpanID: fixedHex(),
}

/** An id as hexadecimal text. */
function fixedHex(): Converter {
  return {
    becomes: 'the same text',
    parameters: ['bytes'],
    run: (program, lines, values) => ({ code: `downcase(${textAt(program, lines, values, 'bytes')})`, kind: 'text' }),
  }
}
