import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { printable, printableWithColours, printOnlyPrintable } from './printable.ts'

const hostile = 'a\u001b]0;pwn\u0007\u001b[2J\u009b31m\r\u202e\u2066\u0000\u007fb'

test('prints control characters by their codes, without a change in the meaning of JSON', () => {
  expect(printable(hostile)).toBe('a\\u001b]0;pwn\\u0007\\u001b[2J\\u009b31m\\u000d\\u202e\\u2066\\u0000\\u007fb')
  expect(printable('tab\tline\né😀')).toBe('tab\tline\né😀')
  expect(JSON.parse(printable(JSON.stringify({ [hostile]: hostile })))).toEqual({ [hostile]: hostile })
})

test('colours stay if a command may use them, and other control characters are replaced', () => {
  expect(printableWithColours(`\u001b[31merror\u001b[0m: ${hostile}`)).toBe(
    `\u001b[31merror\u001b[0m: ${printable(hostile)}`,
  )
  expect(printableWithColours('\u001b[8mhidden\u001b[38;5;0m')).toBe('\\u001b[8mhidden\\u001b[38;5;0m')
})

test('a stream contains only printable text, and bytes unchanged', async () => {
  const stream = new PassThrough()
  printOnlyPrintable([stream as unknown as NodeJS.WriteStream])
  stream.write(hostile)
  stream.end(Buffer.from([0x1b]))
  expect(String(Buffer.concat(await stream.toArray()))).toBe(`${printable(hostile)}\u001b`)
})
