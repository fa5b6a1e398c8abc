// MMDB databases with one record for one block of IPv4 addresses, for tests.

type Data = string | number | readonly string[] | { readonly [name: string]: Data }

/** @param prefix the first bytes of addresses with the record */
export function database(kind: string, prefix: readonly number[], record: Data): Buffer {
  const bits = prefix.flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> (7 - bit)) & 1))
  const tree = Buffer.alloc(bits.length * 6)
  for (const [node, bit] of bits.entries()) {
    // A tree record is the next node, "nothing" (the number of nodes), or an offset after the 16 bytes that follow the tree.
    const next = node + 1 < bits.length ? node + 1 : bits.length + 16
    tree.writeUIntBE(bit === 0 ? next : bits.length, node * 6, 3)
    tree.writeUIntBE(bit === 1 ? next : bits.length, node * 6 + 3, 3)
  }
  const metadata = {
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1,
    database_type: kind,
    description: {},
    ip_version: 4,
    languages: ['en'],
    node_count: bits.length,
    record_size: 24,
  }
  return Buffer.concat([
    tree,
    Buffer.alloc(16),
    encoded(record),
    Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'),
    encoded(metadata),
  ])
}

function encoded(data: Data): Buffer {
  if (typeof data === 'string') return Buffer.concat([control(2, Buffer.byteLength(data)), Buffer.from(data)])
  if (typeof data === 'number') {
    const bytes = Buffer.alloc(8)
    // Numbers with a fraction and coordinates are doubles; metadata are unsigned.
    if (!Number.isInteger(data) || data === 48) {
      bytes.writeDoubleBE(data)
      return Buffer.concat([control(3, 8), bytes])
    }
    bytes.writeUInt32BE(data)
    return Buffer.concat([control(6, 4), bytes.subarray(0, 4)])
  }
  if (Array.isArray(data)) return Buffer.concat([control(11, data.length), ...data.map(encoded)])
  const entries = Object.entries(data as { readonly [name: string]: Data })
  return Buffer.concat([
    control(7, entries.length),
    ...entries.flatMap(([name, value]) => [encoded(name), encoded(value)]),
  ])
}

/** Types up to 7 are in the first byte, others in a second byte. Lengths from 29 need one more byte. */
function control(type: number, length: number): Buffer {
  const size = length < 29 ? length : 29
  const more = length < 29 ? [] : [length - 29]
  return type <= 7 ? Buffer.of((type << 5) | size, ...more) : Buffer.of(size, type - 7, ...more)
}
