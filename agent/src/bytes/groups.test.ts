// Lines of one group have equal fields, and so do lines of different chunks whose groups have the same text.

import { expect, test } from 'vitest'
import { writeJson } from '../formats/json.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'

const values = [
  '"x"',
  '"y"',
  '"a long text, of which much is equal"',
  '"a long text, of which much was equal"',
  '1',
  '1.0',
]
const written = [...values, '"\\u0078"', '"ü"', 'null', '{"b":1,"a":[2]}', '{"a":[2],"b":1}', 'true']

function lineFor(random: Random): Buffer {
  const members = ['a', 'b', 'c', 'd']
    .filter(() => random.chance(0.8))
    .map((name) => `"${name}":${random.pick(random.chance(0.7) ? values : written)}`)
  if (random.chance(0.2)) members.reverse()
  const message = random.chance(0.05) ? 'not JSON' : `{${members.join(',')}}`
  return Buffer.from(`2026-11-23T10:11:12.${random.below(9)}Z ${random.pick(['stdout', 'stderr'])} F ${message}`)
}

test.each([
  { program: '. = parse_json!(.message)', fields: ['b', 'a', 'd'] },
  { program: '. = merge(., object!(parse_json!(.message)))', fields: ['stream', 'd', 'orchestrator'] },
  { program: '. = parse_json!(.message)\n.e = .c\n.k = "constant"\ndel(.a)', fields: ['k', 'e', 'a', 'b'] },
])('groups by $fields have equal fields', async ({ program, fields }) => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const transforms = await transformsOf([program], true)
  const pod = new BytePod('pod')
  // For all chunks of the pod: the fields that each text represents.
  const byText = new Map<string, string>()
  for (let chunk = 0; chunk < 20; chunk++) {
    const lines = Array.from({ length: 100 }, () => lineFor(random))
    pod.read(lines, (read) => {
      const batch = through(transforms, read) as ByteBatch
      expect(batch).toBeInstanceOf(ByteBatch)
      const groups = batch.groups(fields) as Int32Array
      const byGroup = new Map<number, string>()
      for (let index = 0; index < batch.count; index++) {
        const group = groups[index] as number
        if (group < 0) continue
        const shown = writeJson(batch.fieldsOf(index, fields))
        expect(shown, `Seed ${seed}, group`).toBe(byGroup.get(group) ?? shown)
        byGroup.set(group, shown)
        const text = batch.groupText(index) as string
        expect(text, `Seed ${seed}, text`).toBeTypeOf('string')
        expect(byText.get(text) ?? shown, `Seed ${seed}, text of other fields`).toBe(shown)
        byText.set(text, shown)
      }
      batch.done()
    })
  }
  expect(byText.size).toBeGreaterThan(20)
})

test.each([
  { program: '.a = del(.timestamp)', fields: ['a', 'timestamp'], text: (at: number) => String(at) },
  { program: '.a = 1', fields: ['a', 'timestamp'], text: (at: number) => String(Math.floor(at / 1000)) },
])('times count as equal within a second only in the requested field: $program', async ({ program, fields, text }) => {
  const transforms = await transformsOf([program], true)
  const times = Array.from({ length: 60 }, (_, index) => 1_790_000_000_000 + 250 * (index % 20))
  const lines = times.map((at) => Buffer.from(`${new Date(at).toISOString()} stdout F {"b":1}`))
  new BytePod('pod').read(lines, (read) => {
    const batch = through(transforms, read) as ByteBatch
    const groups = batch.groups(fields, 'timestamp')
    const byGroup = new Map<number, Set<string>>()
    for (let index = 0; index < batch.count; index++) {
      const group = groups?.[index] ?? -1
      if (group >= 0) byGroup.set(group, (byGroup.get(group) ?? new Set()).add(text(times[index] as number)))
    }
    for (const texts of byGroup.values()) expect(texts.size).toBe(1)
    batch.done()
  })
})
