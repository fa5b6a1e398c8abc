// Generated code that packs the objects of one shape: it needs no look-ups by name, and writes one byte for a member equal to
// that of the previous object.

import type { Shape } from '../../../event/shape.ts'
import type { Value, ValueObject } from '../../../event/value.ts'
import { headBytes, maxShortLength, tag } from './tags.ts'

/** The parts of the packer that generated code uses. */
export interface ValueWriter {
  values: Buffer
  at: number
  room(bytes: number): void
  longText(at: number, length: number): number
  collect(text: string): void
  value(value: Value | undefined): void
}

type PackMembers = (fields: ValueObject, packer: ValueWriter) => void

/** Packs objects of a shape within one record. */
export interface ShapePacker {
  /** The record that it packs for; 0: none. */
  record: number
  id: number
  readonly reset: () => void
  readonly pack: PackMembers
}

/** The packer of a shape, cached in the shape. */
export function shapePacker(shape: Shape): ShapePacker {
  const packer = { record: 0, id: 0, ...compilePack(shape.names) }
  shape.packer = packer
  return packer
}

/** Ends its part of a record, and releases the values of the last object. */
export function resetPacker(packer: ShapePacker): void {
  packer.record = 0
  packer.reset()
}

/** If a member differed in each of this many objects of a record, it counts as always different. */
const oftenEnough = 16
/**
 * Number of records in which such a member is not compared, because comparing long texts costs more than packing them.
 */
const recordsUnlike = 15

// The last value is recorded only after the member was packed: objects of the shape may be nested, and the reader knows the member only
// then. The first object of a record is not compared, rather than compared with a placeholder, because comparisons between strings only
// are cheap.
function compilePack(names: readonly string[]): { pack: PackMembers; reset: () => void } {
  const each = names.map(
    (name, index) => `value = fields[${JSON.stringify(name)}]
if (compares_${index} && value === last_${index}) {
  values[at++] = ${tag.same}
  same_${index} = true
} else {
  if (typeof value === 'string') {
    if (value.length <= ${maxShortLength}) values[at++] = ${tag.shortText} + value.length
    else at = packer.longText(at, value.length)
    packer.collect(value)
  } else {
    packer.at = at
    packer.value(value)
    packer.room(${names.length - index} * ${headBytes})
    values = packer.values
    at = packer.at
  }
  if (unlike_${index} === 0) last_${index} = value
}`,
  )
  const variables = names.map(
    (_, index) => `let last_${index}, compares_${index} = false, same_${index} = false, unlike_${index} = 0\n`,
  )
  const begun = names.map((_, index) => `compares_${index} = unlike_${index} === 0\n`)
  const resets = names.map(
    (_, index) => `if (unlike_${index} > 0) unlike_${index}--
else if (packed >= ${oftenEnough} && !same_${index}) unlike_${index} = ${recordsUnlike}
same_${index} = compares_${index} = false
last_${index} = undefined`,
  )
  const body = `let packed = 0\n${variables.join('')}return {
pack(fields, packer) {
packer.room(${names.length} * ${headBytes})
let values = packer.values, at = packer.at, value
${each.join('\n')}
packer.at = at
if (packed++ === 0) { ${begun.join('')} } },
reset() {
${resets.join('\n')}
packed = 0 } }`
  return new Function(body)() as { pack: PackMembers; reset: () => void }
}
