// Function `find_enrichment_table_records`.

import { defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { compileLookup, type Lookup, lookupParameters } from '../table-lookup.ts'

export const findEnrichmentTableRecords = defineFunction({
  name: 'find_enrichment_table_records',
  category: 'Enrichment',
  summary: 'Returns all records of an enrichment table that match a condition.',
  parameters: lookupParameters,
  returns: kinds.arrayEach(kinds.object),
  fallible: 'never',
  failsUnannounced: true,
  errors: ['The table is unknown.'],
  pure: false,
  examples: [
    {
      source: 'find_enrichment_table_records("none", {"id": 1})',
      result: 'fails: function call error for "find_enrichment_table_records" at (0:48): table none not loaded',
    },
    {
      source: 'find_enrichment_table_records("none", {"id": 1}, select: ["name"], case_sensitive: false)',
      result: 'fails: function call error for "find_enrichment_table_records" at (0:89): table none not loaded',
    },
    {
      source: 'find_enrichment_table_records("none", {"id": 1}, wildcard: "*")',
      result: 'fails: function call error for "find_enrichment_table_records" at (0:63): table none not loaded',
    },
  ],
  compile(call) {
    const lookup = compileLookup(call)
    return (...query: Parameters<Lookup>): Result => {
      const found = lookup(...query)
      return isFailure(found) ? found : [...found]
    }
  },
})
