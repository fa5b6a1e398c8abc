import { expect, test } from 'vitest'
import { compileMultiline } from './multiline.ts'

const rule = (pattern: string) =>
  compileMultiline({ start_pattern: pattern, condition_pattern: pattern, mode: 'halt_before', timeout_ms: 1 })

test.each([
  ['(?i)^(error|warn)\\b', 'ERROR: x', true],
  ['^\\d{4}-\\d{2}', '2026-01-01', true],
  ['^\\p{Lu}', 'Äpfel', true],
  ['^[[:space:]]+at ', '\tat x', true],
  ['^(?P<level>[IWEF])\\d{4}', 'I0101', true],
  ['^\\S', ' indented', false],
])('%s on %j: %s', (pattern, line, holds) => {
  expect(rule(pattern).starts(line)).toBe(holds)
  expect(rule(pattern).meetsCondition(line)).toBe(holds)
})

test.each(['(a+)+$', '(a|a)*b', '(.*)*,', '(\\w+\\s?)*!$', '^(a?){30}a{30}!'])(
  '%s ends on a hostile line',
  (pattern) => {
    expect(rule(pattern).starts(`${'a'.repeat(100_000)}#`)).toBe(false)
  },
)

test('a pattern that is none of the dialect is refused', () => {
  expect(() => rule('(?=look)')).toThrow(SyntaxError)
})
