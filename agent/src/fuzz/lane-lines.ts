// Chunks of lines for the comparison of the lanes. Some consist of the same kind of unusual line, which single random lines rarely are.

import { scalars } from '../testing/json-texts.ts'
import { lineOf, messageOf } from '../testing/lanes.ts'
import type { Random } from '../testing/random.ts'

const plainScalars = scalars.filter((text) => !text.includes('\u0000') && text.length < 400)

/** The slot of the kernel's table where the search for a name begins. */
function slotOf(name: string): number {
  let hash = name.length
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return ((hash ^ (hash >>> 15)) >>> 0) & 4095
}

const colliding: string[] = []

/** Names that all begin at the same few slots, so that there is no room for most of them. */
function collidingNames(): readonly string[] {
  for (let number = 0; colliding.length < 60; number++) {
    const name = `c${number.toString(36)}`
    if (slotOf(name) < 8) colliding.push(name)
  }
  return colliding
}

const value = (random: Random) =>
  random.chance(0.2) ? random.pick(plainScalars) : random.pick(['1', '"text"', 'true', '1.5'])

function freshMessage(random: Random): string {
  const members = Array.from({ length: 1 + random.below(random.chance(0.2) ? 95 : 20) }, () => {
    const name = random.chance(0.7)
      ? `fresh_${random.below(1e9)}`
      : random.pick(['a', 'b', 'v', 'message', 'k50', 'level'])
    return `"${name}":${value(random)}`
  })
  return `{${members.join(',')}}`
}

function collidingMessage(random: Random): string {
  const names = collidingNames()
  const members = Array.from({ length: 1 + random.below(20) }, () => `"${random.pick(names)}":${value(random)}`)
  return `{"a":1,${members.join(',')}}`
}

function wideMessage(random: Random): string {
  const count = random.pick([60, 94, 95, 96, 97, 130, 490])
  const from = random.below(100)
  const members = Array.from(
    { length: count },
    (_, index) => `"k${from + ((index * 37) % count)}":${index % 9 === 0 ? value(random) : index}`,
  )
  return `{${members.join(random.pick([',', ', ']))}}`
}

function longMessage(random: Random): string {
  const unit = random.pick(['x', '\\n', '\\u0041', 'ü', '\\"', '1.50,'])
  const length = random.pick([10, 5000, 30_000, 60_000])
  const text = unit.repeat(Math.floor(length / unit.length))
  if (unit === '1.50,') return `{"a":[${text}1],"v":${value(random)}}`
  return random.chance(0.2)
    ? text
    : `{"s":"${text}","a":${value(random)},"m":"${text.slice(0, 4000 - (4000 % unit.length))}"}`
}

function sameShape(random: Random): (random: Random) => string {
  const names = Array.from({ length: 1 + random.below(12) }, () =>
    random.pick(['a', 'b', 'n', 's', 'v', 'o', 'level', 'k1', 'env', 'z', 'timestamp', 'message']),
  )
  const unique = [...new Set(names)]
  return (each) => `{${unique.map((name) => `"${name}":${value(each)}`).join(',')}}`
}

/** The kernel does not read larger chunks. */
const maxBytes = 250_000

/** The lines of a chunk. */
export function randomLines(random: Random): Buffer[] {
  const messages = random.pick([
    undefined,
    undefined,
    undefined,
    sameShape(random),
    sameShape(random),
    freshMessage,
    collidingMessage,
    wideMessage,
    longMessage,
    messageOf,
  ])
  const count = 1 + random.below(messages === longMessage ? 12 : random.chance(0.05) ? 1500 : 60)
  const lines: Buffer[] = []
  let bytes = 0
  for (let index = 0; index < count; index++) {
    const line = lineOf(random, messages === undefined || random.chance(0.05) ? undefined : messages)
    bytes += line.length + 1
    if (bytes > maxBytes && lines.length > 0) break
    lines.push(line)
  }
  return lines
}
