import { expect, test } from 'vitest'
import { compileGlob } from './glob.ts'

test.each([
  {
    pattern: '/var/log/*.log',
    matches: ['/var/log/a.log', '/var/log/.log'],
    not: ['/var/log/a/b.log', '/var/log/a.logs'],
  },
  { pattern: '/var/**/*.log', matches: ['/var/a.log', '/var/a/b/c.log'], not: ['/usr/a.log'] },
  { pattern: '**/*.gz', matches: ['/a/b.gz', 'b.gz'], not: ['/a/b.gz.tmp'] },
  { pattern: '**/*', matches: ['/a/b', '/a/b/c.log'], not: [] },
  { pattern: '/a/[0-9]?.log', matches: ['/a/0x.log'], not: ['/a/x0.log', '/a/0.log'] },
  { pattern: '/a/[!x].log', matches: ['/a/y.log'], not: ['/a/x.log'] },
  { pattern: '/a/{b,c/{d,e}}.log', matches: ['/a/b.log', '/a/c/d.log', '/a/c/e.log'], not: ['/a/c.log'] },
  { pattern: '/a/b+(c).log', matches: ['/a/b+(c).log'], not: ['/a/bc.log'] },
  { pattern: '/a/\\*.log', matches: ['/a/*.log'], not: ['/a/b.log'] },
  { pattern: '/var/log/pods/shop_*/**', matches: ['/var/log/pods/shop_a/b/0.log'], not: ['/var/log/pods/x_a/b/0.log'] },
])('$pattern', ({ pattern, matches, not }) => {
  const glob = compileGlob(pattern)
  expect(matches.filter((path) => glob?.matches(path) !== true)).toEqual([])
  expect(not.filter((path) => glob?.matches(path) === true)).toEqual([])
})

test.each([
  ['/var/log/*.log', '/var/log'],
  ['/var/log/app.log', '/var/log'],
  ['/**/x', '/'],
  ['/a/b/*/c/{d,e}.log', '/a/b'],
  ['/a/{b,c}/d.log', '/a'],
])('%s starts at %s', (pattern, base) => {
  expect(compileGlob(pattern)?.base).toBe(base)
})

test('a folder leads to a match, or does not', () => {
  const glob = compileGlob('/var/*/app/**/*.log')
  expect(['/var/x', '/var/x/app', '/var/x/app/deep/er'].map((path) => glob?.leadsThrough(path))).toEqual([
    true,
    true,
    true,
  ])
  expect(['/usr', '/var/x/other'].map((path) => glob?.leadsThrough(path))).toEqual([false, false])
  expect(compileGlob('/var/*.log')?.leadsThrough('/var/x.log')).toBe(false)
})

test.each(['/a/[b', '/a/{b'])('%s is not valid', (pattern) => {
  expect(compileGlob(pattern)).toBe(undefined)
})

test.each([
  '{a,b}'.repeat(18),
  '{a,b,c,d,e,f,g,h,i,j,k}'.repeat(3),
  '{a}'.repeat(65),
  `${'{'.repeat(5000)}a${'}'.repeat(5000)}`,
  '{{ x }}'.repeat(2000),
])('a pattern with excessive braces is refused: %.40s', (pattern) => {
  expect(compileGlob(`**/${pattern}`)).toBeUndefined()
})

test('a pattern may expand to a thousand', () => {
  expect(compileGlob(`**/${'{0,1,2,3,4,5,6,7,8,9}'.repeat(3)}.log`)?.matches('/a/407.log')).toBe(true)
})
