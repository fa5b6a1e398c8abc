// Processors that move, change and remove single fields.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, option, type Part, textIn, textsIn } from '../loki/context.ts'
import { below, itemsOf, type Tree, textOf } from '../loki/tree.ts'
import { regexLiteral } from '../otel/text.ts'
import { assigned, fieldOf } from './conditions.ts'
import { isOfFilebeat } from './own-fields.ts'
import {
  type Attempt,
  attempts,
  block,
  errorLine,
  failing,
  failure,
  falseTexts,
  flagLine,
  naming,
  type Processor,
  quiet,
  together,
  trueTexts,
  when,
} from './processor.ts'

export const dropFields: Processor = {
  name: 'drop_fields',
  becomes: '`del`',
  options: { ...when, fields: 'the fields; a name between slashes is a regular expression' },
  itself: quiet,
  build: (part, _report, failed) => {
    // Filebeat keeps these fields.
    const names = textsIn(part, 'fields').filter((name) => name !== '@timestamp' && name !== 'type')
    const regexIn = (name: string) => /^\/(.*)\/$/s.exec(name)?.[1]
    const needed = flagIn(part, 'ignore_missing') === true ? [] : names.filter((name) => regexIn(name) === undefined)
    const missing = needed.filter((name) => !isOfFilebeat(name)).map((name) => `!exists(${fieldOf(name)})`)
    const deleted = names.flatMap((name) => {
      const regex = regexIn(name)
      if (regex === undefined) return `del(${fieldOf(name)})`
      const literal = regexLiteral(regex)
      // The expression applies to the whole names of fields and of objects.
      return [
        `. = filter(.) -> |key, _value| { !match(key, ${literal}) }`,
        'for_each(flatten(.)) -> |key, _value| {',
        '  names = split(key, ".")',
        '  for_each(names) -> |index, _name| {',
        '    path = slice(names, 0, index + 1) ?? []',
        `    if match(join(path, ".") ?? "", ${literal}) { . = object(remove(., path) ?? null) ?? . }`,
        '  }',
        '}',
      ].join('\n')
    })
    return [...(missing.length === 0 ? [] : failure(missing.join(' || '), failed)), ...deleted]
  },
}

export const includeFields: Processor = {
  name: 'include_fields',
  becomes: 'a remap transform that keeps some fields',
  options: { ...when, fields: 'the fields' },
  build: (part) => {
    const listed = textsIn(part, 'fields').filter((name) => name !== '@timestamp' && !name.startsWith('@metadata'))
    // Filebeat always keeps the type.
    const names = new Set([...listed, 'type'])
    return [
      'kept = { "timestamp": .timestamp }',
      ...[...names].map((name) => {
        const path = `[${name
          .split('.')
          .map((each) => textLiteral(each))
          .join(', ')}]`
        const at = name === 'timestamp' ? '["log_timestamp"]' : path
        return `if exists(${fieldOf(name)}) { kept = object(set(kept, ${at}, ${fieldOf(name)}) ?? null) ?? kept }`
      }),
      '. = kept',
    ]
  },
}

/** Pairs of `from` and `to`. */
const pairsIn = (part: Part): readonly (readonly [string, string | undefined, Tree])[] =>
  itemsOf(option(part, 'fields')).flatMap((item) => {
    const from = textOf(below(item, 'from'))
    return from === undefined ? [] : [[from, textOf(below(item, 'to')), item] as const]
  })

/** The paths above a path. */
function ancestorsOf(path: string): readonly string[] {
  if (path.startsWith('@metadata') || path.startsWith('kubernetes.')) return []
  const names = path.split('.')
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('.'))
}

export const pairs = (name: 'rename' | 'copy_fields'): Processor => ({
  name,
  becomes: 'a remap transform',
  options: { ...when, ...failing, fields: 'pairs of fields; an existing target is a failure' },
  itself: naming,
  build: (part, _report, failed) => {
    const all = pairsIn(part).flatMap(([from, to]): Attempt[] => {
      if (to === undefined) return []
      const value = name === 'rename' ? `del(${fieldOf(from)})` : fieldOf(from)
      // A value that is not an object has no members, unless it becomes a member of itself.
      const above = ancestorsOf(to)
        .filter((each) => name === 'copy_fields' || each !== from)
        .map((each) => ` || (exists(${fieldOf(each)}) && !is_object(${fieldOf(each)}))`)
      return [
        { from: fieldOf(from), fails: `exists(${fieldOf(to)})${above.join('')}`, lines: [`${fieldOf(to)} = ${value}`] },
      ]
    })
    return attempts(part, all, failed)
  },
})

/**
 * A change of the texts in fields.
 * @param isWrong an expression that is true for a text on which the change fails
 */
const ofTexts = (
  part: Part,
  fields: readonly (readonly [string, readonly string[]])[],
  failed: string,
  isWrong?: (field: string) => string,
): readonly string[] =>
  attempts(
    part,
    fields.map(([name, lines]) => {
      const field = fieldOf(name)
      const more = isWrong === undefined ? '' : ` || ${isWrong(field)}`
      return { from: field, fails: `!is_string(${field})${more}`, lines }
    }),
    failed,
  )

/** Whether a text has a percent sign without two hexadecimal digits. */
const isBadPercent = (field: string) => `!match(string(${field}) ?? "", r'^(?:[^%]|%[0-9A-Fa-f][0-9A-Fa-f])*$')`

export const replace: Processor = {
  name: 'replace',
  becomes: '`replace`',
  options: { ...when, ...failing, fields: 'fields with expressions' },
  itself: naming,
  build: (part, _report, failed) =>
    ofTexts(
      part,
      itemsOf(option(part, 'fields')).flatMap((item) => {
        const name = textOf(below(item, 'field'))
        const regex = textOf(below(item, 'pattern'))
        if (name === undefined || regex === undefined) return []
        const by = (textOf(below(item, 'replacement')) ?? '').replace(/\$\{?(\w+)\}?/g, '$${$1}')
        const line = `${fieldOf(name)} = replace(string(${fieldOf(name)}) ?? "", ${regexLiteral(regex)}, ${textLiteral(by)})`
        return [[name, [line]] as const]
      }),
      failed,
    ),
}

/** An integer from a number, or from digits that `0x` may precede. Nothing else is converted, such as a boolean. */
const integerOf = (field: string) =>
  [
    `if is_string(${field}) && match(string(${field}) ?? "", r'^[+-]?0[xX]') {`,
    `  parse_int(replace(string(${field}) ?? "", r'^([+-]?)0[xX]', "$${1}"), 16)`,
    `} else if is_string(${field}) {`,
    `  parse_int(string(${field}) ?? "", 10)`,
    `} else if is_float(${field}) { to_int(${field}) } else { int(${field}) }`,
  ].join('\n')

const floatOf = (field: string) =>
  `if is_string(${field}) || is_integer(${field}) { to_float(${field}) } else { float(${field}) }`

const words = (field: string, ...texts: readonly string[]) => `includes(${JSON.stringify(texts)}, ${field})`

/** Expressions that convert a value, which fail or are fallible. */
const conversions: Readonly<Record<string, (field: string) => string>> = {
  integer: integerOf,
  long: integerOf,
  float: floatOf,
  double: floatOf,
  string: (field) => `to_string(${field})`,
  boolean: (field) =>
    `if ${words(field, ...trueTexts)} { true } else if ${words(field, ...falseTexts)} { false } else { bool(${field}) }`,
  // The address stays as it is written.
  ip: (field) => `ip_to_ipv6(string(${field}) ?? "")`,
}

export const convert: Processor = {
  name: 'convert',
  becomes: '`to_int`, `to_float`, `to_bool`, `to_string`',
  options: {
    ...when,
    fields: 'fields with types',
    mode: 'whether to keep the source field',
    ignore_missing: 'whether a missing field is a failure',
    fail_on_error: 'whether a failure undoes the whole step',
  },
  itself: { ...naming, ignore_failure: quiet.ignore_failure },
  build: (part, report, failed) => {
    const renames = textIn(part, 'mode') === 'rename'
    const fields = pairsIn(part).flatMap(([from, to, item], index) => {
      const type = textOf(below(item, 'type'))
      const make = type === undefined ? undefined : conversions[type]
      if (type !== undefined && make === undefined) {
        const reason = `the type \`${type}\` has no counterpart`
        report.gap(item, `convert: ${type}`, reason, 'Convert the field in a remap transform.')
        return []
      }
      return [
        conversion(`${index + 1}`, fieldOf(from), to === undefined ? undefined : fieldOf(to), make, type, renames),
      ]
    })
    return together(part, fields, failed)
  },
}

/** Only a text is checked for 32 bits. */
const fits = (from: string, value: string) =>
  ` && (!is_string(${from}) || (${value} <= 2147483647 && ${value} >= -2147483648))`

/** Of a number, Filebeat keeps the lowest 32 bits, of which the first is the sign. */
const lowest32 = (value: string) => `mod(mod(${value} + 2147483648, 4294967296) + 4294967296, 4294967296) - 2147483648`

/** The parts of a conversion: statements before, the test whether it succeeded, and statements that set the fields. */
function conversion(
  number: string,
  from: string,
  to: string | undefined,
  make: ((field: string) => string) | undefined,
  type: string | undefined,
  renames: boolean,
) {
  const value = `value${number}`
  const error = `error${number}`
  const isKept = make === undefined || type === 'ip'
  const lines = [
    `${to ?? from} = ${isKept ? from : type === 'integer' ? lowest32(value) : value}`,
    ...(renames && to !== undefined && to !== from ? [`del(${from})`] : []),
  ]
  return {
    from,
    before: make === undefined ? [] : [`${value}, ${error} = ${make(from)}`],
    test:
      make === undefined
        ? `exists(${from})`
        : `${error} == null && !is_null(${from})${type === 'integer' ? fits(from, value) : ''}`,
    lines,
  }
}

export const truncate: Processor = {
  name: 'truncate_fields',
  becomes: '`slice` for bytes, `truncate` for characters, and the flag `truncated` in `log.flags`',
  options: {
    ...when,
    fields: 'the fields',
    max_characters: 'the length in characters',
    max_bytes: 'the length in bytes',
  },
  itself: quiet,
  build: (part, report, failed) => {
    const bytes = textIn(part, 'max_bytes')
    const given = bytes ?? textIn(part, 'max_characters') ?? '0'
    const length = Number(given)
    if (!Number.isInteger(length) || length < 0) {
      const reason = `\`${given}\` is not a number of ${bytes === undefined ? 'characters' : 'bytes'}`
      report.gap(part, 'truncate_fields: length', reason, 'Write a whole number, such as `1024`.')
      return undefined
    }
    const fails = (field: string) =>
      flagIn(part, 'ignore_missing') === true ? `exists(${field}) && !is_string(${field})` : `!is_string(${field})`
    const stops = flagIn(part, 'fail_on_error') === false ? '' : failed
    const fields = textsIn(part, 'fields').map(fieldOf)
    const cut = fields.flatMap((field) => [
      ...failure(fails(field), stops),
      ...cutLines(field, length, bytes !== undefined),
    ])
    // Filebeat undoes the step only if the option is set, although its documentation names another default.
    if (flagIn(part, 'fail_on_error') !== true || fields.length < 2) return cut
    return [...failure(fields.map(fails).join(' || '), stops), block(`!(${fields.map(fails).join(' || ')})`, cut)]
  },
}

/** Statements that cut a text, and set a flag if they do. */
export function cutLines(field: string, length: number, isBytes: boolean): readonly string[] {
  const cut = isBytes ? `slice(text, 0, ${length}) ?? text` : `truncate(text, ${length})`
  return [
    `text = string(${field}) ?? ""`,
    `if ${isBytes ? 'length' : 'strlen'}(text) > ${length} {`,
    `  ${field} = ${cut}`,
    `  ${flagLine('truncated')}`,
    '}',
  ]
}

export const letterCase = (name: string, call: string): Processor => ({
  name,
  becomes: `\`${call}\` for values, and new names for fields`,
  options: {
    ...when,
    fields: 'the fields whose names change',
    ...failing,
    values: 'the fields whose values change',
    alter_full_field: 'whether all names of a path change, or only the last one',
  },
  itself: naming,
  build: (part, _report, failed) => [
    ...renamed(part, call, failed),
    ...ofTexts(
      part,
      textsIn(part, 'values').map((name) => [name, [`${fieldOf(name)} = ${call}(string!(${fieldOf(name)}))`]]),
      failed,
    ),
  ],
})

/** Statements that change the case of the names in paths. A path finds names in any case. */
function renamed(part: Part, call: string, failed: string): readonly string[] {
  const paths = textsIn(part, 'fields').filter((name) => name !== 'type')
  if (paths.length === 0) return []
  const isWhole = flagIn(part, 'alter_full_field') !== false
  const inCase = (text: string) => (call === 'upcase' ? text.toUpperCase() : text.toLowerCase())
  const steps = paths.map((path) => {
    const names = path.split('.')
    const missing = textLiteral(`could not fetch value for key: ${path}`)
    return names
      .flatMap((name, index) => {
        const above = names.slice(0, index).map((each) => (isWhole ? inCase(each) : each))
        const level = above.length === 0 ? '.' : fieldOf(above.join('.'))
        const to = isWhole || index === names.length - 1 ? inCase(name) : name
        const isIt = (key: string) => `${call}(${key}) == ${textLiteral(inCase(name))}`
        const noted = flagIn(part, 'ignore_missing') === true ? ' else if length(found) > 1' : ' else if problem == ""'
        return [
          `names = keys(object(${level}) ?? {})`,
          `found = filter(names) -> |_index, name| { ${isIt('string(name) ?? ""')} }`,
          `if length(found) == 1 { ${level} = map_keys(object(${level}) ?? {}) -> |key| { if ${isIt('key')} { ${textLiteral(to)} } else { key } } }${noted} { problem = ${missing} }`,
        ]
      })
      .join('\n')
  })
  const undoes = flagIn(part, 'fail_on_error') !== false
  const written = errorLine(`${textLiteral(`Failed to process fields in ${part.name} processor: `)} + problem`)
  return [
    ...(undoes ? ['before = .'] : []),
    'problem = ""',
    ...steps,
    ...(undoes
      ? ['if problem != "" {', '  . = before', `  ${failed === '' ? written : `${written}; ${failed}`}`, '}']
      : []),
  ]
}

export const urldecode: Processor = {
  name: 'urldecode',
  becomes: '`decode_percent`',
  options: { ...when, ...failing, fields: 'the fields' },
  itself: naming,
  build: (part, _report, failed) =>
    ofTexts(
      part,
      pairsIn(part).map(([from, to]) => [
        from,
        [`${fieldOf(to ?? from)} = decode_percent(replace(string(${fieldOf(from)}) ?? "", "+", " "))`],
      ]),
      failed,
      isBadPercent,
    ),
}

export const append: Processor = {
  name: 'append',
  becomes: '`append`',
  options: {
    ...when,
    ...failing,
    target_field: 'the list',
    fields: 'the fields whose values are added',
    values: 'the values that are added',
    ignore_empty_values: 'whether to leave out empty texts and nulls',
    allow_duplicate: 'whether to keep only the first of equal values',
  },
  itself: naming,
  build: (part, report, failed) => {
    const target = fieldOf(textIn(part, 'target_field') ?? '')
    const listed = option(part, 'values')
    const values = itemsOf(listed).map((item) => assigned(item, 'append: values', report))
    const added = (value: string) => [`value = ${value}`, 'items = append(items, array(value) ?? [value])']
    const steps: Attempt[] = textsIn(part, 'fields').map((name) => ({
      from: fieldOf(name),
      lines: added(fieldOf(name)),
    }))
    const last = [
      ...(values.length === 0 ? [] : [`items = append(items, [${values.join(', ')}])`]),
      ...(flagIn(part, 'ignore_empty_values') === true
        ? ['items = filter(items) -> |_index, item| { item != "" && item != null }']
        : []),
      ...(flagIn(part, 'allow_duplicate') === false ? ['items = unique(items)'] : []),
      `${target} = items`,
    ]
    const collected = steps.length === 0 ? [] : attempts(part, steps, failed)
    const undoes = collected.includes('problem = ""')
    return [
      ...block(`exists(${target})`, added(target)).split('\n').toSpliced(0, 0, 'items = []'),
      ...collected,
      ...(undoes ? [block('problem == ""', last)] : last),
    ]
  },
}

export const moveFields: Processor = {
  name: 'move_fields',
  becomes: 'a remap transform',
  options: {
    ...when,
    from: 'the object with the fields; by default the event',
    fields: 'the fields; by default all',
    exclude: 'the fields that stay',
    to: 'the start of the new names',
    ignore_missing: 'whether a missing field undoes the step',
  },
  itself: naming,
  build: (part, _report, failed) => {
    const from = textIn(part, 'from') ?? ''
    const to = textIn(part, 'to') ?? ''
    const exclude = textsIn(part, 'exclude')
    const fields = textsIn(part, 'fields').filter((name) => !exclude.includes(name))
    const source = from === '' ? '.' : fieldOf(from)
    if (fields.length > 0) return movedFields(from, fields, to, flagIn(part, 'ignore_missing') === true, failed)
    return movedAll(source, exclude, to)
  },
}

function movedFields(
  from: string,
  fields: readonly string[],
  to: string,
  ignoresMissing: boolean,
  failed: string,
): readonly string[] {
  const at = (name: string) => fieldOf(from === '' ? name : `${from}.${name}`)
  const moves = fields.map((name) => [at(name), `${fieldOf(`${to}${name}`)} = del(${at(name)})`] as const)
  if (ignoresMissing) return moves.map(([field, line]) => block(`exists(${field})`, [line]))
  const moved = block(
    moves.map(([field]) => `exists(${field})`).join(' && '),
    moves.map(([, line]) => line),
  )
  return [failed === '' ? moved : `${moved} else { ${failed} }`]
}

/** Statements that move all members of an object. The new name of a member starts with the end of `to`. */
function movedAll(source: string, exclude: readonly string[], to: string): readonly string[] {
  const stay = `includes([${[...exclude, ...(source === '.' ? ['timestamp'] : [])].map((name) => textLiteral(name)).join(', ')}], key)`
  const above = to.split('.').slice(0, -1).join('.')
  const start = to.split('.').at(-1) ?? ''
  const target = above === '' ? '.' : fieldOf(above)
  return [
    `if is_object(${source}) {`,
    `  members = object(${source}) ?? {}`,
    `  moved = filter(members) -> |key, _value| { !${stay} }`,
    `  ${source} = filter(members) -> |key, _value| { ${stay} }`,
    ...(start === '' ? [] : [`  moved = map_keys(moved) -> |key| { ${textLiteral(start)} + key }`]),
    target === '.' ? '  . = merge(., moved)' : `  ${target} = merge(object(${target}) ?? {}, moved)`,
    '}',
  ]
}
