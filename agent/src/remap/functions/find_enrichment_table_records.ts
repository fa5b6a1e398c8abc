// Function `find_enrichment_table_records`.

import { fieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { checkTable } from '../table-argument.ts'

export const findEnrichmentTableRecords = defineFunction({
  name: 'find_enrichment_table_records',
  category: 'Enrichment',
  summary: 'All records of an enrichment table that meet a condition.',
  parameters: [
    { name: 'table', kind: kinds.string, description: 'Name of the table.' },
    { name: 'condition', kind: kinds.object, description: 'Fields and the values that they must have.' },
    { name: 'select', kind: kinds.array, required: false, description: 'Fields of the results; all if absent.' },
    {
      name: 'case_sensitive',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether letter case counts.',
    },
    { name: 'wildcard', kind: kinds.string, required: false, description: 'A value in the table that matches any.' },
  ],
  returns: kinds.arrayEach(kinds.object),
  fallible: 'never',
  failsUnannounced: true,
  errors: ['The table is not known.'],
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
    checkTable(call)
    return (
      name: string,
      condition: ValueObject,
      select: Value[] | undefined,
      caseSensitive: boolean,
      wildcard: string | undefined,
    ): Result => {
      const table = call.runtime.table(name)
      if (table === undefined) return failure(`table ${name} not loaded`)
      const wanted = Object.fromEntries(fieldNames(condition).map((field) => [field, condition[field] as Value]))
      const found = table.find(wanted, select?.map(String), caseSensitive, wildcard)
      return typeof found === 'string' ? failure(found) : [...found]
    }
  },
})
