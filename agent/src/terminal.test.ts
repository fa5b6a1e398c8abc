import { Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { afterEach, expect, test, vi } from 'vitest'
import { readColor, takesColors, wrapped } from './terminal.ts'

afterEach(() => {
  vi.unstubAllEnvs()
  readColor([])
})

/** Reads the environment as a stream of Node does that is a terminal. */
const terminal = Object.assign(new Writable(), { isTTY: true, hasColors: WriteStream.prototype.hasColors })
Object.assign(terminal, { getColorDepth: WriteStream.prototype.getColorDepth })
const pipe = new Writable()

function environment(given: Readonly<Record<string, string>>): void {
  for (const name of ['NO_COLOR', 'FORCE_COLOR', 'NODE_DISABLE_COLORS', 'CI', 'TMUX', 'COLORTERM', 'PENSTOCK_COLOR'])
    vi.stubEnv(name, given[name])
  vi.stubEnv('TERM', given['TERM'] ?? 'xterm-256color')
}

test.each([
  { env: {}, argv: [], onTerminal: true, inPipe: false },
  { env: { NO_COLOR: '1' }, argv: [], onTerminal: false, inPipe: false },
  { env: { TERM: 'dumb' }, argv: [], onTerminal: false, inPipe: false },
  { env: { NO_COLOR: '1' }, argv: ['--color', 'always'], onTerminal: true, inPipe: true },
  { env: {}, argv: ['--color=never'], onTerminal: false, inPipe: false },
  { env: { PENSTOCK_COLOR: 'always' }, argv: [], onTerminal: true, inPipe: true },
  { env: { PENSTOCK_COLOR: 'always' }, argv: ['--color', 'auto'], onTerminal: true, inPipe: false },
])('with $env and $argv: colours on a terminal $onTerminal, in a pipe $inPipe', ({ env, argv, ...expected }) => {
  environment(env)
  readColor(argv)
  expect({ onTerminal: takesColors(terminal), inPipe: takesColors(pipe) }).toEqual(expected)
})

test('a command sees its command line without the flag, and arguments after `--` unchanged', () => {
  expect(readColor(['a', '--color', 'never', '-b', '--color=always', '--', '--color'])).toEqual([
    'a',
    '-b',
    '--',
    '--color',
  ])
})

test.each([['--color'], ['--color', 'blue'], ['--color=']])('%s %s is refused', (...argv) => {
  expect(() => readColor(argv)).toThrow('`--color` takes one of auto, always, never; found ')
})

test('a too long line is broken between words, and continues with the same indentation', () => {
  const line = '  Flowing  \u001b[31mFalse\u001b[0m  one two three'
  expect(wrapped(line, 25, 11)).toBe('  Flowing  \u001b[31mFalse\u001b[0m  one two\n           three')
  expect(wrapped(line, 80, 11)).toBe(line)
  expect(wrapped(line, undefined, 11)).toBe(line)
  expect(wrapped('http://a-very-long-name.example/ x', 10, 2)).toBe('http://a-very-long-name.example/\n  x')
})
