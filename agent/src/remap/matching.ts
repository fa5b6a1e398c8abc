// Regular expressions for functions: all matches of a text, captures as objects, replacement texts. A generated constructor per
// pattern gives all its capture objects one shape.

import { Regex, type Value, type ValueObject } from '../event/value.ts'
import { compileBounded } from '../formats/regex-linear.ts'
import { type Kind, kinds } from './kind.ts'
import { groupNames } from './regex.ts'

const globals = new WeakMap<RegExp, RegExp>()

/** The same pattern for a search from `lastIndex`. */
export function globalOf(regex: Regex): RegExp {
  let found = globals.get(regex.compiled)
  if (found === undefined) {
    found = compileBounded(regex.compiled.source, `${regex.compiled.flags}g`)
    globals.set(regex.compiled, found)
  }
  return found
}

/**
 * Calls back for each match of a text in order, until the callback returns false. As in the reference, an empty match
 * directly after another match is skipped.
 */
export function eachMatch(regex: Regex, text: string, visit: (match: RegExpExecArray) => boolean): void {
  const global = globalOf(regex)
  let from = 0
  let end = -1
  while (from <= text.length) {
    global.lastIndex = from
    const match = global.exec(text)
    if (match === null) return
    const after = match.index + match[0].length
    if (match[0] === '') {
      from = after + ((text.codePointAt(after) ?? 0) > 0xffff ? 2 : 1)
      if (after === end) continue
    } else {
      from = after
    }
    end = after
    if (!visit(match)) return
  }
}

const constructors = new WeakMap<RegExp, (match: RegExpExecArray) => ValueObject>()

/**
 * Compiles the constructor for a match object: named groups, null if they did not match; with `numeric` also the whole match
 * as `0` and the matched groups, counted from 1.
 */
export function compileCaptures(regex: Regex, numeric: boolean): (match: RegExpExecArray) => ValueObject {
  let named = constructors.get(regex.compiled)
  if (named === undefined) {
    const fields = groupNames(regex).flatMap((name, group) =>
      name === undefined ? [] : [`[${JSON.stringify(name)}]: match[${group}] ?? null`],
    )
    named = new Function('match', `return { ${fields.join(', ')} }`) as (match: RegExpExecArray) => ValueObject
    constructors.set(regex.compiled, named)
  }
  if (!numeric) return named
  const make = named
  return (match) => {
    const captures = make(match)
    let count = 0
    for (let group = 0; group < match.length; group++) {
      const text = match[group]
      if (text !== undefined) captures[count++] = text
    }
    return captures
  }
}

/** The parameters after the value, for functions that return the groups of a match. */
export const captureParameters = [
  { name: 'pattern', kind: kinds.regex, ownCheck: true, description: 'The pattern.' },
  {
    name: 'numeric_groups',
    kind: kinds.boolean,
    required: false,
    default: false,
    description: 'Whether to include the whole match as `0` and the matched groups, counted from 1.',
  },
] as const

/** The kind of the match objects; the pattern may be unknown. */
export function capturesKind(pattern: Value | undefined): Kind {
  const textOrNull = kinds.string.or(kinds.null)
  if (!(pattern instanceof Regex)) return kinds.objectEach(textOrNull)
  const fields: Record<string, Kind> = { '0': textOrNull }
  groupNames(pattern).forEach((name, group) => {
    if (group === 0) return
    fields[String(group)] = textOrNull
    if (name !== undefined) fields[name] = kinds.string
  })
  return kinds.objectOf(fields)
}

/**
 * Whether a named group may have no match, which makes it null although the language takes it for a string: if the pattern has
 * alternatives or optional groups.
 */
export function mayMissGroups(pattern: Value | undefined): boolean {
  return (
    pattern instanceof Regex &&
    /\||\)(?:[?*]|\{0)/.test(pattern.source) &&
    groupNames(pattern).some((name) => name !== undefined)
  )
}

/** Compiles a replacement text with `$1`, `$name`, `${name}` and `$$`. */
export function compileReplacement(template: string, regex: Regex): (match: RegExpExecArray) => string {
  const names = groupNames(regex)
  const parts: (string | number)[] = []
  const reference = /\$(?:(\$)|([0-9A-Za-z_]+)|\{([^}]*)\})/g
  let at = 0
  for (let found = reference.exec(template); found !== null; found = reference.exec(template)) {
    if (found.index > at) parts.push(template.slice(at, found.index))
    at = reference.lastIndex
    if (found[1] !== undefined) {
      parts.push('$')
      continue
    }
    const name = found[2] ?? found[3] ?? ''
    // A missing group is empty.
    parts.push(/^\d+$/.test(name) ? Number(name) : names.indexOf(name) < 0 ? '' : names.indexOf(name))
  }
  if (at < template.length) parts.push(template.slice(at))
  return (match) => {
    let text = ''
    for (const part of parts) text += typeof part === 'string' ? part : (match[part] ?? '')
    return text
  }
}
