// Function `get_enrichment_table_record`.

import { defineFunction, failure, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { compileLookup, type Lookup, lookupParameters } from '../table-lookup.ts'

export const getEnrichmentTableRecord = defineFunction({
  name: 'get_enrichment_table_record',
  category: 'Enrichment',
  summary: 'Returns the only record of an enrichment table that matches a condition.',
  parameters: lookupParameters,
  returns: kinds.object,
  fallible: 'always',
  errors: ['No record, or more than one, matches the condition.', 'The table is unknown.'],
  pure: false,
  examples: [
    { source: 'get_enrichment_table_record("none", {"id": 1}) ?? {}', result: '{  }' },
    {
      source: 'get_enrichment_table_record("none", {"id": 1}, select: ["name"], case_sensitive: false) ?? {}',
      result: '{  }',
    },
    {
      source: 'get_enrichment_table_record("none", {"id": 1}, wildcard: "*") ?? {"name": "unknown"}',
      result: '{ "name": "unknown" }',
    },
  ],
  compile(call) {
    const lookup = compileLookup(call)
    return (...query: Parameters<Lookup>): Result => {
      const found = lookup(...query)
      if (isFailure(found)) return found
      if (found.length > 1) return failure('more than one row found')
      return found[0] ?? failure('no rows found')
    }
  },
})
