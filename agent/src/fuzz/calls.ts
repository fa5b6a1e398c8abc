// Random calls: one function with odd arguments, such as empty containers, paths that do not fit a container, and numbers at the ends of
// their range. Arguments are constants, fields of any kind, or fields that the program has checked, because each affects the promised kind.

import { Timestamp } from '../event/timestamp.ts'
import type { Value, ValueObject } from '../event/value.ts'
import type { FunctionDeclaration, Parameter } from '../remap/function.ts'
import { functions } from '../remap/functions.ts'
import { kinds } from '../remap/kind.ts'
import { tokenize } from '../remap/lexer.ts'
import { compileProgram } from '../remap/program.ts'
import type { Random } from '../testing/random.ts'
import type { Case } from './case.ts'

type Sort = 'string' | 'integer' | 'float' | 'boolean' | 'timestamp' | 'regex' | 'null' | 'array' | 'object'

const literals: Readonly<Record<Sort, readonly string[]>> = {
  string: ['""', '"a"', '"a.b"', '"[0]"', '"é😀"', '"1"', '"%F"', '"\\n"'],
  integer: ['0', '1', '-1', '2', '65536', '9223372036854775807', '-9223372036854775807'],
  float: ['0.0', '-1.5', '1.0', '123456789.123456789'],
  boolean: ['true', 'false'],
  timestamp: ["t'1970-01-01T00:00:00Z'", "t'2026-02-03T04:05:06.789Z'"],
  regex: ["r''", "r'a'", "r'(?P<x>\\w)?'", "r'^$'"],
  null: ['null'],
  array: [
    ...[
      '[]',
      '[[]]',
      '[0]',
      '["a"]',
      '["a", 0]',
      '[0, "a"]',
      '[-1]',
      '[null]',
      '[{}]',
      '[1, "a", null, []]',
      '[65536]',
    ],
    ...['["a", "b"]', '[[1, 2], [3]]', '[{"a": 1}, {"a": 2}]', '[1.5, 2]', '["x", ["y"]]'],
  ],
  object: [
    ...['{}', '{ "a": 1 }', '{ "": null }', '{ "0": 1 }', '{ "a": { "b": [1, { "c": 2 }] } }', '{ "a": [], "b": {} }'],
    ...['{ "a.b": "c" }', '{ "a": null, "b": "" }'],
  ],
}

const values: readonly Value[] = [
  ...['', 'a', '1', 'a=b', '{"a":1}', '[1]', 'é😀'],
  ...[0, 1, -1, 65536, 9223372036854775807n, 1.5],
  ...[true, false, null],
  new Timestamp(0, 0),
  ...[[], [[]], [0], ['a'], ['a', 0], [0, 'a'], [-1], [null], [{}], [1, 'a', null, []]],
  ...[{}, { a: 1 }, { '': null }, { '0': 1 }, { a: { b: [1, { c: 2 }] } }, { a: [], b: {} }],
]

const guards: Partial<Record<Sort, string>> = {
  string: 'string!',
  integer: 'int!',
  float: 'float!',
  boolean: 'bool!',
  timestamp: 'timestamp!',
  array: 'array!',
  object: 'object!',
}

const named = ['f', 'g', 'h'] as const

/** Calls whose results depend only on their arguments. */
export const callable: readonly FunctionDeclaration[] = functions.filter(
  ({ pure, reaches, form, closure, parameters, typeOfArguments }) =>
    pure &&
    reaches === undefined &&
    form === undefined &&
    closure === undefined &&
    typeOfArguments === undefined &&
    !parameters.some(({ meaning, query }) => meaning === 'file' || query === true),
)

/** Literals in the examples of a function, which are valid arguments. */
const examplesOf = new Map(
  callable.map(({ name, examples }) => [
    name,
    examples.flatMap(({ source }) =>
      tokenize(source)
        .filter(({ type }) => type === 'string' || type === 'raw-string')
        .map(({ start, end }) => source.slice(start, end)),
    ),
  ]),
)

function argument(random: Random, { name }: FunctionDeclaration, parameter: Parameter): string {
  if (parameter.enum !== undefined) return JSON.stringify(random.pick(parameter.enum))
  const examples = examplesOf.get(name) ?? []
  const sorts = (Object.keys(literals) as Sort[]).filter((sort) => parameter.kind.overlaps(kinds[sort]))
  const sort = random.pick(sorts)
  if (sort === 'string' && examples.length > 0 && random.chance(0.5)) return random.pick(examples)
  if (parameter.static === true || random.chance(0.4)) return random.pick(literals[sort])
  const field = `.${random.pick(named)}`
  const guard = guards[sort]
  return guard === undefined || random.chance(0.5) ? field : `${guard}(${field})`
}

/** A program with one call, whose result is that of the program. */
export function randomCall(random: Random, of: FunctionDeclaration = random.pick(callable)): Case {
  const chosen = of.parameters.filter(({ required }) => required !== false || random.chance(0.4))
  const given = chosen.map((parameter) => `${parameter.name}: ${argument(random, of, parameter)}`).join(', ')
  const sources = random.chance(0.3)
    ? [`x, err = ${of.name}(${given})\nx`, `${of.name}(${given})`]
    : [`${of.name}!(${given})`, `${of.name}(${given})`]
  const source = sources.find((each) => compileProgram(each, { keepResult: true }).ok) ?? sources[0]
  const event = (): ValueObject => Object.fromEntries(named.map((name) => [name, random.pick(values)]))
  return {
    source: source as string,
    events: [event(), event(), event(), event()],
    metadata: {},
    owned: true,
    keepResult: true,
  }
}
