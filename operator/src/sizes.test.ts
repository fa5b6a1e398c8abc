// No file of more than 600 lines and no function of more than 80, except those in this table.

import { resolve } from 'node:path'
import { sizesIn } from '@penstock/agent/testing/sizes'
import { expect, test } from 'vitest'

/** By reason, files and functions that may be longer: a path, or a path and the name of a function. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'one literal: a page': ['src/workloads/rights-guide.ts rightsGuide'],
  'one idea in order: everything that a hostile tenant may write': ['src/fuzz/tenant.ts'],
}

/** Packages, and what is made of sources. */
const isMade = (path: string) => /(?:^|\/)(?:node_modules|dist|packed)\//.test(path)

test.each([
  { workspace: 'operator', min: 250, reasons: exceptions },
  { workspace: 'e2e', min: 50, reasons: {} },
])('no file or function of $workspace exceeds the limits without a reason', ({ workspace, min, reasons }) => {
  const { files, long } = sizesIn(resolve(import.meta.dirname, '../..', workspace), isMade)
  expect(files).toBeGreaterThan(min)
  expect(long).toEqual(Object.values(reasons).flat().toSorted())
})
