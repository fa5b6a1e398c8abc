// The processors `attributes` and `resource`, which run a list of actions on attributes.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { nodeVariable } from './environment.ts'
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

const conversions: Readonly<Record<string, string>> = { int: 'to_int', double: 'to_float', string: 'to_string' }

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
      const isNode = typeof given === 'string' && nodeVariable.test(given)
      const value =
        from !== undefined ? openRead([...base, from]) : isNode ? '%orchestrator.pod_node_name' : valueLiteral(given)
      const tests = [
        ...(action === 'insert' ? [`!exists(${field})`] : action === 'update' ? [`exists(${field})`] : []),
        ...(from !== undefined ? [`exists(${fieldAt([...base, from])})`] : isNode ? [`${value} != null`] : []),
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
    case 'hash': {
      const hashed = 'sha2(to_string(value) ?? encode_json(value), variant: "SHA-256")'
      if (pattern !== undefined) {
        const at = fieldAt(base)
        const test = `match(key, ${regexLiteral(pattern)})${key === '' ? '' : ` || key == ${textLiteral(key)}`}`
        return [
          'made = {}',
          `for_each(object(${openRead(base)}) ?? {}) -> |key, value| {`,
          `  if ${test} { value = ${hashed} }`,
          '  made = set!(made, [key], value)',
          '}',
          `${at} = made`,
        ]
      }
      return [`if exists(${field}) { ${field} = sha2(to_string(${read}) ?? encode_json(${read}), variant: "SHA-256") }`]
    }
    case 'extract': {
      if (pattern === undefined) return refuse('the action has no pattern')
      const at = fieldAt(base)
      return [
        `found = parse_regex(string(${read}) ?? "", ${regexLiteral(pattern)}) ?? {}`,
        'found = map_values(found) -> |group| { if group == null { "" } else { group } }',
        `${at} = merge(object(${openRead(base)}) ?? {}, found)`,
      ]
    }
    case 'convert': {
      const call = conversions[part.text('converted_type') ?? '']
      if (call === undefined) return refuse('the type is unknown')
      return [
        `if exists(${field}) {`,
        `  made, error = ${call}(${read})`,
        `  if error == null { ${field} = made }`,
        '}',
      ]
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

/** Masks values, and removes keys that are not allowed. */
export const redaction: Mapping<Steps> = {
  name: 'redaction',
  becomes: 'a remap transform',
  options: {
    allow_all_keys: 'whether to keep all attributes',
    allowed_keys: 'the attributes to keep',
    ignored_keys: 'attributes to keep unchanged',
    blocked_values: '`replace` with asterisks',
    blocked_key_patterns: 'asterisks replace values of these attributes',
  },
  itself: {
    summary: {
      how: 'no attribute lists the masked values',
      unless: /debug|info/,
      reason: 'no attribute counts or lists the masked values',
      nearest: 'Compare events with `penstock tap`.',
    },
    redact_all_types: {
      how: 'only texts are masked',
      unless: /true/,
      reason: 'only texts are masked',
      nearest: 'Convert the other values to text in a remap transform before it.',
    },
  },
  build: (part) => {
    const list = (option: string) => `[${part.list(option).map(textLiteral).join(', ')}]`
    const masked = (path: readonly string[]) => {
      const at = fieldAt(path)
      const lines: string[] = []
      if (!part.flag('allow_all_keys', false)) {
        lines.push(
          `${at} = filter(object(${openRead(path)}) ?? {}) -> |key, _value| { includes(${list('allowed_keys')}, key) || includes(${list('ignored_keys')}, key) }`,
        )
      }
      const keys = part.list('blocked_key_patterns').map((pattern) => `match(key, ${regexLiteral(pattern)})`)
      const values = part.list('blocked_values')
      if (keys.length === 0 && values.length === 0) return lines
      const replaced = values.map((pattern) => `text = replace(text, ${regexLiteral(pattern)}, "****")`)
      lines.push(
        'made = {}',
        `for_each(object(${openRead(path)}) ?? {}) -> |key, value| {`,
        ...(keys.length === 0 ? [] : [`  if ${keys.join(' || ')} { value = "****" }`]),
        `  if is_string(value) && !includes(${list('ignored_keys')}, key) {`,
        '    text = string!(value)',
        ...replaced.map((line) => `    ${line}`),
        '    value = text',
        '  }',
        '  made = set!(made, [key], value)',
        '}',
        `${at} = made`,
      )
      return lines
    }
    const body = part.list('blocked_values').map((pattern) => `text = replace(text, ${regexLiteral(pattern)}, "****")`)
    const text = [
      ...masked(['resource', 'attributes']),
      ...masked(['attributes']),
      ...(body.length === 0
        ? []
        : [
            'if is_string(.message) {',
            '  text = string!(.message)',
            ...body.map((line) => `  ${line}`),
            '  .message = text',
            '}',
          ]),
    ]
    return text.length === 0 ? [] : [{ type: 'remap', text: text.join('\n') }]
  },
}
