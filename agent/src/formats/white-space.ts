// Unicode white space. JavaScript's `\s` and `trim` also include U+FEFF, the byte order mark, and exclude U+0085.

/** A class for regular expressions that matches the same characters as `isWhiteSpace`. */
export const whiteSpace = '[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'

/** Whether a UTF-16 unit is white space, which is always in the basic plane. */
export function isWhiteSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)
  return (
    unit === 0x85 ||
    unit === 0xa0 ||
    unit === 0x1680 ||
    (unit >= 0x2000 && unit <= 0x200a) ||
    unit === 0x2028 ||
    unit === 0x2029 ||
    unit === 0x202f ||
    unit === 0x205f ||
    unit === 0x3000
  )
}

export function trimmedStart(text: string): string {
  let start = 0
  while (start < text.length && isWhiteSpace(text.charCodeAt(start))) start++
  return start === 0 ? text : text.slice(start)
}

export function trimmedEnd(text: string): string {
  let end = text.length
  while (end > 0 && isWhiteSpace(text.charCodeAt(end - 1))) end--
  return end === text.length ? text : text.slice(0, end)
}

export function trimmed(text: string): string {
  return trimmedEnd(trimmedStart(text))
}
