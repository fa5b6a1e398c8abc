import { expect, test } from 'vitest'
import { compileExtendedGrok, compileGrok, grokEffort } from './grok.ts'

const doubling = (levels: number, times: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: levels }, (_, at) => [
      `a${at}`,
      at === levels - 1 ? '%{word}' : Array.from({ length: times }, () => `%{a${at + 1}}`).join(' '),
    ]),
  )

test.each([
  ['names that double', '%{a0}', doubling(40, 2)],
  ['names that stand for a lot', '%{long}'.repeat(100), { long: 'a'.repeat(100_000) }],
  ['names that stand for nothing', '%{a0}', { ...doubling(40, 8), a39: '' }],
  ['a pattern that is long itself', 'a'.repeat(300_000), {}],
])('patterns that expand too far are refused before they are compiled: %s', (_name, pattern, aliases) => {
  const grok = compileExtendedGrok(pattern, aliases)
  expect(grok).toMatchObject({ ok: false, problem: expect.stringContaining('262144 characters together') })
})

test('patterns of one parser share the limit', () => {
  const effort = grokEffort()
  const aliases = { long: 'a'.repeat(1000) }
  const results = Array.from({ length: 300 }, () => compileExtendedGrok('%{long}', aliases, effort).ok)
  expect([results[0], results.at(-1)]).toEqual([true, false])
})

test('the largest patterns of the library are well below the limit', () => {
  expect(compileGrok('%{COMBINEDAPACHELOG} %{SYSLOGBASE} %{IPV6:a} %{URI:b}').ok).toBe(true)
})
