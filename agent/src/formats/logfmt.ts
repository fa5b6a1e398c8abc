// logfmt: key-value text with `=` and blanks; true is written as the key alone, and false is omitted.

import type { ValueObject } from '../event/value.ts'
import { parseKeyValue, writeKeyValue } from './key-value.ts'

const reading = { keyValueDelimiter: '=', fieldDelimiter: ' ', lenient: true, standaloneKeys: true } as const

/** The fields of a line; undefined if it is not logfmt. */
export function parseLogfmt(line: string): ValueObject | undefined {
  return parseKeyValue(line, reading)
}

/** The line of the fields. @param first fields written first, in this order; the others follow, sorted by key */
export function writeLogfmt(fields: ValueObject, first: readonly string[] = []): string {
  return writeKeyValue(fields, { keyValueDelimiter: '=', fieldDelimiter: ' ', first, flattenBoolean: true })
}
