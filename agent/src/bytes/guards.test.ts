// A program that ends for some events has the same effect on lines and on objects, whatever happens to the events for which it
// ends.

import { expect, test } from 'vitest'
import { type Batch, logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { writeJson } from '../formats/json.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { buildTransform, RecordedEvents } from '../testing/harness.ts'
import { ByteBatch } from './byte-batch.ts'

const line = (index: number) => {
  const n = index % 3 === 0 ? '"no number"' : index
  return Buffer.from(
    `2026-11-23T10:11:12.${index}Z stdout F {"level":"${index % 2 === 0 ? 'debug' : 'info'}","n":${n},"c":"${index % 5}"}`,
  )
}
const lines = [
  ...Array.from({ length: 60 }, (_, index) => line(index)),
  Buffer.from('2026-11-23T10:11:12Z stdout F text'),
]
const source = [
  '. = merge(., object!(parse_json!(.message)))',
  'if .level == "debug" && .c != "1" { abort "not wanted" }',
  'if int!(.n) > 20 { abort }',
  '.level = "changed"',
].join('\n')

/** The events of each output, and the counters. */
async function sent(options: object, isBytes: boolean) {
  const events = new RecordedEvents()
  const globals = { remap: { network: false, byte_lane: isBytes } }
  const transform = await buildTransform('remap', { source, ...options }, events, undefined, globals)
  const outputs: Record<string, string[]> = {}
  let asLines = 0
  const run = (batch: Batch) => {
    void transform.transform(batch, {
      send(next, port = '') {
        if (next instanceof ByteBatch) asLines += next.lineCount
        outputs[port] = next.events.map((event) => writeJson('fields' in event ? event.fields : null))
        return undefined
      },
    })
  }
  const pod = new BytePod('a')
  if (isBytes) pod.read(lines, run)
  else run(logBatch(pod.objects(lines), new Finalizer()))
  const { counts, errors, discards } = events
  const own = [...counts].filter(([name]) => !name.includes('byte_lane')).sort()
  return { outputs, counts: own, errors, discards, asLines }
}

test.each([
  { options: {} },
  { options: { drop_on_error: true } },
  { options: { drop_on_error: true, drop_on_abort: false } },
  { options: { drop_on_error: true, reroute_dropped: true } },
  { options: { drop_on_error: false, drop_on_abort: true, reroute_dropped: true } },
])('with $options', async ({ options }) => {
  const { asLines, ...bytes } = await sent(options, true)
  const { asLines: none, ...objects } = await sent(options, false)
  expect(bytes).toEqual(objects)
  expect(bytes.outputs['']?.length).toBeGreaterThan(5)
  // The lines for which the program continues stay lines.
  expect(asLines).toBe(bytes.outputs['']?.filter((json) => json.includes('"level":"changed"')).length)
  expect(none).toBe(0)
})
