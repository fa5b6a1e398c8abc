// Conditions of transforms as programs: programs, searches, and the predicates on fields of old versions.

import { type Segments, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import { field } from './tables.ts'

/** The program of a condition; undefined if no program can express it. */
export function conditionOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (!isTable(value)) return undefined
  const { type, source } = value
  if (isOfFields(value)) return fieldConditions(value)
  if (typeof source !== 'string') return undefined
  if (type === 'datadog_search') return `match_datadog_query(., ${textLiteral(source)})`
  return type === undefined || type === 'vrl' || type === 'remap' ? source : undefined
}

/** Whether a condition has predicates on fields. In old versions, this is the default type. */
export const isOfFields = (value: unknown): value is Table =>
  isTable(value) && (value['type'] === 'check_fields' || (value['type'] === undefined && value['source'] === undefined))

/** Whether a program may fail or abort. As a condition, it is then false. */
export const mayFail = (condition: string): boolean => /\w!\s*\(|\b(?:abort|return)\b/.test(condition)

function fieldConditions({ type: _, ...predicates }: Table): string | undefined {
  const tests = Object.entries(predicates).map(([name, argument]) => {
    const at = name.lastIndexOf('.')
    return at <= 0 ? undefined : predicate(name.slice(0, at), name.slice(at + 1), argument)
  })
  if (tests.some((each) => each === undefined)) return undefined
  return tests.length === 0 ? 'true' : tests.join(' && ')
}

const anyOf = (tests: readonly string[]) => (tests.length === 1 ? tests[0] : `(${tests.join(' || ')})`)

/** The test of a field; undefined for an argument that the predicate does not take. */
function predicate(path: string, name: string, argument: unknown): string | undefined {
  const at = field(path)
  const value = `(to_string(${at}) ?? encode_json(${at}))`
  const items = (Array.isArray(argument) ? argument : [argument]).map(String)
  const list = `[${items.map(textLiteral).join(', ')}]`
  const isText = typeof argument === 'string' || Array.isArray(argument)
  const each = (call: string) =>
    isText ? `exists(${at}) && ${anyOf(items.map((item) => `${call}(${value}, ${textLiteral(item)})`))}` : undefined
  const tests: Readonly<Record<string, () => string | undefined>> = {
    eq: () => {
      if (isText) return `exists(${at}) && includes(${list}, ${value})`
      return `${at} == ${JSON.stringify(argument)}`
    },
    neq: () => `exists(${at}) && !includes(${list}, ${value})`,
    contains: () => each('contains'),
    starts_with: () => each('starts_with'),
    ends_with: () => each('ends_with'),
    regex: () =>
      typeof argument === 'string'
        ? `exists(${at}) && match(${value}, r'${argument.replaceAll("'", "\\'")}')`
        : undefined,
    exists: () => {
      if (typeof argument !== 'boolean') return undefined
      return argument ? `exists(${at})` : `!exists(${at})`
    },
    ip_cidr_contains: () => (isText ? `ip_cidr_contains(${list}, ${value}) ?? false` : undefined),
    length_eq: () =>
      typeof argument === 'number'
        ? `exists(${at}) && (length(${at}) ?? length(to_string(${at}) ?? "")) == ${argument}`
        : undefined,
  }
  const others: Readonly<Record<string, string>> = { equals: 'eq', not_equals: 'neq', prefix: 'starts_with' }
  const known = others[name] ?? name
  if (Object.hasOwn(tests, known)) {
    const test = tests[known]?.()
    return test === undefined ? undefined : `(${test})`
  }
  const negated = name.startsWith('not_') ? predicate(path, name.slice(4), argument) : undefined
  return negated === undefined ? undefined : `!${negated}`
}

/** The programs of the conditions of a transform with several outputs, or with events that it leaves alone, and their paths. */
export function conditionsIn(options: Table): readonly { readonly segments: Segments; readonly text: string }[] {
  const { routes, exclude } = options
  const named = ['route', 'lanes'].flatMap((list) =>
    Object.entries(isTable(options[list]) ? options[list] : {}).map(([name, value]) => ({
      segments: [list, name],
      value,
    })),
  )
  const listed = (Array.isArray(routes) ? routes : []).map((route, index) => ({
    segments: ['routes', index, 'condition'],
    value: isTable(route) ? route['condition'] : undefined,
  }))
  return [...named, ...listed, { segments: ['exclude'], value: exclude }].flatMap(({ segments, value }) => {
    const text = isOfFields(value) ? undefined : conditionOf(value)
    return text === undefined ? [] : [{ segments: isTable(value) ? [...segments, 'source'] : segments, text }]
  })
}
