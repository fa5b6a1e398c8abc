import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readAloud, textFiles } from './plain-english.ts'

const root = join(import.meta.dirname, '../../..')
const isClone = existsSync(join(root, '.git'))

test.skipIf(!isClone)(
  `everything that people read is plain English${isClone ? '' : ' (skipped: no clone of the repository)'}`,
  () => {
    const paths = textFiles([], root).filter((path) => existsSync(join(root, path)))
    const findings = paths.flatMap((path) => readAloud(path, readFileSync(join(root, path), 'utf8')))
    expect(findings.map(({ path, line, found, instead }) => `${path}:${line}: "${found}" (write ${instead})`)).toEqual(
      [],
    )
  },
)

test.skipIf(!isClone)('texts of several parts have a space between the words of two parts', () => {
  const joined = /[\p{L}.,;:)`]{2}'[ ]\+\n\s*'[\p{L}`(]/gu
  const found = textFiles([], root)
    .filter((path) => path.endsWith('.ts') && existsSync(join(root, path)))
    .flatMap((path) => [...readFileSync(join(root, path), 'utf8').matchAll(joined)].map(([at]) => `${path}: ${at}`))
  expect(found).toEqual([])
})

test.each([
  ['a comment', '// The log tells which.\nexport const a = 1\n', 1, 'tells which.'],
  [
    'a sentence of a comment that begins on a later line',
    '// Good.\n// Better. What is read\n// is sent.\nexport {}\n',
    2,
    'What is read is sent.',
  ],
  ['the first sentence of a comment', '// What is read is sent.\nexport {}\n', 1, 'What is read is sent.'],
  ['the first sentence of a block comment', '/** Whose it is. */\nexport {}\n', 1, 'Whose it is.'],
  ['a block comment', '/**\n * One.\n * Who asks waits.\n */\nexport {}\n', 3, 'Who asks waits.'],
  ['a text', "export const a = 'It cannot be had.'\n", 1, 'be had.'],
  ['a text with an expression', 'export const a = (x: string) => `no $' + '{x} shall pass`\n', 1, 'shall pass'],
  ['an actor without a name', '// It is for whoever reads it.\nexport {}\n', 1, 'whoever reads it.'],
  ['the current one', '// It keeps the line at hand.\nexport {}\n', 1, 'at hand.'],
  ['an interval', '// It looks now and then.\nexport {}\n', 1, 'now and then.'],
  ['a record', '// It takes note of the end.\nexport {}\n', 1, 'takes note of the end.'],
  ['a time', '// It is kept for so long.\nexport {}\n', 1, 'for so long.'],
  ['a repetition', '// It is written anew.\nexport {}\n', 1, 'anew.'],
  ['a reversal', '// The change is taken back.\nexport {}\n', 1, 'taken back.'],
  ['a continuation', '// The run goes on.\nexport {}\n', 1, 'goes on.'],
  ['a report', '// The reason is said there.\nexport {}\n', 1, 'is said there.'],
  ['an earlier one', '// It runs the version of before.\nexport {}\n', 1, 'of before.'],
  ['a negation', '// It skips a number that is none.\nexport {}\n', 1, 'is none.'],
  ['a negated noun', "export const a = '`x` is no path'\n", 1, 'is no path'],
  ['a name', 'export const findingTold = 1\n', 1, 'Told'],
  ['a limit', 'export const mostBytes = 1\n', 1, 'most Bytes'],
  ['a name without content', 'export const said = 1\n', 1, 'said'],
  ['a private limit', 'export class A {\n  #least = 1\n}\n', 2, 'least'],
  ['a private name', 'export class A {\n  #told = 1\n}\n', 2, 'told'],
])('%s', (_, source, line, found) => {
  expect(readAloud('a.ts', source).map((finding) => [finding.line, finding.found])).toEqual([[line, found]])
})

test.each([
  ['the name of a test', "test('what is read is sent', () => {})\n", 1, 'What is read is sent'],
  ['a pronoun with a clause', "describe('one that ends', () => {})\n", 1, 'One that ends'],
  ['the name of a case', "test.each([{ what: 'who asks', is: 'what' }])\n", 1, 'Who asks'],
])('%s in a test', (_, source, line, found) => {
  expect(readAloud('a.test.ts', source).map((finding) => [finding.line, finding.found])).toEqual([[line, found]])
})

test.each([
  ['a paragraph', 'Short.\nIt was broken. What was\nlost is back.\n', 2, 'What was lost is back.'],
  ['an item of a list', '- Who waits, waits.\n', 1, 'Who waits, waits.'],
  ['a heading', '# Title\n\n## What is lost\n', 3, 'What is lost'],
])('%s of a document', (_, source, line, found) => {
  expect(readAloud('a.md', source).map((finding) => [finding.line, finding.found])).toEqual([[line, found]])
})

test.each([
  ['a question', '// Why? What is missing?\n// Then it ends.\nexport {}\n'],
  ['a word in another', "export const a = 'recommended, storytelling, Marshall'\n"],
  ['a comparison', '// It waits as long as it is open, and takes so much that others wait.\nexport {}\n'],
  ['a clause within a sentence', '// It keeps what is read, and who asked.\nexport {}\n'],
  ['a negation of a subject', '// If there is none, it waits. The type is none of these.\nexport {}\n'],
  ['a missing thing', '// There is no path. It is no longer open, and is no more than a file.\nexport {}\n'],
  ['a value that begins with such a word', "export const a = 'what'\n"],
  ['a superlative within a name', 'export const atMost = 1\nexport const mostly = 2\n'],
  ['a name with the word in another', 'export const amendment = 1\n'],
])('%s is good English', (_, source) => {
  expect(readAloud('a.ts', source)).toEqual([])
})
