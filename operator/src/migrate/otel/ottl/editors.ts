// Editors: OTTL functions that change a record. An editor adds lines to a statement.

import { isDeepStrictEqual } from 'node:util'
import { textLiteral } from '@penstock/agent/config'
import { openRead } from '../field.ts'
import { globRegex, regexLiteral } from '../text.ts'
import type { Lines, Value } from './code.ts'
import type { Program } from './compile.ts'
import { idDigits, type Location } from './paths.ts'
import { type Node, Unconvertible } from './syntax.ts'

export type Values = ReadonlyMap<string, Node>

interface Editor {
  /** For the guide. */
  readonly becomes: string
  readonly parameters: readonly string[]
  readonly run: (program: Program, lines: Lines, values: Values) => void
}

export function required(values: Values, name: string): Node {
  const node = values.get(name)
  if (node === undefined) throw new Unconvertible(`the argument \`${name}\` is missing`)
  return node
}

/** A literal text, because patterns and formats are compiled once. */
export function constantText(values: Values, name: string): string {
  const node = required(values, name)
  if (node.type !== 'literal' || typeof node.value !== 'string') {
    throw new Unconvertible(`\`${name}\` must be a literal text`)
  }
  return node.value
}

function constantNumber(values: Values, name: string): number {
  const node = required(values, name)
  if (node.type !== 'number') throw new Unconvertible(`\`${name}\` must be a literal number`)
  return node.value
}

/** Removes the items of a list from one index up to another, or only the one at an index. */
function deleteIndex(program: Program, lines: Lines, values: Values): void {
  const location = program.locate(required(values, 'target'))
  const list = lines.keep(lines.as(program.read({ ...location, kind: 'any' }), 'list')).code
  const at = (name: string) => lines.keep(lines.as(program.value(required(values, name), lines), 'integer')).code
  const start = at('startIndex')
  const end = values.has('endIndex') ? at('endIndex') : lines.keep({ code: `${start} + 1`, kind: 'integer' }).code
  lines.require(`${start} >= 0 && ${start} <= ${end} && ${end} <= length(${list})`, true)
  const code = `filter(${list}) -> |place, _item| { place < ${start} || place >= ${end} }`
  lines.add(program.assign(location, { code, kind: 'list' }))
}

/** The texts of a literal list. */
export function constantTexts(values: Values, name: string): string[] {
  const node = values.get(name)
  if (node === undefined) return []
  if (node.type !== 'list') throw new Unconvertible(`\`${name}\` must be a list`)
  return node.items.map((item) => {
    if (item.type !== 'literal' || typeof item.value !== 'string')
      throw new Unconvertible(`\`${name}\` must be a list of texts`)
    return item.value
  })
}

/** Functions that a replacement can go through. */
const replacementFunctions: Readonly<Record<string, (text: string) => string>> = {
  SHA1: (text) => `sha1(${text})`,
  SHA256: (text) => `sha2(${text}, variant: "SHA-256")`,
  SHA512: (text) => `sha2(${text}, variant: "SHA-512")`,
  MD5: (text) => `md5(${text})`,
  ToLowerCase: (text) => `downcase(${text})`,
  ToUpperCase: (text) => `upcase(${text})`,
}

/** A replacement with references to groups, for the match in `m`. */
function expanded(replacement: string): string {
  const parts = replacement.split(/(\$\$|\$\{?\d+\}?)/).flatMap((part) => {
    const group = /^\$\{?(\d+)\}?$/.exec(part)?.[1]
    if (group === '0') return ['m.string']
    if (group !== undefined) return [`(string(get(m.captures, [${Number(group) - 1}]) ?? null) ?? "")`]
    return part === '' ? [] : [textLiteral(part === '$$' ? '$' : part)]
  })
  return parts.length === 0 ? '""' : parts.join(' + ')
}

/** A call that replaces the matches in a text. A function may change each replacement, which a format then surrounds. */
function replaced(program: Program, lines: Lines, values: Values, regex: string, isLiteral: boolean) {
  const node = values.get('function')
  if (node === undefined) {
    const replacement = replacementOf(program, lines, values, isLiteral)
    return (text: string) => `replace(${text}, ${regex}, ${replacement})`
  }
  const name = node.type === 'name' ? node.name : node.type === 'call' ? node.name : ''
  const call = Object.hasOwn(replacementFunctions, name) ? replacementFunctions[name] : undefined
  if (call === undefined) throw new Unconvertible(`the function argument \`${name}\` has no counterpart`)
  const replacement = constantText(values, 'replacement')
  const [before = '', after, ...more] = values.has('replacement_format')
    ? constantText(values, 'replacement_format').split('%s')
    : ['', '']
  if (after === undefined || more.length > 0) throw new Unconvertible('the format must contain `%s` once')
  const made = [
    ...(before === '' ? [] : [textLiteral(before)]),
    call(isLiteral ? textLiteral(replacement) : expanded(replacement)),
    ...(after === '' ? [] : [textLiteral(after)]),
  ]
  return (text: string) => `replace_with(${text}, ${regex}) -> |m| { ${made.join(' + ')} }`
}

function mapAt(program: Program, lines: Lines, values: Values, name = 'target'): { location: Location; map: Value } {
  const location = program.locate(required(values, name))
  const read = program.read({ ...location, kind: 'any' })
  return { location, map: lines.as(read, 'map') }
}

/** Replaces an object. */
const replaceMap =
  (change: (map: string, program: Program, lines: Lines, values: Values) => string): Editor['run'] =>
  (program, lines, values) => {
    const { location, map } = mapAt(program, lines, values)
    const code = change(map.code, program, lines, values)
    lines.add(program.assign(location, { code, kind: 'map' }))
  }

/** Changes a value if it is a text. */
const replaceText =
  (change: (text: string, lines: Lines, program: Program, values: Values) => string): Editor['run'] =>
  (program, lines, values) => {
    const location = program.locate(required(values, 'target'))
    const text = lines.as(program.read({ ...location, kind: 'any' }), 'text')
    const code = change(text.code, lines, program, values)
    lines.add(program.assign(location, { code, kind: 'text' }))
  }

const keysIn = (keys: readonly string[]) => `[${keys.map(textLiteral).join(', ')}]`

const roots = [['attributes'], ['resource', 'attributes'], ['scope', 'attributes']]

/** The value around a location, unless it is always an object. The collector sets no member of a text or number. */
function openParent({ base, path }: Location): string | undefined {
  const around = path.slice(0, -1)
  const isRoot = around.length === 0 || roots.some((root) => isDeepStrictEqual(root, around))
  if (base === 'cache' || isRoot || (around.length === 1 && around[0] === 'scope')) return undefined
  return openRead(around)
}

function set(program: Program, lines: Lines, values: Values): void {
  const target = required(values, 'target')
  const member = program.member(target, lines)
  const given = program.value(required(values, 'value'), lines, 'or absent')
  if (given.kind === 'null') return
  if (given.kind === 'duration') throw new Unconvertible('a field cannot have a duration')
  if (member !== undefined) {
    const value = lines.keep(given).code
    if (given.kind === 'any') lines.open(`${value} != null`)
    const code = `set!(${member.map}, [${member.key}], ${value})`
    lines.add(program.assign(member.location, { code, kind: 'any' }))
    return
  }
  const location = program.locate(target)
  const parent = openParent(location)
  if (parent !== undefined) lines.open(`is_object(${parent}) || is_array(${parent}) || ${parent} == null`)
  if (location.isNanoseconds === true) {
    const number = lines.as(given, 'integer')
    const time = lines.fallible(`from_unix_timestamp(${number.code}, unit: "nanoseconds")`, 'time')
    lines.add(program.assign(location, time))
    return
  }
  // The collector sets an identifier only if it has all its digits.
  const digits =
    location.base === 'event' && location.path.length === 1 ? idDigits[String(location.path[0])] : undefined
  if (digits !== undefined) {
    const text = lines.keep(lines.as(given, 'text'))
    lines.open(`match(${text.code}, r'^[0-9a-fA-F]{${digits}}$')`)
    lines.add(program.assign(location, { code: `downcase(${text.code})`, kind: 'text' }))
    return
  }
  if (location.kind === 'any' || given.kind === location.kind) {
    if (given.kind !== 'any') {
      lines.add(program.assign(location, given))
      return
    }
    // A missing value changes nothing.
    const value = /^[.a-z0-9_]+$/i.test(given.code) ? given : lines.keep(given)
    lines.add(`if ${value.code} != null { ${program.assign(location, value)} }`)
    return
  }
  const { kind } = location
  const wanted = kind === 'null' || kind === 'list' || kind === 'duration' ? 'time' : kind
  lines.add(program.assign(location, lines.as(given, wanted)))
}

function deleteKeys(program: Program, lines: Lines, values: Values, keys: readonly string[]): void {
  const location = program.locate(required(values, 'target'))
  for (const key of keys) lines.add(program.remove({ ...location, path: [...location.path, key] }))
}

function mergeMaps(program: Program, lines: Lines, values: Values): void {
  const { location, map } = mapAt(program, lines, values)
  const source = lines.as(program.value(required(values, 'source'), lines), 'map')
  const strategy = constantText(values, 'strategy')
  const target = map.code
  const kept = lines.keep(source).code
  const code: Readonly<Record<string, string>> = {
    insert: `merge(${kept}, ${target})`,
    upsert: `merge(${target}, ${kept})`,
    update: `merge(${target}, filter(${kept}) -> |key, _value| { includes(names, key) })`,
  }
  const made = code[strategy]
  if (made === undefined) throw new Unconvertible(`the strategy \`${strategy}\` is unknown`)
  if (strategy === 'update') lines.add(`names = keys(${target})`)
  lines.add(program.assign(location, { code: made, kind: 'map' }))
}

/** Levels that are flattened without a limit. */
const maxLevels = 16

/** Moves the members of objects and the items of lists up, one level at a time. */
function flatten(program: Program, lines: Lines, values: Values): void {
  const { location, map } = mapAt(program, lines, values)
  const depth = values.has('depth') ? constantNumber(values, 'depth') : maxLevels
  const [flat, made, fixed] = ['flat', 'made', 'fixed'].map((name) => lines.newName(name))
  // The compiler must not know the kind of a variable that a loop changes.
  const open = (name: string | undefined) => `(object(get({ "value": ${name} }, ["value"]) ?? null) ?? {})`
  const put = (to: string | undefined, key: string, value: string) => `${to} = set!(${to}, [${key}], ${value})`
  lines.add(
    `${flat} = ${map.code}`,
    `${fixed} = {}`,
    `for_each([${Array.from({ length: depth }, (_, index) => index).join(', ')}]) -> |_index, _level| {`,
    `  ${made} = {}`,
    `  for_each(${open(flat)}) -> |key, value| {`,
    '    if is_object(value) {',
    `      for_each(object!(value)) -> |name, inner| { ${put(made, 'key + "." + name', 'inner')} }`,
    '    } else if is_array(value) {',
    '      for_each(array!(value)) -> |place, inner| {',
    '        at = key + "." + to_string(place)',
    `        if is_array(inner) { ${put(fixed, 'at', 'inner')} } else { ${put(made, 'at', 'inner')} }`,
    '      }',
    `    } else { ${put(made, 'key', 'value')} }`,
    '  }',
    `  ${flat} = ${made}`,
    '}',
  )
  const all = `merge(${open(flat)}, ${open(fixed)})`
  const prefix = values.has('prefix') ? constantText(values, 'prefix') : ''
  const code = prefix === '' ? all : `map_keys(${all}) -> |key| { ${textLiteral(`${prefix}.`)} + key }`
  lines.add(program.assign(location, { code, kind: 'map' }))
}

/** Keeps the priority keys first, and then other keys in alphabetical order up to the limit. */
function limit(program: Program, lines: Lines, values: Values): void {
  const { location, map } = mapAt(program, lines, values)
  const number = constantNumber(values, 'limit')
  const first = keysIn(constantTexts(values, 'priority_keys'))
  const kept = lines.newName('kept')
  lines.add(
    `${kept} = filter(${map.code}) -> |key, _value| { includes(${first}, key) }`,
    `room = ${number} - length(${kept})`,
    `names = filter(keys(${map.code})) -> |_index, key| { !includes(${first}, key) }`,
    'names = if room > 0 { slice(names, 0, room) ?? [] } else { [] }',
    program.assign(location, {
      code: `merge(${kept}, filter(${map.code}) -> |key, _value| { includes(names, key) })`,
      kind: 'map',
    }),
  )
}

function replaceAll(
  program: Program,
  lines: Lines,
  values: Values,
  mode: string,
  call: (text: string) => string,
): void {
  const { location, map } = mapAt(program, lines, values)
  const code =
    mode === 'key'
      ? `map_keys(${map.code}) -> |key| { ${call('key')} }`
      : `map_values(${map.code}) -> |value| { if is_string(value) { ${call('string!(value)')} } else { value } }`
  if (mode !== 'key' && mode !== 'value') throw new Unconvertible(`the mode \`${mode}\` is unknown`)
  lines.add(program.assign(location, { code, kind: 'map' }))
}

function append(program: Program, lines: Lines, values: Values): void {
  const location = program.locate(required(values, 'target'))
  if (location.kind === 'map') throw new Unconvertible('an object cannot be appended to')
  const read = lines.keep(program.read({ ...location, kind: 'any' }))
  const items = values.has('values')
    ? lines.as(program.value(required(values, 'values'), lines), 'list').code
    : `[${program.value(required(values, 'value'), lines).code}]`
  const base = lines.newName('list')
  lines.add(
    `${base} = if is_array(${read.code}) { array!(${read.code}) } else if ${read.code} == null { [] } else { [${read.code}] }`,
    program.assign(location, { code: `append(${base}, ${items})`, kind: 'list' }),
  )
}

/** A replacement for a whole match, in which a dollar sign is literal. */
const literalReplacement = (text: string) => text.replaceAll('$', '$$$$')

function replacementOf(program: Program, lines: Lines, values: Values, isLiteral: boolean): string {
  const node = required(values, 'replacement')
  if (node.type === 'literal' && typeof node.value === 'string') {
    return textLiteral(isLiteral ? literalReplacement(node.value) : node.value)
  }
  return lines.as(program.value(node, lines), 'text').code
}

export const editors: Readonly<Record<string, Editor>> = {
  set: { becomes: 'an assignment', parameters: ['target', 'value'], run: set },
  delete_key: {
    becomes: '`del`',
    parameters: ['target', 'key'],
    run: (program, lines, values) => {
      if (required(values, 'key').type === 'literal')
        return deleteKeys(program, lines, values, [constantText(values, 'key')])
      const { location, map } = mapAt(program, lines, values)
      const key = lines.keep(lines.as(program.value(required(values, 'key'), lines, 'or absent'), 'text')).code
      const code = `filter(${map.code}) -> |name, _value| { name != ${key} }`
      lines.add(program.assign(location, { code, kind: 'map' }))
    },
  },
  delete_keys: {
    becomes: '`del`',
    parameters: ['target', 'keys'],
    run: (program, lines, values) => deleteKeys(program, lines, values, constantTexts(values, 'keys')),
  },
  delete_matching_keys: {
    becomes: '`filter`',
    parameters: ['target', 'pattern'],
    run: replaceMap(
      (map, _program, _lines, values) =>
        `filter(${map}) -> |key, _value| { !match(key, ${regexLiteral(constantText(values, 'pattern'))}) }`,
    ),
  },
  delete_index: { becomes: '`filter`', parameters: ['target', 'startIndex', 'endIndex'], run: deleteIndex },
  keep_keys: {
    becomes: '`filter`',
    parameters: ['target', 'keys'],
    run: replaceMap(
      (map, _program, _lines, values) =>
        `filter(${map}) -> |key, _value| { includes(${keysIn(constantTexts(values, 'keys'))}, key) }`,
    ),
  },
  keep_matching_keys: {
    becomes: '`filter`',
    parameters: ['target', 'pattern'],
    run: replaceMap(
      (map, _program, _lines, values) =>
        `filter(${map}) -> |key, _value| { match(key, ${regexLiteral(constantText(values, 'pattern'))}) }`,
    ),
  },
  merge_maps: { becomes: '`merge`', parameters: ['target', 'source', 'strategy'], run: mergeMaps },
  flatten: {
    becomes: 'loops over objects and lists, of which lists in lists stay',
    parameters: ['target', 'prefix', 'depth'],
    run: flatten,
  },
  limit: {
    becomes: '`filter`; keys without priority are kept in alphabetical order',
    parameters: ['target', 'limit', 'priority_keys'],
    run: limit,
  },
  stringify_all: {
    becomes: '`map_values` with `to_string`, or `encode_json` for objects and lists',
    parameters: ['target'],
    run: replaceMap((map) => `map_values(${map}) -> |value| { to_string(value) ?? encode_json(value) }`),
  },
  truncate_all: {
    becomes: '`truncate`, which counts characters, whereas the collector counts bytes',
    parameters: ['target', 'limit', 'utf8_safe', 'truncation_marker'],
    run: replaceMap((map, program, _lines, values) => {
      program.note(
        'the limit counts characters, and in the collector bytes',
        'Nothing, unless texts beyond the limit contain other characters than those of ASCII.',
      )
      const marker = values.has('truncation_marker') ? constantText(values, 'truncation_marker') : ''
      const room = constantNumber(values, 'limit') - marker.length
      if (room < 0) throw new Unconvertible('the marker is longer than the limit')
      const suffix = marker === '' ? '' : `, suffix: ${textLiteral(marker)}`
      const cut = `truncate(string!(value), ${room}${suffix})`
      const test = marker === '' ? 'is_string(value)' : `(strlen(value) ?? 0) > ${room + marker.length}`
      return `map_values(${map}) -> |value| { if ${test} { ${cut} } else { value } }`
    }),
  },
  replace_pattern: {
    becomes: '`replace`, or `replace_with` for a function',
    parameters: ['target', 'regex', 'replacement', 'function', 'replacement_format'],
    run: (program, lines, values) => {
      const regex = regexLiteral(constantText(values, 'regex'))
      replaceText((text) => replaced(program, lines, values, regex, false)(text))(program, lines, values)
    },
  },
  replace_all_patterns: {
    becomes: '`map_values` or `map_keys`, with `replace`',
    parameters: ['target', 'mode', 'regex', 'replacement', 'function', 'replacement_format'],
    run: (program, lines, values) => {
      const regex = regexLiteral(constantText(values, 'regex'))
      const mode = constantText(values, 'mode')
      replaceAll(program, lines, values, mode, replaced(program, lines, values, regex, false))
    },
  },
  replace_match: {
    becomes: '`match`, and an assignment',
    parameters: ['target', 'pattern', 'replacement', 'function', 'replacement_format'],
    run: (program, lines, values) => {
      const regex = regexLiteral(globRegex(constantText(values, 'pattern')))
      replaceText((text) => replaced(program, lines, values, regex, true)(text))(program, lines, values)
    },
  },
  replace_all_matches: {
    becomes: '`map_values` with `replace`',
    parameters: ['target', 'pattern', 'replacement', 'function', 'replacement_format'],
    run: (program, lines, values) => {
      const regex = regexLiteral(globRegex(constantText(values, 'pattern')))
      replaceAll(program, lines, values, 'value', replaced(program, lines, values, regex, true))
    },
  },
  append: { becomes: '`append`', parameters: ['target', 'value', 'values'], run: append },
}
