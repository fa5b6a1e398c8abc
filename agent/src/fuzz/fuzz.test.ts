import { expect, test } from 'vitest'
import { Random } from '../testing/random.ts'
import { callable, randomCall } from './calls.ts'
import { runCase } from './case.ts'
import { described } from './inspect.ts'
import { families, randomProperty } from './properties.ts'
import { fuzz } from './run.ts'

// The same programs in every run; `npm run fuzz` uses different ones each time.
test.each([1, 2])(
  'random programs have the results of the evaluator, from seed %i',
  (seed) => {
    const { found, compiled, cases } = fuzz({ seed, seconds: 2.5, cases: 100_000, timeoutMs: 10_000 })
    const shown =
      found === undefined
        ? undefined
        : [`seed ${found.seed}: ${found.problem.what}`, found.test.source, found.problem.text.slice(0, 4000)].join('\n')
    expect(shown).toBeUndefined()
    // Most programs must compile; otherwise the test would check nothing.
    expect(compiled).toBeGreaterThan(cases / 2)
  },
  60_000,
)

test.each(Object.keys(families))(
  'properties hold: %s',
  (family) => {
    let compiled = 0
    for (let seed = 0; seed < 300; seed++) {
      const made = randomProperty(new Random(seed), family)
      const verdict = runCase(made, 10_000)
      if (verdict.compiled) compiled++
      expect(verdict.problem?.text, `seed ${seed}: ${made.source}`).toBeUndefined()
    }
    expect(compiled).toBe(300)
  },
  60_000,
)

test('every function gives a value of its declared kind for odd arguments', () => {
  let compiled = 0
  for (const declaration of callable) {
    for (let seed = 0; seed < 12; seed++) {
      const made = randomCall(new Random(seed), declaration)
      const verdict = runCase(made, 10_000)
      if (verdict.compiled) compiled++
      expect(verdict.problem?.text, `${declaration.name}, seed ${seed}: ${made.source}`).toBeUndefined()
    }
  }
  expect(callable.length).toBeGreaterThan(150)
  expect(compiled).toBeGreaterThan(callable.length * 8)
}, 60_000)

test.each([
  ['a property that is false', '.a == 1', 'always', 'property'],
  ['a property whose program fails', 'parse_json!(string!(.a)) == .a', 'always', 'property'],
  ['a property that may fail', 'parse_json!(string!(.a)) == .a', 'unless it fails', undefined],
] as const)('%s is found', (_, source, holds, what) => {
  const test = { source, events: [{ a: '{' }], metadata: {}, owned: false, keepResult: true, holds }
  expect(runCase(test, 10_000).problem?.what).toBe(what)
})

// Patterns that take exponential or high polynomial time in backtracking engines.
const patterns = [
  '(a+)+$',
  '(a|a)*b',
  '(a|aa)+$',
  '(.*)*,',
  '(?:a?){30}a{30}',
  '(\\w+\\s?)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
]
const functions = [
  (pattern: string) => `match(string!(.m), ${pattern})`,
  (pattern: string) => `_, err = parse_regex(.m, ${pattern})`,
  (pattern: string) => `_, err = parse_regex_all(.m, ${pattern})`,
  (pattern: string) => `_, err = replace(.m, ${pattern}, "")`,
  (pattern: string) => `_, err = split(.m, ${pattern})`,
  (pattern: string) => `replace_with(string!(.m), ${pattern}) -> |m| { m.string }`,
]

test.each(patterns)(
  'the hostile pattern %s does not stall a program',
  (pattern) => {
    for (const write of functions) {
      for (const message of [`${'a'.repeat(64)}!`, 'a '.repeat(500), 'a'.repeat(5000)]) {
        const { problem } = runCase(
          {
            source: write(`r'${pattern}'`),
            events: [{ m: message }],
            metadata: {},
            owned: false,
            keepResult: true,
          },
          10_000,
        )
        expect(problem).toBeUndefined()
      }
    }
  },
  60_000,
)

test.each([
  ['brackets', '['.repeat(50_000)],
  ['groups', `${'('.repeat(20_000)}1${')'.repeat(20_000)}`],
  ['negations', `x = ${'!'.repeat(50_000)}true`],
  ['blocks', '{'.repeat(20_000)],
  ['branches', `${'if true { 1 } else '.repeat(5000)}{ 2 }`],
  ['sums', `x = 1${' + 1'.repeat(20_000)}`],
  ['segments', `.a${'.a'.repeat(20_000)} = 1`],
  ['assignments', `${'x = '.repeat(20_000)}1`],
  ['calls', `${'upcase('.repeat(5000)}"a"${')'.repeat(5000)}`],
])(
  'deep nesting of %s is compiled or rejected, but never throws',
  (_, source) => {
    const { problem } = runCase({ source, events: [{}], metadata: {}, owned: true, keepResult: true }, 30_000)
    expect(problem).toBeUndefined()
  },
  60_000,
)

test('values of different types are different', () => {
  const values = [1, 1n, '1', true, null, [1], { a: 1 }, { a: '1' }, { a: [1] }, 1.5]
  expect(new Set(values.map(described)).size).toBe(values.length)
})
