// Converts CBOR (RFC 8949) to values. It accepts everything that JSON can express too, and rejects byte strings and keys that are not
// text.
// cbor-x is not used, because it reads 1.0 as the integer 1, converts tags to dates, renames the key `__proto__`, rejects data after the
// first value, and limits nesting only by the stack. Programs and conformance cases need the opposite in each case.

import { float, integer, setField, type Value, type ValueObject } from '../event/value.ts'

const maxDepth = 128

class InvalidCbor extends Error {}

/**
 * The first value of the data, as the reference implementation reads it; bytes after it are ignored. A failure contains
 * the reason.
 */
export function parseCbor(data: Buffer): { readonly value: Value } | { readonly problem: string } {
  const reader = new Reader(data)
  try {
    return { value: reader.value(0) }
  } catch (error) {
    if (error instanceof InvalidCbor || error instanceof RangeError) return { problem: error.message }
    throw error
  }
}

const half = new DataView(new ArrayBuffer(8))
const breakCode = Symbol('break')

class Reader {
  readonly #data: Buffer
  #at = 0

  constructor(data: Buffer) {
    this.#data = data
  }

  value(depth: number): Value {
    const item = this.#item(depth)
    if (item === breakCode) throw new InvalidCbor('unexpected break')
    return item
  }

  #item(depth: number): Value | typeof breakCode {
    if (depth > maxDepth) throw new InvalidCbor('nested too deep')
    const head = this.#bytes(1)[0] as number
    const major = head >> 5
    const info = head & 31
    if (head === 0xff) return breakCode
    switch (major) {
      case 0:
        return fitting(this.#argument(info))
      case 1:
        return fitting(-1n - this.#argument(info))
      case 2:
        throw new InvalidCbor('Semantic(None, "invalid type: byte array, expected any valid JSON value")')
      case 3:
        return this.#text(info)
      case 4: {
        const items: Value[] = []
        this.#each(info, depth, (item) => {
          items.push(item)
        })
        return items
      }
      case 5: {
        const fields: ValueObject = {}
        let key: string | undefined
        this.#each(
          info,
          depth,
          (item) => {
            if (key !== undefined) {
              setField(fields, key, item)
              key = undefined
            } else if (typeof item === 'string') {
              key = item
            } else {
              throw new InvalidCbor(`Semantic(None, "invalid type: ${described(item)}, expected string")`)
            }
          },
          2n,
        )
        return fields
      }
      case 6:
        // A tag describes a value without changing it.
        this.#argument(info)
        return this.#item(depth + 1)
      default:
        return this.#simple(info)
    }
  }

  #each(info: number, depth: number, visit: (item: Value) => void, perEntry = 1n): void {
    if (info === 31) {
      for (let item = this.#item(depth + 1); item !== breakCode; item = this.#item(depth + 1)) visit(item)
      return
    }
    const count = this.#argument(info) * perEntry
    if (count > BigInt(this.#data.length)) throw new InvalidCbor('Io(EndOfFile(()))')
    for (let index = 0; index < Number(count); index++) visit(this.value(depth + 1))
  }

  #text(info: number): string {
    if (info !== 31) return this.#bytes(Number(this.#argument(info))).toString('utf8')
    let text = ''
    for (;;) {
      const head = this.#bytes(1)[0] as number
      if (head === 0xff) return text
      if (head >> 5 !== 3 || (head & 31) === 31) throw new InvalidCbor('a piece of text is of another type')
      text += this.#bytes(Number(this.#argument(head & 31))).toString('utf8')
    }
  }

  #simple(info: number): Value {
    switch (info) {
      case 20:
        return false
      case 21:
        return true
      case 22:
      case 23:
        return null
      case 25:
        return real(halfFloat(this.#bytes(2).readUInt16BE()))
      case 26:
        return real(this.#bytes(4).readFloatBE())
      case 27:
        return real(this.#bytes(8).readDoubleBE())
      default:
        throw new InvalidCbor(`simple value ${info} is not known`)
    }
  }

  #argument(info: number): bigint {
    if (info < 24) return BigInt(info)
    switch (info) {
      case 24:
        return BigInt(this.#bytes(1)[0] as number)
      case 25:
        return BigInt(this.#bytes(2).readUInt16BE())
      case 26:
        return BigInt(this.#bytes(4).readUInt32BE())
      case 27:
        return this.#bytes(8).readBigUInt64BE()
      default:
        throw new InvalidCbor('invalid length')
    }
  }

  #bytes(count: number): Buffer {
    if (this.#at + count > this.#data.length) throw new InvalidCbor('Io(EndOfFile(()))')
    this.#at += count
    return this.#data.subarray(this.#at - count, this.#at)
  }
}

function described(item: Value): string {
  switch (typeof item) {
    case 'number':
    case 'bigint':
      return Number.isInteger(Number(item)) ? `integer \`${item}\`` : `floating point \`${item}\``
    case 'boolean':
      return `boolean \`${item}\``
    default:
      return item === null ? 'null' : Array.isArray(item) ? 'sequence' : 'map'
  }
}

function fitting(value: bigint): Value {
  return BigInt.asIntN(64, value) === value ? integer(value) : float(Number(value))
}

function real(value: number): Value {
  return Number.isNaN(value) ? null : float(value)
}

function halfFloat(bits: number): number {
  half.setUint16(0, bits)
  return half.getFloat16(0)
}
