// Parsers from the file that Fluent Bit ships, in configurations that do not define them.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

test('lines of files of Docker are records with the time of the line', async () => {
  const text =
    '[INPUT]\n  Name tail\n  Path /var/lib/docker/containers/*/*-json.log\n  Tag d\n  Parser docker\n[OUTPUT]\n  Name stdout\n  Match *\n  Format json_lines\n'
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const line = { log: 'hello\n', stream: 'stderr', time: '2026-01-02T03:04:05.5Z' }
  withTest(
    document,
    resource,
    { message: JSON.stringify(line), timestamp: '2020-01-01T00:00:00Z' },
    { ...line, timestamp: '2026-01-02T03:04:05.5Z' },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
