// Properties that are true for all values: decoding reverses encoding, normalizing functions change nothing the second time, related
// functions agree, and parsers survive mutated lines. A property is a program that returns `true`.

import type { Value, ValueObject } from '../event/value.ts'
import { functions } from '../remap/functions.ts'
import { tokenize } from '../remap/lexer.ts'
import { compileProgram } from '../remap/program.ts'
import type { Random } from '../testing/random.ts'
import type { Case } from './case.ts'
import { integers, strings } from './events.ts'

interface Property {
  /** Returns `true` for any fields of the event. */
  readonly source: string
  readonly event: (random: Random) => ValueObject
}

// --- values ---

const letters = [
  'a',
  'B',
  '0',
  ' ',
  '-',
  '_',
  ',',
  '"',
  '\\',
  '=',
  '/',
  '%',
  '\n',
  '\t',
  'é',
  'ß',
  '😀',
  '\u0000',
  '\u2028',
]

function text(random: Random): string {
  if (random.chance(0.3)) return random.pick(strings)
  return Array.from({ length: random.below(12) }, () => random.pick(letters)).join('')
}

function word(random: Random): string {
  return Array.from({ length: 1 + random.below(6) }, () => random.pick([...'abcXYZ019'])).join('')
}

/** Values that JSON can represent exactly. */
function json(random: Random, depth: number): Value {
  switch (random.below(depth > 0 ? 7 : 5)) {
    case 0:
      return text(random)
    case 1:
      return random.pick(integers)
    case 2:
      return random.chance(0.5)
    case 3:
      return null
    case 4:
      return random.between(-1000, 1000) + 0.5
    case 5:
      return Array.from({ length: random.below(4) }, () => json(random, depth - 1))
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [text(random), json(random, depth - 1)]),
      ) as ValueObject
  }
}

const oneText = (random: Random): ValueObject => ({ s: text(random) })
const oneWord = (random: Random): ValueObject => ({ s: word(random) })
const list = (random: Random): ValueObject => ({
  l: Array.from({ length: random.below(6) }, () => json(random, 1)),
})
const integer = (random: Random): ValueObject => ({ n: random.between(-100_000, 4_000_000_000) })
/** Texts that a list of pairs can contain, which excludes line breaks. */
const pairs = (random: Random): ValueObject => ({
  o: Object.fromEntries(Array.from({ length: 1 + random.below(4) }, () => [word(random), `v${word(random)}`])),
})
const tree = (random: Random): ValueObject => ({
  o: { [word(random)]: { [word(random)]: random.below(9), b: { c: word(random) } }, d: random.below(9) },
})
const address = (random: Random): ValueObject => ({
  s: Array.from({ length: 4 }, () => random.below(256)).join('.'),
})

// --- properties ---

const codecs = ['base16', 'base64', 'gzip', 'zlib', 'zstd', 'snappy']
const roundTrips: readonly Property[] = [
  { source: 'parse_json!(encode_json(.v)) == .v', event: (random) => ({ v: json(random, 3) }) },
  ...codecs.map((name) => ({ source: `decode_${name}!(encode_${name}!(string!(.s))) == .s`, event: oneText })),
  { source: 'decode_percent!(encode_percent(string!(.s))) == .s', event: oneText },
  {
    source:
      'decode_base64!(encode_base64(string!(.s), padding: false, charset: "url_safe"), charset: "url_safe") == .s',
    event: oneText,
  },
  { source: 'parse_logfmt!(encode_logfmt!(object!(.o))) == .o', event: pairs },
  {
    source:
      'parse_key_value!(encode_key_value!(object!(.o), key_value_delimiter: ":", field_delimiter: ";"), key_value_delimiter: ":", field_delimiter: ";") == .o',
    event: pairs,
  },
  { source: 'unflatten!(flatten!(.o)) == .o', event: tree },
  { source: 'to_int!(to_string!(.n)) == .n', event: integer },
  { source: 'to_unix_timestamp(from_unix_timestamp!(int!(.n))) == .n', event: integer },
  {
    source:
      'parse_timestamp!(format_timestamp!(from_unix_timestamp!(int!(.n)), "%+"), "%+") == from_unix_timestamp!(int!(.n))',
    event: integer,
  },
  { source: 'parse_int!(format_int!(.n, 16), 16) == .n', event: integer },
  { source: 'ip_ntoa!(ip_aton!(string!(.s))) == .s', event: address },
  { source: 'ip_ntop!(ip_pton!(string!(.s))) == .s', event: address },
  { source: 'join!(split(string!(.s), ","), ",") == .s', event: oneText },
  { source: 'x = parse_csv!(encode_csv!([string!(.s), "b"])); x == [.s, "b"]', event: oneWord },
]

const tidying: readonly (readonly [
  call: (value: string) => string,
  event: (random: Random) => ValueObject,
  field: string,
])[] = [
  ...['upcase', 'downcase', 'strip_whitespace', 'strip_ansi_escape_codes'].map(
    (name) => [(value: string) => `${name}!(string!(${value}))`, oneText, '.s'] as const,
  ),
  ...['unique', 'compact', 'flatten'].map(
    (name) => [(value: string) => `${name}!(array!(${value}))`, list, '.l'] as const,
  ),
  ...['abs', 'floor', 'ceil', 'round'].map((name) => [(value: string) => `${name}!(${value})`, integer, '.n'] as const),
  [(value) => `to_string!(${value})`, integer, '.n'],
  [(value) => `truncate!(string!(${value}), 5)`, oneText, '.s'],
  [(value) => `sieve!(string!(${value}), r'[a-z]')`, oneText, '.s'],
  [(value) => `kebabcase!(string!(${value}))`, oneWord, '.s'],
  [(value) => `snakecase!(string!(${value}))`, oneWord, '.s'],
]
const idempotent: readonly Property[] = tidying.map(([call, event, field]) => ({
  source: `${call(call(field))} == ${call(field)}`,
  event,
}))

// --- regular expressions ---

const atoms = [
  'a',
  'B',
  '.',
  '\\d',
  '\\w',
  '\\s',
  '[a-c]',
  '[^,]',
  '[[:alpha:]]',
  '\\b',
  'é',
  '\\.',
  '(?:ab|c)',
  '(b)',
  '\\pL',
]
const suffixes = ['', '', '', '*', '+', '?', '{1,3}', '*?', '{2}']

function regex(random: Random): string {
  const part = () => `${random.pick(atoms)}${random.pick(suffixes)}`.replaceAll(/\\b[*+?{][^a-zA-Z]*/g, '\\b')
  const branch = () => Array.from({ length: 1 + random.below(4) }, part).join('')
  const alternatives = Array.from({ length: random.chance(0.2) ? 2 : 1 }, branch).join('|')
  const group = random.chance(0.3) ? '(?P<x>a.|[^b])?' : ''
  const flags = random.pick(['', '', '(?i)', '(?m)', '(?s)'])
  return `r'${flags}${random.chance(0.2) ? '^' : ''}${group}${alternatives}${random.chance(0.2) ? '$' : ''}'`
}

/** Properties of an expression and a text: related functions agree, and no part of the text is lost. */
const ofRegex: readonly ((expression: string) => string)[] = [
  (expression) => `match(string!(.s), ${expression}) == (find(string!(.s), ${expression}) != null)`,
  (expression) =>
    `_, err = parse_regex(string!(.s), ${expression})\n(err == null) == match(string!(.s), ${expression})`,
  (expression) => `(length(parse_regex_all!(string!(.s), ${expression})) > 0) == match(string!(.s), ${expression})`,
  (expression) => `replace_with!(string!(.s), ${expression}) -> |found| { found.string } == .s`,
  (expression) => `replace!(string!(.s), ${expression}, "$0") == .s`,
  (expression) => `match_any(string!(.s), [${expression}, r'^never\\d{9}$']) == match(string!(.s), ${expression})`,
  (expression) => `length(split!(string!(.s), ${expression}, limit: 1)) == 1`,
]

// --- parsers on mutated lines ---

interface Parser {
  readonly source: string
  readonly line: string
}

/** Calls a function twice, which must give the same result, whether the call can fail or not. */
function twice(call: string): string | undefined {
  const fallible = `parsed, err = ${call}\nagain, other = ${call}\nparsed == again && (err == null) == (other == null)`
  const infallible = `parsed = ${call}\nagain = ${call}\nparsed == again`
  return [fallible, infallible].find((source) => compileProgram(source).ok)
}

/** Examples of parsing functions, with the text in a field of the event. */
function parsersIn(): readonly Parser[] {
  const found = functions.filter(({ name }) => /^(?:parse_|decode_)/.test(name))
  return found.flatMap(({ name, examples }) =>
    examples.flatMap(({ source }): Parser[] => {
      const call = source.replace(/^(\w+)!\(/, '$1(')
      const first = tokenize(call).find(({ type }) => type === 'string' || type === 'raw-string')
      if (first === undefined || !call.startsWith(`${name}(`)) return []
      const program = twice(`${call.slice(0, first.start)}string!(.line)${call.slice(first.end)}`)
      return program === undefined ? [] : [{ source: program, line: first.text }]
    }),
  )
}
let parsers: readonly Parser[] | undefined

function mutated(random: Random, line: string): string {
  let out = line
  for (let times = random.below(4); times >= 0; times--) {
    const at = random.below(out.length + 1)
    const end = Math.min(out.length, at + random.below(6))
    switch (random.below(4)) {
      case 0:
        out = out.slice(0, at) + out.slice(end)
        break
      case 1:
        out = out.slice(0, at) + random.pick(letters) + out.slice(at)
        break
      case 2:
        out = out.slice(0, end) + out.slice(at)
        break
      default:
        out = out.slice(0, at)
    }
  }
  return out
}

type Made = Pick<Case, 'source' | 'events'> & { readonly holds?: Case['holds'] | undefined }

/** The properties by family, so that a test can run all of them. */
export const families: Readonly<Record<string, (random: Random) => Made>> = {
  'round trips': (random) => of(random.pick(roundTrips), random),
  idempotence: (random) => of(random.pick(idempotent), random),
  'regular expressions': (random) => ({
    source: random.pick(ofRegex)(regex(random)),
    events: [1, 2, 3].map(() => oneText(random)),
  }),
  'parsers on mutated lines': (random) => {
    parsers ??= parsersIn()
    const { source, line } = random.pick(parsers)
    const events = [1, 2, 3].map(() => ({ line: mutated(random, line) }))
    // The case itself compares the kind of the value with the declared one.
    if (random.chance(0.5)) return { source: `${source}\nparsed`, events, holds: undefined }
    return { source, events, holds: 'unless it fails' }
  },
}

function of({ source, event }: Property, random: Random): Made {
  return { source, events: [1, 2, 3].map(() => event(random)) }
}

/** @param family the family of properties; by default any */
export function randomProperty(random: Random, family = random.pick(Object.keys(families))): Case {
  const make = families[family]
  if (make === undefined) throw new Error(`There are no properties about ${family}.`)
  return { holds: 'always', ...make(random), metadata: {}, owned: random.chance(0.5), keepResult: true }
}
