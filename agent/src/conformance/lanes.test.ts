// Runs the recorded cases of the language on the lines of a pod. Programs that keep lines as bytes must have the same results as with
// objects.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import type { Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { compileProgram } from '../remap/program.ts'
import { fromTagged, type Tagged } from '../remap/tagged.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'

const folder = join(import.meta.dirname, '../../../e2e/conformance/remap')
const beginnings = ['. = parse_json!(.message)', '. = merge(., object(parse_json(.message) ?? {}) ?? {})']

interface Recorded {
  readonly id: string
  readonly program: string
  readonly event?: Tagged
}

const cases = readdirSync(folder)
  .filter((name) => name.endsWith('.jsonl'))
  .flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
  .map((line) => JSON.parse(line) as Recorded)

test('recorded programs have the same results for lines and for objects', { timeout: 240_000 }, async () => {
  const random = new Random(1)
  const pod = new BytePod('a')
  let compared = 0
  let asBytes = 0
  for (const [index, { id, program, event }] of cases.entries()) {
    const source = `${beginnings[index % 2]}\n${program}`
    if (!compileProgram(source).ok) continue
    const [bytes, objects] = [await transformsOf([source], true), await transformsOf([source], false)]
    if (bytes[0]?.takesBytes !== true) continue
    const message = event === undefined ? '{}' : jsonOf(fromTagged(event))
    const lines = [message, '{"a":"b","level":"info"}', message, 'text'].map((text, second) =>
      Buffer.from(`2026-11-23T10:11:1${second}.5Z stdout F ${text}`),
    )
    pod.read(lines, (batch) => {
      const after = through(bytes, batch)
      if (after instanceof ByteBatch) asBytes += after.lineCount
      const expected = expectedOf(through(objects, logBatch(pod.objects(lines), new Finalizer()))?.events ?? [])
      try {
        check(after, expected, random)
      } catch (error) {
        throw new Error(`${id}: ${source}`, { cause: error })
      }
    })
    compared++
  }
  expect(compared).toBeGreaterThan(1000)
  expect(asBytes).toBeGreaterThan(2000)
})

/** A message with this object as JSON, or an empty one if JSON cannot represent it. */
function jsonOf(value: Value): string {
  const text = writeJson(value)
  return text.startsWith('{') && !text.includes('\n') ? text : '{}'
}
