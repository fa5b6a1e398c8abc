import { expect, test } from 'vitest'
import { sortedFieldNames } from './value.ts'

test('fields are sorted by code point, regardless of earlier calls', () => {
  const names = ['b', 'a', '\u{ffff}', '\u{10000}', 'B', '']
  const sorted = ['', 'B', 'a', 'b', '\u{ffff}', '\u{10000}']
  const object = Object.fromEntries(names.map((name) => [name, 1]))
  const first = sortedFieldNames(object)
  expect(first).toEqual(sorted)
  first.length = 0 // the list belongs to the caller
  expect(sortedFieldNames(object)).toEqual(sorted)
  expect(sortedFieldNames({ ...object, a: undefined })).toEqual(sorted.filter((name) => name !== 'a'))
  expect(sortedFieldNames(Object.fromEntries(names.toReversed().map((name) => [name, 1])))).toEqual(sorted)
})
