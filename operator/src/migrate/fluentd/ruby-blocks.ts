// Methods of Ruby with a block, such as `map { |key, value| … }`. The receiver becomes a list of its items; an item of an object is a list of
// the name and the value, as in Ruby. The block becomes the closure of a function.

import type { Emitter } from './ruby-emitter.ts'
import { isRecord, isTrue, type Node, testNode, UnknownRuby } from './ruby-node.ts'

/** A block whose code is read when its values are known. */
export interface Block {
  /** Runs the code with the item in this variable, and with further values. */
  readonly of: (item: string, ...further: readonly Node[]) => Node
  /** The same with the further value in front. */
  readonly behind: (first: Node, item: string) => Node
}

/** The items of a list or of an object. Ruby raises an error for other values. */
export function itemsOf(node: Node, emitter: Emitter): string {
  // The compiler may know the kinds of the items, and reject a part for items of another kind.
  const list = emitter.isWide ? `array(get([${node.text}], [0]) ?? []) ?? []` : node.text
  if (node.kind === 'list') return emitter.kept(list, 'list').text
  if (node.kind !== 'any') throw new UnknownRuby()
  const text = isRecord(node) ? 'filter(.) -> |key, _value| { key != "timestamp" }' : node.text
  const value = emitter.kept(text, 'any').text
  emitter.failIf(`!is_array(${value}) && !is_object(${value})`)
  const pairs = `map_values(to_entries(object(${value}) ?? {})) -> |entry| { [get(entry, ["key"]) ?? null, get(entry, ["value"]) ?? null] }`
  return emitter.kept(`if is_array(${value}) { array(${value}) ?? [] } else { ${pairs} }`, 'list').text
}

type Make = (node: Node, block: Block, words: readonly Node[], emitter: Emitter) => Node | undefined

/** The items for which the block is true or false; of an object, an object. */
const chosen =
  (isKept: boolean): Make =>
  (node, block, _words, emitter) => {
    const items = itemsOf(node, emitter)
    const item = emitter.fresh()
    const test = isTrue(block.of(item))
    const kept = emitter.kept(`filter(${items}) -> |_index, ${item}| { ${isKept ? test : `!(${test})`} }`, 'list').text
    return likeReceiver(node, kept, emitter)
  }

/** A list of items as the kind of value that the receiver is. */
function likeReceiver(node: Node, items: string, emitter: Emitter): Node {
  if (node.kind === 'list') return { text: items, kind: 'list' }
  if (isRecord(node)) return emitter.kept(`object_from_array(${items}) ?? {}`, 'any')
  return emitter.kept(`if is_object(${node.text}) { object_from_array(${items}) ?? {} } else { ${items} }`, 'any')
}

const map: Make = (node, block, _words, emitter) => {
  const items = itemsOf(node, emitter)
  const item = emitter.fresh()
  const value = block.of(item)
  return { text: emitter.kept(`map_values(${items}) -> |${item}| { ${value.text} }`, 'list').text, kind: 'list' }
}

/** Runs the block for each item, with the values that it changes in variables. */
function forEach(node: Node, read: (item: string) => string, emitter: Emitter): void {
  const items = itemsOf(node, emitter)
  const item = emitter.fresh()
  const body = read(item)
  emitter.before.push(`for_each(${items}) -> |_index, ${item}| { ${body} }`)
}

const count: Make = (node, block, _words, emitter) => {
  const list = chosen(true)(
    node.kind === 'list' ? node : { text: itemsOf(node, emitter), kind: 'list' },
    block,
    [],
    emitter,
  )
  return list === undefined ? undefined : { text: `length(${list.text})`, kind: 'integer' }
}

const test =
  (make: (number: string, all: string) => string): Make =>
  (node, block, words, emitter) => {
    const items: Node = { text: itemsOf(node, emitter), kind: 'list' }
    const number = count(items, block, words, emitter)
    return number === undefined ? undefined : testNode(`(${make(number.text, `length(${items.text})`)})`)
  }

const first: Make = (node, block, _words, emitter) => {
  const items: Node = { text: itemsOf(node, emitter), kind: 'list' }
  const found = chosen(true)(items, block, [], emitter)
  return found === undefined ? undefined : emitter.kept(`get(${found.text}, [0]) ?? null`, 'any')
}

/** An object whose names or values the block changes. */
const changed =
  (isName: boolean): Make =>
  (node, block, _words, emitter) => {
    const items = itemsOf(node, emitter)
    const pair = emitter.fresh()
    const part = emitter.fresh()
    const value = block.of(part)
    const other = `get(${pair}, [${isName ? 1 : 0}]) ?? null`
    const both = isName ? `${value.text}, ${other}` : `${other}, ${value.text}`
    const body = `${part} = get(${pair}, [${isName ? 0 : 1}]) ?? null\n[${both}]`
    return emitter.kept(`object_from_array(map_values(${items}) -> |${pair}| { ${body} }) ?? {}`, 'any')
  }

/** `inject(start) { |all, item| … }`. */
const inject: Make = (node, block, [start], emitter) => {
  if (start === undefined) return undefined
  const all = emitter.kept(start.text === '' ? '{}' : start.text, 'any')
  forEach(node, (item) => `${all.text} = ${block.behind(all, item).text}`, emitter)
  return all
}

/** `each_with_object(start) { |item, all| … }`. */
const withObject: Make = (node, block, [start], emitter) => {
  if (start === undefined) return undefined
  const all = emitter.kept(start.text === '' ? '{}' : start.text, 'any')
  forEach(node, (item) => block.of(item, all).text, emitter)
  return all
}

const each: Make = (node, block, _words, emitter) => {
  forEach(node, (item) => block.of(item).text, emitter)
  return node
}

const withIndex: Make = (node, block, _words, emitter) => {
  const index = emitter.kept('-1', 'any')
  forEach(node, (item) => `${index.text} = (to_int(${index.text}) ?? 0) + 1\n${block.of(item, index).text}`, emitter)
  return node
}

const sum: Make = (node, block, words, emitter) => {
  const list = map(node, block, words, emitter)
  return list === undefined ? undefined : totalOf(list, emitter)
}

/** The sum of numbers. */
export function totalOf(node: Node, emitter: Emitter): Node {
  const total = emitter.kept('0', 'any')
  const items = itemsOf(node, emitter)
  const item = emitter.fresh()
  emitter.before.push(`for_each(${items}) -> |_index, ${item}| { ${total.text} = (${total.text} + ${item}) ?? null }`)
  emitter.failIf(`${total.text} == null`)
  return total
}

const filterMap: Make = (node, block, words, emitter) => {
  const list = map(node, block, words, emitter)
  return list === undefined
    ? undefined
    : { text: `filter(${list.text}) -> |_index, value| { value != null && value != false }`, kind: 'list' }
}

const toHash: Make = (node, block, words, emitter) => {
  const list = map(node, block, words, emitter)
  return list === undefined ? undefined : emitter.kept(`object_from_array(${list.text}) ?? {}`, 'any')
}

/** The value itself, for the block. `tap` returns it, `then` the value of the block. */
const passed =
  (isTap: boolean): Make =>
  (node, block, _words, emitter) => {
    const text = node.pairs?.length === 0 ? '{}' : node.text
    const item = emitter.kept(text, 'any')
    const value = block.of(item.text)
    const result = emitter.kept(value.text, 'any')
    return isTap ? item : result
  }

export const blockMethods: Readonly<Record<string, Make>> = {
  map,
  collect: map,
  flat_map: (node, block, words, emitter) => {
    const list = map(node, block, words, emitter)
    return list === undefined ? undefined : { text: `flatten(${list.text})`, kind: 'list' }
  },
  select: chosen(true),
  filter: chosen(true),
  reject: chosen(false),
  find: first,
  detect: first,
  count,
  'any?': test((number) => `${number} > 0`),
  'all?': test((number, all) => `${number} == ${all}`),
  'none?': test((number) => `${number} == 0`),
  transform_keys: changed(true),
  transform_values: changed(false),
  inject,
  reduce: inject,
  each_with_object: withObject,
  each,
  each_pair: each,
  each_with_index: withIndex,
  sum,
  filter_map: filterMap,
  to_h: toHash,
  tap: passed(true),
  yield_self: passed(false),
  ...Object.fromEntries([['then', passed(false)]]),
}

/** `each_with_index` without a block: pairs of items and numbers. */
export function numbered(node: Node, emitter: Emitter): Node {
  const pairs = emitter.kept('[]', 'any')
  const items = itemsOf(node, emitter)
  const item = emitter.fresh()
  const list = `array(${pairs.text}) ?? []`
  emitter.before.push(
    `for_each(${items}) -> |_index, ${item}| { ${pairs.text} = push(${list}, [${item}, length(${list})]) }`,
  )
  return { text: `(array(${pairs.text}) ?? [])`, kind: 'list' }
}
