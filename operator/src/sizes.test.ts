// No file of more than 600 lines and no function of more than 80, except those in this table.

import { sizesIn } from '@penstock/agent/testing/sizes'
import { expect, test } from 'vitest'

/** By reason, files and functions that may be longer: a path, or a path and the name of a function. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'one literal: a page': ['workloads/rights-guide.ts rightsGuide'],
}

test('no file and no function that ships is longer than the limits, except for a reason', () => {
  const { files, long } = sizesIn(import.meta.dirname)
  expect(files).toBeGreaterThan(150)
  expect(long).toEqual(Object.values(exceptions).flat().toSorted())
})
