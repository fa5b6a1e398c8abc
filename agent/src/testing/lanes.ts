// Lines of container runtimes with all kinds of unusual content, and the transforms through which both lanes pass events.

import type { Transform } from '../component.ts'
import type { Batch, LogBatch } from '../event/batch.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { buildTransform } from './harness.ts'
import { jsonText, names, scalars } from './json-texts.ts'
import type { Random } from './random.ts'

const times = [
  ...['2026-11-23T10:11:12.123456789Z', '2026-11-23T10:11:12.1Z', '2026-11-23T10:11:12.12Z', '2026-11-23T10:11:12Z'],
  ...['2026-11-23T10:11:12.120000000Z', '2026-11-23T10:11:12.000000001Z', '2026-11-23T10:11:12.000Z'],
  ...['2026-11-23T10:11:12.1234567891Z', '2024-02-29T23:59:59.5Z', '2026-02-29T23:59:59.5Z', '2026-12-31T00:00:00.9Z'],
  ...['1969-12-31T23:59:59.5Z', '2026-11-23T10:11:60.5Z', '2026-11-23t10:11:12.5z', '2026-11-23T10:11:12.5+02:00'],
  ...['2026-11-23 10:11:12.5Z', '2026-13-23T10:11:12.5Z', '9999-12-31T23:59:59.999999999Z', '2026-04-31T10:11:12.1Z'],
  ...['2026-11-23T24:11:12.5Z', '2026-11-23T10:11:12.Z', '2026-11-2', ''],
  ...['2026-11-23T10:11:12+00:00', '2026-11-23T10:11:12.5-00:00', '2026-11-23T10:11:12.123456789-09:30'],
  ...['1970-01-01T00:30:00.5+01:00', '1969-12-31T23:30:00.5-01:00', '9999-12-31T23:30:00.5-01:00'],
  ...['2024-03-01T00:10:00.5+02:00', '2023-03-01T00:10:00.5+02:00', '2026-12-31T23:59:59.9-23:59'],
  ...[
    '2026-11-23T10:11:12.5+24:00',
    '2026-11-23T10:11:12.5+02:60',
    '2026-11-23T10:11:12.5+0200',
    '2026-11-23T10:11:12.5+02',
  ],
]
const zones = ['Z', '+02:00', '-05:30', '+14:00', '-12:00', '+00:00']
const middles = [
  ' stdout F ',
  ' stderr F ',
  ' stdout P ',
  ' stdout F',
  ' stdout F:tag ',
  ' stdin F ',
  ' stdout X ',
  ' ',
  '',
]

/** A line. A few lines do not have the format of the runtime. */
export function lineOf(random: Random, message = messageOf): Buffer {
  const time = random.chance(0.1) ? random.pick(times) : timeOf(random)
  const middle = random.chance(0.06) ? random.pick(middles) : random.pick([' stdout F ', ' stderr F '])
  const line = Buffer.from(`${time}${middle}${message(random)}`.replaceAll('\n', '\r'))
  return random.chance(0.02) ? Buffer.concat([line, Buffer.from([random.pick([0xff, 0xc3, 0x80])])]) : line
}

function timeOf(random: Random): string {
  const zone = random.chance(0.1) ? random.pick(zones) : 'Z'
  const day = random.chance(0.05)
    ? `20${random.between(10, 99)}-0${random.between(1, 9)}-${random.between(10, 28)}`
    : '2026-11-23'
  return `${day}T10:11:1${random.below(3)}.${random.below(1e9)}${zone}`
}

export function messageOf(random: Random): string {
  const kind = random.below(20)
  if (kind === 0)
    return random.pick(['', ' ', '{', '{}', '{ }', '[1]', '"text"', 'null', 'not JSON "at\\ all" \u0001\t ü'])
  if (kind === 1) return `{"v":${random.pick(scalars)},"w":${random.pick(scalars)}}`
  if (kind === 2) return `{"${random.pick(names)}":${random.pick(scalars)},"${random.pick(names)}":1}`
  if (kind === 3) return `{"m":"${'long \\n"é'.replaceAll('"', '\\"').repeat(random.below(300))}","z":1}`
  if (kind === 4) return `{"n":${numberText(random)},"o":{"n":${numberText(random)}},"s":"${escapeText(random)}"}`
  return jsonText(random)
}

function numberText(random: Random): string {
  const digits = (max: number) => Array.from({ length: random.below(max) }, () => random.below(10)).join('')
  const sign = random.pick(['', '', '-'])
  const whole = `${random.below(10)}${digits(20)}`.replace(/^0+(?=.)/, '')
  const fraction = random.chance(0.5) ? `.${digits(18)}${random.below(10)}` : ''
  return `${sign}${whole}${fraction}${random.chance(0.1) ? `e${random.between(-30, 30)}` : ''}`
}

function escapeText(random: Random): string {
  const unit = () =>
    `\\u${random.pick(['00', '07', '08', 'd8', 'db', 'dc', 'df', '20', 'ff'])}${random.below(256).toString(16).padStart(2, '0')}`
  return Array.from({ length: random.below(4) }, () =>
    random.pick([unit(), unit(), '\\/', '\\n', 'ü', '😀', 'a']),
  ).join('')
}

/** The prefix of a filter condition in a chain of programs. */
const filterMark = 'filter: '

/**
 * Transforms in the order of processing.
 * @param chain programs, and conditions that begin with `filter: `
 */
export async function transformsOf(
  chain: readonly string[],
  isBytes: boolean,
  events?: ComponentEvents,
): Promise<readonly Transform[]> {
  const globals = { remap: { network: false, byte_lane: isBytes } }
  return Promise.all(
    chain.map((source) =>
      source.startsWith(filterMark)
        ? buildTransform('filter', { condition: source.slice(filterMark.length) }, events, undefined, globals)
        : buildTransform('remap', { source, drop_on_error: true }, events, undefined, globals),
    ),
  )
}

/** The batch after the transforms; undefined if no event is left. */
export function through(transforms: readonly Transform[], batch: LogBatch): LogBatch | undefined {
  let current: Batch | undefined = batch
  for (const transform of transforms) {
    if (current === undefined) return undefined
    const before: Batch = current
    current = undefined
    void transform.transform(before, {
      send(next) {
        current = next
        return undefined
      },
    })
  }
  return current as LogBatch | undefined
}
