// Function `get_enrichment_table_record`.

import { fieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { checkTable } from '../table-argument.ts'

export const getEnrichmentTableRecord = defineFunction({
  name: 'get_enrichment_table_record',
  category: 'Enrichment',
  summary: 'The one record of an enrichment table that meets a condition.',
  parameters: [
    { name: 'table', kind: kinds.string, description: 'Name of the table.' },
    { name: 'condition', kind: kinds.object, description: 'Fields and the values that they must have.' },
    { name: 'select', kind: kinds.array, required: false, description: 'Fields of the result; all if absent.' },
    {
      name: 'case_sensitive',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether letter case counts.',
    },
    { name: 'wildcard', kind: kinds.string, required: false, description: 'A value in the table that matches any.' },
  ],
  returns: kinds.object,
  fallible: 'always',
  errors: ['No record or more than one meets the condition.', 'The table is not known.'],
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
      const found = table.find(present(condition), select?.map(String), caseSensitive, wildcard)
      if (typeof found === 'string') return failure(found)
      const first = found[0]
      if (found.length > 1) return failure('more than one row found')
      return first ?? failure('no rows found')
    }
  },
})

function present(condition: ValueObject): Record<string, Value> {
  return Object.fromEntries(fieldNames(condition).map((name) => [name, condition[name] as Value]))
}
