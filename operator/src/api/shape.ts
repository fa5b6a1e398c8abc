// Checks the shape of an object against the schema of its kind, as the API server does, but reports each problem with its path, and
// reports unknown fields instead of dropping them. It does not evaluate rules of the Common Expression Language; the compile step
// checks these.

import { closest } from '@penstock/agent/errors'
import { counted } from '@penstock/agent/program'
import { isTable } from '@penstock/agent/schema'
import { isTooDeep, maxDepth } from './depth.ts'
import type { ResourceKind } from './kinds.ts'

export interface ShapeProblem {
  readonly path: readonly (string | number)[]
  readonly message: string
  readonly help?: string | undefined
  /** The value has a type other than its field's, so it cannot be read. */
  readonly isUnreadable?: boolean
}

type Table = Readonly<Record<string, unknown>>

/** The problem of the shape of `spec`. */
export function shapeProblems(kind: ResourceKind, object: unknown): readonly ShapeProblem[] {
  const problems: ShapeProblem[] = []
  const spec = isTable(object) ? object['spec'] : undefined
  if (spec === undefined || spec === null) {
    const members = Object.keys((kind.spec['properties'] ?? {}) as Table)
    problems.push({ path: ['spec'], message: '`spec` is missing', help: `It lists ${names(members)}.` })
    return problems
  }
  if (isTooDeep(spec)) {
    problems.push({ path: ['spec'], message: `\`spec\` is nested deeper than ${maxDepth} levels`, isUnreadable: true })
    return problems
  }
  check(kind.spec, spec, ['spec'], problems)
  return problems
}

function check(schema: Table, value: unknown, path: readonly (string | number)[], problems: ShapeProblem[]): void {
  const report = (message: string, help?: string) => {
    problems.push({ path, message, help })
  }
  const unreadable = (message: string) => {
    problems.push({ path, message, help: schema['x-meanwhile'] as string | undefined, isUnreadable: true })
  }
  const label = `\`${labelOf(path)}\``
  if (value === null && schema['nullable'] === true) return
  if (schema['x-kubernetes-int-or-string'] === true) {
    if (typeof value === 'number' ? Number.isInteger(value) : typeof value === 'string')
      checkText(schema, String(value), label, report)
    else unreadable(`${label} must be ${schema['x-expected'] ?? 'a whole number or text'}; found ${found(value)}`)
    return
  }
  switch (schema['type']) {
    case 'object':
      if (isTable(value)) checkObject(schema, value, path, problems)
      else unreadable(`${label} must be a mapping; found ${found(value)}`)
      return
    case 'array': {
      if (!Array.isArray(value)) {
        unreadable(`${label} must be a list; found ${found(value)}`)
        return
      }
      const min = schema['minItems'] as number | undefined
      const max = schema['maxItems'] as number | undefined
      if (min !== undefined && value.length < min)
        report(`${label} needs at least ${min === 1 ? 'one entry' : `${min} entries`}`)
      if (max !== undefined && value.length > max)
        report(`${label} may have at most ${counted(max, 'entry', 'entries')}; found ${value.length}`)
      for (const [index, item] of value.entries()) check(schema['items'] as Table, item, [...path, index], problems)
      return
    }
    case 'string':
      if (typeof value === 'string') checkText(schema, value, label, report)
      else unreadable(`${label} must be a string; found ${found(value)}`)
      return
    case 'integer':
      if (!Number.isInteger(value)) unreadable(`${label} must be a whole number; found ${found(value)}`)
      else if (typeof schema['minimum'] === 'number' && (value as number) < schema['minimum'])
        report(`${label} must be ${schema['minimum']} or more; found ${value}`)
      else if (typeof schema['maximum'] === 'number' && (value as number) > schema['maximum'])
        report(`${label} must be ${schema['maximum']} or less; found ${value}`)
      return
    case 'boolean':
      if (typeof value !== 'boolean') unreadable(`${label} must be true or false; found ${found(value)}`)
      return
    default: // anything goes
  }
}

function checkText(
  schema: Table,
  value: string,
  label: string,
  report: (message: string, help?: string) => void,
): void {
  const words = schema['enum'] as readonly string[] | undefined
  if (words !== undefined && !words.includes(value)) {
    const near = closest(value, words)
    report(
      `${label} must be ${words.length === 1 ? '' : 'one of '}${names(words)}; found ${found(value)}`,
      near === undefined ? undefined : `Did you mean \`${near}\`?`,
    )
  }
  const pattern = schema['pattern'] as string | undefined
  if (pattern !== undefined && !new RegExp(pattern).test(value)) {
    const expected = schema['x-expected'] as string | undefined
    const meanwhile = schema['x-meanwhile'] as string | undefined
    report(
      `${label} must ${expected === undefined ? `match ${pattern}` : `be ${expected}`}; found ${found(value)}`,
      meanwhile,
    )
  }
  const longest = schema['maxLength'] as number | undefined
  if (longest !== undefined && value.length > longest)
    report(`${label} may have at most ${counted(longest, 'character')}; found ${value.length}`)
}

function checkObject(schema: Table, value: Table, path: readonly (string | number)[], problems: ShapeProblem[]): void {
  const members = (schema['properties'] ?? {}) as Readonly<Record<string, Table>>
  const others = schema['additionalProperties'] as Table | undefined
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true
  for (const [name, item] of Object.entries(value)) {
    const below = Object.hasOwn(members, name) ? members[name] : others
    if (below !== undefined) {
      check(below, item, [...path, name], problems)
    } else if (!isOpen) {
      const message = `unknown field \`${name}\`, expected ${names(Object.keys(members))}`
      problems.push({ path: [...path, name], message, help: helpFor(name, members) })
    }
  }
  for (const name of (schema['required'] ?? []) as readonly string[]) {
    if (value[name] === undefined)
      problems.push({ path: [...path, name], message: `\`${labelOf([...path, name])}\` is missing` })
  }
}

function helpFor(name: string, members: Readonly<Record<string, Table>>): string | undefined {
  const near = closest(name, Object.keys(members))
  if (near !== undefined) return `Did you mean \`${near}\`?`
  const places = placesBelow(name, members)
  if (places.length > 0 && places.length <= maxPlaces)
    return `\`${name}\` belongs below ${places.map((place) => `\`${place}\``).join(' or ')}.`
  const isComponent = Object.hasOwn(members, 'config') && Object.hasOwn(members, 'type')
  return isComponent ? 'Options of the component belong below `config`, indented one level further.' : undefined
}

/** If a field exists in more places than this, it is unclear which one the user means, and the problem names none. */
const maxPlaces = 2
const maxPlaceDepth = 3

/** The paths of the tables below these members that have a field of this name. */
function placesBelow(name: string, members: Readonly<Record<string, Table>>, depth = 1): readonly string[] {
  return Object.entries(members).flatMap(([member, schema]) => {
    const table = (schema['items'] as Table | undefined) ?? schema
    const below = (table['properties'] ?? {}) as Readonly<Record<string, Table>>
    if (Object.hasOwn(below, name)) return [member]
    return depth === maxPlaceDepth ? [] : placesBelow(name, below, depth + 1).map((place) => `${member}.${place}`)
  })
}

function names(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(', ')
}

function found(value: unknown): string {
  const text = JSON.stringify(value) ?? 'none'
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

/** `spec.sources[0].config.include` */
export function labelOf(path: readonly (string | number)[]): string {
  let label = ''
  for (const key of path) label += typeof key === 'number' ? `[${key}]` : label === '' ? key : `.${key}`
  return label
}
