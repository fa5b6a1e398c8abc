// Compares recorded values with actual ones. Recorded texts may contain `{NOW}`, `{UUID}` and `{VERSION}` for variable parts.

import { Bytes, Float, isObject, type Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'

export interface Comparison {
  /** Whether an integer differs from a float with the same value. */
  readonly numbersApart?: boolean
  /** Whether the items of the outermost array may be in any order. */
  readonly anyOrder?: boolean
}

const placeholders: Readonly<Record<string, string>> = {
  '{NOW}': String.raw`(?:\d+(?:\.\d+)?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00))`,
  '{UUID}': '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}',
  '{VERSION}': String.raw`\d+\.\d+\.\d+[\w.+-]*`,
}

/** Whether a text matches the recorded one. */
export function textMatches(wanted: string, found: string): boolean {
  if (wanted === found) return true
  if (!/\{(?:NOW|UUID|VERSION)\}/.test(wanted)) return false
  const source = wanted
    .split(/(\{(?:NOW|UUID|VERSION)\})/)
    .map((part) => placeholders[part] ?? part.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&'))
    .join('')
  return new RegExp(`^${source}$`).test(found)
}

/** The first difference of two values; undefined if there is none. */
export function difference(wanted: unknown, found: unknown, rules: Comparison = {}): string | undefined {
  if (rules.anyOrder === true && Array.isArray(wanted) && Array.isArray(found)) return unordered(wanted, found)
  return differ(wanted, found, '', rules.numbersApart === true)
}

function unordered(wanted: readonly unknown[], found: readonly unknown[]): string | undefined {
  const rest = [...found]
  for (const item of wanted) {
    const at = rest.findIndex((candidate) => differ(item, candidate, '', false) === undefined)
    if (at < 0) return `wanted ${shown(item)}\nfound  ${rest.map(shown).join('\n       ') || 'nothing more'}`
    rest.splice(at, 1)
  }
  return rest.length === 0 ? undefined : `not wanted: ${rest.map(shown).join('\n            ')}`
}

function differ(wanted: unknown, found: unknown, path: string, apart: boolean): string | undefined {
  const problem = () => `${path === '' ? '' : `at ${path}: `}wanted ${shown(wanted)}\nfound  ${shown(found)}`
  if (typeof wanted === 'string') {
    const text = typeof found === 'string' ? found : isNumber(found) ? String(plain(found)) : undefined
    const same = text !== undefined && (typeof found === 'string' || wanted === '{NOW}') && textMatches(wanted, text)
    return same ? undefined : problem()
  }
  if (isNumber(wanted)) {
    if (!isNumber(found)) return problem()
    if (apart && wanted instanceof Float !== found instanceof Float) return problem()
    return plain(wanted) === plain(found) ? undefined : problem()
  }
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found)) return problem()
    for (let index = 0; index < Math.max(wanted.length, found.length); index++) {
      if (index >= wanted.length) return `at ${path}[${index}]: not wanted: ${shown(found[index])}`
      if (index >= found.length) return `at ${path}[${index}]: wanted ${shown(wanted[index])}\nfound  nothing`
      const inner = differ(wanted[index], found[index], `${path}[${index}]`, apart)
      if (inner !== undefined) return inner
    }
    return undefined
  }
  if (isObject(wanted as Value)) {
    if (!isObject(found as Value)) return problem()
    const left = wanted as Record<string, unknown>
    const right = found as Record<string, unknown>
    for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
      if (!Object.hasOwn(left, name)) return `at ${path}.${name}: not wanted: ${shown(right[name])}`
      if (!Object.hasOwn(right, name)) return `at ${path}.${name}: wanted ${shown(left[name])}\nfound  nothing`
      const inner = differ(left[name], right[name], `${path}.${name}`, apart)
      if (inner !== undefined) return inner
    }
    return undefined
  }
  return wanted === found ? undefined : problem()
}

function isNumber(value: unknown): value is number | bigint | Float {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof Float
}

function plain(value: number | bigint | Float): number | bigint {
  return value instanceof Float ? value.value : value
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  return value instanceof Bytes ? value.bytes.toString('hex') : writeJson(value as Value)
}
