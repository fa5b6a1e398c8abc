// Vector transforms that become several transforms or a program in Penstock, as conditions and programs.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { replacedTransforms } from '@penstock/agent/output'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Step } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { conditionOf, mayFail } from './conditions.ts'
import { otherRewritings, parserRewritings } from './old-parsers.ts'
import { templateExpression } from './services.ts'
import { field, texts } from './tables.ts'

/** A transform that becomes several steps, with its outputs by name. The empty name is the transform's main output. */
export interface Rewritten {
  readonly outputs: readonly { readonly name: string; readonly steps: readonly Step[] }[]
}

export interface Rewriting {
  readonly type: string
  readonly becomes: string
  /** Supported options. All other options become gaps. */
  readonly options: readonly string[]
  /** A difference that changes no result, for the report. */
  readonly note?: string
  /** Returns undefined if the options are not valid. */
  readonly rewrite: (options: Table) => Rewritten | undefined
}

const filter = (text: string): Step => ({ type: 'filter', text })
const program = (text: string): Step => ({ type: 'remap', text })
const one = (...steps: readonly Step[]): Rewritten => ({ outputs: [{ name: '', steps }] })

/** A condition in brackets, for use in another one. */
const part = (condition: string) => (/[\n;]|#/.test(condition.trim()) ? `{\n${condition}\n}` : `(${condition.trim()})`)
const not = (condition: string) => `!${part(condition).replace(/^\{.*\}$/s, '($&)')}`

/**
 * Transforms that put the result of a condition into metadata, a filter that reads it, and one that removes it. A condition that fails is
 * false, whereas a filter whose program fails discards the event.
 */
function judged(conditions: readonly string[], test: (isTrue: string) => string): readonly Step[] {
  const isTrue = '%condition == true'
  const safe = conditions.filter((condition) => !mayFail(condition))
  const first = program(`%condition = ${safe.length === 0 ? 'false' : safe.map(part).join(' || ')}`)
  const others = conditions
    .filter(mayFail)
    .map((condition) => program(`if !(${isTrue}) { %condition = ${part(condition)} }`))
  return [first, ...others, filter(test(isTrue)), program('del(%condition)')]
}

/** Passes events for which none of the conditions is true. */
function unless(conditions: readonly string[]): readonly Step[] {
  return conditions.some(mayFail)
    ? judged(conditions, (isTrue) => `!(${isTrue})`)
    : [filter(conditions.map(not).join(' && '))]
}

/** The hash of a field as the old agent calculates it, which is a number without a sign. */
const hashOf = (at: string) => `seahash(to_string(${at}) ?? encode_json(${at}))`

/** A condition that chooses the same values of a field as the old agent: one of so many, or a part of all. */
function byHash(at: string, rate: number | undefined, ratio: number): string {
  const all = 2n ** 64n
  const hash = hashOf(at)
  if (rate !== undefined) {
    // A hash with a sign is smaller by 2^64 if it is negative.
    const missing = (all % BigInt(rate)) + BigInt(rate)
    return `((${hash} >= 0 && mod(${hash}, ${rate}) == 0) || (${hash} < 0 && mod(mod(${hash}, ${rate}) + ${missing}, ${rate}) == 0))`
  }
  if (ratio === 1) return 'true'
  const limit = BigInt(Math.floor(ratio * 2 ** 64))
  return limit < 2n ** 63n ? `(${hash} >= 0 && ${hash} <= ${limit})` : `(${hash} >= 0 || ${hash} <= 0 - ${all - limit})`
}

/** Statements that run only for metrics, which have a name and a kind. */
const onlyMetrics = (lines: readonly string[]) =>
  ['if is_string(.name) && is_string(.kind) {', ...lines.map((line) => `  ${line}`), '}'].join('\n')

function routes(options: Table, isExclusive: boolean): Rewritten | undefined {
  const given = isExclusive
    ? (Array.isArray(options['routes']) ? options['routes'] : []).map((each) =>
        isTable(each) ? ([String(each['name']), each['condition']] as const) : (['', undefined] as const),
      )
    : Object.entries(isTable(options['route']) ? options['route'] : {})
  const conditions = given.map(([name, value]) => ({ name, condition: conditionOf(value) }))
  if (conditions.length === 0 || conditions.some(({ condition }) => condition === undefined)) return undefined
  const known = conditions as readonly { name: string; condition: string }[]
  const outputs = known.map(({ name, condition }, index) => {
    const before = (isExclusive ? known.slice(0, index) : []).map((each) => each.condition)
    if (before.length === 0) return { name, steps: [filter(condition)] }
    if (before.some(mayFail)) return { name, steps: [...unless(before), filter(condition)] }
    return { name, steps: [filter([...before.map(not), part(condition)].join(' && '))] }
  })
  const unmatched = unless(known.map(({ condition }) => condition))
  const isWanted = options['reroute_unmatched'] !== false
  return { outputs: isWanted ? [...outputs, { name: '_unmatched', steps: unmatched }] : outputs }
}

export const oldTransforms: readonly Refusal[] = [
  {
    name: 'merge',
    reason: 'a transform processes one event at a time',
    nearest:
      'The source `orchestrator_logs` joins lines that the runtime has split. Use `multiline` to join other lines.',
  },
  ...['wasm', 'javascript'].map((name) => ({
    name,
    reason: 'Penstock does not run programs in other languages',
    nearest: 'Rewrite the program in remap.',
  })),
]

const sample: Rewriting = {
  type: 'sample',
  becomes: replacedTransforms.sample,
  options: ['rate', 'ratio', 'key_field', 'exclude', 'sample_rate_key', 'group_by'],
  note: 'the old agent selects every n-th event of a group; here, events are selected at random',
  rewrite(options) {
    const { rate, ratio, key_field: key, exclude, sample_rate_key: rateKey = 'sample_rate' } = options
    const share = typeof rate === 'number' ? 1 / rate : ratio
    if (typeof share !== 'number' || !(share > 0 && share <= 1)) return undefined
    if (rate !== undefined && (!Number.isInteger(rate) || ratio !== undefined)) return undefined
    const per = Math.max(1, Math.round(share * 1_000_000))
    if (typeof key === 'string' && key.includes('{{')) return undefined
    const random = `random_int(0, 1000000) < ${per}`
    const at = typeof key === 'string' ? field(key) : undefined
    // Events without the field are chosen one by one.
    const chosen =
      at === undefined
        ? random
        : `((exists(${at}) && ${byHash(at, typeof rate === 'number' ? rate : undefined, share)}) || (!exists(${at}) && ${random}))`
    const excluded = exclude === undefined ? undefined : conditionOf(exclude)
    if (exclude !== undefined && excluded === undefined) return undefined
    if (typeof rateKey !== 'string') return undefined
    // Events that are excluded from sampling do not get the rate.
    const mark = rateKey === '' ? [] : [program(`${field(rateKey)} = ${textLiteral(String(rate ?? ratio))}`)]
    if (excluded === undefined) return one(filter(chosen), ...mark)
    if (mark.length === 0 && !mayFail(excluded)) return one(filter(`${part(excluded)} || ${chosen}`))
    const [first, ...others] = judged([excluded], (is) => `${is} || ${chosen}`)
    const unlessExcluded = mark.map(({ text }) => program(`if !(%condition == true) { ${text} }`))
    return one(
      ...[first, ...others.slice(0, -1), ...unlessExcluded, ...others.slice(-1)].filter((step) => step !== undefined),
    )
  },
}

export const rewritings: readonly Rewriting[] = [
  {
    type: 'route',
    becomes: replacedTransforms.route,
    options: ['route', 'reroute_unmatched'],
    rewrite: (options) => routes(options, false),
  },
  {
    type: 'exclusive_route',
    becomes: replacedTransforms.exclusive_route,
    options: ['routes'],
    rewrite: (options) => routes(options, true),
  },
  {
    type: 'swimlanes',
    becomes: 'a `filter` for each lane',
    options: ['lanes'],
    rewrite: ({ lanes }) => routes({ route: lanes, reroute_unmatched: false }, false),
  },
  sample,
  {
    type: 'sampler',
    becomes: 'the same as `sample`',
    options: ['rate', 'key_field', 'pass_list', 'property'],
    note: sample.note ?? '',
    rewrite({ rate, key_field: key = 'message', pass_list: passes = [], property = 'hash' }) {
      const expressions = texts(passes)
      if (typeof key !== 'string' || (property !== 'hash' && property !== 'index')) return undefined
      const value = `(to_string(${field(key)}) ?? encode_json(${field(key)}))`
      const tests = expressions.map((each) => `match(${value}, r'${each.replaceAll("'", "\\'")}')`)
      return sample.rewrite({
        rate,
        ...(property === 'hash' && { key_field: key }),
        ...(tests.length > 0 && { exclude: `exists(${field(key)}) && (${tests.join(' || ')})` }),
      })
    },
  },
  {
    type: 'field_filter',
    becomes: 'a `filter` that compares the field',
    options: ['field', 'value'],
    rewrite({ field: name, value }) {
      if (typeof name !== 'string' || typeof value !== 'string') return undefined
      const condition = conditionOf({ type: 'check_fields', [`${name}.eq`]: value })
      return condition === undefined ? undefined : one(filter(condition))
    },
  },
  {
    type: 'add_fields',
    becomes: replacedTransforms.add_fields,
    options: ['fields', 'overwrite'],
    rewrite({ fields, overwrite }) {
      if (!isTable(fields)) return undefined
      const lines: string[] = []
      const visit = (value: unknown, path: string): void => {
        if (isTable(value)) for (const [name, below] of Object.entries(value)) visit(below, `${path}.${name}`)
        else {
          const literal = typeof value === 'string' ? templateExpression(value) : JSON.stringify(value)
          if (literal === undefined) isComplete = false
          const set = `${field(path)} = ${literal}`
          // A template sets nothing if a field is missing.
          const missing = [...String(value).matchAll(/\{\{\s*\.?(.*?)\s*\}\}/g)].map(([, name]) => `exists(.${name})`)
          const tests = [...(overwrite === false ? [`!exists(${field(path)})`] : []), ...missing]
          lines.push(tests.length === 0 ? set : `if ${tests.join(' && ')} { ${set} }`)
        }
      }
      let isComplete = true
      visit(fields, '')
      return lines.length === 0 || !isComplete ? undefined : one(program(lines.join('\n')))
    },
  },
  {
    type: 'remove_fields',
    becomes: replacedTransforms.remove_fields,
    options: ['fields', 'drop_empty'],
    rewrite({ fields, drop_empty: compact }) {
      const paths = texts(fields)
      if (paths.length === 0) return undefined
      return one(
        program(paths.map((path) => `del(${field(path)}${compact === true ? ', compact: true' : ''})`).join('\n')),
      )
    },
  },
  {
    type: 'rename_fields',
    becomes: replacedTransforms.rename_fields,
    options: ['fields', 'drop_empty'],
    rewrite({ fields, drop_empty: compact }) {
      const end = compact === true ? ', compact: true' : ''
      const moves = isTable(fields) ? Object.entries(fields) : []
      if (moves.length === 0 || moves.some(([, to]) => typeof to !== 'string')) return undefined
      const lines = moves.map(
        ([from, to]) => `if exists(${field(from)}) { ${field(String(to))} = del(${field(from)}${end}) }`,
      )
      return one(program(lines.join('\n')))
    },
  },
  {
    type: 'add_tags',
    becomes: replacedTransforms.add_tags,
    options: ['tags', 'overwrite'],
    rewrite({ tags, overwrite }) {
      const given = isTable(tags) ? Object.entries(tags) : []
      if (given.length === 0 || given.some(([, value]) => typeof value !== 'string')) return undefined
      const lines = given.map(([name, value]) => {
        const at = fieldLiteral(['tags', name])
        const set = `${at} = ${textLiteral(String(value))}`
        return overwrite === false ? `if !exists(${at}) { ${set} }` : set
      })
      return one(program(onlyMetrics(lines)))
    },
  },
  {
    type: 'remove_tags',
    becomes: replacedTransforms.remove_tags,
    options: ['tags'],
    rewrite({ tags }) {
      const names = texts(tags)
      if (names.length === 0) return undefined
      return one(program(onlyMetrics(names.map((name) => `del(${fieldLiteral(['tags', name])})`))))
    },
  },
  {
    type: 'json_parser',
    becomes: replacedTransforms.json_parser,
    options: ['field', 'drop_field', 'drop_invalid', 'target_field', 'overwrite_target'],
    rewrite({
      field: from = 'message',
      drop_field: drops,
      drop_invalid: dropsInvalid,
      target_field: target,
      ...others
    }) {
      if (typeof from !== 'string' || (target !== undefined && typeof target !== 'string')) return undefined
      // An existing target stays, and so does the text, unless the target may be replaced.
      const isFree = target === undefined || others['overwrite_target'] === true ? 'true' : `!exists(${field(target)})`
      const set = [
        ...(drops === false ? [] : [`del(${field(from)})`]),
        target === undefined ? '. = merge(., object!(parsed))' : `${field(target)} = parsed`,
      ]
      return one(
        program(
          [
            `parsed, err = parse_json(string(${field(from)}) ?? "")`,
            'if err == null && is_object(parsed) {',
            ...(isFree === 'true'
              ? set.map((line) => `  ${line}`)
              : [`  if ${isFree} {`, ...set.map((line) => `    ${line}`), '  }']),
            dropsInvalid === true ? '} else { abort }' : '}',
          ].join('\n'),
        ),
      )
    },
  },
  ...parserRewritings,
  ...otherRewritings,
]
