// Texts that are JSON objects, or nearly. Most are ordinary, and some contain oddities of all kinds.

import type { Random } from './random.ts'

/** Texts of values, and texts that look like values. */
export const scalars = [
  ...['0', '-0', '7', '-7', '10', '999', '1000', '123456', '1234567', '999999999999999', '1234567890123456'],
  ...['9007199254740991', '9007199254740993', '-9007199254740993', '12345678901234567', '123456789012345678'],
  ...[
    '1700000000000000001',
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775808',
    '99999999999999999999',
  ],
  ...[
    '1.5',
    '1.50',
    '1.0',
    '-0.0',
    '0.1',
    '0.00001',
    '0.00002',
    '0.000001',
    '0.123456789012345',
    '0.30000000000000004',
  ],
  ...['123456789.123456', '1234567890123.25', '1e3', '1E-7', '1.5e300', '1e999', '01', '1.', '.5', '-', '+1', '1e'],
  ...[
    'true',
    'false',
    'null',
    'tru',
    'nul',
    'NaN',
    '""',
    '"a"',
    '"ü€😀"',
    '"\u2028\u007f"',
    '"\\u003c"',
    '"\\n\\t\\"\\\\"',
  ],
  ...[
    '"\\/"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\x"',
    '"\t"',
    '"\u0000"',
    '"open',
    '"\\',
    '"\\u12',
    '{}',
    '[]',
    '{"b":1,"a":2}',
  ],
  ...[
    '{"a":1,"a":2}',
    '[1,2.0,{"x":[]}]',
    '[1,]',
    '[}',
    '{"a":[1}',
    '{ "a" : 1 }',
    '[1.50, "\\u0041"]',
    '{"__proto__":1}',
  ],
  ...['['.repeat(70) + ']'.repeat(70), '['.repeat(60) + ']'.repeat(60), '"\ud800"', `"${'long '.repeat(60)}"`],
]
/** Names between quotes. */
export const names = [
  ...[
    'a',
    'b',
    'n',
    'f',
    'env',
    'file',
    'message',
    'stream',
    'timestamp',
    'orchestrator',
    'level',
    'Zone',
    '_x',
    '',
    '0',
    '10',
    'a b',
  ],
  ...['ü', 'x\\n', '__proto__', 'constructor', 'toString', 'gone', 'k'.repeat(200), "it's", 'a\u007f'],
]
const blanks = ['', '', '', '', '', ' ', '\t', '\n', '\r  ', '\u00a0', '\ufeff']

/** The text of an object, possibly with faults. */
export function jsonText(random: Random): string {
  const next = (bound: number) => random.below(bound)
  const one = (of: readonly string[]) => of[next(of.length)] as string
  const gap = () => (next(6) === 0 ? one(blanks) : '')
  const members = Array.from({ length: next(8) }, () => {
    // Most members are ordinary, because a text with many odd members is rarely valid.
    const name = next(12) === 0 ? one(names) : (names[next(12)] as string)
    const value = next(8) === 0 ? one(scalars) : one(['1', '"text"', 'true', '12.25', '"ä"', '1700000000000000001'])
    return `${gap()}"${name}"${gap()}:${gap()}${value}${gap()}`
  })
  const text = `${gap()}{${members.join(',')}${gap()}}${gap()}`
  if (next(10) > 0) return text
  const at = next(text.length)
  return text.slice(0, at) + one(['', '"', '}', ',', '\\', '\u0000', '1', '{']) + text.slice(at + next(3))
}
