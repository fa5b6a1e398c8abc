// Conditions of operators: each operator with each pair of values becomes a condition that compiles, or is rejected.

import { compileProgram } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { type Given, problems, record } from '../../testing/collector.ts'
import { conditionOf } from './expression.ts'
import { parseExpression, UnknownExpression } from './expression-parser.ts'

const operands = [
  ...[
    '"text"',
    '5',
    '2.5',
    'true',
    'nil',
    '["a"]',
    '-1',
    '1 + 2',
    '"a" + "b"',
    'attributes.a + "x"',
    'attributes.a + 1',
  ],
  ...['attributes.a', 'attributes["b"]', 'attributes', 'body', 'body.level', 'resource["r"]', 'len(body)'],
  ...[
    'string(attributes.a)',
    'string(5)',
    'string("a" + "b")',
    'lower(body)',
    'upper(string(body))',
    'len(string(body))',
    'len(lower(body))',
    'len(split(body, ","))',
    'split(string(body), ",")[0]',
    'body[1:3]',
    'string(int(body))',
    'int(attributes.a ?? "0")',
    'float(body) / 2',
    'string(attributes.a + attributes.b)',
    '(attributes.a ?? "x")',
    '(attributes.a == 1 ? "a" : "b")',
    '(lower(body) ?? string(body))',
    'severity_text',
    'severity_number',
    '1..5',
  ],
]

test.each([...['==', '!=', '<', '<=', '>', '>=', 'in', 'contains', 'startsWith', 'endsWith', 'matches', 'and', 'or']])(
  'values of all types on both sides of %s make a condition that is valid',
  (operator) => {
    let made = 0
    const wrong = operands.flatMap((left) =>
      operands
        .flatMap((right) => [`${left} ${operator} ${right}`, `not (${left} ${operator} ${right})`])
        .filter((text) => {
          try {
            const code = conditionOf(parseExpression(text))
            made++
            return !compileProgram(`if ${code} { .x = 1 }`).ok
          } catch (error) {
            if (error instanceof UnknownExpression) return false
            throw error
          }
        }),
    )
    expect(wrong).toEqual([])
    expect(made).toBeGreaterThan(20)
  },
)

/** Conditions with the attribute n of a record; undefined if they fail, and then so does their negation. */
const conditions: readonly (readonly [condition: string, n: unknown, result: boolean | undefined])[] = [
  ['attributes.n + 1 > 5', 5, true],
  ['attributes.n + 1 > 5', 2, false],
  ['attributes.n + 1 > 5', 'x', undefined],
  ['attributes.n * 2 == 10', 5, true],
  ['attributes.n - attributes.n == 0', 5, true],
  ['attributes.n / 2 == 2.5', 5, true],
  ['int(attributes.n) % 2 == 0', '4', true],
  ['int(attributes.n) % 2 == 0', 'x', undefined],
  ['attributes.n + attributes.n == "aa"', 'a', true],
  ['attributes.n + attributes.n != "aa"', null, undefined],
  ['attributes.n in 400..499', 404, true],
  ['attributes.n in 400..499', 500, false],
  ['attributes.n in 400..499', 'x', false],
  ['int(attributes.n) in 400..499', '404', true],
  ['int(attributes.n ?? "0") >= 500', '503', true],
  ['int(attributes.n ?? "0") >= 500', null, false],
  ['(attributes.n ?? "") matches "^a"', 'ab', true],
  ['(attributes.n ?? "") matches "^a"', null, false],
  ['(attributes.n ?? "") matches "^a"', 5, undefined],
  ['attributes.n[0:2] == "ab"', 'abc', true],
  ['attributes.n[:5] == "abc"', 'abc', true],
  ['attributes.n[5:] == ""', 'abc', true],
  ['attributes.n[1:] startsWith "bc"', 'abc', true],
  ['trimPrefix(attributes.n, "a.") == "b"', 'a.b', true],
  ['trimSuffix(attributes.n, ".log") endsWith "log"', 'a.log', false],
  ['lower(attributes.n) != "a"', 'B', true],
  ['lower(attributes.n) != "a"', null, undefined],
  ['attributes.n | lower() == "b"', 'B', true],
  ['split(attributes.n, "_")[1] matches "^b"', 'a_b', true],
  ['len(split(attributes.n, ",")) > 2', 'a,b,c', true],
  ['len(lower(attributes.n)) == 1', 'a', true],
  ['any(["a", "b"], {attributes.n contains #})', 'xb', true],
  ['all(["a", "b"], {attributes.n contains #})', 'xb', false],
  ['none(["a", "b"], {attributes.n contains #})', 'x', true],
  ['none(["a", "b"], {attributes.n contains #})', 5, undefined],
  ['"b" == attributes.n ?? "b"', null, true],
  ['"b" == attributes.n ?? "b"', 'a', false],
  ['7 == 1 + attributes.n * 3', 2, true],
  ['2 < attributes.n < 5', 3, true],
  ['2 < attributes.n <= 5', 6, false],
  ['"A" + attributes.n | lower() == "ab"', 'b', true],
  ['-attributes.n < -2', 3, true],
  ['(attributes.n ?? "abc")[0:2] == "ab"', null, true],
  ['not attributes.n == true', false, true],
  ['not attributes.n == true', 'x', undefined],
  ['attributes.n ? true : false', true, true],
  ['severity_number > 8', 'x', false],
  ['severity_text == ""', 'x', true],
  ['string(int(attributes.n)) startsWith "5"', '503', true],
]

test.each(conditions)('the condition %s for %j', async (condition, n, result) => {
  for (const [text, isTrue] of [
    [condition, result === true],
    [`not (${condition})`, result === false],
  ] as const) {
    const given: Given = { operators: [{ type: 'add', field: 'attributes.is', value: 'true', if: text }] }
    const more = { attributes: n === null ? {} : { n } }
    expect(await problems(given, 1, record(more), `exists(.attributes.is) == ${isTrue}`), text).toEqual([])
  }
})

test.each([
  ['attributes.n * 1000', 5, 5000],
  ['attributes.n * 1000', 'x', null],
  ['float(attributes.n) / 4', '1', 0.25],
  ['attributes.n[0:2] + "-" + string(attributes.n)', 'abc', 'ab-abc'],
  ['string(int(attributes.n))', 'x', null],
  ['split(attributes.n, "/")[1] + "!"', 'a/b', 'b!'],
])('the value EXPR(%s) for %j', async (expression, n, expected) => {
  const given: Given = { operators: [{ type: 'add', field: 'resource.made', value: `EXPR(${expression})` }] }
  const assert = `.resource.attributes.made == ${JSON.stringify(expected)}`
  expect(await problems(given, 1, record({ attributes: { n } }), assert)).toEqual([])
})

test.each([
  '1 + 2 == attributes.n',
  'not attributes.n matches "x"',
  'env("X") == "a"',
  'attributes.a - "x" == 1',
  'any(attributes.a, {# == 1})',
])('the expression %s is unknown', (text) => {
  expect(() => conditionOf(parseExpression(text))).toThrow(UnknownExpression)
})
