import { afterEach, expect, test } from 'vitest'
import { type Dialect, type Flags, flagHelp, parseFlags } from './flags.ts'

const table = {
  config: {
    type: 'string',
    multiple: true,
    short: 'c',
    env: 'PENSTOCK_TEST_CONFIG',
    value: 'PATH',
    help: 'Where it is.',
  },
  limit: { type: 'string', number: 'any', short: 'l', minimum: 1, env: 'PENSTOCK_TEST_LIMIT', help: 'How many.' },
  format: { type: 'string', short: 'f', oneOf: ['json', 'yaml'], help: 'Which form.' },
  meta: { type: 'boolean', short: 'm', env: 'PENSTOCK_TEST_META', help: 'Whether more.' },
  verbose: { type: 'boolean', multiple: true, short: 'v', help: 'More words.' },
  timezone: { type: 'string', short: 'tz', help: 'Where the clock is.' },
  runs: { type: 'string', number: 'whole', help: 'How often.' },
  only: { type: 'string', multiple: true, oneOf: ['unit', 'fuzz'], help: 'Only these stages.' },
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
  const parsed = parseFlags(argv, table)
  expect(parsed.flags).toMatchObject(flags)
  expect(parsed.words).toEqual(words)
})

test.each([
  { argv: ['--confg', 'x'], says: 'Did you mean `--config`?' },
  { argv: ['--config'], says: '--config needs a value.' },
  { argv: ['-f'], says: '-f needs a value: one of json, yaml.' },
  { argv: ['-l', 'many'], says: '--limit is "many"; it must be a number from 1.' },
  { argv: ['-l', '0'], says: 'from 1' },
  { argv: ['-f', 'xml'], says: 'json, yaml' },
  { argv: ['--runs', '1.5'], says: 'a whole number from 0' },
  { argv: ['--only', 'unit', '--only', 'all'], says: '--only is "all"; it must be one of unit, fuzz.' },
  { argv: ['--meta=yes'], says: 'takes no value' },
  { argv: ['-x'], says: '-x' },
  { argv: ['--constructor'], says: '--constructor' },
])('$argv is rejected', ({ argv, says }) => {
  expect(() => parseFlags(argv, table)).toThrow(expect.objectContaining({ code: 'PEN_USAGE' }))
  expect(() => parseFlags(argv, table)).toThrow(says)
})

test('the environment sets flags that the command line does not', () => {
  process.env['PENSTOCK_TEST_CONFIG'] = 'a, b'
  process.env['PENSTOCK_TEST_LIMIT'] = '7'
  process.env['PENSTOCK_TEST_META'] = 'true'
  expect(parseFlags([], table).flags).toMatchObject({ config: ['a', 'b'], limit: 7, meta: true })
  expect(parseFlags(['-c', 'x', '-l', '1'], table).flags).toMatchObject({ config: ['x'], limit: 1 })
})

const strict: Dialect = {
  refusesFlagsAsValues: true,
  unknownFlag: (shown) => `no ${shown}`,
  notOneOf: (shown, found, allowed) => `${shown}: ${found}, not ${allowed}`,
}

test.each([
  { argv: ['--config', '--meta'], says: '--config' },
  { argv: ['-c', '-m'], says: '-c needs a value, but -m looks like a flag. If -m is the value, write --config=-m.' },
  { argv: ['-c'], says: '-c needs a value.' },
  { argv: ['--nothing'], says: 'no --nothing' },
  { argv: ['-f', 'xml'], says: '--format: xml, not json,yaml' },
])('a dialect may reject $argv, with its own message', ({ argv, says }) => {
  expect(() => parseFlags(argv, table, strict)).toThrow(expect.objectContaining({ code: 'PEN_USAGE' }))
  expect(() => parseFlags(argv, table, strict)).toThrow(says)
})

test('without such a dialect, a value may look like a flag, and a default applies to a missing flag', () => {
  expect(parseFlags(['-c', '-m'], table).flags).toMatchObject({ config: ['-m'], meta: false })
  const withDefault = { to: { type: 'string', default: 'there', help: 'Where to.' } } as const satisfies Flags
  expect(parseFlags([], withDefault).flags.to).toBe('there')
  expect(parseFlags(['--to='], withDefault).flags.to).toBe('')
})

test('descriptions begin at the same column', () => {
  const table = {
    all: { type: 'boolean', help: 'everything' },
    file: { type: 'string', short: 'f', value: 'PATH', help: 'the first and the rest' },
  } as const satisfies Flags
  expect(flagHelp(table, 20)).toBe(
    ['  --all             everything', '  -f, --file PATH   the first and the rest'].join('\n'),
  )
})

test('the help lists every flag once', () => {
  const help = flagHelp(table).split('\n')
  expect(help).toHaveLength(Object.keys(table).length)
  expect(help[0]).toBe('  -c, --config PATH       Where it is. [PENSTOCK_TEST_CONFIG]')
  expect(help).toContain('  -l, --limit N           How many. [PENSTOCK_TEST_LIMIT]')
  expect(help).toContain('  -f, --format json|yaml  Which form.')
})
