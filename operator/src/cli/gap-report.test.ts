// The report of a conversion: places and the compiler's message in each format.

import { expect, test } from 'vitest'
import type { Gap } from '../migrate/draft.ts'
import { gapReport } from './gap-report.ts'

const option: Gap = { file: 'v.yaml', line: 3, subject: 'out: a', reason: 'no a', nearest: 'Remove it.' }
const program: Gap = {
  ...option,
  line: 7,
  column: 9,
  subject: 't: source',
  rendered: '\nerror[E103]: unhandled\n  ┌─ :1:3\n  │\n1 │ .b = parse_json(.a)\n  │\n',
}

test('text has the column, and the lines of a program with their place in it', () => {
  expect(gapReport([option, program], 'text')).toBe(`warning: no a
  --> v.yaml:3:1  (out: a)
  help: Remove it.

warning: no a
  --> v.yaml:7:9  (t: source)

    error[E103]: unhandled
      ┌─ t: source:1:3
      │
    1 │ .b = parse_json(.a)
      │
  help: Remove it.`)
})

test('the other formats have the column where it is known', () => {
  expect(JSON.parse(gapReport([option, program], 'json'))).toMatchObject([{ line: 3 }, { line: 7, column: 9 }])
  expect(gapReport([option, program], 'markdown').split('\n').slice(2)).toEqual([
    '| v.yaml:3 | out: a | gap | no a | Remove it. |',
    '| v.yaml:7:9 | t: source | gap | no a | Remove it. |',
  ])
})
