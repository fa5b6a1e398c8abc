// Function `uuid_v7`.

import { randomBytes } from 'node:crypto'
import type { Timestamp } from '../../event/timestamp.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const uuidV7 = defineFunction({
  name: 'uuid_v7',
  category: 'Random',
  summary: 'Returns a UUID (version 7) that begins with a time.',
  description: 'A given timestamp is encoded with a precision of about four seconds.',
  parameters: [
    { name: 'timestamp', kind: kinds.timestamp, required: false, description: 'The time; the current time if absent.' },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: false,
  examples: [
    { source: "slice!(uuid_v7(t'2023-04-05T06:07:08.901Z'), 0, 13)", result: '"01875006-b1fe"' },
    { source: 'length(uuid_v7())', result: '36' },
    { source: "slice!(uuid_v7(t'1970-01-01T00:00:00Z'), 0, 13)", result: '"00000000-0000"' },
  ],
  compile: () => (timestamp: Timestamp | undefined) => {
    const bytes = randomBytes(16)
    bytes.writeUIntBE(Math.max(0, timestamp === undefined ? Date.now() : milliseconds(timestamp)) % 2 ** 48, 0, 6)
    bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f)
    bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f)
    const hex = bytes.toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  },
})

// Like the reference, uses the low 32 bits of the nanoseconds since the epoch as the fraction of the second.
function milliseconds(timestamp: Timestamp): number {
  const fraction = Number(timestamp.toNanoseconds() & 0xffff_ffffn)
  return Math.floor(timestamp.ms / 1000) * 1000 + Math.floor(fraction / 1_000_000)
}
