// Parts of texts in Ruby: characters by position, and groups of regular expressions.

import { textLiteral } from '@penstock/agent/config'
import { asText, literalOf, type Node, UnknownRuby, wholeNumber } from './ruby-node.ts'

const rubyEscapes: Readonly<Record<string, string>> = { e: '\\x1b', h: '[0-9a-fA-F]', Z: '\\n?\\z' }

/** A regular expression of Ruby in a literal. */
export const rubyRegex = (text: string) =>
  text.replace(/\\(.)/gs, (whole, letter: string) => rubyEscapes[letter] ?? whole).replaceAll("'", "\\'")

/** The end of a part: a number of characters or items, or the number that is left out at the end. */
export type End = { readonly count: number } | { readonly omitted: number }

/** @param last the last position of `a..b`, the one after the last of `a...b`, or the number of `a, b` */
export function endOf(start: number, sign: string, last: number | undefined): End {
  if (last === undefined) return { omitted: 0 }
  if (sign === ',') return { count: last }
  const more = sign === '..' ? 1 : 0
  if (last < 0) return { omitted: -last - more }
  if (start < 0) throw new UnknownRuby()
  return { count: Math.max(0, last - start + more) }
}

/** Remap refuses larger repetitions. */
const maxRepetitions = 1000

/** The group `part` of a regular expression, in which `.` is any character; null if it does not match. */
function partBy(text: string, regex: string): Node {
  if ([...regex.matchAll(/\d+/g)].some(([digits]) => Number(digits) > maxRepetitions)) throw new UnknownRuby()
  return { text: `(get(parse_regex(${text}, r'(?s)${regex}') ?? {}, ["part"]) ?? null)`, kind: 'any' }
}

export const letterOf = (text: string, index: number): Node =>
  index < 0 ? partBy(text, `(?P<part>.).{${-index - 1}}$`) : partBy(text, `^.{${index}}(?P<part>.)`)

/** A part of a text, in characters. */
export function partOfText(text: string, start: number, end: End): Node {
  if (start < 0) {
    const count = Math.min(-start, 'count' in end ? end.count : -start - end.omitted)
    if (count < 0) throw new UnknownRuby()
    return partBy(text, `(?P<part>.{${count}}).{${-start - count}}$`)
  }
  if ('count' in end) {
    if (start === 0) return { text: `truncate(${text}, ${end.count})`, kind: 'text' }
    return partBy(text, `^.{${start}}(?P<part>.{0,${end.count}})`)
  }
  return partBy(text, `^.{${start}}(?P<part>.*?).{0,${end.omitted}}$`)
}

/** The end of a part of a list, as the last argument of `slice`. */
export function listEnd(start: number, end: End): string {
  if ('count' in end) {
    // From the end of the list, the part may reach its end.
    return start < 0 && start + end.count >= 0 ? '' : `, ${start + end.count}`
  }
  return end.omitted === 0 ? '' : `, ${-end.omitted}`
}

/** A group of a regular expression, by number or name; without it, the whole match. */
export function groupIn(node: Node, regex: string, group: Node | undefined): Node {
  const found = /^\/(.*)\/([imx]*)$/s.exec(regex)
  if (found === null) throw new UnknownRuby()
  const key = group === undefined ? '0' : group.kind === 'text' ? literalOf(group) : String(wholeNumber(group))
  const parsed = `parse_regex(${asText(node)}, r'${regexFlags(found[2] ?? '')}${rubyRegex(found[1] ?? '')}', numeric_groups: true)`
  return { text: `(get(${parsed} ?? {}, [${textLiteral(key)}]) ?? null)`, kind: 'any' }
}

/** The number of groups of a regular expression. If some have names, only these count. */
export function groupCount(regex: string): number {
  const plain = regex.replace(/\\./g, '').replace(/\[[^\]]*\]/g, '')
  const named = plain.match(/\(\?<[A-Za-z_]/g)?.length ?? 0
  return named > 0 ? named : (plain.match(/\((?!\?)/g)?.length ?? 0)
}

/** All groups of a regular expression, as expressions. */
export const groupsIn = (node: Node, regex: string): readonly string[] =>
  Array.from(
    { length: groupCount(regex) },
    (_, index) => groupIn(node, regex, { text: String(index + 1), kind: 'integer' }).text,
  )

/** In Ruby, the ends of lines within a text count. */
export const regexFlags = (flags: string) => `(?m${flags.replace('m', 's')})`
