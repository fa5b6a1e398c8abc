import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { conditionTypes, reasons } from './conditions.ts'
import { reasonTexts, ruleText, tenantRules } from './rules.ts'

const root = join(import.meta.dirname, '../..')

test('every rule number in a message or comment of the operator is explained', () => {
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.includes('.test.'))
  const numbers = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/\((T\d+)\)/g)].map(([, name]) => name),
  )
  expect(new Set(numbers).size).toBeGreaterThan(10)
  for (const name of new Set(numbers)) expect(ruleText(name ?? ''), name).toContain('Fix: ')
  expect(Object.keys(tenantRules)).toEqual(Array.from({ length: 14 }, (_, index) => `T${index + 1}`))
})

test('every reason in the guide is explained', () => {
  const guide = readFileSync(join(root, 'guide/troubleshooting.md'), 'utf8')
  const rows = guide.split('\n').filter((line) => line.startsWith('| <a id='))
  const answered = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name ?? ''),
  )
  expect(answered.length).toBeGreaterThan(20)
  expect(Object.keys(reasonTexts)).toEqual(expect.arrayContaining(answered))
})

test.each([...conditionTypes, ...reasons])('%s, which a resource can show, is explained', (name) => {
  expect(ruleText(name)).toMatch(new RegExp(`^${name}  \\((?:condition|reason of a condition)`))
})
