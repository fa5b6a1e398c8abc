// Pairs of keys and values as the collector reads them: quotes may be anywhere in a pair, and the last value of a repeated key wins.
// `parse_key_value` keeps quotes inside of a value, makes a list of the values of a repeated key, and accepts blanks around a delimiter.

import { textLiteral } from '@penstock/agent/config'

const quoted = '"[^"]*"|\\x27[^\\x27]*\\x27'

/** Statements that set `parsed` to the pairs of a text, or to null. */
function exactLines(text: string, delimiter: string, between: string): readonly string[] {
  // A quote would end the literal.
  const inClass = between.replace(/[\\\]^-]/, '\\$&').replace("'", '\\x27')
  return [
    'parsed = null',
    `if ${text} != "" && match(${text}, r'^(?:${quoted}|[^"\\x27])*$') {`,
    '  parsed = {}',
    '  isWhole = true',
    `  for_each(parse_regex_all(${text}, r'(?P<pair>(?:${quoted}|[^"\\x27${inClass}])+)') ?? []) -> |_index, found| {`,
    `    pair = replace(string(found.pair) ?? "", r'"([^"]*)"|\\x27([^\\x27]*)\\x27', "$1$2")`,
    `    sides = split(pair, ${textLiteral(delimiter)}, limit: 2)`,
    '    if length(sides) == 2 {',
    '      key = strip_whitespace(string(sides[0]) ?? "")',
    '      parsed = set!(parsed, [key], strip_whitespace(string(sides[1]) ?? ""))',
    '    } else if pair != "" { isWhole = false }',
    '  }',
    '  if !isWhole { parsed = null }',
    '}',
  ]
}

/** Statements that set `parsed` to the pairs of a text, or to null if it has other parts. */
export function pairLines(text: string, delimiter: string, between: string): readonly string[] {
  if ([...between].length === 1 && delimiter !== between) return exactLines(text, delimiter, between)
  const options = `key_value_delimiter: ${textLiteral(delimiter)}, field_delimiter: ${textLiteral(between)}`
  return [`parsed = parse_key_value(${text}, ${options}, accept_standalone_key: false) ?? null`]
}
