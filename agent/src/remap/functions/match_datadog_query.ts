// Function `match_datadog_query`.

import type { ValueObject } from '../../event/value.ts'
import { compileSearchQuery } from '../../formats/search-query.ts'
import { type CallSite, defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const matchDatadogQuery = defineFunction({
  name: 'match_datadog_query',
  category: 'Object',
  summary: 'Returns whether an object matches a search query.',
  description:
    'Words are searched for in `message`; `@a.b:x` tests a field; `host`, `service`, `source`, `status` are fields of the event, and other names are tags (`key:value` in the array `tags`). The query may use `AND`, `OR`, `NOT`, parentheses, `*`, comparisons and ranges.',
  parameters: [
    { name: 'value', kind: kinds.object, description: 'The object.' },
    { name: 'query', kind: kinds.string, static: true, description: 'The query.' },
  ],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'match_datadog_query({"message": "hello world"}, "hello")', result: 'true' },
    { source: 'match_datadog_query({"http": {"status": 404}}, "@http.status:[400 TO 499]")', result: 'true' },
    { source: 'match_datadog_query({"tags": ["env:prod"]}, "-env:prod")', result: 'false' },
  ],
  compile(call: CallSite) {
    const query = call.constant('query')
    const matches = compileSearchQuery(typeof query === 'string' ? query : '', valueText)
    if (typeof matches === 'string') call.reject(`failed to parse the query: ${matches}`)
    return (value: ValueObject) => matches(value)
  },
})
