// No file of more than 600 lines and no function of more than 80, except those in this table.

import { expect, test } from 'vitest'
import { sizesIn } from './testing/sizes.ts'

/** By reason, files and functions that may be longer: a path, or a path and the name of a function. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'a grammar, in the order of its items': [
    'formats/datetime.ts', // the items of strftime, for reading and writing
    'formats/regex-linear.ts', // from a tree to a program to its two ways of running
    'remap/lexer.ts tokenize', // a case for each first character
  ],
  'a switch over the nodes or the instructions of a language': [
    'formats/regex-linear.ts #attempt',
    'formats/regex-linear.ts #together',
    'formats/regex-linear.ts compile',
    'formats/regex-linear.ts compileProgram',
  ],
  'one literal: pages, a grammar, a library of patterns, machine code': [
    'formats/crc32c.ts blockByBlock',
    'formats/grok-library.ts makeClassicPatterns',
    'remap/language.ts languagePages',
    'remap/textmate.ts textMateGrammar',
  ],
  'functions that call each other for every member of an event, and share what they work on as variables': [
    'formats/json-bytes.ts compileJsonWriter',
  ],
  'an equation over all positions of a pattern, whose terms have no use of their own': ['formats/regex-cost.ts cost'],
  'a list of tests': ['testing/sink-faults.ts testSink'],
}

test('no file or function exceeds the limits without a reason', () => {
  const { files, long } = sizesIn(import.meta.dirname)
  expect(files).toBeGreaterThan(700)
  expect(long).toEqual(Object.values(exceptions).flat().toSorted())
})
