// Rebuilds the objects of a shape: member by member at first, and by generated code if the shape recurs in several records.

import { setField, type Value, type ValueObject } from '../../../event/value.ts'

/** Marks a member equal to that of the previous object. */
export const same = Symbol('same')

/** Returns the members of an object, one by one. */
export interface MemberReader {
  member(): Value | typeof same | undefined
}

type UnpackMembers = (unpacker: MemberReader) => ValueObject

/** Rebuilds objects of a shape; cached, because consecutive records have the same shapes. */
export interface ShapeUnpacker {
  seen: number
  unpack: UnpackMembers
}

/** Shapes with the same names: objects with another member order are another shape, with separate last values. */
interface Namesakes {
  readonly shapes: ShapeUnpacker[]
  /** How many of them a record has defined, and in which record. */
  defined: number
  record: number
}

const unpackers = new Map<string, Namesakes>()
let unpackersKept = 0
/** Number of records with a shape after which generated code pays off. */
const worthIt = 8
const maxUnpackers = 128

/** Reads members one by one, for rare shapes. */
function slowly(names: readonly string[]): UnpackMembers {
  const last = new Array<Value | undefined>(names.length)
  return (unpacker) => {
    const fields: ValueObject = {}
    for (let index = 0; index < names.length; index++) {
      const value = unpacker.member()
      if (value !== same) last[index] = value as Value | undefined
      setField(fields, names[index] as string, last[index])
    }
    return fields
  }
}

function compileUnpack(names: readonly string[]): UnpackMembers {
  const reads = names.map(
    (_, index) => `let value_${index} = unpacker.member()
if (value_${index} === same) value_${index} = last_${index}; else last_${index} = value_${index}`,
  )
  // A computed key, because a bare `__proto__` would set the prototype.
  const members = names.map((name, index) => `[${JSON.stringify(name)}]: value_${index}`)
  const lasts = names.map((_, index) => `last_${index}`)
  const body = `${lasts.length === 0 ? '' : `let ${lasts.join(', ')}\n`}return (unpacker) => {
${reads.join('\n')}
return { ${members.join(', ')} } }`
  return new Function('same', body)(same) as UnpackMembers
}

/**
 * The unpacker of the shape that a record defines next. @param record number of the record, different for each record
 * read
 */
export function shapeUnpacker(names: readonly string[], record: number): ShapeUnpacker {
  const namesakes = namesakesOf(JSON.stringify(names), record)
  const index = namesakes.defined++
  let shape = namesakes.shapes[index]
  if (shape === undefined) {
    shape = { seen: 0, unpack: slowly(names) }
    namesakes.shapes.push(shape)
    unpackersKept++
  }
  if (++shape.seen === worthIt) shape.unpack = compileUnpack(names)
  return shape
}

function namesakesOf(key: string, record: number): Namesakes {
  if (unpackersKept >= maxUnpackers) {
    unpackers.clear()
    unpackersKept = 0
  }
  let found = unpackers.get(key)
  if (found === undefined) {
    found = { shapes: [], defined: 0, record }
    unpackers.set(key, found)
  } else if (found.record !== record) {
    found.record = record
    found.defined = 0
  }
  return found
}
