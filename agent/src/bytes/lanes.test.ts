// Both lanes give the same results: line events and object events have the same JSON, sizes and order, for any lines, for every reader
// at any time.

import { expect, test } from 'vitest'
import { type LogBatch, logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { lineOf, through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'

const parse = '. = parse_json!(.message)'
const merge = '. = merge(., object!(parse_json!(.message)))'
/** Chains of programs in execution order. */
const chains: readonly (readonly string[])[] = [
  [],
  ['.env = "prod"\ndel(.stream)'],
  [parse],
  [`${parse}\n.env = "prod"\n.n = 5\n.f = 2.0\ndel(.a)\n.b = "x\\ny"\ndel(.env)`],
  [`${merge}\ndel(.message)`],
  [`${merge}\n.file = {"z": [1, {}], "a": null}\n.message = true`],
  [merge, 'del(.message)\n.a = 1', '.a = 2\n.zz = {"k": "ü"}\ndel(.orchestrator)'],
  ['. = object!(parse_json!(.message))', 'del(.a)', '.a = "again"'],
  // Common ways to parse the message.
  ['. = merge(., object(parse_json(.message) ?? {}) ?? {})', '.a = 1'],
  ['. |= object(parse_json(.message) ?? {}) ?? {}\ndel(.message)'],
  ['p, err = parse_json(.message)\nif err == null && is_object(p) { . = merge(., object!(p)) } else { .raw = true }'],
  [
    'p, e = parse_json(.message)\nif e == null { ., e = merge(., p)\nif e != null { .bad = e }\n.z = 1 } else { .raw = e }',
  ],
  ['s = parse_json(.message) ?? {}\nif !is_null(s) { . = merge(., object(s) ?? {}) }\nif exists(.a) { abort }'],
  ['., err = parse_json(.message)\nif err != null { abort }\ndel(.a)'],
  // Conditions on few values, on many, on fields of the source, and conditions that fail.
  [merge, 'filter: .level != "debug" && !exists(.a)', '.b = 1'],
  ['filter: .stream == "stderr" || contains(string!(.message), "a")', parse],
  [parse, 'filter: int!(.v) > 5', '.x = 1'],
  [merge, 'filter: .timestamp != .message && .orchestrator.pod_name != "b"', 'filter: is_string(.s) || is_null(.s)'],
  // Programs that end for some events.
  [`${parse}\nif .level == "debug" || exists(.c) { abort }\n.b = 1`],
  [`${merge}\nif int!(.v) > 5 { abort "too much" }\ndel(.message)`, '.v = 1'],
  ['if .stream == "stderr" { abort }\n.a = 1', merge],
  [`${merge}\n.z = 1\nif exists(.a) && .orchestrator.pod_name == "b" { abort }\nif is_string(.s) { abort }\n.s = "x"`],
  // Moved fields of the message and of the source.
  [`${parse}\n.x = .a\n.y = del(.b)\n.n = del(.n)\n.z = .none`],
  [`${merge}\n.message = del(.a)\n.pod = .orchestrator\n.when = .timestamp\n.file = .stream\n.raw = .message`],
  [`${merge}\nx = del(.a)\n.b = x\n.c = x\n.s = .source_type\ndel(.message)`, '.b2 = .b\n.a = .none\n.x = .file'],
  ['.msg = del(.message)\n.at = del(.timestamp)\n.twice = .msg\n.env = del(.file)\n.f = .none'],
  ['.a = .message', `${parse}`],
  // The object as a value.
  ['.message = parse_json!(.message)', '.x = .message\ndel(.stream)'],
  ['.parsed = parse_json(.message) ?? {}\n.b = 1\n.m = .message', '.level = .parsed.level\n.o = .parsed'],
  ['.message = parse_json!(.message)\nif .message.level == "debug" { abort }\n.message.more = 1'],
  // Computed fields.
  [`${parse}\n.up = upcase(string(.a) ?? "")\n.c = 1`, '.up2 = .up\n.c2 = .c'],
  [`${merge}\nif .level == "debug" { .severity = 7\ndel(.level) } else { .a = "else" }\n.t = to_string(.v) ?? "none"`],
  [
    `${merge}\n.k = if .stream == "stderr" { 3 } else { .n }\nif exists(.a) { del(.message) } else { .env = .b }`,
    '.message = .env',
  ],
  [`${merge}\n.s = downcase(string!(.s))\n.v = to_int!(.v)`, '.s = [.s, .v]\nif .v == 7 { abort }'],
  [
    `${merge}\nx, err = to_int(.v)\nif err == null { .v = x } else { .err = err }\ndel(.orchestrator.pod_labels)\n.pod = .orchestrator.pod_name`,
  ],
  [
    `${merge}\n.a.b = 1\n.o.n = .v\ndel(.env.x)`,
    `if exists(.a.c) { del(.a) }`,
    'if .level == "info" { .a = "third" }\n.q = .a',
  ],
  [
    `${merge}\nif .a == 1 { del(.timestamp) }\nif .b == 1 { .stream = "b" }`,
    'if .stream == "b" { .file = del(.stream) }\n.t = .timestamp',
  ],
  [parse, 'filter: .b == 1 || exists(.c)', '.d = {"a": .a, "b": [.b, "x"]}', 'filter: .d.a != 7', '.e = .d'],
  [`${merge}\n.h = contains(string(.message) ?? "", "a")\n.len = length(string(.message) ?? "")`],
  // The byte lane ends at the second program, or before the first.
  [parse, '.up = length(.)', '.c = 1'],
  ['.x = 1', merge],
]

/** A Latin-1 character as an ASCII JSON escape. */
const escaped = (character: string) => `\\u00${character.charCodeAt(0).toString(16).padStart(2, '0')}`

test('lines and objects give the same results', async () => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const sides = await Promise.all(
    chains.map(async (chain) => ({
      bytes: await transformsOf(chain, true),
      objects: await transformsOf(chain, false),
    })),
  )
  const pods = [new BytePod('a'), new BytePod('b'), new BytePod('c', false)]
  let lines = 0
  let asBytes = 0
  for (let round = 0; round < 400; round++) {
    const pod = random.pick(pods)
    const isAscii = random.chance(0.3)
    const chunk = Array.from({ length: 1 + random.below(60) }, () => {
      const line = lineOf(random)
      return isAscii ? Buffer.from(line.toString('latin1').replace(/[\x7f-\xff]/g, escaped), 'latin1') : line
    })
    const isShared = random.chance(0.5)
    const waiting: (() => void)[] = []
    try {
      pod.read(chunk, (batch) => {
        // Readers get the batch one after the other, and some read it only when the chunk has been reused.
        const readers = Array.from({ length: isShared ? 3 : 1 }, () => random.pick(sides))
        const all = readers.map((_, index) => (index === readers.length - 1 ? batch : batch.share()))
        for (const [index, { bytes, objects }] of readers.entries()) {
          const expected = expectedOf(through(objects, logBatch(pod.objects(chunk), new Finalizer()))?.events ?? [])
          const after = through(bytes, all[index] as LogBatch)
          lines += expected.json.length
          if (after instanceof ByteBatch) asBytes += after.lineCount
          if (random.chance(0.5)) check(after, expected, random)
          else waiting.push(() => check(after, expected, random))
        }
      })
      for (const look of waiting) look()
    } catch (error) {
      throw new Error(`Seed ${seed}, round ${round}`, { cause: error })
    }
  }
  expect(lines).toBeGreaterThan(10_000)
  expect(asBytes / lines).toBeGreaterThan(0.4)
})

/** Values that the kernel copies, values that it converts, and values that the caller converts. */
const values = [
  ...['1', '-7', '12345678901234567', '1.5', '1.50', '2.5e3', '-0.1', 'true', 'null', '""', '"text"', '"ü😀"'],
  ...['"\\u003cb\\u003e"', '"a\\/b"', '"\\"\\n"', '{}', '[]', '{"z":1,"a":2}', '{"a":{"b":[1,2]}}', '[1, 2]'],
  ...[JSON.stringify('long '.repeat(30)), JSON.stringify('longer '.repeat(120))],
]
const names = [
  'a',
  'b',
  'c',
  'env',
  'file',
  'k"',
  'message',
  'n',
  'request_id',
  'stream',
  'zz',
  'a name that is longer than sixteen',
]

/** Messages with runs of the same names in the same order. */
function alikeMessages(random: Random): (random: Random) => string {
  let left = 0
  let order: string[] = []
  return () => {
    if (left-- === 0) {
      left = random.below(12)
      order = [...names].filter(() => random.chance(0.6)).sort(() => random.below(3) - 1)
    }
    const blank = () => (random.chance(0.05) ? ' ' : '')
    const members = order.map((name) => `${blank()}${JSON.stringify(name)}${blank()}:${blank()}${random.pick(values)}`)
    return `{${members.join(`${blank()},`)}}`
  }
}

test('consecutive events with the same names are written like all others', async () => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const alike = [
    [parse],
    [parse, '.env = "prod"\n.host = "node-1"\ndel(.request_id)'],
    [`${parse}\n.a = 1\n.aa = {"k": "ü"}\n.zzz = []\ndel(.b)`, 'del(.zz)\n.n = null'],
    [`${parse}\ndel(.a)\ndel(.b)\ndel(.c)\n.m = true\n.n = "${'n'.repeat(700)}"`],
    [`${merge}\ndel(.message)\n.stream = "s"`],
  ]
  const sides = await Promise.all(
    alike.map(async (chain) => ({ bytes: await transformsOf(chain, true), objects: await transformsOf(chain, false) })),
  )
  let asBytes = 0
  for (let round = 0; round < 200; round++) {
    const pod = new BytePod('a')
    const messages = alikeMessages(random)
    const chunk = Array.from({ length: 1 + random.below(60) }, () => lineOf(random, messages))
    const { bytes, objects } = random.pick(sides)
    const expected = expectedOf(through(objects, logBatch(pod.objects(chunk), new Finalizer()))?.events ?? [])
    try {
      pod.read(chunk, (batch) => {
        const after = through(bytes, batch)
        if (after instanceof ByteBatch) asBytes += after.lineCount
        check(after, expected, random)
      })
    } catch (error) {
      throw new Error(`Seed ${seed}, round ${round}`, { cause: error })
    }
  }
  expect(asBytes).toBeGreaterThan(500)
})
