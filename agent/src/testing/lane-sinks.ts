// Compares the output for sinks on both lanes: the same lines, as bytes and as objects, after the same programs.

import type { Sink } from '../component.ts'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { BytePod } from './byte-pod.ts'
import type { TestSink } from './harness.ts'
import { lineOf, messageOf, through, transformsOf } from './lanes.ts'
import type { Random } from './random.ts'

const parse = '. = parse_json!(.message)'
const merge = '. = merge(., object!(parse_json!(.message)))'

/** Programs in the order of processing. */
export const sinkChains: readonly (readonly string[])[] = [
  [],
  ['.env = "prod"\n.a = 1'],
  [parse, '.env = "x\\"y"\ndel(.c)'],
  [`${merge}\ndel(.message)`],
  [merge, '.timestamp = "2026-11-23T10:11:13.5Z"'],
  ['del(.timestamp)', '.a = "constant"'],
  [`${parse}\n.b = .n\n.s = upcase(string(.s) ?? "x")\n.env = .none`],
]

/** The same with times set by programs, which a disk buffer stores in objects. */
export const timeChains: readonly (readonly string[])[] = [
  [`${merge}\n.at = .timestamp\n.dates = [t'2026-01-01T00:00:00.25Z', .a]`, `.due = t'2026-01-02T00:00:00Z'`],
  [`${merge}\nif .a == "x" { .timestamp = t'2026-11-23T10:11:12.5Z' } else if .a == "y" { del(.timestamp) }`],
]

const stamps = [
  ...[
    '"2026-11-23T10:11:12Z"',
    '"2026-11-23T10:11:12.123456789Z"',
    '"2026-11-23 10:11:10"',
    '"1970-01-01T00:00:00.5Z"',
  ],
  ...['"no time"', '7', 'null', '"3000-01-01T00:00:00Z"', '{"a":1}'],
]

/** Messages, many of which have fields that sinks use. */
export function messageFor(random: Random): string {
  if (random.chance(0.3)) return messageOf(random)
  const members = [`"a":"${random.pick(['x', 'y', 'z z', 'ü"'.replace('"', '\\"')])}"`, `"n":${random.below(100)}`]
  if (random.chance(0.7)) members.push(`"s":${random.pick(['"one"', '"two"', '3', 'true', '"q\\\\uote"'])}`)
  if (random.chance(0.3)) members.push(`"timestamp":${random.pick(stamps)}`)
  if (random.chance(0.3)) members.push(`"action":${random.pick(['"index"', '"create"', '"delete"'])}`)
  if (random.chance(0.2)) members.push(`"o":{"n":${random.below(3)},"text":"\\u00e9\\n"}`)
  return `{${members.join(',')}}`
}

type Write = (batch: Parameters<Sink['write']>[0]) => Promise<void>

/** Writes the events to a sink on one lane. */
export type Deliver = (write: Write) => Promise<void>

/** The deliveries of both lanes for a few chunks of events after some programs. */
export async function bothLanes(
  chain: readonly string[],
  random: Random,
): Promise<{ readonly bytes: Deliver; readonly objects: Deliver }> {
  const [asBytes, asObjects] = await Promise.all([transformsOf(chain, true), transformsOf(chain, false)])
  const pods = ['pod-0', 'pod-1'].map((name) => new BytePod(name)) as [BytePod, BytePod]
  const chunks = Array.from({ length: 6 }, (_, index) => ({
    pod: pods[index % 2] as BytePod,
    lines: Array.from({ length: 1 + random.below(80) }, () => lineOf(random, messageFor)),
  }))
  return {
    async bytes(write) {
      for (const { pod, lines } of chunks) {
        const waiting: Promise<void>[] = []
        pod.read(lines, (batch) => {
          const after = through(asBytes, batch)
          if (after !== undefined) waiting.push(write(after))
        })
        await Promise.all(waiting)
      }
    },
    async objects(write) {
      for (const { pod, lines } of chunks) {
        const after = through(asObjects, logBatch(pod.objects(lines), new Finalizer()))
        if (after !== undefined) await write(after)
      }
    },
  }
}

/** The counters of a sink, without durations. */
export function countedBy(events: TestSink['events']): object {
  const errors = new Map<string, number>()
  for (const { type, code, message, count = 1 } of events.errors) {
    const key = `${type} ${code} ${message}`
    errors.set(key, (errors.get(key) ?? 0) + count)
  }
  const discards = new Map<string, number>()
  for (const { reason, intentional, events: count } of events.discards) {
    const key = `${reason} ${intentional}`
    discards.set(key, (discards.get(key) ?? 0) + count)
  }
  const sorted = (map: ReadonlyMap<string, number>) =>
    [...map].filter(([name]) => !name.includes('second')).sort(([left], [right]) => (left < right ? -1 : 1))
  return { counts: sorted(events.counts), errors: sorted(errors), discards: sorted(discards) }
}
