// The byte lane with kills and reloads: its deliveries must equal those of the object lane for the same lines.

import { expect, test } from 'vitest'
import { Destination } from './destination.ts'
import { jsonSink, killLanes, objectsOf } from './lane-kills.ts'
import { Contents, PodLines } from './pod-lines.ts'
import { eventually, onDisk, Victim } from './victim.ts'

const seed = (Math.random() * 1_000_000) >>> 0

test(`lines that survive kills in disk buffers equal those of the object lane, from seed ${seed}`, async () => {
  const { problems, ...report } = await killLanes(6, seed, 800)
  expect(problems.slice(0, 5), JSON.stringify(report)).toEqual([])
  expect(report.asBytes).toBeGreaterThan(report.asObjects / 4)
}, 600_000)

const merge = '. = merge(., object(parse_json(.message) ?? {}) ?? {})'

/** Each reload changes a program, every other one adds or removes a sink, and one has a consumer that needs objects. */
function configOf(round: number, lines: PodLines, url: string, isBytes: boolean): Record<string, unknown> {
  const hasExtra = round % 2 === 1
  const needsObjects = round % 4 === 2
  return {
    remap: { byte_lane: isBytes },
    sources: { pods: lines.source },
    transforms: {
      kept: { type: 'remap', inputs: ['pods'], source: `${merge}\n.rev = ${round}\ndel(.a)` },
      ...(hasExtra && {
        extra: {
          type: 'remap',
          inputs: ['pods'],
          source: `${merge}\n.up = upcase(string(.level) ?? "")\n.rev = ${round}`,
        },
      }),
      ...(needsObjects && { late: { type: 'remap', inputs: ['pods'], source: '.seen = now()' } }),
    },
    sinks: {
      to_kept: jsonSink('kept', `${url}/kept`, isBytes ? onDisk() : { max_events: 5000 }),
      ...(hasExtra && { to_extra: jsonSink('extra', `${url}/extra`, { max_events: 5000 }) }),
      ...(needsObjects && { to_nothing: { type: 'blackhole', inputs: ['late'] } }),
    },
  }
}

test(`reloads under load change no line and lose none, from seed ${seed}`, async () => {
  await using lines = await PodLines.start(seed)
  const contents = new Contents()
  await using destination = await new Destination(contents.take).start()
  await using victim = new Victim()
  await victim.start(configOf(0, lines, destination.url, true))
  const feeding = setInterval(() => lines.append(30), 40)
  const keptUntil = (count: number) =>
    eventually(`${count} lines have arrived`, 120_000, () => contents.count('/kept') >= count)
  try {
    for (let round = 1; round <= 8; round++) {
      await keptUntil(lines.written)
      destination.mood = round % 3 === 0 ? 'failing' : 'well'
      const before = lines.written
      await eventually('lines are under way', 60_000, () => lines.written > before + 200)
      await victim.reload(configOf(round, lines, destination.url, true))
      destination.mood = 'well'
    }
  } finally {
    clearInterval(feeding)
  }
  await keptUntil(lines.written)
  expect(await victim.metric('byte_lane_events_total', 'reason="bytes"')).toBeGreaterThan(0)
  expect(await victim.signal('SIGTERM')).toBe(0)
  const objects = (url: string) => configOf(1, lines, url, false)
  const expected = await objectsOf(objects, ['kept', 'extra'], lines)
  expect(contents.problems(expected, '/kept', true).slice(0, 5)).toEqual([])
  expect(contents.problems(expected, '/extra', false).slice(0, 5)).toEqual([])
  expect(contents.count('/extra')).toBeGreaterThan(0)
}, 900_000)
