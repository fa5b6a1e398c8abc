// Lines that are rare in logs, but that any container may write: deep, wide and long objects, numbers at the limits, lines that are not
// JSON or not text, and distant times. The seed determines the lines.

import { Random } from '@penstock/agent/testing/random'

export interface OddKind {
  readonly about: string
  /** Text that the container writes with one call. */
  message(random: Random, index: number): string | Buffer
  /** The time that the runtime writes. */
  time?(random: Random, index: number): string
  readonly stream?: 'stdout' | 'stderr'
  /** Whether lines never end, so that all parts have the tag `P`. */
  readonly isEndless?: true
  /** Bytes between the message and the end of the line. */
  readonly end?: string
}

const hex = (random: Random, digits: number) => {
  let text = ''
  while (text.length < digits) text += random.below(0x1000000).toString(16).padStart(6, '0')
  return text.slice(0, digits)
}
const digits = (random: Random, count: number) => {
  let text = String(1 + random.below(9))
  while (text.length < count) text += String(random.below(1e6)).padStart(6, '0')
  return text.slice(0, count)
}

/** A typical line. */
function plain(random: Random, more = ''): string {
  return (
    `{"time":"2026-11-26T10:11:${10 + random.below(50)}.${random.below(900) + 100}Z","level":"info","msg":"order accepted and queued",` +
    `"request_id":"${hex(random, 16)}","status":${200 + random.below(300)},"path":"/api/items/${random.below(5000)}",` +
    `"user":"user-${random.below(100_000)}","bytes":${random.below(90_000)}${more}}`
  )
}

const member = (name: string, value: string) => `,"${name}":${value}`
const list = (count: number, item: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => item(index)).join(',')
const nested = (depth: number, open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`
const words = (random: Random, length: number) => {
  let text = ''
  while (text.length < length) text += `${random.pick(['order', 'cache', 'retry', 'session', 'shipped', 'a'])} `
  return text.slice(0, length)
}

/** The kind to which the others are compared. */
export const oneShape = 'one-shape'

export const oddKinds: Readonly<Record<string, OddKind>> = {
  [oneShape]: { about: 'eight members, the same in every line', message: (random) => plain(random) },

  // Objects.
  'deep-100': {
    about: 'an object in an object, 100 times',
    message: (random) => plain(random, member('deep', nested(100, '{"a":', '}'))),
  },
  'deep-20000': {
    about: 'arrays in arrays, deeper than any limit',
    message: (random) => plain(random, member('deep', nested(20_000, '[', ']'))),
  },
  'members-200': {
    about: '200 members',
    message: (random) => `{${list(200, (index) => `"member_${index}":${random.below(1000)}`)}}`,
  },
  'members-5000': {
    about: '5,000 members',
    message: (random) => `{${list(5000, (index) => `"member_${index}":"${hex(random, 8)}"`)}}`,
  },
  'unsorted-2000': {
    about: 'an object of 2,000 unsorted members',
    message: (random) => plain(random, member('o', `{${list(2000, (index) => `"${(index * 7919) % 2003}x":1`)}}`)),
  },
  'new-keys': {
    about: 'eight keys that no other line has',
    message: (random) => `{${list(8, () => `"k${hex(random, 10)}":"${hex(random, 8)}"`)}}`,
  },
  'new-keys-90': {
    about: '90 keys that no other line has',
    message: (random) => `{${list(90, () => `"k${hex(random, 10)}":"${hex(random, 8)}"`)}}`,
  },
  'long-keys': {
    about: 'a key of 64 KiB',
    message: (random) => `{"${hex(random, 65_536)}":1,"level":"info"}`,
  },
  'number-keys': {
    about: 'keys that are numbers',
    message: (random) => `{${list(12, (index) => `"${index * 3}":${random.below(1000)}`)}}`,
  },
  'double-keys': {
    about: 'keys that occur twice',
    message: (random) => plain(random, member('level', '"warn"') + member('msg', '"again"')),
  },
  'special-keys': {
    about: 'keys with a special meaning, escapes and letters beyond ASCII',
    message: (random) =>
      plain(
        random,
        member('__proto__', '1') + member('constructor', '{"a":1}') + member('\\u0061b', '2') + member('größe', '3'),
      ),
  },
  'two-classes': {
    about: 'an object and a text without one, in turn',
    message: (random, index) =>
      index % 2 === 0 ? plain(random) : `GET /api/items/${random.below(5000)} 200 ${words(random, 120)}`,
  },
  'two-shapes': {
    about: 'two objects with no key in common, in turn',
    message: (random, index) =>
      index % 2 === 0 ? plain(random) : plain(random).replaceAll(/"(\w+)":/g, (_, name) => `"other_${name}":`),
  },

  // Numbers.
  microseconds: {
    about: 'integers of 16 digits',
    message: (random) => plain(random, member('at', digits(random, 16)) + member('until', digits(random, 16))),
  },
  nanoseconds: {
    about: 'integers of 19 digits',
    message: (random) =>
      plain(random, member('at', `1${digits(random, 18)}`) + member('until', `1${digits(random, 18)}`)),
  },
  unsigned: {
    about: 'integers of 20 digits, beyond 64 bits',
    message: (random) =>
      plain(random, member('trace', `1${digits(random, 19)}`) + member('span', `1${digits(random, 19)}`)),
  },
  'long-floats': {
    about: 'floats of 18 digits',
    message: (random) =>
      plain(
        random,
        member('ratio', `0.${digits(random, 18)}`) + member('load', `${digits(random, 2)}.${digits(random, 17)}`),
      ),
  },
  'whole-floats': {
    about: 'floats such as 1.0, 2.50 and 1e3',
    message: (random) => plain(random, member('a', '1.0') + member('b', `${random.below(90)}.50`) + member('c', '1e3')),
  },
  'odd-numbers': {
    about: '-0, 1e400 and 1e-400',
    message: (random) =>
      plain(random, member('a', '-0') + member('b', '-0.0') + member('c', random.chance(0.5) ? '1e400' : '1e-400')),
  },
  'numbers-10000': {
    about: 'an array of 10,000 integers',
    message: (random) => plain(random, member('values', `[${list(10_000, () => String(random.below(100_000)))}]`)),
  },
  'floats-10000': {
    about: 'an array of 10,000 floats',
    message: (random) => plain(random, member('values', `[${list(10_000, () => String(random.next()))}]`)),
  },
  'wide-10000': {
    about: 'an array of 10,000 integers of 19 digits',
    message: (random) => plain(random, member('values', `[${list(10_000, () => `1${digits(random, 18)}`)}]`)),
  },

  // Texts in objects.
  'go-escapes': {
    about: 'strings of escapes that the output does not have',
    message: (random) => plain(random, member('html', `"${'\\u003ca\\u003e\\u0026\\/'.repeat(8)}"`)),
  },
  'all-escaped': {
    about: 'strings in which every letter is escaped',
    message: (random) => plain(random, member('text', `"${'\\u00e9\\u6ce8\\ud83d\\udce6'.repeat(10)}"`)),
  },
  quotes: { about: 'strings of quotes', message: (random) => plain(random, member('text', `"${'\\"'.repeat(100)}"`)) },
  'json-in-json': {
    about: 'objects as text in objects',
    message: (random) =>
      plain(random, member('inner', JSON.stringify(plain(random, member('text', JSON.stringify('"'.repeat(9))))))),
  },
  'lone-surrogates': {
    about: 'half of a surrogate pair, as an escape',
    message: (random) => plain(random, member('text', '"a\\ud800b\\udc00"')),
  },
  'wide-letters': {
    about: 'letters of two to four bytes',
    message: (random) => plain(random, member('text', `"${'größe 注文 заказ 📦'.repeat(4)}"`)),
  },
  'stack-traces': {
    about: 'strings of 30 lines',
    message: (random) =>
      plain(
        random,
        member('stack', `"${`\\n\\tat Store.read (/app/dist/store.js:${random.below(900)}:7)`.repeat(30)}"`),
      ),
  },
  megabyte: {
    about: 'a string of 1 MB, in parts of 16 KiB',
    message: (random) => plain(random, member('dump', `"${words(random, 1_000_000)}"`)),
  },
  'megabyte-escaped': {
    about: 'a string of 1 MB with escapes, in parts of 16 KiB',
    message: (random) =>
      plain(random, member('dump', `"${words(random, 10_000).replaceAll('a', '\\u003c').repeat(90)}"`)),
  },
  blanks: {
    about: 'blanks between all tokens',
    message: (random) => plain(random).replaceAll(/(?<=[{,:])(?=")|(?=[}])/g, '  \t'),
  },

  // Lines that are not objects, not JSON, or not text.
  'plain-text': {
    about: 'text without an object',
    message: (random) => `GET /api/items/${random.below(5000)} 200 ${words(random, 120)}`,
  },
  'json-after-text': {
    about: 'an object after other text',
    message: (random) => `2026-11-26 INFO main: ${plain(random)}`,
  },
  'broken-end': { about: 'objects without their end', message: (random) => plain(random).slice(0, -1) },
  'broken-middle': {
    about: 'objects with a mistake in the middle',
    message: (random) => plain(random).replace('"user"', "'user'"),
  },
  'long-broken': {
    about: 'objects of 15 KB without their end',
    message: (random) => plain(random, member('text', `"${words(random, 15_000)}`)),
  },
  arrays: { about: 'arrays instead of objects', message: (random) => `[${plain(random)},1]` },
  short: { about: 'one letter per line', message: () => 'x' },
  'empty-objects': { about: 'objects without members', message: () => '{}' },
  empty: { about: 'empty lines', message: () => '' },
  bom: { about: 'a byte order mark before the object', message: (random) => `\ufeff${plain(random)}` },
  nul: { about: 'zero bytes', message: (random) => plain(random).replace('order', 'or\0der') },
  'nul-text': { about: 'text that consists of zero bytes', message: (random) => '\0'.repeat(100 + random.below(100)) },
  crlf: { about: 'lines that end with CR and LF', message: (random) => plain(random), end: '\r' },
  'not-utf8': {
    about: 'objects with bytes that are not UTF-8',
    message: (random) => Buffer.from(plain(random).replace('order', 'ordr\u00e9'), 'latin1'),
  },
  'surrogate-bytes': {
    about: 'half of a surrogate pair, as three bytes',
    message: (random) => Buffer.from(plain(random).replace('order', '\u00ed\u00a0\u0080'), 'latin1'),
  },
  binary: { about: 'random bytes', message: (random) => Buffer.from(hex(random, 400).replaceAll('0a', '0b'), 'hex') },

  // Lines of the runtime.
  parts: {
    about: 'objects in parts of 100 bytes',
    message: (random) => plain(random, member('text', `"${words(random, 300)}"`)),
  },
  endless: { about: 'parts of a line that never ends', message: (random) => words(random, 200), isEndless: true },
  'before-1970': {
    about: 'times before 1970',
    message: (random) => plain(random),
    time: (random) => `19${10 + random.below(60)}-0${1 + random.below(9)}-11T10:11:12.${digits(random, 9)}Z`,
  },
  'after-9999': {
    about: 'times after 9999, which the runtime cannot write',
    message: (random) => plain(random),
    time: (random) => `1${1000 + random.below(9000)}-01-11T10:11:12.${digits(random, 9)}Z`,
  },
  'local-times': {
    about: 'times with an offset',
    message: (random) => plain(random),
    time: (random) => `2026-11-26T10:11:${10 + random.below(50)}.${digits(random, 9)}+02:00`,
  },
  'every-second': {
    about: 'times in random order',
    message: (random) => plain(random),
    time: (random) =>
      `20${10 + random.below(80)}-0${1 + random.below(9)}-1${random.below(9)}T1${random.below(9)}:11:12.${digits(random, 9)}Z`,
  },
  'no-runtime': {
    about: 'lines that no runtime would write',
    message: (random) => plain(random),
    time: () => 'yesterday',
  },
  stderr: { about: 'the other stream', message: (random) => plain(random), stream: 'stderr' },
}

/** Bytes after which the runtime begins another part of a line. */
const partBytes = 16_384
const shortPartBytes = 100

/**
 * Lines of a kind as the runtime writes them, with at least this many bytes together, and the number of their messages.
 */
export class OddLines {
  readonly #kind: OddKind
  readonly #partBytes: number
  readonly #random: Random
  #count = 0

  constructor(name: string, seed: number) {
    this.#kind = oddKinds[name] as OddKind
    this.#partBytes = name === 'parts' ? shortPartBytes : partBytes
    this.#random = new Random(seed)
  }

  block(bytes: number): Buffer {
    const pieces: Buffer[] = []
    for (let length = 0; length < bytes; ) {
      const line = this.#next()
      pieces.push(line)
      length += line.length
    }
    return Buffer.concat(pieces)
  }

  #next(): Buffer {
    const { time, stream = 'stdout', isEndless, end = '' } = this.#kind
    const index = this.#count++
    const message = Buffer.concat([Buffer.from(this.#kind.message(this.#random, index)), Buffer.from(end)])
    const at = time?.(this.#random, index) ?? `2026-11-26T10:11:12.${String(100_000_000 + (index % 800_000_000))}Z`
    const pieces: Buffer[] = []
    for (let from = 0; from === 0 || from < message.length; from += this.#partBytes) {
      const isLast = from + this.#partBytes >= message.length && isEndless !== true
      pieces.push(
        Buffer.from(`${at} ${stream} ${isLast ? 'F' : 'P'} `),
        message.subarray(from, from + this.#partBytes),
        newline,
      )
    }
    return Buffer.concat(pieces)
  }
}

const newline = Buffer.from('\n')
