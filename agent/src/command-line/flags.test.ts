import { afterEach, expect, test } from 'vitest'
import { type Flags, flagHelp, parseArgs } from './flags.ts'

const table = {
  config: { type: 'list', short: 'c', env: 'PENSTOCK_TEST_CONFIG', value: 'PATH', help: 'Where it is.' },
  limit: { type: 'number', short: 'l', minimum: 1, env: 'PENSTOCK_TEST_LIMIT', help: 'How many.' },
  format: { type: 'string', short: 'f', oneOf: ['json', 'yaml'], help: 'Which form.' },
  meta: { type: 'boolean', short: 'm', env: 'PENSTOCK_TEST_META', help: 'Whether more.' },
  verbose: { type: 'count', short: 'v', help: 'More words.' },
  timezone: { type: 'string', short: 'tz', help: 'Where the clock is.' },
  runs: { type: 'number', whole: true, help: 'How often.' },
  only: { type: 'list', oneOf: ['unit', 'fuzz'], help: 'Only these stages.' },
} as const satisfies Flags

afterEach(() => {
  for (const name of ['CONFIG', 'LIMIT', 'META']) delete process.env[`PENSTOCK_TEST_${name}`]
})

test.each([
  { argv: ['-c', 'a', '--config=b', '--config', 'c'], flags: { config: ['a', 'b', 'c'] }, words: [] },
  { argv: ['-vvm', 'x', '-v'], flags: { verbose: 3, meta: true }, words: ['x'] },
  { argv: ['-l5', '-f=yaml'], flags: { limit: 5, format: 'yaml' }, words: [] },
  { argv: ['--runs', '3', '--only', 'fuzz'], flags: { runs: 3, only: ['fuzz'] }, words: [] },
  { argv: ['-tz', 'UTC'], flags: { timezone: 'UTC' }, words: [] },
  { argv: ['--', '--meta', '-'], flags: { meta: false }, words: ['--meta', '-'] },
  { argv: [], flags: { config: [], limit: undefined, meta: false, verbose: 0 }, words: [] },
])('$argv', ({ argv, flags, words }) => {
  const parsed = parseArgs(argv, table)
  expect(parsed.flags).toMatchObject(flags)
  expect(parsed.words).toEqual(words)
})

test.each([
  { argv: ['--confg', 'x'], says: 'Did you mean --config?' },
  { argv: ['--config'], says: '--config needs a value' },
  { argv: ['-l', 'many'], says: 'from 1' },
  { argv: ['-l', '0'], says: 'from 1' },
  { argv: ['-f', 'xml'], says: 'json, yaml' },
  { argv: ['--runs', '1.5'], says: 'a whole number from 0' },
  { argv: ['--only', 'unit', '--only', 'all'], says: '--only is "all"; it must be one of unit, fuzz.' },
  { argv: ['--meta=yes'], says: 'takes no value' },
  { argv: ['-x'], says: '-x' },
  { argv: ['--constructor'], says: '--constructor' },
])('$argv is refused', ({ argv, says }) => {
  expect(() => parseArgs(argv, table)).toThrow(expect.objectContaining({ code: 'PEN_USAGE' }))
  expect(() => parseArgs(argv, table)).toThrow(says)
})

test('the environment gives what the command line does not', () => {
  process.env['PENSTOCK_TEST_CONFIG'] = 'a, b'
  process.env['PENSTOCK_TEST_LIMIT'] = '7'
  process.env['PENSTOCK_TEST_META'] = 'true'
  expect(parseArgs([], table).flags).toMatchObject({ config: ['a', 'b'], limit: 7, meta: true })
  expect(parseArgs(['-c', 'x', '-l', '1'], table).flags).toMatchObject({ config: ['x'], limit: 1 })
})

test('the help names every flag once', () => {
  const help = flagHelp(table).split('\n')
  expect(help).toHaveLength(Object.keys(table).length)
  expect(help[0]).toBe('  -c, --config PATH      Where it is. [PENSTOCK_TEST_CONFIG]')
})
