import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { beforeAll, expect, test } from 'vitest'
import oniguruma from 'vscode-oniguruma'
import textmate, { type IGrammar } from 'vscode-textmate'
import { functions } from './functions.ts'
import { tokenize } from './lexer.ts'
import { textMateGrammar } from './textmate.ts'

let grammar: IGrammar

beforeAll(async () => {
  const wasm = await readFile(createRequire(import.meta.url).resolve('vscode-oniguruma/release/onig.wasm'))
  await oniguruma.loadWASM(wasm)
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(JSON.stringify(textMateGrammar()), 'remap.json'),
  })
  grammar = (await registry.loadGrammar('source.remap')) as IGrammar
})

/** Each part of a program with its innermost scope, without the language name. */
function pieces(source: string): { start: number; text: string; scopes: readonly string[] }[] {
  const found: { start: number; text: string; scopes: readonly string[] }[] = []
  let state = textmate.INITIAL
  let start = 0
  for (const line of source.split('\n')) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state)
    state = ruleStack
    for (const { startIndex, endIndex, scopes } of tokens) {
      found.push({ start: start + startIndex, text: line.slice(startIndex, endIndex), scopes })
    }
    start += line.length + 1
  }
  return found
}

function coloured(source: string): string[] {
  return pieces(source)
    .filter(({ text }) => text.trim() !== '')
    .map(({ text, scopes }) => `${text} ${scopes.at(-1)?.replace(/\.remap$/, '')}`)
}

test('an editor colours a program', () => {
  expect(coloured('x, err = parse_json(.a."b c"[-1]) # why')).toEqual([
    'x variable.other',
    ', punctuation.separator',
    'err variable.other',
    '= keyword.operator.assignment',
    'parse_json support.function',
    '( punctuation.section',
    '. punctuation.accessor',
    'a variable.other.member',
    '. punctuation.accessor',
    '" punctuation.definition.string.begin',
    'b c string.quoted.double.field',
    '" punctuation.definition.string.end',
    '[ punctuation.section.brackets.begin',
    '-1 constant.numeric.integer.index',
    '] punctuation.section.brackets.end',
    ') punctuation.section',
    '# why comment.line.number-sign',
  ])
})

test.each([
  [
    '. = {"a": "{{ x }}\\n\\q"}',
    ['a string.quoted.double.key', ' x  variable.other', '\\n constant.character.escape', '\\q invalid.illegal.escape'],
  ],
  [
    "%a.if = s'it\\'s'",
    [
      '% variable.language.metadata',
      'a variable.other.member',
      'if variable.other.member',
      "\\' constant.character.escape",
    ],
  ],
  ['if x { abort }', ['if keyword.control', 'abort keyword.control']],
  [
    "while = t'2026-01-01T00:00:00Z'",
    ['while invalid.illegal.reserved', '2026-01-01T00:00:00Z string.quoted.single.timestamp'],
  ],
  [
    "match(x, r'^(?P<n>\\d+)[a-z]{2}$')",
    [
      '^ keyword.control.anchor.regexp',
      'n entity.name.group.regexp',
      '\\d constant.character.escape.regexp',
      '[a-z] constant.other.character-class.regexp',
      '{2} keyword.operator.quantifier.regexp',
    ],
  ],
  [
    'for_each(.) -> |_, v| { log!(v, level: "warn") ?? null }',
    [
      '-> storage.type.closure',
      '_ variable.parameter',
      'v variable.parameter',
      '! keyword.operator.raise',
      'level variable.parameter.keyword',
      '?? keyword.operator.logical',
      'null constant.language',
    ],
  ],
  [
    'no_such(1.5, -2)',
    ['no_such entity.name.function.unknown', '1.5 constant.numeric.float', '-2 constant.numeric.integer'],
  ],
])('%s', (source, expected) => {
  const all = coloured(source)
  for (const piece of expected) expect(all).toContain(piece)
})

test('a text over several lines, and the code after it', () => {
  expect(coloured('x = "one\ntwo"\ny = 1').slice(-4)).toEqual([
    '" punctuation.definition.string.end',
    'y variable.other',
    '= keyword.operator.assignment',
    '1 constant.numeric.integer',
  ])
})

const scopesOf: Readonly<Record<string, RegExp>> = {
  call: /^support\.function\./,
  keyword: /^(?:keyword\.control|constant\.language|variable\.other\.member|variable\.parameter)\./,
  reserved: /^(?:variable\.other\.member|variable\.parameter)\./,
  identifier: /^(?:variable|storage\.type\.string)\b/,
  'path-field': /^variable\.other\.member\./,
  underscore: /^variable\./,
  integer: /^constant\.numeric\.integer\./,
  float: /^constant\.numeric\.float\./,
  string: /^punctuation\.definition\.string\.begin\./,
  'raw-string': /^storage\.type\.string\./,
  regex: /^storage\.type\.string\./,
  timestamp: /^storage\.type\.string\./,
  operator: /^(?:keyword\.operator|storage\.type\.closure|punctuation\.definition\.parameters)/,
  bang: /^keyword\.operator\./,
}

test.each(functions.map(({ name, examples }) => ({ name, examples })))(
  'examples of $name are coloured as they are read',
  ({ examples }) => {
    for (const { source } of examples) {
      const found = pieces(source)
      for (const token of tokenize(source)) {
        const expected = scopesOf[token.type]
        if (expected === undefined) continue
        const piece = found.findLast(({ start }) => start <= token.start)
        expect(piece?.scopes.at(-1), `${token.type} ${token.text} in ${source}`).toMatch(expected)
      }
    }
  },
)
