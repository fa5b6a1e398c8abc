// Lines that Filebeat joins: each rule against what Filebeat's own question gives, of each line and the one before it.

import { joinedLines } from '@penstock/agent/testing/joined-lines'
import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const configuration = (multiline: string) =>
  `filebeat.inputs:\n- type: filestream\n  id: a\n  paths: [/a.log]\n  parsers: [{ multiline: { ${multiline} } }]\noutput.console: {}\n`

/** The events that Filebeat makes of lines, by whether a line belongs to the one before it. */
function groups(lines: readonly string[], belongs: (before: string, line: string) => boolean): string[] {
  const found: string[][] = []
  for (const [index, line] of lines.entries()) {
    const last = found.at(-1)
    if (last !== undefined && belongs(lines[index - 1] ?? '', line)) last.push(line)
    else found.push([line])
  }
  return found.map((group) => group.join('\n'))
}

const lines = ['x', '  at b', '  at c', 'd', 'e', 'f', '  at g', 'h', '  at i']
const isIndented = (line: string) => line.startsWith(' ')

test.each([
  { rule: 'negate: false, match: after', belongs: (_: string, line: string) => isIndented(line) },
  { rule: 'negate: true, match: after', belongs: (_: string, line: string) => !isIndented(line) },
  { rule: 'negate: false, match: before', belongs: (before: string) => isIndented(before) },
  { rule: 'negate: true, match: before', belongs: (before: string) => !isIndented(before) },
  {
    rule: 'type: while_pattern',
    belongs: (before: string, line: string) => isIndented(before) && isIndented(line),
  },
])('$rule joins the lines that Filebeat joins', async ({ rule, belongs }) => {
  const text = configuration(`pattern: '^ ', ${rule}`)
  const { document, resource, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(joinedLines(resource.spec.sources[0].config.multiline, lines)).toEqual(groups(lines, belongs))
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { rule: "negate: true, match: after, flush_pattern: '^END'", expected: ['BEGIN\na\nEND', 'b\nEND', 'BEGIN'] },
  { rule: "match: after, flush_pattern: '^END'", expected: ['BEGIN', 'a\nEND', 'b\nEND', 'BEGIN'] },
])('$rule ends events at a pattern', async ({ rule, expected }) => {
  const text = configuration(`pattern: '^BEGIN', ${rule}`)
  const { document, resource, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(joinedLines(resource.spec.sources[0].config.multiline, ['BEGIN', 'a', 'END', 'b', 'END', 'BEGIN'])).toEqual(
    expected,
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('with before, a pattern for the last line is a gap', () => {
  const text = configuration("pattern: '^x', match: before, flush_pattern: '^END'")
  const { gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(['multiline flush_pattern'])
})

test.each([
  { count: 1, expected: ['a', 'b', 'c', 'd', 'e'], gaps: [] },
  { count: 2, expected: ['a\nb', 'c\nd', 'e'], gaps: [] },
  { count: 3, expected: ['a', 'b', 'c', 'd', 'e'], gaps: ['multiline count'] },
])('of lines by their number, $count', async ({ count, expected, gaps: subjects }) => {
  const text = configuration(`type: count, count_lines: ${count}`)
  const { document, resource, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(joinedLines(resource.spec.sources[0].config.multiline, ['a', 'b', 'c', 'd', 'e'])).toEqual(expected)
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { pattern: '^{', flush: '^}', expected: ['{\n  "a": 1\n}', '{\n}', 'x'] },
  { pattern: '^\\Q{\\E', flush: '}$', expected: ['{\n  "a": 1\n}', '{\n}', 'x'] },
])('the pattern $pattern begins objects', async ({ pattern, flush, expected }) => {
  const text = configuration(`pattern: '${pattern}', negate: true, match: after, flush_pattern: '${flush}'`)
  const { document, resource, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(joinedLines(resource.spec.sources[0].config.multiline, ['{', '  "a": 1', '}', '{', '}', 'x'])).toEqual(
    expected,
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
