// Record accessors: texts with the placeholders `$key['name']` for fields, `$TAG` and `$TAG[1]` for the tag and its parts, and `$1` for a
// group of the expression that a rule matches.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { accessor, pattern, textOf } from './text.ts'

/** The literals and the placeholders of a text, in order. */
export function partsOf(text: string): readonly string[] {
  return text
    .split(/(\$(?:TAG(?:\[\d+\])?(?![\w[])|\d(?!\w)|[A-Za-z_]\w*(?:\[[^\]]*\])*))/)
    .filter((part) => part !== '')
}

/** The index of a part of the tag, as in `$TAG[1]`. */
export const tagIndex = (part: string): number | undefined => {
  const found = /^\$TAG\[(\d+)\]$/.exec(part)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** Whether the value of a text depends on the tag. */
export const hasTag = (text: string): boolean => partsOf(text).some((part) => /^\$TAG(?:\[|$)/.test(part))

/**
 * An expression for a part; undefined if a program cannot determine its value. A field that is missing adds nothing.
 * @param groups the variable with the groups of the matching expression
 */
export function partText(part: string, groups?: string): string | undefined {
  if (part === '$TAG') return 'tag'
  const index = tagIndex(part)
  if (index !== undefined) return `(string(get(split(tag, "."), [${index}]) ?? null) ?? "")`
  const group = /^\$(\d)$/.exec(part)?.[1]
  if (group !== undefined) return groups === undefined ? undefined : `(string(${groups}.group${group}) ?? "")`
  if (!part.startsWith('$')) return textLiteral(part)
  const path = accessor(part)
  return path === undefined ? undefined : `(to_string(${fieldLiteral(path)}) ?? "")`
}

/** A text as an expression, which reads the variable `tag` if the text has one; undefined if a program cannot determine the value. */
export function translated(text: string): string | undefined {
  const parts = partsOf(text).map((part) => partText(part))
  if (parts.includes(undefined) || /\$$/.test(text)) return undefined
  return parts.join(' + ') || '""'
}

/** The same for a text that may also have variables of the environment. */
export function expressed(text: string, readsEnvironment: boolean): string | undefined {
  const parts = text.split(/(\$\{[A-Za-z0-9_]+\})/).filter((part) => part !== '')
  const all = parts.map((part) => (/^\$\{/.test(part) ? textOf(part, readsEnvironment) : translated(part)))
  return all.includes(undefined) ? undefined : all.join(' + ') || '""'
}

/**
 * An expression whose groups have the names `group1`, `group2`, …, and `group0` for the whole match. If an expression has groups with names,
 * the others do not count.
 */
export function withGroups(regex: string): string {
  const [, body = regex, flags = ''] = /^\/(.*)\/([imxo]*)$/s.exec(regex) ?? []
  const hasNames = /\(\?<[A-Za-z_]/.test(body)
  let count = 0
  const named = body.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\(\?<([A-Za-z_]\w*)>|\((?!\?)/gs, (found, name?: string) => {
    if (name !== undefined) return `(?<group${++count}>`
    return found === '(' && !hasNames ? `(?<group${++count}>` : found
  })
  const whole = `(?<group0>${named})`
  return pattern(flags === '' ? whole : `/${whole}/${flags}`)
}
