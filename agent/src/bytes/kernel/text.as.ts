// Text as UTF-8 bytes, and escaped for JSON.

import { shuffles } from './layout.as'

/** The next byte that is a quote, a backslash or below 0x20. */
export function nextSpecial(from: i32): i32 {
  let at = from
  while (true) {
    const mask = specialsIn(v128.load(at))
    if (mask !== 0) return at + ctz(mask)
    at += 16
  }
}

/** A bit for each of sixteen bytes that is one of those. */
export function specialsIn(bytes: v128): i32 {
  const quotes = v128.or(v128.eq<u8>(bytes, v128.splat<u8>(0x22)), v128.eq<u8>(bytes, v128.splat<u8>(0x5c)))
  return v128.bitmask<u8>(v128.or(quotes, v128.lt<u8>(bytes, v128.splat<u8>(0x20))))
}

/** Number of UTF-16 units in valid UTF-8. Reads bytes after the end without counting them. */
export function unitsOf(from: i32, to: i32): i32 {
  // Most texts are ASCII, even in lines that are not.
  let begin = from
  for (; begin + 32 <= to; begin += 32) {
    if (v128.bitmask<u8>(v128.or(v128.load(begin), v128.load(begin, 16))) !== 0) break
  }
  let units: i32 = begin - from
  for (let at = begin; at < to; at += 16) {
    const bytes = v128.load(at)
    // Counts all bytes except continuation bytes, and four-byte characters twice.
    let going = v128.bitmask<u8>(v128.eq<u8>(v128.and(bytes, v128.splat<u8>(0xc0)), v128.splat<u8>(0x80)))
    let wide = v128.bitmask<u8>(v128.ge<u8>(bytes, v128.splat<u8>(0xf0)))
    const left = to - at
    if (left < 16) {
      const counted = (1 << left) - 1
      going &= counted
      wide &= counted
    }
    units += min(left, 16) - popcnt(going) + popcnt(wide)
  }
  return units
}

/**
 * For each bit pattern of eight bytes to be escaped, the source indices of the output bytes. The backslash is the fifteenth byte.
 */
function fillShuffles(): void {
  for (let bits: i32 = 0; bits < 256; bits++) {
    const first = shuffles + bits * 16
    let at = first
    for (let byte: i32 = 0; byte < 8; byte++) {
      if ((bits & (1 << byte)) !== 0) store<u8>(at++, 15)
      store<u8>(at++, <u8>byte)
    }
    while (at < first + 16) store<u8>(at++, 0)
  }
}

fillShuffles()

/**
 * Writes text escaped for a JSON string. It overwrites bytes after the end of its output. The text may lie after its destination, at
 * least 64 bytes further than the output is longer.
 */
export function escapeText(to: i32, from: i32, end: i32): i32 {
  let out = to
  let at = from
  while (at < end) {
    const bytes = v128.load(at)
    const controls = v128.bitmask<u8>(v128.lt<u8>(bytes, v128.splat<u8>(0x20)))
    const marked = marksIn(bytes)
    let taken = min(end - at, 16)
    if (controls !== 0) {
      taken = min(taken, ctz(controls))
      if (taken === 0) {
        out = writeControl(out, load<u8>(at++))
        continue
      }
    }
    const bits = marked & ((1 << taken) - 1)
    if (bits === 0) {
      v128.store(out, bytes)
      out += taken
      at += taken
      continue
    }
    const low = bits & 255
    v128.store(out, v128.swizzle(v128.replace_lane<u8>(bytes, 15, 0x5c), v128.load(shuffles + low * 16)))
    out += min(taken, 8) + popcnt(low)
    if (taken > 8) {
      const high = bits >>> 8
      const others = v128.replace_lane<u8>(v128.load64_zero(at + 8), 15, 0x5c)
      v128.store(out, v128.swizzle(others, v128.load(shuffles + high * 16)))
      out += taken - 8 + popcnt(high)
    }
    at += taken
  }
  return out
}

/** The same for text without a byte below 0x20, such as JSON as it is written here. */
export function escapeJson(to: i32, from: i32, end: i32): i32 {
  let out = to
  let at = from
  for (; at + 16 <= end; at += 16) {
    const bytes = v128.load(at)
    const marked = marksIn(bytes)
    if (marked === 0) {
      v128.store(out, bytes)
      out += 16
      continue
    }
    const low = marked & 255
    const high = marked >>> 8
    v128.store(out, v128.swizzle(v128.replace_lane<u8>(bytes, 15, 0x5c), v128.load(shuffles + low * 16)))
    const others = v128.replace_lane<u8>(v128.load64_zero(at + 8), 15, 0x5c)
    out += 8 + popcnt(low)
    v128.store(out, v128.swizzle(others, v128.load(shuffles + high * 16)))
    out += 8 + popcnt(high)
  }
  return escapeText(out, at, end)
}

/** A bit for each of sixteen bytes that is a quote or a backslash. */
function marksIn(bytes: v128): i32 {
  return v128.bitmask<u8>(v128.or(v128.eq<u8>(bytes, v128.splat<u8>(0x22)), v128.eq<u8>(bytes, v128.splat<u8>(0x5c))))
}

/** Whether `writeJson` writes this letter after a backslash. */
export function isShortEscape(letter: u8): bool {
  return (
    letter === 0x22 ||
    letter === 0x5c ||
    letter === 0x6e ||
    letter === 0x74 ||
    letter === 0x72 ||
    letter === 0x62 ||
    letter === 0x66
  )
}

/** Writes a character escaped for a JSON string; returns its end. */
export function writeCharacter(to: i32, code: i32): i32 {
  if (code < 0x20) return writeControl(to, code)
  if (code === 0x22 || code === 0x5c) {
    store<u8>(to, 0x5c)
    store<u8>(to + 1, <u8>code)
    return to + 2
  }
  if (code < 0x80) {
    store<u8>(to, <u8>code)
    return to + 1
  }
  if (code < 0x800) {
    store<u8>(to, <u8>(0xc0 | (code >> 6)))
    store<u8>(to + 1, <u8>(0x80 | (code & 0x3f)))
    return to + 2
  }
  if (code < 0x10000) {
    store<u8>(to, <u8>(0xe0 | (code >> 12)))
    store<u8>(to + 1, <u8>(0x80 | ((code >> 6) & 0x3f)))
    store<u8>(to + 2, <u8>(0x80 | (code & 0x3f)))
    return to + 3
  }
  store<u8>(to, <u8>(0xf0 | (code >> 18)))
  store<u8>(to + 1, <u8>(0x80 | ((code >> 12) & 0x3f)))
  store<u8>(to + 2, <u8>(0x80 | ((code >> 6) & 0x3f)))
  store<u8>(to + 3, <u8>(0x80 | (code & 0x3f)))
  return to + 4
}

export function writeControl(to: i32, code: i32): i32 {
  const letter: u8 =
    code === 8 ? 0x62 : code === 9 ? 0x74 : code === 10 ? 0x6e : code === 12 ? 0x66 : code === 13 ? 0x72 : 0
  store<u8>(to, 0x5c)
  if (letter !== 0) {
    store<u8>(to + 1, letter)
    return to + 2
  }
  store<u32>(to + 1, 0x30303075) // "u000", followed by the last two digits
  store<u8>(to + 4, <u8>(0x30 + (code >> 4)))
  const low = code & 15
  store<u8>(to + 5, <u8>(low < 10 ? 0x30 + low : 0x57 + low))
  return to + 6
}
