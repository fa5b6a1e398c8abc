// Random events: nested, with hostile names, with all types of values and their boundary values.

import { Timestamp } from '../event/timestamp.ts'
import { type Float, float, setField, stringFromBytes, type Value, type ValueObject } from '../event/value.ts'
import type { Random } from '../testing/random.ts'

/** Field names: short ones that occur often in programs, and misleading ones. */
export const anyNames: readonly string[] = [
  'a',
  'b',
  'c',
  'o',
  'l',
  'message',
  'a',
  'b',
  'c',
  'o',
  'l',
  'message',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'length',
  'prototype',
  '',
  'a b',
  'é😀',
  '\uffff',
  'if',
  '@timestamp',
  '0',
  'x.y',
  'q"uote\\',
]

/** A small set of names, so that programs read fields that they have written. */
export const fewNames: readonly string[] = ['a', 'b', 'a', 'b', 'o', '__proto__']

export const integers: readonly (number | bigint)[] = [
  0,
  1,
  -1,
  2,
  3,
  7,
  10,
  -10,
  255,
  1000,
  2147483648,
  9007199254740991,
  -9007199254740991,
  9007199254740992n,
  9007199254740993n,
  9223372036854775807n,
  -9223372036854775808n,
  -9007199254740993n,
  1700000000,
]

export const floats: readonly number[] = [
  0,
  -0,
  1,
  -1,
  1.5,
  -2.5,
  0.1,
  1e16,
  1e300,
  1.7976931348623157e308,
  5e-324,
  1e-7,
  2 ** 53 + 2,
  2 ** 63,
  -(2 ** 63),
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
]

export const strings: readonly string[] = [
  '',
  'a',
  'abc',
  'A b-C_d.e',
  'foo,bar,"b,az"',
  'k=v a="b c" d',
  '{"a": 1, "__proto__": {"x": 1}, "b": [1.0, 9223372036854775807, 1e400, null]}',
  '{"constructor": {"prototype": {"polluted": true}}}',
  '[1, 2',
  '127.0.0.1',
  '::1',
  '10.0.0.0/8',
  'https://user:p@example.org:8080/a/b?c=d&__proto__=e#f',
  '2024-02-29T12:34:56.789Z',
  '%Y-%m-%d %H:%M:%S',
  '127.0.0.1 bob frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
  '<13>1 2020-03-13T20:45:38.119Z dynamicwireless.name non 2426 ID931 [exampleSDID@32473 iut="3"] Try it',
  '42',
  '-9223372036854775808',
  '1e3',
  'inf',
  'true',
  'é😀\u0000\ufffd\u2028',
  'İıſKß',
  'aGVsbG8=',
  '68656c6c6f',
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!',
  '%41%zz%e2%82',
  '$1 $& $$',
  '\\',
  '{{ a }}',
]

function randomInteger(random: Random): number | bigint {
  return random.chance(0.6) ? random.below(8) : random.pick(integers)
}

function randomFloat(random: Random): number | Float {
  const value = random.chance(0.4) ? random.below(1000) / 8 : random.pick(floats)
  return float(value)
}

function randomValue(random: Random, depth: number, names: readonly string[]): Value {
  const nested = depth > 0 ? 3 : 0
  switch (random.below(10 + nested)) {
    case 0:
      return null
    case 1:
      return random.chance(0.5)
    case 2:
    case 3:
      return randomInteger(random)
    case 4:
      return randomFloat(random)
    case 5:
    case 6:
    case 7:
      return random.pick(strings)
    case 8:
      return stringFromBytes(Buffer.from(random.pick(['ff61', 'c3', '61e28262', 'f09f98', '00ff00'] as const), 'hex'))
    case 9:
      return new Timestamp(
        random.pick([0, 1700000000123, -1, 253402300799999, -62135596800000] as const),
        random.below(3),
      )
    case 10: {
      return Array.from({ length: random.below(4) }, () => randomValue(random, depth - 1, names))
    }
    default:
      return randomObject(random, depth - 1, names)
  }
}

export function randomObject(random: Random, depth: number, names: readonly string[] = anyNames): ValueObject {
  const object: ValueObject = {}
  const count = random.below(depth > 1 ? 8 : 4)
  for (let index = 0; index < count; index++) setField(object, random.pick(names), randomValue(random, depth, names))
  // A missing field in the form that `del` leaves.
  if (random.chance(0.2)) setField(object, random.pick(names), undefined)
  return object
}
