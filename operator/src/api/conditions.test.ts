import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reasons } from './conditions.ts'

test('the guide explains every reason of a condition', () => {
  const page = readFileSync(join(import.meta.dirname, '../../guide/troubleshooting.md'), 'utf8')
  expect(reasons.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([])
})
