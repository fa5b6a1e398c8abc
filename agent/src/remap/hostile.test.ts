// Calls every function with hostile arguments: each call ends with a value or a failure value, and changes no prototype.
// The calls come from the examples, with one argument at a time taken from the event.

import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { Bytes, float, isObject, setField, type Value, type ValueObject } from '../event/value.ts'
import { type FunctionDeclaration, isFailure, type Parameter, type Result } from './function.ts'
import { findFunction, functions } from './functions.ts'
import { isOfKind } from './kind.ts'
import { parseProgram } from './parser.ts'
import { compileProgram } from './program.ts'
import { restrictedRules } from './rules.ts'
import { valueText } from './text.ts'

interface Variant {
  readonly source: string
  /** Text of the call. */
  readonly call: string
  /** The parameter for which `.x` is passed. */
  readonly parameter: Parameter
}

/** Calls from the function's examples, each with one argument replaced by `.x`. */
function variants(declaration: FunctionDeclaration): Variant[] {
  const found: Variant[] = []
  for (const { source } of declaration.examples) {
    eachCall(parseProgram(source), (call) => {
      if (call.name !== declaration.name) return
      for (const [index, argument] of call.arguments.entries()) {
        const name = argument.keyword ?? declaration.parameters[index]?.name
        const parameter = declaration.parameters.find((one) => one.name === name)
        if (parameter === undefined || parameter.query === true) continue
        const [from, to] = argument.value.span
        const [begin, nameEnd] = call.nameSpan
        const [, end] = call.span
        const handled = call.bang === undefined && declaration.closure === undefined ? '!' : ''
        const changed = `${source.slice(begin, nameEnd)}${handled}${source.slice(nameEnd, from)}.x${source.slice(to, end)}`
        found.push({ source: `${source.slice(0, begin)}${changed}${source.slice(end)}`, call: changed, parameter })
      }
    })
  }
  return found
}

interface Call {
  readonly name: string
  readonly span: readonly [number, number]
  readonly nameSpan: readonly [number, number]
  readonly bang: unknown
  readonly arguments: readonly {
    readonly keyword?: string
    readonly value: { readonly span: readonly [number, number] }
  }[]
}

function eachCall(tree: unknown, each: (call: Call) => void): void {
  if (typeof tree !== 'object' || tree === null) return
  if ((tree as { node?: string }).node === 'call') each(tree as unknown as Call)
  for (const value of Object.values(tree)) eachCall(value, each)
}

const length = 20_000

function nested(wrap: (inner: Value) => Value): Value {
  let value: Value = 1
  for (let level = 0; level < length; level++) value = wrap(value)
  return value
}

function object(...fields: readonly [string, Value][]): ValueObject {
  const made: ValueObject = {}
  for (const [name, value] of fields) setField(made, name, value)
  return made
}

const polluting = object(['polluted', 1])

const small: readonly Value[] = [
  null,
  false,
  -1,
  4_000_000_000,
  9_223_372_036_854_775_807n,
  -9_223_372_036_854_775_808n,
  float(1e308),
  float(Number.POSITIVE_INFINITY),
  5e-324,
  new Timestamp(8.64e15, 999_999),
  new Timestamp(-8.64e15, 0),
  '',
  '__proto__',
  'constructor',
  '\ud800',
  '(a+)+$',
  [],
  {},
  ['__proto__', 'polluted'],
  [['__proto__', polluting]],
  [object(['key', '__proto__'], ['value', polluting])],
  ['a', 4_000_000_000],
  [-9_223_372_036_854_775_808n],
  object(['__proto__', polluting], ['constructor', 1], ['toString', 'x'], ['hasOwnProperty', 1]),
]
const large: readonly Value[] = [
  new Bytes(Buffer.alloc(length, 0xff)),
  new Array<Value>(2000).fill('a'),
  new Array<Value>(2000).fill(null),
  object(...Array.from({ length: 2000 }, (_, index): [string, Value] => [`a${index}`, index])),
  ...[' ', 'a', '0', '"', '\\', '/', '[', '{', '][', '{"a":', '%41', '\u001b[', 'a=b ', '1d', 'é', '\n'].flatMap(
    (unit) => [unit.repeat(length / unit.length), `${unit.repeat(length / unit.length)}\n!`],
  ),
]
const deep: readonly Value[] = [nested((inner) => [inner]), nested((inner) => ({ a: inner }))]

function run(source: string, value: Value): Result | undefined {
  // Programs that reject `.x` because a constant is required do not matter here.
  const compiled = compileProgram(source, { keepResult: true, network: false })
  return compiled.ok ? compiled.program.run({ x: value }, noMetadata, true) : undefined
}

// Functions that wait are excluded, because this test is about data.
const tried = functions.filter(({ name }) => !['dns_lookup', 'reverse_dns', 'http_request'].includes(name))

// The generated code rejects values of the wrong kind before the function runs, in the same way for all functions. Small values show
// this for every parameter; large ones, for which the error describes the kind at length, only for these functions.
const givenAll = ['upcase', 'keys']

test.each(tried.map((declaration) => ({ declaration, name: declaration.name })))(
  '$name ends well with any value',
  ({ declaration, name }) => {
    // Assertions cost more than most calls, so problems are collected first.
    const wrong: string[] = []
    const done = new Set<string>()
    for (const { source, call, parameter } of variants(declaration)) {
      if (done.has(call)) continue
      const compiled = compileProgram(source, { keepResult: true })
      if (!compiled.ok) continue // the parameter accepts only constants
      done.add(call)
      const taken = (value: Value) => givenAll.includes(name) || isOfKind(value, parameter.kind)
      for (const value of [...small, ...large.filter(taken)]) {
        const result = compiled.program.run({ x: value }, noMetadata, true)
        const shown = () => `${source} with a value of ${JSON.stringify(valueText(value)).slice(0, 40)}`
        if (isFailure(result) && result.outcome === 'fatal' && !result.message.includes('Invalid string length')) {
          wrong.push(`${shown()}: ${result.message.slice(0, 200)}`)
        }
        if ('polluted' in {}) wrong.push(`${shown()}: the prototype of objects has another member`)
      }
      for (const value of deep.filter(taken)) compiled.program.run({ x: value }, noMetadata, true)
    }
    expect(wrong).toEqual([])
  },
)

// Lines designed to make a pattern backtrack: each takes time proportional to its length.
const mebi = 1 << 20
test.each([
  ['parse_common_log', `${'- '.repeat(mebi / 2)}x`],
  ['parse_common_log', `a b ${'"- [- "'.repeat(mebi / 8)}`],
  ['parse_common_log', `a b c [${'] "a  '.repeat(mebi / 8)}`],
  ['parse_nginx_log', `1.1.1.1 - - [${'] "a" 1 1 '.repeat(mebi / 16)}`, 'format: "combined"'],
  [
    'parse_nginx_log',
    `2026/01/01 00:00:00 [error] 1#1: ${', client: , request: "'.repeat(mebi / 32)}\nx`,
    'format: "error"',
  ],
  ['parse_nginx_log', `1.1.1.1 - - [${'x'.repeat(mebi)}`, 'format: "ingress_upstreaminfo"'],
  ['parse_apache_log', `[a] [b] [pid 1${' '.repeat(mebi)}x`, 'format: "error"'],
  ['parse_apache_log', `a b c [x] "GET / H" 1 1 "-" "${'" '.repeat(mebi / 2)}x`, 'format: "combined"'],
  ['parse_glog', `I20260101 00:00:00.000000 1 ${'a:1] '.repeat(mebi / 8)}\nx`],
  ['parse_klog', `I0101 00:00:00.000000 1 a:1] b${' '.repeat(mebi)}x`],
  ['parse_cef', `${'CEF:0|a|b|c|'.repeat(mebi / 16)}`],
  ['parse_cef', `CEF:0|a|b|c|d|e|f|${'a'.repeat(mebi)} ${'.a'.repeat(mebi / 2)}`],
  ['parse_syslog', `<13>1 - - - - - [${'a="b" '.repeat(mebi / 8)}`],
  ['parse_syslog', `<13>${' '.repeat(mebi)}x`],
  ['parse_aws_alb_log', `http ${'"a '.repeat(mebi / 4)}`],
  ['parse_key_value', `${'a="\\"'.repeat(mebi / 8)}`],
  ['parse_logfmt', `${'a="'.repeat(mebi / 4)}`],
  ['parse_tokens', `${'["\\'.repeat(mebi / 4)}`],
  ['parse_user_agent', `${'Mozilla/5.0 (Linux; '.repeat(mebi / 32)}`],
  ['parse_user_agent', `${'Build/'.repeat(mebi / 8)}`, 'mode: "reliable"'],
  ['parse_url', `http://${'a.'.repeat(mebi / 2)}`],
  ['parse_xml', `<a ${'b="c" '.repeat(mebi / 8)}`],
  ['parse_xml', `${'<a>'.repeat(mebi / 4)}`],
  ['parse_yaml', `${']['.repeat(mebi / 64)}`],
  ['parse_yaml', `${'- '.repeat(mebi / 64)}`],
  ['parse_ruby_hash', `${'{"a"=>'.repeat(mebi / 8)}`],
  ['parse_influxdb', `${'a,b="'.repeat(mebi / 8)}`],
  ['parse_float', `${'0'.repeat(mebi)}x`],
  ['parse_int', `${'9'.repeat(mebi)}`],
  ['parse_bytes', `${'0'.repeat(mebi)}\n!`, 'unit: "B"'],
  ['parse_timestamp', `${' '.repeat(mebi)}x`, 'format: "%+"'],
  ['parse_duration', `${'0'.repeat(mebi)}`, 'unit: "s"'],
  ['uuid_from_friendly_id', 'z'.repeat(mebi)],
  ['parse_csv', `${'"'.repeat(mebi)}x`],
  ['parse_query_string', `${'a=%'.repeat(mebi / 4)}`],
  ['parse_etld', `${'a.'.repeat(mebi / 2)}`],
  ['parse_linux_authorization', `Jan  1 00:00:00 ${'a['.repeat(mebi / 2)}`],
  ['decode_mime_q', `${'=?a*b'.repeat(mebi / 8)}`],
  ['decode_percent', `${'%'.repeat(mebi)}`],
  ['decode_punycode', `${'xn--a.'.repeat(mebi / 8)}`],
  ['dirname', `${'/'.repeat(mebi)}x`],
  ['basename', `${'/'.repeat(mebi)}`],
  ['strip_ansi_escape_codes', `${'\u001b]'.repeat(mebi / 2)}`],
  ['strip_whitespace', `a${' '.repeat(mebi)}b`],
  ['camelcase', `${'aB1_'.repeat(mebi / 8)}`],
  ['to_timestamp', `${' '.repeat(mebi)}x`],
  ['shannon_entropy', `${'a\u0301'.repeat(mebi / 8)}`],
])('%s ends for a line of a megabyte (%#)', (name, line, more = '') => {
  expect(findFunction(name)).toBeDefined()
  const result = run(`${name}!(.x${more === '' ? '' : `, ${more}`})`, line)
  expect(result).toBeDefined()
  if (isFailure(result)) expect(result.sort).not.toBe('exception')
})

test('a closure that returns endless collections is a failure, and does not end the agent', () => {
  for (const body of ['[v]', '[v, v]', '{"a": v}', '{"a": v, "b": v}']) {
    const result = run(`.x = map_values(array!(.x), recursive: true) -> |v| { ${body} }`, [1])
    expect(isFailure(result) ? result.message : '').toContain('the closure gives more than')
  }
  const found = run('map_values(array!(.x), recursive: true) -> |v| { if is_array(v) { v } else { 2 } }', [[1], 1])
  expect(found).toEqual([[2], 2])
})

test.each(['.x[4000000000] = 1', '.x[-4000000000] = 1', 'v = []\nv[65536] = 1', '%a[70000].b = 1'])(
  '%s does not compile, because arrays are never filled that far',
  (source) => {
    const compiled = compileProgram(source)
    expect(compiled.ok ? [] : compiled.diagnostics.map(({ code }) => code)).toEqual([642])
  },
)

test('the farthest index can be written from both ends', () => {
  const result = run('.x[65535] = "end"\n.y = []\n.y[-65535] = "start"\n.', [])
  if (isFailure(result) || !isObject(result)) throw new TypeError('no object')
  expect((result['x'] as Value[]).length).toBe(65_536)
  expect((result['y'] as Value[])[0]).toBe('start')
})

const times = (count: number, make: (index: number) => string, separator = '\n') =>
  Array.from({ length: count }, (_, index) => make(index)).join(separator)
const around = (open: string, inside: string, close: string, depth: number) =>
  `${open.repeat(depth)}${inside}${close.repeat(depth)}`

// Each of these took seconds or gigabytes to compile, or the whole stack, whose size depends on the process.
test.each<[what: string, source: string, says: RegExp]>([
  ['statements', times(2001, (index) => `.a${index} = ${index}`), /the program has more than 2000 statements/],
  ['variables', times(10_000, (index) => `v${index} = ${index}`), /more than 2000 statements/],
  ['statements in blocks', times(500, () => 'if true { .a = 1; .b = 2; .c = 3; .d = 4 }'), /more than 2000 statements/],
  [
    'statements in closures',
    times(700, () => 'for_each([1]) -> |_i, v| { .a = v; .b = v }'),
    /more than 2000 statements/,
  ],
  ['values that are not used', times(10_000, String), /more than 2000 statements/],
  ['calls of nothing', times(10_000, (index) => `nope${index}()`), /more than 2000 statements/],
  ['groups', `.a = ${around('(', '1', ')', 257)}`, /nested deeper than 256 levels/],
  ['lists', `.a = ${around('[', '', ']', 257)}`, /nested deeper than 256 levels/],
  ['objects', `.a = ${around('{"a": ', '1', '}', 257)}`, /nested deeper than 256 levels/],
  ['blocks', around('if true { ', '1', ' }', 257), /nested deeper than 256 levels/],
  ['calls', `.a = ${around('downcase(', '"a"', ')', 257)}`, /nested deeper than 256 levels/],
  ['negations', `.a = ${'!'.repeat(257)}true`, /nested deeper than 256 levels/],
  ['sums', `.a = ${times(258, () => '"x"', ' + ')}`, /nested deeper than 256 levels/],
  [
    'alternatives',
    `if .a == 0 { 1 }${times(258, (index) => ` else if .a == ${index} { 2 }`, '')}`,
    /nested deeper than 256 levels/,
  ],
  ['more than any stack', `.a = ${around('[', '', ']', 100_000)}`, /the program is nested too deep/],
  ['characters', `.a = "${'x'.repeat(262_144)}"`, /the program has 262151 characters; 262144 are allowed/],
])('a program with a budget is bounded: %s', (_what, source, says) => {
  const compiled = compileProgram(source, { rules: restrictedRules })
  expect(compiled.ok ? '' : compiled.rendered).toMatch(says)
  expect(compiled.ok ? [] : compiled.diagnostics.map(({ code }) => code)).toEqual([203])
})

test('programs of the maximum size compile, with and without a budget', () => {
  for (const source of [
    times(2000, (index) => `.a${index % 50} = ${index}`),
    `.a = ${around('[', '1', ']', 250)}`,
    `.a = ${times(250, () => '"x"', ' + ')}`,
    `.a = [${times(20_000, String, ', ')}]`,
  ]) {
    expect(compileProgram(source, { rules: restrictedRules }).ok).toBe(true)
    expect(compileProgram(source).ok).toBe(true)
  }
  expect(compileProgram(times(2001, () => '.a = 1')).ok).toBe(true)
})
