// Mistakes of YAML as people make them: the place where each begins, and words that need no grammar.

import { expect, test } from 'vitest'
import { readYamlDocuments } from './yaml-documents.ts'

function mistakesIn(text: string) {
  const { documents, lines } = readYamlDocuments(text, { stringKeys: true })
  return documents.flatMap(({ problems }) =>
    problems.map(({ offset, message, help = '' }) => {
      const { line, col } = lines.linePos(offset)
      return { place: `${line}:${col}`, message, help }
    }),
  )
}

test.each([
  ['a tab', 'a:\n\tb: 1\n', '2:1 A tab', 'Replace the tabs'],
  ['a key too far right', 'a:\n  b: 1\n   c: 2\n', '2:6 The line below this value starts further right', 'column'],
  ['a key too far left', 'a:\n    b: 1\n  c: 2\n', '3:1 This line starts in a different column', 'column'],
  ['an item beside nothing', 'a:\n  - x\n  b\n', '3:1 This line starts in a different column', 'column'],
  ['no space after a colon', 'a:1\nb: 2\n', '1:1 This line is not `key: value`', 'A space follows'],
  ['no colon', 'a: 1\nb\nc: 2\n', '2:1 This line has no `: `', ''],
  ['a colon in a value', 'a: b: c\n', '1:4 This value contains `: `', 'in quotes'],
  ['an open quote, many lines below it', 'a: "x\nb: 2\nc: 3\n', '1:4 The quote (`"`)', 'Close it'],
  ['an open bracket', 'a:\n  b: [1, 2\nc: 3\n', '2:6 The `[` that begins here is not closed', 'Write `]`'],
  ['an open brace', 'a: {x: 1\nb: 3\n', '1:4 The `{` that begins here is not closed', 'Write `}`'],
  ['a bracket too many', 'a: [1, 2]]\nb: 2\n', '1:10 This `]` closes nothing', ''],
  ['no comma', 'a: {x: 1 y: 2}\n', '1:8 A comma is missing', 'needs quotes'],
  ['a template', 'a: {{ b }}\n', '1:5 `{{ … }}` without quotes', '"{{ field }}"'],
  ['a line of Helm', 'a: 1\n{{- if x }}\nb: 2\n{{- end }}\n', '2:1 This line begins with a template', 'helm template'],
  ['a path of Windows', 'a: "C:\\logs"\n', '1:7 `\\l` has no meaning', 'single quotes'],
  ['a pattern', 'a: *.log\n', '1:4 Unresolved alias `*.log`', "`'*.log'`"],
  ['an at sign', 'a: @x\n', '1:4 A text that starts with `@` needs quotes', ''],
  ['a comment', 'a: "x"#c\n', '1:7 A space is missing before the `#`', ''],
  ['a text beside its sign', 'a: |x\n  y\n', '1:5 The text that `|` or `>` announces', ''],
  ['a text beside its sign, after a space', 'a: | x\n  y\n', '1:6 The text that `|` or `>` announces', ''],
  ['a list beside its key', 'a: - b\n', '1:4 A list stands below its key', 'next line'],
  ['an apostrophe in quotes', "a: 'it's'\n", '1:8 This follows a value that is complete', "`'it''s'`"],
  ['a backtick', 'a: `x`\n', '1:4 A text that starts with a backtick needs quotes', ''],
  ['an ampersand', 'a: & b\n', '1:4 A text that starts with `&` needs quotes: it would be an anchor', ''],
  ['an open bracket of a whole file', '[1, 2\n', '1:1 The `[` that begins here is not closed', 'Write `]`'],
  [
    'an open bracket around a closed one',
    'a: [1, [2]\nb: 3\n',
    '1:4 The `[` that begins here is not closed',
    'Write `]`',
  ],
  ['no comma after a bracket', 'a: [[1] 2]\n', '1:9 A comma is missing', 'needs quotes'],
  ['words after a quote', 'a: "x" y\nb: 2\n', '1:8 This follows a value that is complete', 'one pair of quotes'],
  [
    'a text further left than before',
    'a:\n  b: |\n    x\n  y\n',
    '4:3 This line has no `: `',
    'belongs to the text above',
  ],
  [
    'a text in the first column',
    'a: |\nb\n',
    '2:1 This line of a text starts in a column',
    'at least as far to the right',
  ],
])('%s', (_, text, says, help) => {
  const [first, ...more] = mistakesIn(text)
  expect(`${first?.place} ${first?.message}`).toContain(says)
  expect(first?.help).toContain(help)
  // Another one follows from the first, unless it is apart from it.
  expect(more.length).toBeLessThanOrEqual(text.includes('end') ? 1 : 0)
})

test('keys with braces are refused, because a program would get their text', () => {
  const { documents } = readYamlDocuments('a: {{ b }}\n')
  expect(documents[0]?.problems[0]?.message).toContain('without quotes')
  expect(readYamlDocuments('? [1, 2]\n: x\n').documents[0]?.problems[0]?.message).toContain('this one is a list')
})

test('separate mistakes are reported together', () => {
  const places = mistakesIn('a: b: c\nd: 1\ne: 2\nf: 3\ng: @x\n').map(({ place }) => place)
  expect(places).toEqual(['1:4', '5:4'])
})

const whole = `kind: Pipeline
metadata: { name: checkout, labels: { team: "money" } }
spec:
  sources:
    - name: app
      type: orchestrator_logs
      config: {}
  transforms:
    - name: parse
      type: remap
      config:
        source: |
          . = parse(.message)
          .team = "money"
  sinks:
    - name: search
      type: search_engine
      config: { endpoints: ["http://search:9200"] }
`

/** One wrong edit of one line. */
const edits: Readonly<Record<string, (line: string) => string>> = {
  'a space more': (line) => ` ${line}`,
  'two spaces more': (line) => `  ${line}`,
  'a space fewer': (line) => line.replace(/^ /, ''),
  'two spaces fewer': (line) => line.replace(/^ {2}/, ''),
  'tabs for spaces': (line) => line.replace(/^ +/, '\t'),
  'no colon': (line) => line.replace(':', ''),
  'no space after the colon': (line) => line.replace(': ', ':'),
  'one colon more': (line) => line.replace(': ', ': x: '),
  'no quote at the end': (line) => line.replace(/"([^"]*)$/, '$1'),
  'no bracket at the end': (line) => line.replace(/[\]}]([^\]}]*)$/, '$1'),
  'no dash': (line) => line.replace('- ', ''),
}

test.each(Object.entries(edits))('%s in any line: at most two mistakes, without terms of a parser', (_, edit) => {
  const lines = whole.split('\n')
  for (const [index, line] of lines.entries()) {
    const edited = lines.with(index, edit(line)).join('\n')
    const mistakes = mistakesIn(edited)
    expect(mistakes.length, edited).toBeLessThanOrEqual(2)
    for (const { message } of mistakes)
      expect(message).not.toMatch(/implicit|compact|collection|scalar|token|sequence|mapping|indicator|flow/i)
  }
})
