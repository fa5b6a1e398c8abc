// Realistic lines of applications on a cluster: JSON with optional members, which gives thousands of key sequences, and in some lines other
// content of real logs. The seed determines the text. File, number and time are inserted into a prepared line just before use, so a line
// costs the writer less than the system call.

import { Random } from '@penstock/agent/testing/random'

/** All lines contain `bench-FILE-NUMBER-PIECES-MILLISECONDS`, which `delivered.ts` finds in any format. */
export const lineMark = 'bench-'
/** All pieces of a line that the runtime splits contain `piece-FILE-NUMBER-PIECE`. */
export const pieceMark = 'piece-'

const emptyId = `${lineMark}000-000000000-00-0000000000000`
const emptyPiece = `${pieceMark}000-000000000-00`
const emptyTime = '0000000000000000000'
const emptyKey = 'k00000000000'
/** Marks the place in a text at which the runtime splits the line. */
const cut = '\0'

export type LineKind = 'mixed' | 'one-shape' | 'shapes' | 'keys'

/** A prepared line: its CRI lines, and the positions of the parts that change. */
export interface AppLine {
  readonly parts: readonly Part[]
}

interface Part {
  readonly bytes: Buffer
  readonly id: number
  readonly time: number
  readonly pieces: readonly number[]
  readonly keys: readonly number[]
}

const levels = ['info', 'info', 'info', 'info', 'debug', 'warn', 'error']
const messages = [
  'order accepted and queued',
  'cache miss, read from store',
  'retrying request',
  'session renewed for user',
]
const callers = ['orders/place.go:118', 'cache/read.go:57', 'http/server.go:310', 'db/pool.go:9']
const regions = ['eu-west-1', 'us-east-2', 'ap-south-1']
const methods = ['GET', 'GET', 'GET', 'POST', 'PUT']
const foreign = ['Größe für Nutzer überschritten', '注文を受け付けました', 'заказ принят', 'colis livré 📦 à Orléans']
const escaped = ['\\u003ca href=\\"/cart\\"\\u003e \\u0026 more', 'if a \\u003c b \\u0026\\u0026 c \\u003e d']

const hex = (random: Random, digits: number) => {
  let text = ''
  while (text.length < digits) text += random.below(16).toString(16)
  return text
}

/** The twelve optional members of a line, with their probabilities. */
const members: readonly (readonly [probability: number, member: (random: Random) => string])[] = [
  [0.96, (random) => `"level":"${random.pick(levels)}"`],
  [0.93, (random) => `"msg":"${random.pick(messages)}"`],
  [0.6, (random) => `"status":${random.pick([200, 200, 201, 204, 301, 404, 500])}`],
  [0.55, (random) => `"method":"${random.pick(methods)}"`],
  [0.6, (random) => `"path":"/api/items/${random.below(5000)}"`],
  [0.6, (random) => `"duration":${random.below(8000) / 8}`],
  [0.5, (random) => `"bytes":${random.below(90_000)}`],
  [0.45, (random) => `"caller":"${random.pick(callers)}"`],
  [0.5, (random) => `"user":"user-${random.below(100_000)}"`],
  [0.4, (random) => `"trace":"${hex(random, 16)}"`],
  [0.4, (random) => `"region":"${random.pick(regions)}"`],
  [0.2, (random) => `"retry":${random.chance(0.5)}`],
]

/** The share of lines with each oddity. Only `pieces` excludes others, because it includes a stack trace. */
const oddities: readonly (readonly [probability: number, member: (random: Random) => string])[] = [
  [0.05, (random) => `"html":"${random.pick(escaped)}"`],
  [0.05, nested],
  [0.05, (random) => `"ratio":${random.next()}${random.below(900) + 100}`],
  [0.05, (random) => `"text":"${random.pick(foreign)}"`],
  [0.005, (random) => `"stack":"${stack(random, random.between(8, 30))}"`],
  [0.005, (random) => inPieces(random, random.between(2, 4), 1)],
  [0.0002, (random) => inPieces(random, 2, 16_384)],
]

function nested(random: Random): string {
  const user = `{"name":"n${random.below(1000)}","id":${random.below(100_000)},"groups":["b","a"]}`
  return `"request":{"url":"/cart?id=${random.below(1000)}","headers":{"x-zone":"b","accept":"*/*"},"by":${user},"at":null}`
}

function stack(random: Random, frames: number): string {
  let text = `Error: cannot read order ${random.below(10_000)}`
  for (let frame = 0; frame < frames; frame++) {
    text += `\\n\\tat ${random.pick(['Store.read', 'Orders.place', 'Object.<anonymous>', 'async Promise.all'])} (/app/dist/${random.pick(['store', 'orders', 'main'])}.js:${random.between(1, 900)}:${random.between(1, 80)})`
  }
  return text
}

/** A long text that the runtime splits, sometimes within a character, into pieces of at least this many bytes. */
function inPieces(random: Random, cuts: number, bytes: number): string {
  let text = ''
  for (let piece = 1; piece <= cuts + 1; piece++) {
    text += `${piece === 1 ? '' : random.pick([cut, `${cut}ü`, `${cut}界`])}${emptyPiece}: `
    for (const from = text.length; ; ) {
      text += stack(random, random.between(2, 4))
      if (text.length - from >= bytes) break
    }
  }
  return `"dump":"${text}"`
}

function mixed(random: Random): string {
  const present = [`"generated_at":${emptyTime}`, `"id":"${emptyId}"`]
  for (const [probability, member] of members) if (random.chance(probability)) present.push(member(random))
  for (const [probability, member] of oddities) if (random.chance(probability)) present.push(member(random))
  return `{${present.join(',')}}`
}

/** Always the same keys, as many as in the other kinds below. */
function withKeys(random: Random, key: (index: number) => string): string {
  let text = `{"generated_at":${emptyTime},"id":"${emptyId}"`
  for (let index = 0; index < 8; index++) {
    text += `,"${key(index)}":${index % 2 === 0 ? `"${hex(random, 8)}"` : random.below(100_000)}`
  }
  return `${text}}`
}

/** Names, of which each shape uses a subset in its own order. */
const vocabulary = Array.from({ length: 64 }, (_, index) => `field_${String(index).padStart(6, '0')}`)

const makers: Readonly<Record<LineKind, (random: Random) => string>> = {
  mixed,
  'one-shape': (random) => withKeys(random, (index) => vocabulary[index] as string),
  shapes: (random) => {
    const left = [...vocabulary]
    return withKeys(random, () => left.splice(random.below(left.length), 1)[0] as string)
  },
  keys: (random) => withKeys(random, () => emptyKey),
}

/** The JSON text of this many lines, with zeros as placeholders for file, number and time. */
export function appTexts(kind: LineKind, count: number, seed: number): string[] {
  const random = new Random(seed)
  return Array.from({ length: count }, () => makers[kind](random))
}

export function appLines(kind: LineKind, count: number, seed: number): AppLine[] {
  return appTexts(kind, count, seed).map(prepare)
}

const criPrefix = '2026-01-01T00:00:00.000000000Z stdout F '
/** The position of the tag `F` or `P`. */
const tagAt = criPrefix.length - 2

function prepare(text: string): AppLine {
  const texts: Buffer[] = text.split(cut).map((part) => Buffer.from(part))
  const pieces = texts.length === 1 ? 0 : texts.length
  // The runtime counts bytes: if a multi-byte character follows a split, its first byte stays before the split.
  for (let index = 1; index < texts.length; index++) {
    const part = texts[index] as Buffer
    if ((part[0] as number) < 0xc0) continue
    texts[index - 1] = Buffer.concat([texts[index - 1] as Buffer, part.subarray(0, 1)])
    texts[index] = part.subarray(1)
  }
  const parts = texts.map((part, index): Part => {
    const bytes = Buffer.concat([Buffer.from(criPrefix), part, Buffer.from('\n')])
    if (index < texts.length - 1) bytes[tagAt] = 'P'.charCodeAt(0)
    const id = bytes.indexOf(emptyId)
    if (id >= 0) digits(bytes, id + 20, 2, pieces)
    const found = places(bytes, emptyPiece)
    for (const at of found) digits(bytes, at + 20, 2, index + 1)
    return { bytes, id, time: bytes.indexOf(emptyTime), pieces: found, keys: places(bytes, emptyKey) }
  })
  return { parts }
}

function places(bytes: Buffer, text: string): number[] {
  const found: number[] = []
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) found.push(at)
  return found
}

function digits(bytes: Buffer, from: number, count: number, value: number): void {
  let left = value
  for (let at = from + count - 1; at >= from; at--) {
    const rest = Math.floor(left / 10)
    bytes[at] = 48 + left - rest * 10
    left = rest
  }
}

/** Writes file, number and the current time into prepared lines. */
export class Stamp {
  readonly #random: Random
  #ms = 0
  #micros = 0
  #second = 0
  #secondText = Buffer.alloc(0)

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  /** Updates the time for subsequent lines. */
  tick(): void {
    const now = performance.timeOrigin + performance.now()
    this.#ms = Math.floor(now)
    this.#micros = Math.floor((now - this.#ms) * 1000)
    const second = Math.floor(this.#ms / 1000)
    if (second === this.#second) return
    this.#second = second
    this.#secondText = Buffer.from(new Date(second * 1000).toISOString().slice(0, 20))
  }

  write(line: AppLine, file: number, number: number): void {
    for (const { bytes, id, time, pieces, keys } of line.parts) {
      this.#secondText.copy(bytes, 0)
      digits(bytes, 20, 3, this.#ms % 1000)
      digits(bytes, 23, 6, this.#micros * 1000 + (number % 1000))
      if (id >= 0) {
        digits(bytes, id + 6, 3, file)
        digits(bytes, id + 10, 9, number)
        digits(bytes, id + 23, 13, this.#ms)
      }
      if (time >= 0) {
        digits(bytes, time, 13, this.#ms)
        digits(bytes, time + 13, 6, this.#micros * 1000 + (number % 1000))
      }
      for (const at of pieces) {
        digits(bytes, at + 6, 3, file)
        digits(bytes, at + 10, 9, number)
      }
      for (const at of keys) {
        for (let letter = 1; letter < emptyKey.length; letter++) bytes[at + letter] = 97 + this.#random.below(26)
      }
    }
  }
}

/** The next prepared line of a file. The order of lines differs in all files. */
export function lineOf(lines: readonly AppLine[], file: number, number: number): AppLine {
  return lines[(number * 7919 + file * 104_729) % lines.length] as AppLine
}
