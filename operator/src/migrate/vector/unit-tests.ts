// Converts unit tests of Vector to tests of a Pipeline.

import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Test } from '../draft.ts'
import { withoutVariables } from './environment.ts'
import { listOf } from './tables.ts'

/**
 * @param line returns the input for a line
 * @param at returns the name of the component that replaces an output
 * @param leave reports a test without a counterpart
 */
export function testsOf(
  given: unknown,
  at: (id: unknown) => string | undefined,
  line: (text: string) => object,
  leave: (index: number, name: string, reason: string) => void,
): readonly Test[] {
  const tests = Array.isArray(given) ? given.filter(isTable) : []
  return tests.flatMap((test, index) => {
    const converted = testOf(test, at, line)
    if (typeof converted !== 'string') return [{ name: String(test['name'] ?? `test ${index + 1}`), ...converted }]
    leave(index, String(test['name'] ?? index + 1), converted)
    return []
  })
}

/** Returns the test without its name, or the reason why it has no counterpart. */
function testOf(
  test: Table,
  at: (id: unknown) => string | undefined,
  line: (text: string) => object,
): { insertAt: string; input: object; expect: object[] } | string {
  const inputs = test['input'] === undefined ? listOf(test['inputs']) : [test['input']]
  const [input, ...others] = inputs.filter(isTable)
  if (input === undefined || others.length > 0) return 'a test of a Pipeline has one input'
  const type = input['type'] ?? 'raw'
  const fields = input['log_fields']
  if (type !== 'raw' && (type !== 'log' || !isTable(fields)))
    return `an input of type \`${String(type)}\` is neither a line nor fields`
  const insertAt = at(input['insert_at'])
  if (insertAt === undefined) return `there is no transform \`${String(input['insert_at'])}\``
  const expect: object[] = []
  for (const id of listOf(test['no_outputs_from'])) {
    const from = at(id)
    if (from === undefined) return `there is no transform \`${String(id)}\``
    expect.push({ at: from, count: 0 })
  }
  for (const output of listOf(test['outputs']).filter(isTable)) {
    for (const id of listOf(output['extract_from'])) {
      const from = at(id)
      if (from === undefined) return `there is no transform \`${String(id)}\``
      const count = output['expected_event_count']
      const conditions = listOf(output['conditions'])
      if (typeof count === 'number' || conditions.length === 0) expect.push({ at: from, count: count ?? 1 })
      for (const condition of conditions) {
        const source = isTable(condition) ? condition['source'] : condition
        if (typeof source !== 'string') return 'a condition is not a program'
        expect.push({ at: from, assert: withoutVariables(source, false, () => {}) })
      }
    }
  }
  if (expect.length === 0) return 'it expects nothing'
  const own = isTable(fields) ? { log: plain(fields) } : line(String(plain(input['value'] ?? '')))
  return { insertAt, input: own, expect }
}

/** A value with the defaults of its variables. */
function plain(value: unknown): unknown {
  if (typeof value === 'string') return withoutVariables(value, false, () => {})
  if (Array.isArray(value)) return value.map(plain)
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, plain(below)]))
}
