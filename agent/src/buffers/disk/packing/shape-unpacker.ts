// Makes the objects of a shape again: member by member at first, by generated code where the shape returns in several records.

import { setField, type Value, type ValueObject } from '../../../event/value.ts'

/** Stands for a member that is the same as in the object before. */
export const same = Symbol('same')

/** Returns the members of an object, one by one. */
export interface MemberReader {
  member(): Value | typeof same | undefined
}

type UnpackMembers = (unpacker: MemberReader) => ValueObject

/** How objects of a shape are made again; kept, because the shapes of one record are those of the next. */
export interface ShapeUnpacker {
  seen: number
  unpack: UnpackMembers
}

/** Shapes with the same names: objects whose members have another order are another shape, with other last values. */
interface Namesakes {
  readonly shapes: ShapeUnpacker[]
  /** How many of them a record has defined, and which it was. */
  defined: number
  record: number
}

const unpackers = new Map<string, Namesakes>()
let unpackersKept = 0
/** Records with objects of a shape for which generated code is worth its while. */
const worthIt = 8
const maxUnpackers = 128

/** Members one by one, for shapes that are rare. */
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
  // In brackets, because a bare `__proto__` would be the prototype.
  const members = names.map((name, index) => `[${JSON.stringify(name)}]: value_${index}`)
  const lasts = names.map((_, index) => `last_${index}`)
  const body = `${lasts.length === 0 ? '' : `let ${lasts.join(', ')}\n`}return (unpacker) => {
${reads.join('\n')}
return { ${members.join(', ')} } }`
  return new Function('same', body)(same) as UnpackMembers
}

/**
 * The unpacker of the shape that a record defines next.
 * @param record number of the record, another one for each that is read
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
