// Methods of Ruby's lists without a block, and methods of texts and objects that return lists.

import { itemsOf, numbered, totalOf } from './ruby-blocks.ts'
import type { Emitter } from './ruby-emitter.ts'
import { asText, isRecord, type Node, textNode } from './ruby-node.ts'
import { groupCount, regexFlags, rubyRegex } from './ruby-text.ts'

type Make = (node: Node, words: readonly Node[], emitter: Emitter) => Node | undefined

/** The largest or the smallest item. */
const extreme =
  (sign: '<' | '>'): Make =>
  (node, words, emitter) => {
    if (words.length > 0) return undefined
    const [one, two, ...more] = node.items ?? []
    if (one !== undefined && two !== undefined && more.length === 0 && one.kind === two.kind && one.kind !== 'any') {
      const [first, second] = [emitter.kept(one.text, one.kind), emitter.kept(two.text, two.kind)]
      return emitter.either(`${second.text} ${sign} ${first.text}`, second, first)
    }
    const items = itemsOf(node, emitter)
    const found = emitter.kept('null', 'any').text
    const item = emitter.fresh()
    emitter.before.push(
      `for_each(${items}) -> |_index, ${item}| { if ${found} == null || ((${item} ${sign} ${found}) ?? false) { ${found} = ${item} } }`,
    )
    return { text: found, kind: 'any', path: [], root: found }
  }

/** Puts the items in order: each one behind the last that is not larger. */
const sorted: Make = (node, words, emitter) => {
  if (words.length > 0) return undefined
  const items = itemsOf(node, emitter)
  const list = emitter.kept('[]', 'any').text
  const item = emitter.fresh()
  const isBefore = `(is_array(other) && is_array(${item}) && (((get(other, [0]) ?? null) <= (get(${item}, [0]) ?? null)) ?? false)) || ((other <= ${item}) ?? false)`
  const all = `array(${list}) ?? []`
  const part = (test: string) => `filter(${all}) -> |_place, other| { ${test} }`
  emitter.before.push(
    `for_each(${items}) -> |_index, ${item}| { ${list} = append(push(${part(isBefore)}, ${item}), ${part(`!(${isBefore})`)}) }`,
  )
  return { text: `(${all})`, kind: 'list' }
}

const reversed: Make = (node, words, emitter) => {
  if (words.length > 0) return undefined
  const isText = node.kind === 'text'
  const given: Node = isText ? { text: `split(${node.text}, "")`, kind: 'list' } : node
  if (!isText && node.kind !== 'list') return undefined
  const items = itemsOf(given, emitter)
  const list = emitter.kept('[]', 'any').text
  const item = emitter.fresh()
  emitter.before.push(`for_each(${items}) -> |_index, ${item}| { ${list} = append([${item}], array(${list}) ?? []) }`)
  const all = `(array(${list}) ?? [])`
  return isText
    ? textNode(`(join(map_values(${all}) -> |sign| { to_string(sign) ?? "" }, "") ?? "")`)
    : { text: all, kind: 'list' }
}

/** The position of an item; nil without it. */
const indexOf: Make = (node, [word, ...more], emitter) => {
  if (word === undefined || more.length > 0 || node.kind !== 'list') return undefined
  const items = itemsOf(node, emitter)
  const wanted = emitter.kept(word.text, word.kind).text
  const found = emitter.kept('null', 'any').text
  const index = emitter.fresh()
  emitter.before.push(
    `for_each(${items}) -> |${index}, item| { if ${found} == null && item == ${wanted} { ${found} = ${index} } }`,
  )
  return { text: found, kind: 'any', path: [], root: found }
}

/** All matches: texts, or lists of groups. */
const scanned: Make = (node, [word, ...more]) => {
  const regex = /^\/(.*)\/([imx]*)$/s.exec(word?.regex ?? '')
  if (regex === null || more.length > 0) return undefined
  const [, body = '', flags = ''] = regex
  const all = `parse_regex_all(${asText(node)}, r'${regexFlags(flags)}${rubyRegex(body)}', numeric_groups: true) ?? []`
  const count = groupCount(body)
  const group = (number: number) => `get(found, ["${number}"]) ?? null`
  const value = count === 0 ? group(0) : `[${Array.from({ length: count }, (_, index) => group(index + 1)).join(', ')}]`
  return { text: `map_values(${all}) -> |found| { ${value} }`, kind: 'list' }
}

/** The values of some members. */
const valuesAt: Make = (node, words) => {
  if (node.kind !== 'any' || words.length === 0 || words.some(({ literal }) => literal === undefined)) return undefined
  const names = words.map((word) => `get(${node.text}, [${word.text}]) ?? null`)
  return { text: `[${names.join(', ')}]`, kind: 'list' }
}

/** The first object with the members of the second one. */
const merged: Make = (node, [word, ...more], emitter) => {
  if (word === undefined || more.length > 0 || node.kind !== 'any') return undefined
  const own = isRecord(node) ? 'filter(.) -> |key, _value| { key != "timestamp" }' : node.text
  const [one, two] = [emitter.kept(own, 'any').text, emitter.kept(word.text, 'any').text]
  emitter.failIf(`!is_object(${one}) || !is_object(${two})`)
  return emitter.kept(`merge(object(${one}) ?? {}, object(${two}) ?? {})`, 'any')
}

/** Lines with their line feeds. */
const lines: Make = (node, words) =>
  words.length > 0
    ? undefined
    : {
        text: `map_values(parse_regex_all(${asText(node)}, r'[^\\n]*\\n|[^\\n]+', numeric_groups: true) ?? []) -> |found| { get(found, ["0"]) ?? null }`,
        kind: 'list',
      }

export const listMethods: Readonly<Record<string, Make>> = {
  max: extreme('>'),
  min: extreme('<'),
  sum: (node, words, emitter) => (words.length > 0 ? undefined : totalOf(node, emitter)),
  sort: sorted,
  reverse: reversed,
  index: indexOf,
  find_index: indexOf,
  each_with_index: (node, words, emitter) => (words.length > 0 ? undefined : numbered(node, emitter)),
  scan: scanned,
  lines,
  each_line: lines,
  values_at: valuesAt,
  merge: merged,
  to_a: (node, words, emitter) => (words.length > 0 ? undefined : { text: itemsOf(node, emitter), kind: 'list' }),
  to_h: (node, words, emitter) => {
    if (words.length > 0) return undefined
    if (node.kind === 'list') return emitter.kept(`object_from_array(${node.text}) ?? {}`, 'any')
    return emitter.kept(`if ${node.text} == null { {} } else { ${node.text} }`, 'any')
  },
}

/** `tr("a-z", "_")`: the signs of the second text replace those of the first. */
export function signsIn(text: string): readonly string[] | undefined {
  const signs = [...text]
  const all: string[] = []
  for (let at = 0; at < signs.length; at++) {
    const sign = signs[at] as string
    const last = signs[at + 2]
    if (signs[at + 1] !== '-' || last === undefined) all.push(sign)
    else {
      const [from, to] = [sign.codePointAt(0) ?? 0, last.codePointAt(0) ?? 0]
      if (to < from || to - from > 200) return undefined
      for (let code = from; code <= to; code++) all.push(String.fromCodePoint(code))
      at += 2
    }
  }
  return all
}
