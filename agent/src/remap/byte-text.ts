// Strings as bytes: the language counts and slices bytes, but JavaScript UTF-16 units. For ASCII both are equal.

import { type Bytes, stringFromBytes } from '../event/value.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole range of ASCII is meant
const ascii = /^[\x00-\x7f]*$/

export function isAscii(text: string): boolean {
  return ascii.test(text)
}

/** The bytes of a string; they must not be changed. */
export function bytesOf(value: string | Bytes): Buffer {
  return typeof value === 'string' ? Buffer.from(value, 'utf8') : value.bytes
}

/** A string from bytes: text if they are valid UTF-8. */
export function textOf(bytes: Buffer): string | Bytes {
  return stringFromBytes(bytes)
}
