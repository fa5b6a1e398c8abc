// Deflate (RFC 1951), fast for repetitive text: it compares each position only with the last position of the same six bytes. It reads a
// block twice, once to find repetitions and once to write it with the block's Huffman code.

/** Maximum input bytes per call. */
export const maxInput: i32 = 0x10000
/** Deflate's window size. */
const windowSize: i32 = 0x8000
const minMatch: i32 = 4
const maxMatch: i32 = 258
const hashBits: i32 = 14
/** A block's sequences: each is a run of literals and the following match, in eight bytes. */
const maxSequences: i32 = 0x2000
const literals: i32 = 286
const distances: i32 = 30
const maxBits: i32 = 15
const endOfBlock: i32 = 256

// Offsets in the memory.
const heads: i32 = 0x1000
const literalCounts: i32 = heads + (1 << hashBits) * 4
const distanceCounts: i32 = literalCounts + 288 * 4
const lengthCounts: i32 = distanceCounts + 32 * 4
/** The code of each symbol, and its number of bits. */
const literalCodes: i32 = lengthCounts + 32 * 4
const distanceCodes: i32 = literalCodes + 288 * 8
const lengthCodes: i32 = distanceCodes + 32 * 8
/** For each length: its symbol, its extra bits and their number. */
const lengthSymbols: i32 = lengthCodes + 32 * 8
const sorted: i32 = lengthSymbols + 259 * 4
const weights: i32 = sorted + 288 * 4
const bitCounts: i32 = weights + 288 * 4
const nextCodes: i32 = bitCounts + 33 * 4
/** The code lengths at the beginning of a block: symbols, each followed by its extra bits. */
const header: i32 = nextCodes + 33 * 4
const sequences: i32 = header + 640 * 2
const output: i32 = sequences + (maxSequences + 1) * 8 + 64
export const input: i32 = output + maxInput + 0x1000
const room: i32 = 64
export const memoryEnd: i32 = input + windowSize + maxInput + room

let bits: u64 = 0
let bitCount: i32 = 0
let out: i32 = 0
/** The difference between an address and a position in the whole text. */
let shift: i32 = 0
/** Number of earlier text bytes still in memory. */
let kept: i32 = 0
let sequenceCount: i32 = 0
/** Extra bits of the block. */
let extraBits: i32 = 0

/** Address for the next input bytes. */
export function place(): i32 {
  return input + kept
}

export function outputAt(): i32 {
  return output
}

/** Starts another text. */
export function begin(): void {
  memory.fill(heads, 0, (1 << hashBits) * 4)
  bits = 0
  bitCount = 0
  kept = 0
  // An unset position counts as being outside the window.
  shift = 0x10000 - input
  if (load<u32>(lengthSymbols + maxMatch * 4) === 0) setLengths()
}

function setLengths(): void {
  let length: i32 = 3
  for (let symbol = 257; symbol < 285; symbol++) {
    const extra = symbol < 265 ? 0 : (symbol - 261) >> 2
    for (let value = 0; value < 1 << extra; value++) {
      store<u32>(lengthSymbols + length * 4, symbol | (value << 9) | (extra << 16))
      length++
    }
  }
  store<u32>(lengthSymbols + maxMatch * 4, 285)
}

/** Compresses this many bytes at `place`; returns the number of bytes written at `outputAt`. */
export function compress(length: i32, isLast: bool): i32 {
  out = output
  let at = place()
  const end = at + length
  do {
    const start = at
    at = findMatches(at, end)
    writeBlock(start, at, isLast && at === end)
  } while (at < end)
  if (isLast) {
    store<u64>(out, bits)
    out += (bitCount + 7) >> 3
    return out - output
  }
  const keep = min(windowSize, end - input)
  memory.copy(input, end - keep, keep)
  shift += end - keep - input
  kept = keep
  return out - output
}

/** Hash of the first six bytes. */
function slotOf(word: u64): i32 {
  return heads + ((<i32>(((word << 16) * 0x9e3779b185ebca87) >> (64 - hashBits))) << 2)
}

/** Finds the sequences of a block; returns its end. */
function findMatches(from: i32, end: i32): i32 {
  memory.fill(literalCounts, 0, 288 * 4)
  memory.fill(distanceCounts, 0, 32 * 4)
  extraBits = 0
  const last = end - 16
  let sequence = sequences
  let at = from
  let run = from
  let step: i32 = 0
  while (at < last) {
    const word = load<u64>(at)
    const slot = slotOf(word)
    const distance = at + shift - load<i32>(slot)
    store<i32>(slot, at + shift)
    // If the last block ended inside a match, positions after its end are recorded too: they do not count.
    if (<u32>(distance - 1) >= <u32>windowSize || load<u32>(at - distance) !== <u32>word) {
      at += 1 + (step++ >> 6)
      continue
    }
    step = 0
    // Extends the match backwards.
    while (at > run && at - distance > input && load<u8>(at - 1) === load<u8>(at - distance - 1)) at--
    const stop = matchEnd(at + minMatch, distance, end)
    const symbol = distanceSymbol(distance)
    const distanceExtra = symbol < 4 ? 0 : (symbol >> 1) - 1
    for (let letter = run; letter < at; letter++) {
      const count = literalCounts + ((<i32>load<u8>(letter)) << 2)
      store<i32>(count, load<i32>(count) + 1)
    }
    let letters = at - run
    let left = stop - at
    do {
      // Ensures that the remainder is not too short for a match.
      const length = left <= maxMatch ? left : left - maxMatch < minMatch ? maxMatch - minMatch : maxMatch
      store<u32>(sequence, letters)
      store<u32>(sequence + 4, (length << 16) | (distance - 1))
      sequence += 8
      letters = 0
      const known = load<u32>(lengthSymbols + length * 4)
      const count = literalCounts + ((known & 511) << 2)
      store<i32>(count, load<i32>(count) + 1)
      const other = distanceCounts + (symbol << 2)
      store<i32>(other, load<i32>(other) + 1)
      extraBits += <i32>(known >> 16) + distanceExtra
      left -= length
      at += length
    } while (left > 0 && sequence < sequences + maxSequences * 8)
    run = at
    if (sequence === sequences + maxSequences * 8) break
    if (at < last) {
      store<i32>(slotOf(load<u64>(at - 2)), at - 2 + shift)
    }
  }
  if (sequence < sequences + maxSequences * 8) at = end
  for (let letter = run; letter < at; letter++) {
    const count = literalCounts + ((<i32>load<u8>(letter)) << 2)
    store<i32>(count, load<i32>(count) + 1)
  }
  store<u32>(sequence, at - run)
  sequenceCount = (sequence - sequences) >> 3
  store<i32>(literalCounts + endOfBlock * 4, 1)
  return at
}

function matchEnd(from: i32, distance: i32, end: i32): i32 {
  let at = from
  while (at + 8 <= end) {
    const differing = load<u64>(at) ^ load<u64>(at - distance)
    if (differing !== 0) return at + <i32>(ctz(differing) >> 3)
    at += 8
  }
  while (at < end && load<u8>(at) === load<u8>(at - distance)) at++
  return at
}

function distanceSymbol(distance: i32): i32 {
  const less = distance - 1
  if (less < 4) return less
  const high = 31 - clz(less)
  return (high << 1) + ((less >> (high - 1)) & 1)
}

function put(value: u64, count: i32): void {
  bits |= value << (<u64>bitCount)
  bitCount += count
}

function flush(): void {
  store<u64>(out, bits)
  out += bitCount >> 3
  bits >>= <u64>(bitCount & 0x38)
  bitCount &= 7
}

function writeBlock(from: i32, to: i32, isLast: bool): void {
  makeCode(literalCounts, literals, maxBits, literalCodes)
  makeCode(distanceCounts, distances, maxBits, distanceCodes)
  const literalsUsed = usedOf(literalCodes, literals, 257)
  const distancesUsed = usedOf(distanceCodes, distances, 1)
  const headerEnd = makeHeader(literalsUsed, distancesUsed)
  makeCode(lengthCounts, 19, 7, lengthCodes)
  let lengthsUsed: i32 = 19
  while (lengthsUsed > 4 && load<u32>(lengthCodes + orderOf(lengthsUsed - 1) * 8 + 4) === 0) lengthsUsed--

  let own: i32 = 3 + 14 + 3 * lengthsUsed + extraBits + costOf(literalCounts, literalCodes, literals)
  own += costOf(distanceCounts, distanceCodes, distances) + costOf(lengthCounts, lengthCodes, 19)
  own +=
    2 * load<i32>(lengthCounts + 16 * 4) + 3 * load<i32>(lengthCounts + 17 * 4) + 7 * load<i32>(lengthCounts + 18 * 4)
  let fixed: i32 = 3 + extraBits
  for (let symbol = 0; symbol < literals; symbol++) {
    fixed += load<i32>(literalCounts + symbol * 4) * (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8)
  }
  for (let symbol = 0; symbol < distances; symbol++) fixed += load<i32>(distanceCounts + symbol * 4) * 5
  const plain = (to - from + 5 * (1 + (to - from) / 0xffff)) * 8
  if (plain <= min(own, fixed)) {
    writePlain(from, to, isLast)
    return
  }
  if (fixed <= own) {
    put(isLast ? 3 : 2, 3)
    flush()
    setFixed()
  } else {
    put(isLast ? 5 : 4, 3)
    put(literalsUsed - 257, 5)
    put(distancesUsed - 1, 5)
    put(lengthsUsed - 4, 4)
    flush()
    for (let index = 0; index < lengthsUsed; index++) {
      put(load<u32>(lengthCodes + orderOf(index) * 8 + 4), 3)
      flush()
    }
    for (let at = header; at < headerEnd; at += 2) {
      const symbol = <i32>load<u8>(at)
      put(load<u32>(lengthCodes + symbol * 8), load<u32>(lengthCodes + symbol * 8 + 4))
      if (symbol >= 16) put(load<u8>(at + 1), symbol === 16 ? 2 : symbol === 17 ? 3 : 7)
      flush()
    }
  }
  writeSequences(from)
}

function writeSequences(from: i32): void {
  // Local variables, because module variables are read from memory each time.
  let buffer = bits
  let count: i32 = bitCount
  let to = out
  let at = from
  for (let index = 0; index <= sequenceCount; index++) {
    const sequence = sequences + (index << 3)
    const stop = at + load<i32>(sequence)
    while (at < stop) {
      const code = literalCodes + ((<i32>load<u8>(at++)) << 3)
      buffer |= (<u64>load<u32>(code)) << (<u64>count)
      count += load<i32>(code + 4)
      if (at < stop) {
        const next = literalCodes + ((<i32>load<u8>(at++)) << 3)
        buffer |= (<u64>load<u32>(next)) << (<u64>count)
        count += load<i32>(next + 4)
      }
      store<u64>(to, buffer)
      to += count >> 3
      buffer >>= <u64>(count & 0x38)
      count &= 7
    }
    if (index === sequenceCount) break
    const match = load<u32>(sequence + 4)
    const length = <i32>(match >> 16)
    const less = <i32>(match & 0xffff)
    at += length
    const known = load<u32>(lengthSymbols + length * 4)
    const code = literalCodes + ((known & 511) << 3)
    buffer |= (<u64>load<u32>(code)) << (<u64>count)
    count += load<i32>(code + 4)
    buffer |= (<u64>((known >> 9) & 0x7f)) << (<u64>count)
    count += <i32>(known >> 16)
    const symbol = distanceSymbol(less + 1)
    const other = distanceCodes + (symbol << 3)
    buffer |= (<u64>load<u32>(other)) << (<u64>count)
    count += load<i32>(other + 4)
    if (symbol >= 4) {
      const extra = (symbol >> 1) - 1
      buffer |= (<u64>(less & ((1 << extra) - 1))) << (<u64>count)
      count += extra
    }
    store<u64>(to, buffer)
    to += count >> 3
    buffer >>= <u64>(count & 0x38)
    count &= 7
  }
  bits = buffer
  bitCount = count
  out = to
  put(load<u32>(literalCodes + endOfBlock * 8), load<u32>(literalCodes + endOfBlock * 8 + 4))
  flush()
}

/** Stores bytes uncompressed if no code shortens them. */
function writePlain(from: i32, to: i32, isLast: bool): void {
  let at = from
  do {
    const length = min(to - at, 0xffff)
    put(isLast && at + length === to ? 1 : 0, 3)
    bitCount = (bitCount + 7) & ~7
    flush()
    store<u16>(out, <u16>length)
    store<u16>(out + 2, <u16>~length)
    memory.copy(out + 4, at, length)
    out += 4 + length
    at += length
  } while (at < to)
}

function costOf(counts: i32, codes: i32, symbols: i32): i32 {
  let cost: i32 = 0
  for (let symbol = 0; symbol < symbols; symbol++) {
    cost += load<i32>(counts + symbol * 4) * load<i32>(codes + symbol * 8 + 4)
  }
  return cost
}

function usedOf(codes: i32, symbols: i32, minUsed: i32): i32 {
  let used = symbols
  while (used > minUsed && load<u32>(codes + (used - 1) * 8 + 4) === 0) used--
  return used
}

/** The order in which the code length code's lengths are stored. */
function orderOf(index: i32): i32 {
  // 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15
  if (index < 3) return 16 + index
  if (index === 3) return 0
  const half = (index - 4) >> 1
  return (index & 1) === 0 ? 8 + half : 7 - half
}

/** Writes the lengths of both codes, with runs shortened; returns the end. */
function makeHeader(literalsUsed: i32, distancesUsed: i32): i32 {
  memory.fill(lengthCounts, 0, 19 * 4)
  const total = literalsUsed + distancesUsed
  let at = header
  let index: i32 = 0
  while (index < total) {
    const value = lengthAt(index, literalsUsed)
    let next = index + 1
    while (next < total && lengthAt(next, literalsUsed) === value) next++
    let run = next - index
    index = next
    if (value === 0) {
      while (run >= 3) {
        const part = min(run, 138)
        at = part >= 11 ? note(at, 18, part - 11) : note(at, 17, part - 3)
        run -= part
      }
    } else {
      at = note(at, value, 0)
      run--
      while (run >= 3) {
        const part = min(run, 6)
        at = note(at, 16, part - 3)
        run -= part
      }
    }
    while (run-- > 0) at = note(at, value, 0)
  }
  return at
}

function lengthAt(index: i32, literalsUsed: i32): i32 {
  return index < literalsUsed
    ? load<i32>(literalCodes + index * 8 + 4)
    : load<i32>(distanceCodes + (index - literalsUsed) * 8 + 4)
}

function note(at: i32, symbol: i32, extra: i32): i32 {
  store<u8>(at, <u8>symbol)
  store<u8>(at + 1, <u8>extra)
  const count = lengthCounts + symbol * 4
  store<i32>(count, load<i32>(count) + 1)
  return at + 2
}

function setFixed(): void {
  for (let symbol = 0; symbol < 288; symbol++) {
    store<i32>(literalCodes + symbol * 8 + 4, symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8)
  }
  for (let symbol = 0; symbol < 30; symbol++) store<i32>(distanceCodes + symbol * 8 + 4, 5)
  setCodes(literalCodes, 288, 9)
  setCodes(distanceCodes, 30, 5)
}

/** A Huffman code for symbols by their frequency. No code has more than `maxLength` bits. */
function makeCode(counts: i32, symbols: i32, maxLength: i32, codes: i32): void {
  let used: i32 = 0
  for (let symbol = 0; symbol < symbols; symbol++) {
    store<u64>(codes + symbol * 8, 0)
    const count = load<i32>(counts + symbol * 4)
    if (count > 0) store<u32>(sorted + used++ * 4, ((<u32>count) << 9) | symbol)
  }
  // Decoders require at least two codes.
  for (let symbol = 0; used < 2; symbol++) {
    if (load<i32>(counts + symbol * 4) === 0) store<u32>(sorted + used++ * 4, (1 << 9) | symbol)
  }
  sort(used)
  for (let index = 0; index < used; index++) store<u32>(weights + index * 4, load<u32>(sorted + index * 4) >> 9)
  measure(used)
  limit(used, maxLength)
  let index = used - 1
  for (let length = 1; length <= maxLength; length++) {
    for (let left = load<i32>(bitCounts + length * 4); left > 0; left--) {
      store<i32>(codes + (load<u32>(sorted + index-- * 4) & 511) * 8 + 4, length)
    }
  }
  setCodes(codes, symbols, maxLength)
}

/** Sorts in ascending order. */
function sort(count: i32): void {
  for (let gap: i32 = 40; gap > 0; gap = gap === 40 ? 13 : gap === 13 ? 4 : gap === 4 ? 1 : 0) {
    for (let index = gap; index < count; index++) {
      const value = load<u32>(sorted + index * 4)
      let to = index
      while (to >= gap && load<u32>(sorted + (to - gap) * 4) > value) {
        store<u32>(sorted + to * 4, load<u32>(sorted + (to - gap) * 4))
        to -= gap
      }
      store<u32>(sorted + to * 4, value)
    }
  }
}

function weight(index: i32): u32 {
  return load<u32>(weights + index * 4)
}

/** Replaces each weight by the length of its code; the weights must be ascending (Moffat and Katajainen, in place). */
function measure(count: i32): void {
  store<u32>(weights, weight(0) + weight(1))
  let root: i32 = 0
  let leaf: i32 = 2
  for (let next = 1; next < count - 1; next++) {
    let sum: u32
    if (leaf >= count || weight(root) < weight(leaf)) {
      sum = weight(root)
      store<u32>(weights + root++ * 4, next)
    } else sum = weight(leaf++)
    if (leaf >= count || (root < next && weight(root) < weight(leaf))) {
      sum += weight(root)
      store<u32>(weights + root++ * 4, next)
    } else sum += weight(leaf++)
    store<u32>(weights + next * 4, sum)
  }
  store<u32>(weights + (count - 2) * 4, 0)
  for (let next = count - 3; next >= 0; next--) store<u32>(weights + next * 4, weight(weight(next)) + 1)
  let available: i32 = 1
  let used: i32 = 0
  let depth: u32 = 0
  root = count - 2
  let next = count - 1
  while (available > 0) {
    while (root >= 0 && weight(root) === depth) {
      used++
      root--
    }
    while (available > used) {
      store<u32>(weights + next-- * 4, depth)
      available--
    }
    available = 2 * used
    depth++
    used = 0
  }
}

/** Counts codes by length, and limits their length. */
function limit(count: i32, maxLength: i32): void {
  memory.fill(bitCounts, 0, 33 * 4)
  for (let index = 0; index < count; index++) {
    const place = bitCounts + min(weight(index), <u32>maxLength) * 4
    store<i32>(place, load<i32>(place) + 1)
  }
  let total: i32 = 0
  for (let length = 1; length <= maxLength; length++) total += load<i32>(bitCounts + length * 4) << (maxLength - length)
  while (total > 1 << maxLength) {
    // Moves one of the longest codes next to a code that becomes one bit longer.
    store<i32>(bitCounts + maxLength * 4, load<i32>(bitCounts + maxLength * 4) - 1)
    for (let length = maxLength - 1; length > 0; length--) {
      const there = load<i32>(bitCounts + length * 4)
      if (there === 0) continue
      store<i32>(bitCounts + length * 4, there - 1)
      store<i32>(bitCounts + (length + 1) * 4, load<i32>(bitCounts + (length + 1) * 4) + 2)
      break
    }
    total--
  }
}

/** Assigns codes by length, in the order of the symbols; the first bit is the lowest. */
function setCodes(codes: i32, symbols: i32, maxLength: i32): void {
  memory.fill(bitCounts, 0, 33 * 4)
  for (let symbol = 0; symbol < symbols; symbol++) {
    const place = bitCounts + load<i32>(codes + symbol * 8 + 4) * 4
    store<i32>(place, load<i32>(place) + 1)
  }
  let code: i32 = 0
  store<i32>(bitCounts, 0)
  for (let length = 1; length <= maxLength; length++) {
    code = (code + load<i32>(bitCounts + (length - 1) * 4)) << 1
    store<i32>(nextCodes + length * 4, code)
  }
  for (let symbol = 0; symbol < symbols; symbol++) {
    const length = load<i32>(codes + symbol * 8 + 4)
    if (length === 0) continue
    let value = load<i32>(nextCodes + length * 4)
    store<i32>(nextCodes + length * 4, value + 1)
    let reversed: i32 = 0
    for (let bit = 0; bit < length; bit++) {
      reversed = (reversed << 1) | (value & 1)
      value >>= 1
    }
    store<i32>(codes + symbol * 8, reversed)
  }
}
