// The CRC-32C checksum (Castagnoli) of many bytes, eight at a time; the general algorithms are in crc.ts.

const polynomial = 0x82f63b78

/** Eight tables of 256: the effect of a byte that so many bytes follow. */
let tables: Int32Array | undefined

function makeTables(): Int32Array {
  const made = new Int32Array(8 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let value = byte
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1
    made[byte] = value
  }
  for (let index = 256; index < made.length; index++) {
    const before = made[index - 256] as number
    made[index] = (before >>> 8) ^ (made[before & 255] as number)
  }
  return made
}

/** The checksum of the bytes, unsigned; `before` is that of the bytes before them. */
export function crc32c(bytes: Uint8Array, before = 0): number {
  tables ??= makeTables()
  const table = tables
  let register = ~before
  let at = 0
  for (const end = bytes.length - 7; at < end; at += 8) {
    const low =
      register ^
      ((bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24))
    register =
      (table[1792 + (low & 255)] as number) ^
      (table[1536 + ((low >>> 8) & 255)] as number) ^
      (table[1280 + ((low >>> 16) & 255)] as number) ^
      (table[1024 + (low >>> 24)] as number) ^
      (table[768 + (bytes[at + 4] as number)] as number) ^
      (table[512 + (bytes[at + 5] as number)] as number) ^
      (table[256 + (bytes[at + 6] as number)] as number) ^
      (table[bytes[at + 7] as number] as number)
  }
  for (; at < bytes.length; at++) {
    register = (register >>> 8) ^ (table[(register ^ (bytes[at] as number)) & 255] as number)
  }
  return ~register >>> 0
}
