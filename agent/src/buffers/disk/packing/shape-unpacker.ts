// Rebuilds the objects of a shape: member by member at first, and by generated code if the shape recurs in several records.

import { ownText } from '../../../bounded-map.ts'
import { setField, type Value, type ValueObject } from '../../../event/value.ts'

/** Marks a member equal to that of the previous object. */
export const same = Symbol('same')

/** Returns the members of an object, one by one. */
export interface MemberReader {
  member(): Value | typeof same | undefined
}

interface Members {
  unpack(unpacker: MemberReader): ValueObject
  /** Releases the values of the last object. */
  forget(): void
}

/** Rebuilds objects of a shape; cached, because consecutive records have the same shapes. */
export interface ShapeUnpacker {
  seen: number
  /**
   * Must hold no values after the end of a record, because there are many shapes and a single value may be a megabyte.
   */
  members: Members
}

/**
 * Shapes with the same member names. Objects with another order of members have another shape, with separate last
 * values.
 */
interface Namesakes {
  readonly shapes: ShapeUnpacker[]
  /** Number of these shapes that the record has defined, and the number of that record. */
  defined: number
  record: number
}

const unpackers = new Map<string, Namesakes>()
let unpackersKept = 0
/** Total number of characters in their names. */
let namesKept = 0
/** Number of records with a shape after which generated code pays off. */
const worthIt = 8
/** When either limit is reached, all unpackers are dropped, and created again from the next record on. */
const maxUnpackers = 128
const maxNames = 1 << 20

/** Reads members one by one, for rare shapes. */
function slowly(names: readonly string[]): Members {
  const last = new Array<Value | undefined>(names.length)
  return {
    unpack(unpacker) {
      const fields: ValueObject = {}
      for (let index = 0; index < names.length; index++) {
        const value = unpacker.member()
        if (value !== same) last[index] = value as Value | undefined
        setField(fields, names[index] as string, last[index])
      }
      return fields
    },
    forget: () => void last.fill(undefined),
  }
}

function compileUnpack(names: readonly string[]): Members {
  const reads = names.map(
    (_, index) => `let value_${index} = unpacker.member()
if (value_${index} === same) value_${index} = last_${index}; else last_${index} = value_${index}`,
  )
  // A computed key, because a bare `__proto__` would set the prototype.
  const members = names.map((name, index) => `[${JSON.stringify(name)}]: value_${index}`)
  const lasts = names.map((_, index) => `last_${index}`)
  const body = `${lasts.length === 0 ? '' : `let ${lasts.join(', ')}\n`}return {
unpack(unpacker) {
${reads.join('\n')}
return { ${members.join(', ')} } },
forget() { ${lasts.map((last) => `${last} = undefined`).join('; ')} } }`
  return new Function('same', body)(same) as Members
}

/**
 * The unpacker of the shape that a record defines next. @param record number of the record, different for each record
 * read
 */
export function shapeUnpacker(names: readonly string[], record: number): ShapeUnpacker {
  const key = JSON.stringify(names)
  const namesakes = namesakesOf(key, record)
  const index = namesakes.defined++
  let shape = namesakes.shapes[index]
  if (shape === undefined) {
    shape = { seen: 0, members: slowly(names.map(ownText)) }
    namesakes.shapes.push(shape)
    unpackersKept++
    namesKept += key.length
  }
  if (++shape.seen === worthIt) shape.members = compileUnpack(names)
  return shape
}

function namesakesOf(key: string, record: number): Namesakes {
  if (unpackersKept >= maxUnpackers || namesKept >= maxNames) {
    unpackers.clear()
    unpackersKept = 0
    namesKept = 0
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
