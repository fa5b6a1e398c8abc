// Non-cryptographic hashes: SeaHash and xxHash.
// No library is used: xxhash-wasm has two of the four forms of xxHash. hash-wasm has all four and is faster (64 KiB with XXH64: 10 µs
// instead of 10 ms), but initialises asynchronously, while programs are compiled and run synchronously. So every agent would load it at
// start, for 13 ms of CPU time and 8 MB, although few programs use hashes, and those mostly hash short keys (2 to 13 µs here).

const mask64 = 0xffff_ffff_ffff_ffffn

function diffuse(value: bigint): bigint {
  let x = (value * 0x6eed0e9da4d94a4fn) & mask64
  x ^= (x >> 32n) >> (x >> 60n)
  return (x * 0x6eed0e9da4d94a4fn) & mask64
}

/** SeaHash with its standard seeds, unsigned. */
export function seaHash(bytes: Buffer): bigint {
  let state: [bigint, bigint, bigint, bigint] = [
    0x16f11fe89b0d677cn,
    0xb480a793d8e6c86cn,
    0x6fe2e5aaf078ebc9n,
    0x14f994a4c5259381n,
  ]
  for (let at = 0; at < bytes.length; at += 8) {
    const chunk = Buffer.alloc(8)
    bytes.copy(chunk, 0, at, Math.min(at + 8, bytes.length))
    state = [state[1], state[2], state[3], diffuse(state[0] ^ chunk.readBigUInt64LE())]
  }
  return diffuse(state[0] ^ state[1] ^ state[2] ^ state[3] ^ BigInt(bytes.length))
}

const p32 = [2654435761, 2246822519, 3266489917, 668265263, 374761393] as const

function rotate32(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by))
}

/** XXH32 with seed 0, unsigned. */
export function xxh32(bytes: Buffer): number {
  const length = bytes.length
  let at = 0
  let hash: number
  if (length >= 16) {
    let [a, b, c, d] = [(p32[0] + p32[1]) | 0, p32[1] | 0, 0, -p32[0] | 0]
    const round = (lane: number, input: number): number =>
      Math.imul(rotate32((lane + Math.imul(input, p32[1])) | 0, 13), p32[0])
    for (; at + 16 <= length; at += 16) {
      a = round(a, bytes.readInt32LE(at))
      b = round(b, bytes.readInt32LE(at + 4))
      c = round(c, bytes.readInt32LE(at + 8))
      d = round(d, bytes.readInt32LE(at + 12))
    }
    hash = (rotate32(a, 1) + rotate32(b, 7) + rotate32(c, 12) + rotate32(d, 18)) | 0
  } else {
    hash = p32[4] | 0
  }
  hash = (hash + length) | 0
  for (; at + 4 <= length; at += 4) {
    hash = Math.imul(rotate32((hash + Math.imul(bytes.readInt32LE(at), p32[2])) | 0, 17), p32[3])
  }
  for (; at < length; at++) {
    hash = Math.imul(rotate32((hash + Math.imul(bytes[at] as number, p32[4])) | 0, 11), p32[0])
  }
  hash = Math.imul(hash ^ (hash >>> 15), p32[1])
  hash = Math.imul(hash ^ (hash >>> 13), p32[2])
  return (hash ^ (hash >>> 16)) >>> 0
}

const p64 = [
  11400714785074694791n,
  14029467366897019727n,
  1609587929392839161n,
  9650029242287828579n,
  2870177450012600261n,
] as const

function rotate64(value: bigint, by: bigint): bigint {
  return ((value << by) | (value >> (64n - by))) & mask64
}

function round64(lane: bigint, input: bigint): bigint {
  return (rotate64((lane + input * p64[1]) & mask64, 31n) * p64[0]) & mask64
}

function avalanche64(value: bigint): bigint {
  let hash = value
  hash = ((hash ^ (hash >> 33n)) * p64[1]) & mask64
  hash = ((hash ^ (hash >> 29n)) * p64[2]) & mask64
  return hash ^ (hash >> 32n)
}

/** XXH64 with seed 0, unsigned. */
export function xxh64(bytes: Buffer): bigint {
  const length = bytes.length
  let at = 0
  let hash: bigint
  if (length >= 32) {
    let [a, b, c, d] = [(p64[0] + p64[1]) & mask64, p64[1] as bigint, 0n, mask64 + 1n - p64[0]]
    for (; at + 32 <= length; at += 32) {
      a = round64(a, bytes.readBigUInt64LE(at))
      b = round64(b, bytes.readBigUInt64LE(at + 8))
      c = round64(c, bytes.readBigUInt64LE(at + 16))
      d = round64(d, bytes.readBigUInt64LE(at + 24))
    }
    hash = (rotate64(a, 1n) + rotate64(b, 7n) + rotate64(c, 12n) + rotate64(d, 18n)) & mask64
    for (const lane of [a, b, c, d]) hash = ((hash ^ round64(0n, lane)) * p64[0] + p64[3]) & mask64
  } else {
    hash = p64[4]
  }
  hash = (hash + BigInt(length)) & mask64
  for (; at + 8 <= length; at += 8) {
    hash = (rotate64(hash ^ round64(0n, bytes.readBigUInt64LE(at)), 27n) * p64[0] + p64[3]) & mask64
  }
  if (at + 4 <= length) {
    hash = (rotate64(hash ^ ((BigInt(bytes.readUInt32LE(at)) * p64[0]) & mask64), 23n) * p64[1] + p64[2]) & mask64
    at += 4
  }
  for (; at < length; at++) {
    hash = (rotate64(hash ^ ((BigInt(bytes[at] as number) * p64[4]) & mask64), 11n) * p64[0]) & mask64
  }
  return avalanche64(hash)
}

// The secret of XXH3.
const secret = Buffer.from(
  'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e',
  'hex',
)

const mx1 = 0x165667919e3779f9n
const mx2 = 0x9fb21c651e98df25n

function swap32(value: bigint): bigint {
  const buffer = Buffer.alloc(4)
  buffer.writeUInt32LE(Number(value))
  return BigInt(buffer.readUInt32BE())
}

function swap64(value: bigint): bigint {
  const buffer = Buffer.alloc(8)
  buffer.writeBigUInt64LE(value)
  return buffer.readBigUInt64BE()
}

function read32(bytes: Buffer, at: number): bigint {
  return BigInt(bytes.readUInt32LE(at))
}

function read64(bytes: Buffer, at: number): bigint {
  return bytes.readBigUInt64LE(at)
}

function avalanche3(value: bigint): bigint {
  let hash = value ^ (value >> 37n)
  hash = (hash * mx1) & mask64
  return hash ^ (hash >> 32n)
}

/** The product of two 64-bit numbers, folded by XORing its halves. */
function folded(left: bigint, right: bigint): bigint {
  const product = left * right
  return (product & mask64) ^ (product >> 64n)
}

function mix16(bytes: Buffer, at: number, secretAt: number): bigint {
  return folded(read64(bytes, at) ^ read64(secret, secretAt), read64(bytes, at + 8) ^ read64(secret, secretAt + 8))
}

/** The eight lanes after all stripes of a long input. */
function accumulated(bytes: Buffer): bigint[] {
  const lanes = [BigInt(p32[2]), ...p64.slice(0, 4), BigInt(p32[1]), p64[4], BigInt(p32[0])]
  const stripe = (at: number, secretAt: number): void => {
    for (let lane = 0; lane < 8; lane++) {
      const value = read64(bytes, at + lane * 8)
      const key = value ^ read64(secret, secretAt + lane * 8)
      lanes[lane ^ 1] = ((lanes[lane ^ 1] as bigint) + value) & mask64
      lanes[lane] = ((lanes[lane] as bigint) + (key & 0xffffffffn) * (key >> 32n)) & mask64
    }
  }
  const stripesPerBlock = (secret.length - 64) / 8
  const blockBytes = stripesPerBlock * 64
  const blocks = Math.floor((bytes.length - 1) / blockBytes)
  for (let block = 0; block < blocks; block++) {
    for (let index = 0; index < stripesPerBlock; index++) stripe(block * blockBytes + index * 64, index * 8)
    for (let lane = 0; lane < 8; lane++) {
      let value = lanes[lane] as bigint
      value ^= value >> 47n
      value ^= read64(secret, secret.length - 64 + lane * 8)
      lanes[lane] = (value * BigInt(p32[0])) & mask64
    }
  }
  const stripes = Math.floor((bytes.length - 1 - blocks * blockBytes) / 64)
  for (let index = 0; index < stripes; index++) stripe(blocks * blockBytes + index * 64, index * 8)
  stripe(bytes.length - 64, secret.length - 64 - 7)
  return lanes
}

function mergedLanes(lanes: readonly bigint[], secretAt: number, start: bigint): bigint {
  let result = start
  for (let pair = 0; pair < 4; pair++) {
    result += folded(
      (lanes[pair * 2] as bigint) ^ read64(secret, secretAt + pair * 16),
      (lanes[pair * 2 + 1] as bigint) ^ read64(secret, secretAt + pair * 16 + 8),
    )
  }
  return avalanche3(result & mask64)
}

/** XXH3 of 64 bits with seed 0, unsigned. */
export function xxh3(bytes: Buffer): bigint {
  const length = bytes.length
  const size = BigInt(length)
  if (length === 0) return avalanche64(read64(secret, 56) ^ read64(secret, 64))
  if (length <= 3) {
    const combined =
      (BigInt(bytes[0] as number) << 16n) |
      (BigInt(bytes[length >> 1] as number) << 24n) |
      BigInt(bytes[length - 1] as number) |
      (size << 8n)
    return avalanche64(combined ^ read32(secret, 0) ^ read32(secret, 4))
  }
  if (length <= 8) {
    const flip = read64(secret, 8) ^ read64(secret, 16)
    let hash = (read32(bytes, length - 4) + (read32(bytes, 0) << 32n)) ^ flip
    hash ^= rotate64(hash, 49n) ^ rotate64(hash, 24n)
    hash = (hash * mx2) & mask64
    hash ^= (hash >> 35n) + size
    hash = (hash * mx2) & mask64
    return hash ^ (hash >> 28n)
  }
  if (length <= 16) {
    const low = read64(bytes, 0) ^ read64(secret, 24) ^ read64(secret, 32)
    const high = read64(bytes, length - 8) ^ read64(secret, 40) ^ read64(secret, 48)
    return avalanche3((size + swap64(low) + high + folded(low, high)) & mask64)
  }
  if (length <= 240) {
    let hash = (size * p64[0]) & mask64
    if (length <= 128) {
      for (let index = (length - 1) >> 5; index >= 0; index--) {
        hash += mix16(bytes, index * 16, index * 32) + mix16(bytes, length - (index + 1) * 16, index * 32 + 16)
      }
      return avalanche3(hash & mask64)
    }
    for (let index = 0; index < 8; index++) hash += mix16(bytes, index * 16, index * 16)
    hash = avalanche3(hash & mask64)
    for (let index = 8; index < length >> 4; index++) hash += mix16(bytes, index * 16, (index - 8) * 16 + 3)
    hash += mix16(bytes, length - 16, 136 - 17)
    return avalanche3(hash & mask64)
  }
  return mergedLanes(accumulated(bytes), 11, (size * p64[0]) & mask64)
}

/** XXH3 of 128 bits with seed 0, unsigned. */
export function xxh3Wide(bytes: Buffer): bigint {
  const length = bytes.length
  const size = BigInt(length)
  const joined = (low: bigint, high: bigint): bigint => (high << 64n) | low
  if (length === 0) {
    return joined(
      avalanche64(read64(secret, 64) ^ read64(secret, 72)),
      avalanche64(read64(secret, 80) ^ read64(secret, 88)),
    )
  }
  if (length <= 3) {
    const low =
      (BigInt(bytes[0] as number) << 16n) |
      (BigInt(bytes[length >> 1] as number) << 24n) |
      BigInt(bytes[length - 1] as number) |
      (size << 8n)
    const swapped = swap32(low)
    const high = ((swapped << 13n) | (swapped >> 19n)) & 0xffffffffn
    return joined(
      avalanche64(low ^ read32(secret, 0) ^ read32(secret, 4)),
      avalanche64(high ^ read32(secret, 8) ^ read32(secret, 12)),
    )
  }
  if (length <= 8) {
    const input = read32(bytes, 0) + (read32(bytes, length - 4) << 32n)
    const keyed = input ^ read64(secret, 16) ^ read64(secret, 24)
    const product = keyed * (p64[0] + (size << 2n))
    let low = product & mask64
    let high = (product >> 64n) & mask64
    high = (high + (low << 1n)) & mask64
    low ^= high >> 3n
    low ^= low >> 35n
    low = (low * mx2) & mask64
    low ^= low >> 28n
    return joined(low, avalanche3(high))
  }
  if (length <= 16) {
    const flipLow = read64(secret, 32) ^ read64(secret, 40)
    const flipHigh = read64(secret, 48) ^ read64(secret, 56)
    const first = read64(bytes, 0)
    let last = read64(bytes, length - 8)
    const product = (first ^ last ^ flipLow) * p64[0]
    let low = ((product & mask64) + ((size - 1n) << 54n)) & mask64
    let high = product >> 64n
    last ^= flipHigh
    high = (high + last + (last & 0xffffffffn) * (BigInt(p32[1]) - 1n)) & mask64
    low ^= swap64(high)
    const second = low * p64[1]
    return joined(avalanche3(second & mask64), avalanche3(((second >> 64n) + high * p64[1]) & mask64))
  }
  if (length <= 240) {
    let low = (size * p64[0]) & mask64
    let high = 0n
    const mix32 = (left: number, right: number, secretAt: number): void => {
      low = (low + mix16(bytes, left, secretAt)) & mask64
      low ^= (read64(bytes, right) + read64(bytes, right + 8)) & mask64
      high = (high + mix16(bytes, right, secretAt + 16)) & mask64
      high ^= (read64(bytes, left) + read64(bytes, left + 8)) & mask64
    }
    if (length <= 128) {
      for (let index = (length - 1) >> 5; index >= 0; index--) mix32(index * 16, length - (index + 1) * 16, index * 32)
    } else {
      for (let index = 0; index < 4; index++) mix32(index * 32, index * 32 + 16, index * 32)
      low = avalanche3(low)
      high = avalanche3(high)
      for (let index = 4; index < length >> 5; index++) mix32(index * 32, index * 32 + 16, (index - 4) * 32 + 3)
      mix32(length - 16, length - 32, 136 - 17 - 16)
    }
    const sum = (low + high) & mask64
    const other = (low * p64[0] + high * p64[3] + size * p64[1]) & mask64
    return joined(avalanche3(sum), (mask64 + 1n - avalanche3(other)) & mask64)
  }
  const lanes = accumulated(bytes)
  const low = mergedLanes(lanes, 11, (size * p64[0]) & mask64)
  const high = mergedLanes(lanes, secret.length - 64 - 11, ~((size * p64[1]) & mask64) & mask64)
  return joined(low, high)
}
