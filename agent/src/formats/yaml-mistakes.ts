// Describes mistakes in YAML for people who write it by hand. The parser uses the terms of its grammar (`implicit keys`, `compact
// mappings`), and reports one wrong space several times. This module reports each mistake once, with the place where it begins and the fix.

import { type Document, isScalar, type LineCounter, type Node, visit, type YAMLParseError } from 'yaml'

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

/** The parser's message for all parts of a text after it has lost the structure. */
const atTopLevel = /^Unexpected .* token in YAML stream/s

/** The meaning of each message of the parser; the first pattern that matches counts. */
const meanings: readonly (readonly [RegExp, (found: RegExpExecArray, place: Place) => Words])[] = [
  [
    /^Tabs are not allowed/,
    () => ({
      message: 'A tab is before the first word of this line, where YAML only allows spaces',
      help: 'Replace the tabs with spaces; most editors have a setting for that.',
    }),
  ],
  [/^Missing closing ["']quote/, (_, place) => openQuote(place)],
  [/^Flow (?:sequence|map) in block collection/, (_, place) => openBracket(place)],
  [
    /must start at the same column$|^Sequence item without|^Unexpected \S+ at node end$/,
    () => ({ message: 'This line starts in a different column than the lines at its level', help: columns }),
  ],
  [/^Nested mappings are not allowed/, (_, place) => innerKey(place)],
  [
    /^A block sequence may not be used/,
    () => ({ message: 'Text and the list below it cannot be one value', help: columns }),
  ],
  [
    /^Implicit keys .*single line$/,
    () => ({
      message: 'This line is not `key: value`',
      help: `A space follows the \`:\` of a key, and the \`-\` of a list. ${columns}`,
    }),
  ],
  [
    /^Implicit map keys need to be followed/,
    () => ({
      message: 'This line has no `: ` after its key',
      help: 'If it belongs to the text above it, it starts as far to the right as that text.',
    }),
  ],
  [
    /^(?:Block collections are not allowed within flow|Missing , (?:or : )?between)/,
    () => ({
      message: 'A comma is missing between two parts of `{ }` or `[ ]`',
      help: 'A text with spaces, colons or brackets in it needs quotes there.',
    }),
  ],
  [
    /^Invalid escape sequence (\\.?)/s,
    ([, written]) => ({
      message: `\`${written}\` has no meaning in double quotes`,
      help: 'Write two backslashes for one, or use single quotes, in which a backslash stands for itself.',
    }),
  ],
  [
    /^Plain value cannot start with .*(.)$/,
    ([, sign]) => ({ message: `A text that starts with \`${sign}\` needs quotes`, help: inQuotes }),
  ],
  [
    /^Alias cannot be an empty string/,
    () => ({ message: 'A text that starts with `*` needs quotes: it would be an alias', help: inQuotes }),
  ],
  [/^Comments must be separated/, () => ({ message: 'A space is missing before the `#` of a comment' })],
  [
    /^Block scalar header includes extra/,
    () => ({
      message: 'The text that `|` or `>` announces begins on the next line, and nothing else stands on this one',
    }),
  ],
  [/^Unexpected flow-(?:seq|map)-end.*"(.)"$/s, ([, sign]) => ({ message: `This \`${sign}\` closes nothing` })],
  [
    /^Block scalar(?:s with more-indented| lines must not)/,
    () => ({
      message: 'This line of a text starts in a column where the text cannot',
      help: 'All lines below `|` or `>` start at least as far to the right as the first of them, with spaces and no tabs.',
    }),
  ],
  [/^Unexpected /, () => ({ message: 'This does not fit the text before it', help: columns })],
]

/** The mistakes of a document, without consequences of other mistakes, such as errors on neighbouring lines. */
export function mistakesOf(text: string, document: Document, lines: LineCounter): readonly YamlMistake[] {
  const mistakes: YamlMistake[] = []
  const taken = new Set<number>()
  for (const error of document.errors) {
    if (mistakes.length > 0 && (error.code === 'BAD_INDENT' || atTopLevel.test(error.message))) continue
    const mistake = meaningOf(error, { text, document, offset: error.pos[0] })
    const { line } = lines.linePos(mistake.offset)
    const stumbled = lines.linePos(error.pos[0]).line
    if ([line - 1, line, line + 1].some((near) => taken.has(near))) continue
    taken.add(line).add(stumbled)
    mistakes.push(mistake)
  }
  return mistakes
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
  for (const [pattern, words] of meanings) {
    const found = pattern.exec(error.message)
    if (found !== null) return { offset, ...words(found, place) }
  }
  return { offset, message: error.message }
}

function lineAt({ text, offset }: Place): string {
  const from = text.lastIndexOf('\n', offset - 1) + 1
  const to = text.indexOf('\n', offset)
  return text.slice(from, to < 0 ? undefined : to)
}

/** The parser reports the end of the text, but the mistake is at the open quote. */
function openQuote({ text, document, offset }: Place): Words {
  let start = offset
  visit(document, {
    Scalar(_, { range, type }) {
      if (range != null && range[0] <= offset && (type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE')) start = range[0]
    },
  })
  return {
    offset: start,
    message: `The quote (\`${text[start]}\`) that begins here is not closed`,
    help: 'Close it; within double quotes write `\\"` for one, and within single quotes two of them.',
  }
}

function openBracket({ text, document, offset }: Place): Words {
  let start = offset
  visit(document, {
    Collection(_, node) {
      const { range, flow } = node as Node & { flow?: boolean }
      if (flow === true && range != null && range[0] < offset && range[2] >= offset) start = range[0]
    },
  })
  const opening = text[start]
  if (opening !== '[' && opening !== '{')
    return { message: 'A `[` or `{` above is not closed, or its last line starts too far left' }
  const closing = opening === '[' ? ']' : '}'
  return {
    offset: start,
    message: `The \`${opening}\` that begins here is not closed`,
    help: `Write \`${closing}\` at its end, further right than the key that it belongs to.`,
  }
}

/** `a: b: c`, or a key that is indented below a key that already has a value. */
function innerKey(place: Place): Words {
  const { text, offset } = place
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

/** Whether a key is a table or a list, which no configuration supports. */
export function isKeyOfParts(key: unknown): key is Node {
  return typeof key === 'object' && key !== null && !isScalar(key) && 'items' in key
}
