// Converts unit tests of Vector to tests of a Pipeline.

import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Test, TestInput } from '../draft.ts'
import { conditionOf } from './conditions.ts'
import { withoutVariables } from './environment.ts'
import { listOf } from './tables.ts'

/** How parts of the old configuration are found in the new one. */
interface Places {
  /** The name of the component that replaces an output. */
  readonly at: (id: unknown) => string | undefined
  /** The transforms that get the events of a transform: several for one with several outputs. */
  readonly entries: (id: unknown) => readonly string[]
  /** The input for a line. */
  readonly line: (text: string) => object
}

/** @param leave reports a test without a counterpart */
export function testsOf(
  given: unknown,
  places: Places,
  leave: (index: number, name: string, reason: string) => void,
): readonly Test[] {
  const tests = Array.isArray(given) ? given.filter(isTable) : []
  return tests.flatMap((test, index) => {
    const converted = testOf(test, places)
    if (typeof converted !== 'string') return [{ name: String(test['name'] ?? `test ${index + 1}`), ...converted }]
    leave(index, String(test['name'] ?? index + 1), converted)
    return []
  })
}

/** The outputs that the tests of a configuration check. */
export const checkedOutputs = (given: unknown): readonly string[] =>
  listOf(given)
    .filter(isTable)
    .flatMap((test) => [
      ...listOf(test['no_outputs_from']),
      ...listOf(test['outputs'])
        .filter(isTable)
        .flatMap((output) => listOf(output['extract_from'])),
    ])
    .map(String)

const noTransform = (id: unknown) => `there is no transform \`${String(id)}\``

/** The events of a test, or the reason why one has no counterpart. */
function inputsOf(test: Table, { entries, line }: Places): readonly TestInput[] | string {
  const given = (test['input'] === undefined ? listOf(test['inputs']) : [test['input']]).filter(isTable)
  const found: TestInput[] = []
  for (const input of given) {
    const { insert_at: at } = input
    const event = eventOf(input, line)
    if (typeof event === 'string') return event
    const names = entries(at)
    if (names.length === 0) return noTransform(at)
    found.push(...names.map((insertAt) => ({ insertAt, ...event })))
  }
  return found.length === 0 ? 'it has no input' : found
}

/** The event of an input, or the reason why it has no counterpart. */
function eventOf({ type = 'raw', ...input }: Table, line: Places['line']): object | string {
  const { log_fields: fields, source, value = '' } = input
  if (type === 'raw') return line(String(plain(value)))
  if (type === 'log' && isTable(fields)) return { log: plain(fields) }
  if ((type === 'vrl' || type === 'remap') && typeof source === 'string') return { program: plain(source) }
  return `an input of type \`${String(type)}\` is neither a line, fields nor a program`
}

type WithoutName<T> = T extends unknown ? Omit<T, 'name'> : never

/** The test without its name, or the reason why it has no counterpart. */
function testOf(test: Table, places: Places): WithoutName<Test> | string {
  const { at } = places
  const inputs = inputsOf(test, places)
  if (typeof inputs === 'string') return inputs
  const expect: object[] = []
  for (const id of listOf(test['no_outputs_from'])) {
    const from = at(id)
    if (from === undefined) return noTransform(id)
    expect.push({ at: from, count: 0 })
  }
  for (const output of listOf(test['outputs']).filter(isTable)) {
    for (const id of listOf(output['extract_from'])) {
      const from = at(id)
      if (from === undefined) return noTransform(id)
      const count = output['expected_event_count']
      const conditions = listOf(output['conditions'])
      // Without a condition, one event is enough.
      if (typeof count === 'number') expect.push({ at: from, count })
      else if (conditions.length === 0) expect.push({ at: from })
      for (const condition of conditions) {
        const source = conditionOf(condition)
        if (source === undefined) return 'a condition is not a program'
        expect.push({ at: from, assert: withoutVariables(source, false, () => {}) })
      }
    }
  }
  if (expect.length === 0) return 'it expects nothing'
  const [first, ...others] = inputs
  if (first === undefined || others.length > 0) return { inputs, expect }
  const { insertAt, ...input } = first
  return { insertAt, input, expect }
}

/** A value with the defaults of its variables. */
function plain(value: unknown): unknown {
  if (typeof value === 'string') return withoutVariables(value, false, () => {})
  if (Array.isArray(value)) return value.map(plain)
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, plain(below)]))
}
