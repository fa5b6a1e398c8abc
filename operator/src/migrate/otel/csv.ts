// Rows of CSV as the collector reads them. `parse_csv` also reads rows with quotes in the wrong places, which the collector only does with
// lazy quotes, in its own way.

import { textLiteral } from '@penstock/agent/config'
import { escapedText } from '../escape.ts'

export type CsvMode = 'strict' | 'lazyQuotes' | 'ignoreQuotes'

/** Statements that set `columns` to the columns of a text, or to an empty list if the text is not a row. */
export function columnLines(text: string, delimiter: string, mode: CsvMode): readonly string[] {
  const between = textLiteral(delimiter)
  if (mode === 'ignoreQuotes') return [`columns = split(${text}, ${between})`]
  // A quote would end the literal.
  const escaped = escapedText(delimiter).replace("'", '\\x27')
  const inClass = delimiter.replace(/[\\\]^-]/, '\\$&').replace("'", '\\x27')
  if (mode === 'strict') {
    const column = `(?:"(?:[^"]|"")*"|[^"${inClass}]*)`
    return [
      'columns = []',
      `if match(${text}, r'^${column}(?:${escaped}${column})*\\r?\\n?$') { columns = parse_csv(${text}, delimiter: ${between}) ?? [] }`,
    ]
  }
  // A delimiter before the first column lets each match begin with one.
  const columns = `${escaped}(?:"(?P<quoted>(?:[^"]|""|"[^"${inClass}])*)"|(?P<plain>[^${inClass}]*))`
  return [
    `columns = map_values(parse_regex_all(${between} + ${text}, r'${columns}') ?? []) -> |found| {`,
    '  if found.quoted == null { found.plain } else { replace(found.quoted, "\\"\\"", "\\"") }',
    '}',
  ]
}
