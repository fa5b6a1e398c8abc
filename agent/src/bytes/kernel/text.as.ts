// Text as bytes of UTF-8, and as it stands in JSON.

/** Next byte from here that is a quote, a backslash or below 0x20. */
export function nextSpecial(from: i32): i32 {
  let at = from
  while (true) {
    const bytes = v128.load(at)
    const quotes = v128.or(v128.eq<u8>(bytes, v128.splat<u8>(0x22)), v128.eq<u8>(bytes, v128.splat<u8>(0x5c)))
    const mask = v128.bitmask<u8>(v128.or(quotes, v128.lt<u8>(bytes, v128.splat<u8>(0x20))))
    if (mask !== 0) return at + ctz(mask)
    at += 16
  }
}

/** UTF-16 units of valid UTF-8. */
export function unitsOf(from: i32, to: i32): i32 {
  let units: i32 = 0
  let at = from
  while (at + 16 <= to) {
    const bytes = v128.load(at)
    // All but the bytes that go on with a character; and one more where it takes four.
    const going = v128.bitmask<u8>(v128.eq<u8>(v128.and(bytes, v128.splat<u8>(0xc0)), v128.splat<u8>(0x80)))
    const wide = v128.bitmask<u8>(v128.ge<u8>(bytes, v128.splat<u8>(0xf0)))
    units += 16 - popcnt(going) + popcnt(wide)
    at += 16
  }
  for (; at < to; at++) {
    const byte = load<u8>(at)
    if ((byte & 0xc0) !== 0x80) units++
    if (byte >= 0xf0) units++
  }
  return units
}

/** Whether `writeJson` writes this letter behind a backslash. */
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

/** Writes a character as it stands in a JSON string; gives its end. */
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
  store<u32>(to + 1, 0x30303075) // "u000", whose last two digits follow
  store<u8>(to + 4, <u8>(0x30 + (code >> 4)))
  const low = code & 15
  store<u8>(to + 5, <u8>(low < 10 ? 0x30 + low : 0x57 + low))
  return to + 6
}
