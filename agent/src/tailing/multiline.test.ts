import { expect, test } from 'vitest'
import { joinedLines } from '../testing/joined-lines.ts'
import { compileMultiline, MultilineAggregator, maxGroupLines, multilineProblems } from './multiline.ts'

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

test.each([
  { mode: 'halt_before', groups: ['BEGIN\na\nEND', 'b\nEND', 'BEGIN\nc', 'BEGIN'] },
  { mode: 'continue_through', groups: ['BEGIN', 'a\nEND', 'b\nEND', 'BEGIN', 'c\nBEGIN'] },
] as const)('with $mode, a pattern for the last line ends a group', ({ mode, groups }) => {
  const options = { start_pattern: '.*', condition_pattern: '^BEGIN', mode, timeout_ms: 1, flush_pattern: '^END' }
  expect(joinedLines(options, ['BEGIN', 'a', 'END', 'b', 'END', 'BEGIN', 'c', 'BEGIN'])).toEqual(groups)
})

test('a pattern outside the dialect is refused', () => {
  expect(() => rule('(?=look)')).toThrow(SyntaxError)
  const options = { start_pattern: '.', condition_pattern: '.', mode: 'halt_with', timeout_ms: 1 } as const
  expect(multilineProblems({ ...options, flush_pattern: '(?=look)' })).toHaveLength(1)
})

test.each([
  { what: 'without text', line: '', length: maxGroupLines - 1 },
  { what: 'of one letter', line: 'x', length: 2 * maxGroupLines - 2 },
  { what: 'of 10 kB', line: 'x'.repeat(9999), length: 1_050_000 },
])('a group of countless lines $what is passed on in parts', ({ line, length }) => {
  const groups: number[] = []
  const lines = new MultilineAggregator<undefined>(rule('^begin'), (text) => groups.push(String(text).length))
  lines.add('begin', 0, undefined, 0)
  const count = Math.max(105, Math.ceil(length / (line.length + 1)))
  for (let index = 1; index <= count; index++) lines.add(line, index, undefined, 0)
  expect(groups[0]).toBeLessThanOrEqual(length + 'begin'.length)
  expect(groups[0]).toBeGreaterThan(length * 0.9)
  expect(lines.pendingFrom).toBeUndefined()
})
