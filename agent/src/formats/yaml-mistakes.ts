// Describes mistakes in YAML for people who write it by hand. The parser uses the terms of its grammar (`implicit keys`, `compact
// mappings`), and reports one wrong space several times. This module reports each mistake once, with the place where it begins and the fix.

import {
  type Document,
  type ErrorCode,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Range,
  Scalar,
  visit,
  type YAMLParseError,
} from 'yaml'

export interface YamlMistake {
  readonly offset: number
  readonly message: string
  readonly help?: string
}

interface Place {
  readonly text: string
  readonly document: Document
  readonly offset: number
}

type Words = Pick<YamlMistake, 'message' | 'help'> & { readonly offset?: number }

const columns =
  'The keys of a table start in the same column, and so do the `-` of a list: compare the spaces before this line with those of the lines above.'
const inQuotes = "Write it in quotes, such as `'…'`."

const otherColumn: Words = {
  message: 'This line starts in a different column than the lines at its level',
  help: columns,
}
const misfit: Words = { message: 'This does not fit the text before it', help: columns }
const missingComma: Words = {
  message: 'A comma is missing between two parts of `{ }` or `[ ]`',
  help: 'A text with spaces, colons or brackets in it needs quotes there.',
}

/** The meaning of each code of the parser; if a code has several, the text and the tree around the place decide. Undefined: unknown. */
const meanings: { readonly [code in ErrorCode]?: (place: Place) => Words | undefined } = {
  TAB_AS_INDENT: () => ({
    message: 'A tab is before the first word of this line, where YAML only allows spaces',
    help: 'Replace the tabs with spaces; most editors have a setting for that.',
  }),
  MISSING_CHAR: (place) =>
    missingSpace(place) ?? openQuote(place) ?? openBracket(place) ?? textColumn(place) ?? missingInCollection(place),
  BAD_INDENT: (place) => openBracket(place) ?? textColumn(place) ?? otherColumn,
  BLOCK_AS_IMPLICIT_KEY: (place) =>
    innerKey(place) ?? { message: 'Text and the list below it cannot be one value', help: columns },
  MULTILINE_IMPLICIT_KEY: () => ({
    message: 'This line is not `key: value`',
    help: `A space follows the \`:\` of a key, and the \`-\` of a list. ${columns}`,
  }),
  BLOCK_IN_FLOW: () => missingComma,
  BAD_DQ_ESCAPE: ({ text, offset }) => ({
    message: `\`${text.slice(offset, offset + 2)}\` has no meaning in double quotes`,
    help: 'Write two backslashes for one, or use single quotes, in which a backslash stands for itself.',
  }),
  BAD_SCALAR_START: ({ text, offset }) => ({
    message: `A text that starts with ${text[offset] === '`' ? 'a backtick' : `\`${text[offset]}\``} needs quotes`,
    help: inQuotes,
  }),
  BAD_ALIAS: ({ text, offset }) => ({
    message: `A text that starts with \`${text[offset]}\` needs quotes: it would be an ${text[offset] === '&' ? 'anchor' : 'alias'}`,
    help: inQuotes,
  }),
  UNEXPECTED_TOKEN: (place) => unexpected(place),
}

/** How many mistakes are looked at closely: each needs a search of the whole tree. */
const maxSearches = 50

/** The mistakes of a document, without consequences of other mistakes, such as errors on neighbouring lines. */
export function mistakesOf(text: string, document: Document, lines: LineCounter): readonly YamlMistake[] {
  const mistakes: YamlMistake[] = []
  const taken = new Set<number>()
  const isNear = (line: number) => [line - 1, line, line + 1].some((near) => taken.has(near))
  let searches = 0
  for (const error of document.errors) {
    if (mistakes.length > 0 && (error.code === 'BAD_INDENT' || isAfter(document, error))) continue
    const [offset] = error.pos
    const errorLine = lines.linePos(offset).line
    if (isNear(errorLine)) continue
    const mistake = searches++ < maxSearches ? meaningOf(error, { text, document, offset }) : { offset, ...misfit }
    const { line } = lines.linePos(mistake.offset)
    if (!isNear(line)) mistakes.push(mistake)
    taken.add(line).add(errorLine)
  }
  return mistakes
}

/** Whether this is outside the document: all further parts of a text whose structure the parser has lost. */
function isAfter({ range }: Document, { code, pos }: YAMLParseError): boolean {
  return code === 'UNEXPECTED_TOKEN' && range != null && pos[0] >= range[2]
}

/** Double braces without quotes, which other programs read as a template. */
export const bareTemplate: Words = {
  message: '`{{ … }}` without quotes is not text: YAML reads it as a table in a table',
  help: 'Write the whole value in quotes, such as `"{{ field }}"`.',
}

function meaningOf(error: YAMLParseError, place: Place): YamlMistake {
  const { offset } = place
  if (/^[ \t]*(?:- )?\{\{/.test(lineAt(place))) {
    return {
      offset,
      message: 'This line begins with a template, such as one of Helm',
      help: 'Pass the rendered text: `helm template CHART | penstock lint -f -`.',
    }
  }
  if (error.code === 'NON_STRING_KEY' && place.text.slice(offset - 1, offset + 1) === '{{')
    return { offset, ...bareTemplate }
  return { offset, ...(meanings[error.code]?.(place) ?? { message: error.message }) }
}

function lineAt({ text, offset }: Place): string {
  const from = text.lastIndexOf('\n', offset - 1) + 1
  const to = text.indexOf('\n', offset)
  return text.slice(from, to < 0 ? undefined : to)
}

/** The part of the line before the place. */
function lineBefore({ text, offset }: Place): string {
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset)
}

const rangeOf = (node: unknown): Range | undefined => (node as Node | null)?.range ?? undefined

/** The innermost node that meets a condition. */
function innermost({ document }: Place, meets: (node: Node, range: Range) => boolean): Node | undefined {
  let found: Node | undefined
  visit(document, {
    Node(_, node) {
      const range = rangeOf(node)
      if (range !== undefined && meets(node, range)) found = node
    },
  })
  return found
}

function missingSpace({ text, offset }: Place): Words | undefined {
  return text[offset] === '#' ? { message: 'A space is missing before the `#` of a comment' } : undefined
}

/** The parser reports the end of the text, but the mistake is at the open quote. */
function openQuote(place: Place): Words | undefined {
  const { text, offset } = place
  const open = innermost(place, (node, [start, end]) => {
    if (!isScalar(node) || (node.type !== Scalar.QUOTE_DOUBLE && node.type !== Scalar.QUOTE_SINGLE)) return false
    return end === offset && (end - start === 1 || text[end - 1] !== text[start])
  })
  const start = rangeOf(open)?.[0]
  if (start === undefined) return undefined
  return {
    offset: start,
    message: `The quote (\`${text[start]}\`) that begins here is not closed`,
    help: 'Close it; within double quotes write `\\"` for one, and within single quotes two of them.',
  }
}

function openBracket(place: Place): Words | undefined {
  const { text, offset } = place
  const start = rangeOf(innermost(place, (node, range) => range[1] === offset && isOpen(text, node, range)))?.[0]
  if (start === undefined) return undefined
  return {
    offset: start,
    message: `The \`${text[start]}\` that begins here is not closed`,
    help: `Write \`${closingOf(text[start])}\` at its end, further right than the key that it belongs to.`,
  }
}

const closingOf = (opening: string | undefined) => (opening === '[' ? ']' : '}')

/** Whether a list or table in brackets lacks the closing one; a bracket at its end may belong to its last part. */
function isOpen(text: string, node: Node, [start, end]: Range): boolean {
  if (!isInBrackets(node) || !isCollection(node)) return false
  const last: unknown = node.items.at(-1)
  const part = isPair(last) ? (rangeOf(last.value) ?? rangeOf(last.key)) : rangeOf(last)
  return text[end - 1] !== closingOf(text[start]) || (part !== undefined && part[1] >= end)
}

function isInBrackets(node: Node): boolean {
  return (node as Node & { flow?: boolean }).flow === true
}

/** A line of a text below `|` or `>`. */
function textColumn(place: Place): Words | undefined {
  const { offset } = place
  const isText = (node: Node, [start, end]: Range) =>
    isScalar(node) &&
    (node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED) &&
    start <= offset &&
    offset <= end
  if (innermost(place, isText) === undefined) return undefined
  return {
    message: 'This line of a text starts in a column where the text cannot',
    help: 'All lines below `|` or `>` start at least as far to the right as the first of them, with spaces and no tabs.',
  }
}

/** A missing comma, `: ` or `-`. */
function missingInCollection(place: Place): Words | undefined {
  const { offset } = place
  if (isInsideBrackets(place)) return missingComma
  const hasKeyHere = (node: Node) => isMap(node) && node.items.some(({ key }) => rangeOf(key)?.[0] === offset)
  if (innermost(place, hasKeyHere) !== undefined) {
    return {
      message: 'This line has no `: ` after its key',
      help: 'If it belongs to the text above it, it starts as far to the right as that text.',
    }
  }
  const list = innermost(place, (node, [start, end]) => isSeq(node) && start <= offset && offset <= end)
  return list === undefined ? undefined : otherColumn
}

function isInsideBrackets(place: Place): boolean {
  const { offset } = place
  return innermost(place, (node, [start, end]) => isInBrackets(node) && start < offset && offset < end) !== undefined
}

/** `a: b: c`, or a key that is indented below a key that already has a value. */
function innerKey(place: Place): Words | undefined {
  const { text, offset } = place
  if (innermost(place, (node, [start]) => isMap(node) && start === offset) === undefined) return undefined
  const end = text.indexOf('\n', offset)
  const rest = text.slice(offset, end < 0 ? undefined : end)
  if (/:(?:\s|$)/.test(rest)) {
    return {
      message: 'This value contains `: `, so YAML reads it as another key',
      help: "Write the value in quotes, such as `'a: b'`; write a program below `|`, indented.",
    }
  }
  return { message: 'The line below this value starts further right than the key of the value', help: columns }
}

function unexpected(place: Place): Words {
  const { text, offset } = place
  const before = lineBefore(place)
  const sign = text[offset]
  if (sign === ']' || sign === '}') return { message: `This \`${sign}\` closes nothing` }
  if (/[:-] +[|>][-+0-9]* *$/.test(before)) {
    return {
      message: 'The text that `|` or `>` announces begins on the next line, and nothing else stands on this one',
    }
  }
  if (isInsideBrackets(place)) return missingComma
  if (/^[ -]*$/.test(before)) return otherColumn
  if (sign === '-') return { message: 'A list stands below its key, not beside it', help: 'Begin it on the next line.' }
  const complete = innermost(place, (node, [, end]) => {
    const isQuoted = isScalar(node) && (node.type === Scalar.QUOTE_DOUBLE || node.type === Scalar.QUOTE_SINGLE)
    return end <= offset && (isQuoted || isInBrackets(node)) && text.slice(end, offset).trim() === ''
  })
  if (complete === undefined) return misfit
  return {
    message: 'This follows a value that is complete',
    help: "Write the whole value in one pair of quotes (`'it''s'` for one in it), or put this on a line of its own.",
  }
}

/** Whether a key is a table or a list, which no configuration supports. */
export function isKeyOfParts(key: unknown): key is Node {
  return typeof key === 'object' && key !== null && !isScalar(key) && 'items' in key
}
