// Function `parse_grok`.

import { compileGrok } from '../../formats/grok.ts'
import { type CallSite, defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseGrok = defineFunction({
  name: 'parse_grok',
  category: 'Parse',
  summary: "Parses a text with a grok pattern to the pattern's fields. All values are text.",
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'pattern',
      kind: kinds.string,
      static: true,
      description: 'The pattern, such as `%{WORD:verb} %{NOTSPACE:path}`.',
    },
  ],
  returns: kinds.object,
  fallible: 'always',
  errors: ['The pattern does not match.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source:
        'parse_grok!("2023-05-06T07:08:09.123Z warn gate open", "%{TIMESTAMP_ISO8601:at} %{LOGLEVEL:level} %{GREEDYDATA:message}")',
      result: '{ "at": "2023-05-06T07:08:09.123Z", "level": "warn", "message": "gate open" }',
    },
    {
      source: 'parse_grok!("GET /index.html 200", "%{WORD:method} %{URIPATH:path} %{INT:status}")',
      result: '{ "method": "GET", "path": "/index.html", "status": "200" }',
    },
    { source: 'parse_grok("seven", "^%{INT:n}$") ?? "no match"', result: '"no match"' },
  ],
  compile(call: CallSite) {
    const pattern = call.constant('pattern')
    const grok = compileGrok(typeof pattern === 'string' ? pattern : '')
    if (!grok.ok) call.reject(`invalid grok pattern: ${grok.problem}`)
    return (text: string) => grok.match(text) ?? failure('unable to parse input with grok pattern')
  },
})
