// A TextMate grammar of the language, for editors. It colours the tokens of the lexer. Its words and function names come from their
// declarations, and a test compares grammar and lexer for every example.

import { functions } from './functions.ts'
import { keywords, reserved } from './lexer.ts'

interface Pattern {
  readonly include?: string
  readonly name?: string
  readonly contentName?: string
  readonly match?: string
  readonly begin?: string
  readonly end?: string
  readonly captures?: Readonly<Record<string, { readonly name: string }>>
  readonly beginCaptures?: Readonly<Record<string, { readonly name: string }>>
  readonly endCaptures?: Readonly<Record<string, { readonly name: string }>>
  readonly patterns?: readonly Pattern[]
}

export interface Grammar {
  readonly name: string
  readonly scopeName: string
  readonly fileTypes: readonly string[]
  readonly patterns: readonly Pattern[]
  readonly repository: Readonly<Record<string, { readonly patterns: readonly Pattern[] }>>
}

const character = '[@_A-Za-z0-9]'
/** Also words that begin with digits. */
const name = `(?:[0-9][0-9_]*)?[@_A-Za-z]${character}*`
/** Not inside a word, and not a path segment. */
const free = `(?<![@_A-Za-z0-9.%])`
const constants = ['true', 'false', 'null']

function oneOf(words: Iterable<string>): string {
  return `(?:${[...words].sort().join('|')})(?!${character})`
}

const named = (scope: string) => ({ name: `${scope}.remap` })

/** A quoted literal, in which a backslash escapes the quote. */
function literal(prefix: string, scope: string, patterns: readonly Pattern[]): Pattern {
  return {
    name: `${scope}.remap`,
    begin: `${free}(${prefix})(')`,
    beginCaptures: { 1: named('storage.type.string'), 2: named('punctuation.definition.string.begin') },
    end: `'`,
    endCaptures: { 0: named('punctuation.definition.string.end') },
    patterns,
  }
}

function text(begin: string, scope: string, patterns: readonly Pattern[]): Pattern {
  return {
    name: `${scope}.remap`,
    begin,
    beginCaptures: { 0: named('punctuation.definition.string.begin') },
    end: '"',
    endCaptures: { 0: named('punctuation.definition.string.end') },
    patterns,
  }
}

export function textMateGrammar(): Grammar {
  const deprecated = functions.filter((each) => each.deprecated !== undefined).map((each) => each.name)
  const current = functions.filter((each) => each.deprecated === undefined).map((each) => each.name)
  const control = [...keywords].filter((word) => !constants.includes(word))
  const calls = (names: readonly string[], scope: string): Pattern[] =>
    names.length === 0
      ? []
      : [
          {
            match: `(?<!${character})(${names.join('|')})(?:(!)|(?=\\())`,
            captures: { 1: named(scope), 2: named('keyword.operator.raise') },
          },
        ]
  return {
    name: 'Penstock remap',
    scopeName: 'source.remap',
    fileTypes: ['remap', 'vrl'],
    patterns: [{ include: '#program' }],
    repository: {
      program: {
        patterns: [
          { include: '#comments' },
          { include: '#literals' },
          { include: '#closures' },
          { include: '#paths' },
          { include: '#strings' },
          { include: '#calls' },
          { include: '#words' },
          { include: '#numbers' },
          { include: '#operators' },
          { include: '#punctuation' },
        ],
      },
      comments: { patterns: [{ name: 'comment.line.number-sign.remap', match: '#.*$' }] },
      literals: {
        patterns: [
          literal('s', 'string.quoted.single.raw', [{ name: 'constant.character.escape.remap', match: `\\\\.` }]),
          literal('t', 'string.quoted.single.timestamp', []),
          literal('r', 'string.regexp', [
            { name: 'constant.character.escape.regexp.remap', match: "\\\\(?:[pP]\\{[^}']*\\}|.)" },
            {
              name: 'constant.other.character-class.regexp.remap',
              match: `\\[\\^?\\]?(?:\\[:\\^?[a-z]+:\\]|\\\\.|[^\\]\\\\'])*\\]`,
            },
            {
              match: '\\(\\?P?<([^>]*)>',
              captures: { 0: named('keyword.control.group.regexp'), 1: named('entity.name.group.regexp') },
            },
            { name: 'keyword.control.group.regexp.remap', match: '\\((?:\\?[imsxuU-]*[:)])?|\\)' },
            { name: 'keyword.operator.quantifier.regexp.remap', match: '[*+?]\\??|\\{[0-9 ]*,?[0-9 ]*\\}\\??' },
            { name: 'keyword.control.anchor.regexp.remap', match: '[$^|]' },
          ]),
        ],
      },
      strings: {
        patterns: [
          text('"(?=(?:[^"\\\\]|\\\\.)*"[\\t ]*:)', 'string.quoted.double.key', [{ include: '#escapes' }]),
          text('"', 'string.quoted.double', [
            { include: '#escapes' },
            {
              name: 'meta.template.remap',
              match: '(\\{\\{)([^}"\\\\]*)(\\}\\})',
              captures: {
                1: named('punctuation.section.embedded.begin'),
                2: named('variable.other'),
                3: named('punctuation.section.embedded.end'),
              },
            },
          ]),
        ],
      },
      escapes: {
        patterns: [
          { name: 'constant.character.escape.remap', match: `\\\\(?:[nrt0\\\\"'{}]|u\\{[0-9A-Fa-f]+\\}|$)` },
          { name: 'invalid.illegal.escape.remap', match: '\\\\.' },
        ],
      },
      closures: {
        patterns: [
          {
            begin: '(->)[\\t ]*(\\|)',
            beginCaptures: { 1: named('storage.type.closure'), 2: named('punctuation.definition.parameters.begin') },
            end: '\\|',
            endCaptures: { 0: named('punctuation.definition.parameters.end') },
            patterns: [
              { include: '#comments' },
              { name: 'variable.parameter.remap', match: name },
              { name: 'variable.parameter.remap', match: '_' },
              { name: 'punctuation.separator.remap', match: ',' },
            ],
          },
        ],
      },
      paths: {
        patterns: [
          // The roots: the event and its metadata.
          { name: 'variable.language.metadata.remap', match: `%(?=[@_A-Za-z0-9".\\[]|\\s|$|[,;)\\]}|=])` },
          {
            match: `(\\.)(${character}*[@_A-Za-z]${character}*)`,
            captures: { 1: named('punctuation.accessor'), 2: named('variable.other.member') },
          },
          {
            match: `(?<=%)(${character}+)`,
            captures: { 1: named('variable.other.member') },
          },
          text('(?<=[.%])"', 'string.quoted.double.field', [{ include: '#escapes' }]),
          {
            match: '(?<=[@_A-Za-z0-9.%"\\])}])(\\[)(-?[0-9][0-9_]*)(\\])',
            captures: {
              1: named('punctuation.section.brackets.begin'),
              2: named('constant.numeric.integer.index'),
              3: named('punctuation.section.brackets.end'),
            },
          },
          { name: 'punctuation.accessor.remap', match: `\\.(?=")` },
          { name: 'variable.language.event.remap', match: `(?<![0-9])\\.` },
        ],
      },
      calls: {
        patterns: [
          ...calls(deprecated, 'support.function.deprecated'),
          ...calls(current, 'support.function'),
          {
            match: `(${name})(?:(!)|(?=\\())`,
            captures: { 1: named('entity.name.function.unknown'), 2: named('keyword.operator.raise') },
          },
        ],
      },
      words: {
        patterns: [
          {
            match: `${free}(${name})[\\t ]*(:)(?!:)`,
            captures: { 1: named('variable.parameter.keyword'), 2: named('punctuation.separator.key-value') },
          },
          { name: 'constant.language.remap', match: `${free}${oneOf(constants)}` },
          { name: 'keyword.control.remap', match: `${free}${oneOf(control)}` },
          { name: 'invalid.illegal.reserved.remap', match: `${free}${oneOf(reserved)}` },
          { name: 'variable.language.nothing.remap', match: `${free}_(?!${character})` },
          { name: 'variable.other.remap', match: name },
        ],
      },
      numbers: {
        patterns: [
          { name: 'constant.numeric.float.remap', match: `(?<!${character})-?[0-9][0-9_]*\\.[0-9_]*` },
          { name: 'constant.numeric.integer.remap', match: `(?<!${character})-?[0-9][0-9_]*` },
        ],
      },
      operators: {
        patterns: [
          { name: 'keyword.operator.comparison.remap', match: '==|!=|<=|>=|<|>' },
          { name: 'keyword.operator.logical.remap', match: '&&|\\|\\||\\?\\?|!' },
          { name: 'keyword.operator.assignment.remap', match: '\\|=|=' },
          { name: 'keyword.operator.arithmetic.remap', match: '[+*/-]' },
          { name: 'keyword.operator.merge.remap', match: '\\|' },
        ],
      },
      punctuation: {
        patterns: [
          { name: 'punctuation.separator.remap', match: '[,:]' },
          { name: 'punctuation.terminator.remap', match: ';' },
          { name: 'punctuation.section.remap', match: '[(){}\\[\\]]' },
        ],
      },
    },
  }
}
