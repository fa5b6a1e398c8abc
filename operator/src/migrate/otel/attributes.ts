// The processors `attributes` and `resource`, which run a list of actions on attributes.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { openRead } from './field.ts'
import type { Context, Mapping, Part } from './mapping.ts'
import { fieldAt } from './record.ts'
import { matching } from './statements.ts'
import { indent, regexLiteral, valueLiteral } from './text.ts'

type Steps = readonly Step[]

const actionOptions = {
  key: 'the attribute',
  action: '',
  value: '',
  from_attribute: '',
  from_context: '',
  pattern: '',
  converted_type: '',
}

/** Calls that convert a value, with the result for a value that they cannot convert. */
const conversions: Readonly<Record<string, (value: string) => string>> = {
  int: (value) => `to_int(${value})`,
  double: (value) => `to_float(${value})`,
  string: (value) => `to_string(${value}) ?? encode_json(${value})`,
}

/** The hash of a value. The empty text has none. */
const hashOf = (value: string) =>
  `if ${value} == "" { "" } else { sha2(to_string(${value}) ?? encode_json(${value}), variant: "SHA-256") }`

/** Statements that hash attributes by key or pattern. */
function hashLines(part: Part, base: readonly string[], context: Context): string[] {
  const key = part.text('key') ?? ''
  const pattern = part.text('pattern')
  context.replaced(
    part.place(),
    `${part.id}: hash ${key || pattern}`,
    'a number or boolean is hashed as text, and in the collector as its bytes in memory; hashes of texts are equal',
    'Nothing, unless you compare hashes of numbers or booleans with older ones.',
  )
  const field = fieldAt([...base, key])
  if (pattern === undefined) return [`if exists(${field}) { ${field} = ${hashOf(openRead([...base, key]))} }`]
  const test = `match(key, ${regexLiteral(pattern)})${key === '' ? '' : ` || key == ${textLiteral(key)}`}`
  return [
    'made = {}',
    `for_each(object(${openRead(base)}) ?? {}) -> |key, value| {`,
    `  if ${test} { value = ${hashOf('value')} }`,
    '  made = set!(made, [key], value)',
    '}',
    `${fieldAt(base)} = made`,
  ]
}

/** Statements for one action on the attributes at a path. */
function actionLines(part: Part, base: readonly string[], context: Context): string[] {
  context.reportOptions(part, { name: 'action', options: actionOptions })
  const key = part.text('key') ?? ''
  const action = (part.text('action') ?? 'upsert').toLowerCase()
  const field = fieldAt([...base, key])
  const read = openRead([...base, key])
  const pattern = part.text('pattern')
  const refuse = (reason: string) => {
    context.gap(
      part.place(),
      `${part.id}: ${action} ${key || pattern}`,
      reason,
      'Rewrite the action as a remap transform.',
    )
    return []
  }
  switch (action) {
    case 'insert':
    case 'update':
    case 'upsert': {
      const from = part.text('from_attribute')
      const given = part.get('value')
      if (part.has('from_context')) return refuse('the value comes from the request that carried the record')
      if (from === undefined && given === undefined) return refuse('the action has no value')
      const value = from === undefined ? valueLiteral(given) : openRead([...base, from])
      const tests = [
        ...(action === 'insert' ? [`!exists(${field})`] : action === 'update' ? [`exists(${field})`] : []),
        ...(from === undefined ? [] : [`exists(${fieldAt([...base, from])})`]),
      ]
      return [tests.length === 0 ? `${field} = ${value}` : `if ${tests.join(' && ')} { ${field} = ${value} }`]
    }
    case 'delete': {
      if (pattern === undefined) return [`del(${field})`]
      const at = fieldAt(base)
      return [
        ...(key === '' ? [] : [`del(${field})`]),
        `${at} = filter(object(${openRead(base)}) ?? {}) -> |key, _value| { !match(key, ${regexLiteral(pattern)}) }`,
      ]
    }
    case 'hash':
      return hashLines(part, base, context)
    case 'extract': {
      if (pattern === undefined) return refuse('the action has no pattern')
      const at = fieldAt(base)
      return [
        `if is_string(${read}) {`,
        `  found = parse_regex(string(${read}) ?? "", ${regexLiteral(pattern)}) ?? {}`,
        '  found = map_values(found) -> |group| { if group == null { "" } else { group } }',
        `  ${at} = merge(object(${openRead(base)}) ?? {}, found)`,
        '}',
      ]
    }
    case 'convert': {
      const type = part.text('converted_type') ?? ''
      const call = Object.hasOwn(conversions, type) ? conversions[type] : undefined
      if (call === undefined) return refuse('the type is unknown')
      if (type === 'double') context.makeFloats()
      const lines =
        type === 'string'
          ? [`  ${field} = ${call(read)}`]
          : [`  made, error = ${call(read)}`, `  if error == null { ${field} = made }`]
      return [`if exists(${field}) {`, ...lines, '}']
    }
    default:
      return refuse('the action is unknown')
  }
}

const actions = (name: string, base: readonly string[], list: string): Mapping<Steps> => ({
  name,
  becomes: 'a remap transform',
  options: {
    [list]:
      '`insert`, `update`, `upsert`, `delete`, `hash` (SHA-256 of the value as text), `extract` and `convert` as statements',
    ...(name === 'attributes' ? { include: '`if` around the statements', exclude: '`if` around the statements' } : {}),
  },
  expresses: [`${list}.value`],
  build: (part, context) => {
    const lines = part
      .tables(list)
      .flatMap((table, index) => actionLines(part.within([list, index], table, part.id), base, context))
    if (lines.length === 0) return []
    const tests = (['include', 'exclude'] as const).flatMap((option) => {
      const test = part.has(option)
        ? matching(part.within([option], part.table(option), part.id), option, context)
        : undefined
      return test === undefined ? [] : [option === 'include' ? test : `!${test}`]
    })
    const text = lines.join('\n')
    return [{ type: 'remap', text: tests.length === 0 ? text : `if ${tests.join(' && ')} {\n${indent(text)}\n}` }]
  },
})

export const attributes = actions('attributes', ['attributes'], 'actions')
export const resource = actions('resource', ['resource', 'attributes'], 'attributes')

/** Moves attributes of the record to the resource. */
export const groupByAttributes: Mapping<Steps> = {
  name: 'groupbyattrs',
  becomes: 'a remap transform that moves attributes to the resource',
  options: { keys: 'the attributes' },
  build: (part) => {
    const lines = part.list('keys').map((key) => {
      const from = fieldAt(['attributes', key])
      return `if exists(${from}) { ${fieldAt(['resource', 'attributes', key])} = del(${from}) }`
    })
    return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
  },
}
