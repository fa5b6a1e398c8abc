import { expect, test } from 'vitest'
import { flagHelp } from './flags.ts'
import { helpText } from './help.ts'

const table = flagHelp({
  all: { type: 'boolean', help: 'Everything that there is, and what comes after it.' },
  'a-name-that-is-longer-than-others': { type: 'string', value: 'TEXT', help: 'One more text that is long.' },
})

test('sentences and descriptions break between words, and descriptions continue below their beginning', () => {
  const text = `Usage: some-command with words [FLAGS] that go on and on
       some-command

Does one thing, then
another one that takes a sentence.

Flags:
${table}`
  expect(helpText(text, 50).split('\n')).toEqual([
    'Usage: some-command with words [FLAGS] that go on and on',
    '       some-command',
    '',
    'Does one thing, then another one that takes a',
    'sentence.',
    '',
    'Flags:',
    '      --all',
    '          Everything that there is, and what comes',
    '          after it.',
    '      --a-name-that-is-longer-than-others TEXT',
    '          One more text that is long.',
  ])
  expect(helpText(table, 70).split('\n').slice(0, 2)).toEqual([
    '      --all                   Everything that there is, and what comes',
    `${' '.repeat(30)}after it.`,
  ])
})

test('a description may be written in one line or in several', () => {
  expect(helpText('  -f, --file   the first\n               and the rest', 80)).toBe(
    '  -f, --file   the first and the rest',
  )
})
