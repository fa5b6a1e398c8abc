import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { counted, countedOf } from './counted.ts'

test('a noun follows its count', () => {
  expect([counted(0, 'event'), counted(1, 'event'), counted(2, 'entry', 'entries')]).toEqual([
    '0 events',
    '1 event',
    '2 entries',
  ])
})

test.each([
  [0, 0, '0 of 0 nodes fail'],
  [0, 1, '0 of 1 node fails'],
  [1, 1, '1 of 1 node fails'],
  [0, 2, '0 of 2 nodes fail'],
  [1, 2, '1 of 2 nodes fails'],
  [2, 2, '2 of 2 nodes fail'],
])('in a share, the noun follows the total and the verb the count: %i of %i', (count, total, text) => {
  expect(countedOf(count, total, 'node', 'fails', 'fail')).toBe(text)
})

test('no text of the two programs uses "(s)" or builds a plural by hand', () => {
  const found = ['agent', 'operator'].flatMap((program) => {
    const source = join(import.meta.dirname, '../..', program, 'src')
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    return files
      .filter((path) => path.endsWith('.ts') && !/\.test\.ts$|testing\//.test(path))
      .flatMap((path) => {
        const code = readFileSync(join(source, path), 'utf8').replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')
        return [
          ...code.matchAll(
            /.*(?:[a-z]\((?:s|es)\)[^(=>]*['"`]|=== 1 \? '' : 's'|\} of \$\{[^}]*\} (?:agents|nodes|pods)).*/g,
          ),
        ].map(([line]) => `${program}/src/${path}: ${line.trim()}`)
      })
  })
  expect(found).toEqual([])
})
