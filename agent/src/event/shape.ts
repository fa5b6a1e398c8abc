// Shapes: for objects with the same sequence of keys, the agent generates code that reads their members directly.
// Logs may have thousands of sequences, and their keys may be data. So only hot sequences, those in constant use, have a shape. Their
// number is bounded, and a sequence that cools down loses its shape. Other objects are processed member by member; while a sequence is
// remembered, its keys are kept sorted and as bytes. All memory here has a limit in bytes, whatever the events contain.

import { compareKeys, isDictionary, type Value, type ValueObject } from './value.ts'

/** Length of an epoch in lookups. At its end, the use of each sequence is evaluated. */
const epochLooks = 1 << 17
/** Lookups within an epoch that make a sequence hot: 1.5 % of all. */
export const hotLooks = 2000
/** A hot sequence with fewer lookups in an epoch has cooled down. */
const coolLooks = 250
/** Lookups after which the sorted keys of a sequence are kept. Sequences that do not recur are not worth the memory. */
const repeatedLooks = 4
/** Limits of generated code: the number of shapes, and the size of their source in bytes. */
const maxShapes = 96
const maxSourceBytes = 512 * 1024
/** Approximate size of the source for one member, without its key. */
const memberSourceBytes = 120
/** Limits of remembered sequences: total bytes, keys of one sequence, and length of a key. Longer sequences are not remembered. */
const maxTreeBytes = 6 * 1024 * 1024
const maxMembers = 128
const maxKeyLength = 256
/** Approximate costs, in bytes, of a node, of its map if it has more than two branches, and of a sorted key. */
const nodeBytes = 96
const branchMapBytes = 256
const orderedKeyBytes = 24

export class Shape {
  /** Keys in the order in which encoders write them. A member may be undefined, which means absent. */
  readonly names: readonly string[]
  /** Generated code: one slot for each user of shapes. */
  size: ((object: ValueObject) => number) | undefined
  writer: unknown
  packer: unknown
  readonly #family: Family
  #members: ((object: ValueObject) => (Value | undefined)[]) | undefined
  /** Shapes with one additional key. Programs add only few keys. */
  #wider: Map<string, Shape | null> | undefined
  #lastAdded: string | undefined
  #lastWider: Shape | null = null

  constructor(names: readonly string[], family: Family) {
    this.names = names
    this.#family = family
  }

  /** The shape of an object with one more key, or this shape if it already has the key. Null means that no shape exists. */
  with(name: string): Shape | null {
    if (name !== this.#lastAdded) {
      this.#lastAdded = name
      this.#lastWider = this.#widened(name)
    }
    return this.#lastWider
  }

  #widened(name: string): Shape | null {
    this.#wider ??= new Map()
    let wider = this.#wider.get(name)
    if (wider === undefined) {
      wider = this.names.includes(name) ? this : shapeWith([...this.names, name], this.#family)
      // A null result is not cached, because an unlimited number of names would need unlimited memory.
      if (wider !== null) this.#wider.set(name, wider)
    }
    return wider
  }

  /** The values of an object of this shape, in the order of `names`. */
  members(object: ValueObject): (Value | undefined)[] {
    this.#members ??= new Function(
      'object',
      `return [${this.names.map((name) => `object[${JSON.stringify(name)}]`).join(', ')}]`,
    ) as (object: ValueObject) => (Value | undefined)[]
    return this.#members(object)
  }
}

/** The shape of a hot sequence, and the shapes derived from it by adding keys. They are removed together. */
interface Family {
  shapes: number
  sourceBytes: number
  /** False when the sequence has cooled down. */
  isHot: boolean
}

/** How to write the members of a sequence in sorted order: the position of each in the object, and its key as bytes. */
export interface KeyOrder {
  readonly places: readonly number[]
  /** Each as `,"key":`. */
  readonly keys: readonly Uint8Array[]
}

/** A node in the tree of key sequences. Most objects follow a branch that was used recently. */
class KeyNode {
  lastKey: string | undefined
  lastNode: KeyNode | undefined
  /** The branch used before that, because events and their nested objects alternate at the root. */
  otherKey: string | undefined
  otherNode: KeyNode | undefined
  /** All branches, if there are more than two. */
  branches: Map<string, KeyNode> | undefined
  readonly depth: number
  /** Lookups in this epoch of objects whose sequence ends here. */
  looks = 0
  /** Null if the sequence is not hot. */
  shape: Shape | null = null
  family: Family | undefined
  /** Null if there is none, because a key looks like an array index (the engine moves such keys first) or the tree is full. */
  order: KeyOrder | null | undefined

  constructor(depth: number) {
    this.depth = depth
  }
}

const root = new KeyNode(0)
let looks = 0
let treeBytes = 0
let shapes = 0
let sourceBytes = 0
/** Keys as bytes. Sequences with the same key share them. */
let keyTexts = new Map<string, Uint8Array>()

/** Current usage, for metrics. */
export function shapeUsage(): Readonly<Record<'treeBytes' | 'shapes' | 'sourceBytes', number>> {
  return { treeBytes, shapes, sourceBytes }
}

/** The shape of an object; null if its sequence of keys is not hot. */
export function shapeOf(object: ValueObject): Shape | null {
  if (isDictionary(object)) return null
  let node = root
  for (const key in object) {
    if (key === node.lastKey) node = node.lastNode as KeyNode
    else if (key === node.otherKey) node = node.otherNode as KeyNode
    else {
      const branch = branchOf(node, key)
      if (branch === undefined) return null
      node = branch
    }
  }
  if (++looks >= epochLooks) endEpoch()
  return ++node.looks === hotLooks ? heat(node, object) : node.shape
}

/**
 * Copies the members of an object, in its own order, into `values`, starting at index `at`.
 * @returns how to write them; undefined if the sequence of keys is not remembered, in which case the copy is incomplete
 */
export function collectMembers(object: ValueObject, values: (Value | undefined)[], at: number): KeyOrder | undefined {
  if (isDictionary(object)) return undefined
  let node = root
  let index = at
  for (const key in object) {
    values[index++] = object[key]
    if (key === node.lastKey) node = node.lastNode as KeyNode
    else if (key === node.otherKey) node = node.otherNode as KeyNode
    else {
      const branch = branchOf(node, key)
      if (branch === undefined) return undefined
      node = branch
    }
  }
  if (node.order === undefined && ++node.looks > repeatedLooks) node.order = orderOf(object)
  return node.order ?? undefined
}

function branchOf(node: KeyNode, key: string): KeyNode | undefined {
  const branch = node.branches?.get(key) ?? grow(node, key)
  if (branch === undefined) return undefined
  node.otherKey = node.lastKey
  node.otherNode = node.lastNode
  node.lastKey = key
  node.lastNode = branch
  return branch
}

function grow(node: KeyNode, key: string): KeyNode | undefined {
  if (treeBytes > maxTreeBytes || node.depth === maxMembers || key.length > maxKeyLength) return undefined
  const branch = new KeyNode(node.depth + 1)
  treeBytes += nodeBytes + key.length
  if (node.branches !== undefined) node.branches.set(key, branch)
  else if (node.otherKey !== undefined) {
    node.branches = new Map([
      [node.lastKey as string, node.lastNode as KeyNode],
      [node.otherKey, node.otherNode as KeyNode],
      [key, branch],
    ])
    treeBytes += branchMapBytes
  }
  return branch
}

function heat(node: KeyNode, object: ValueObject): Shape | null {
  if (node.shape !== null) return node.shape
  const family: Family = { shapes: 0, sourceBytes: 0, isHot: true }
  node.shape = shapeWith(Object.keys(object), family)
  if (node.shape !== null) node.family = family
  return node.shape
}

/** The shape of a sequence; null if a limit is reached, or the sequence cannot have a shape. */
function shapeWith(names: string[], family: Family): Shape | null {
  if (!family.isHot || shapes === maxShapes || names.length > maxMembers || names.some(isIndex)) return null
  let bytes = 0
  for (const name of names) {
    if (name.length > maxKeyLength) return null
    bytes += memberSourceBytes + name.length * 16 // each byte of a key is a statement
  }
  if (sourceBytes + bytes > maxSourceBytes) return null
  shapes++
  sourceBytes += bytes
  family.shapes++
  family.sourceBytes += bytes
  return new Shape(names.sort(compareKeys), family)
}

/** Whether a key looks like an array index. The engine moves such keys to the front of an object. */
function isIndex(name: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(name)
}

function orderOf(object: ValueObject): KeyOrder | null {
  const names = Object.keys(object)
  if (treeBytes > maxTreeBytes || names.some(isIndex)) return null
  const places = names.map((_, index) => index)
  places.sort((left, right) => compareKeys(names[left] as string, names[right] as string))
  treeBytes += names.length * orderedKeyBytes
  return { places, keys: places.map((place) => keyText(names[place] as string)) }
}

function keyText(name: string): Uint8Array {
  let text = keyTexts.get(name)
  if (text === undefined) {
    // Not a view of a pooled buffer, because it would keep the whole pool in memory.
    text = new Uint8Array(Buffer.from(`,${JSON.stringify(name)}:`))
    keyTexts.set(name, text)
    treeBytes += branchMapBytes + text.length
  }
  return text
}

/** Ends an epoch: forgets sequences that no object used, and removes the code of those that have cooled down. */
function endEpoch(): void {
  looks = 0
  treeBytes = 0
  keyTexts = new Map()
  retain(root)
}

/** Forgets the unused branches of a node. Returns whether the node or one of its branches was used. */
function retain(node: KeyNode): boolean {
  const used = node.looks > 0
  if (node.family !== undefined && node.looks < coolLooks) {
    node.family.isHot = false
    shapes -= node.family.shapes
    sourceBytes -= node.family.sourceBytes
    node.family = undefined
    node.shape = null
  }
  node.looks = 0
  const kept = branchesOf(node).filter(([, branch]) => retain(branch))
  node.branches = kept.length > 2 ? new Map(kept) : undefined
  const [last, other] = kept
  node.lastKey = last?.[0]
  node.lastNode = last?.[1]
  node.otherKey = other?.[0]
  node.otherNode = other?.[1]
  // Sorted keys are computed again, because their bytes may no longer be shared with other sequences.
  node.order = undefined
  if (!used && kept.length === 0) return false
  treeBytes += nodeBytes + (node.branches === undefined ? 0 : branchMapBytes)
  for (const [key] of kept) treeBytes += key.length
  return true
}

function branchesOf(node: KeyNode): [string, KeyNode][] {
  if (node.branches !== undefined) return [...node.branches]
  const pairs: [string, KeyNode][] = []
  if (node.lastKey !== undefined) pairs.push([node.lastKey, node.lastNode as KeyNode])
  if (node.otherKey !== undefined) pairs.push([node.otherKey, node.otherNode as KeyNode])
  return pairs
}
