// Conditions of operators: each operator with each pair of values becomes a condition that compiles, or is rejected.

import { compileProgram } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { conditionOf, parseExpression, UnknownExpression } from './expression.ts'

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

test.each(['attributes.a + 1 > 5', '1 + 2 == attributes.n', 'attributes.a + attributes.b == "x"'])(
  'numbers are not joined as texts: %s',
  (text) => {
    expect(() => conditionOf(parseExpression(text))).toThrow(UnknownExpression)
  },
)
