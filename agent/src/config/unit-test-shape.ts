// Checks the shape of a configuration's `tests`, and whether they refer to existing components. unit-tests.ts runs them.

import { either, group, list, type Option, oneOf, optional, type Parsed, text, uint } from '../schema/options.ts'
import { closest, type Problem } from '../schema/problems.ts'
import { parseOptions } from '../schema/validate.ts'
import type { UnitTest, UnitTestInput } from './config.ts'
import type { GraphNode } from './graph.ts'
import { type Located, problemAt } from './place.ts'
import type { Segments } from './syntax.ts'

/** A table with any content, such as event fields or a metric. */
const anyTable = (description: string) => optional({ type: 'object', description } as Option<Record<string, unknown>>)

const inputMembers = {
  insert_at: text('Id of the transform that receives the event.'),
  type: oneOf(['raw', 'log', 'metric', 'vrl', 'remap'], 'How the event is given.', { default: 'raw' }),
  value: optional(text('Message of the event; for type `raw`.')),
  log_fields: anyTable('Fields of the event by path; for type `log`.'),
  metric: anyTable('The metric; for type `metric`.'),
  source: optional(text('Program that makes the event; for types `remap` and `vrl`.')),
}

export const testOptions = {
  name: text('Name of the test.'),
  input: optional(group(inputMembers, 'The only event.', { deprecated: 'Use `inputs`, a list.' })),
  inputs: optional(list(group(inputMembers, 'An event.'), 'The events that the transforms receive.')),
  outputs: optional(
    list(
      group(
        {
          extract_from: either(text('An output.'), list(text('An output.'), 'Outputs.'), 'The outputs to check.'),
          conditions: optional(
            list(
              either(
                text('A program.'),
                group(
                  {
                    type: oneOf(['vrl', 'remap'], 'Language of the condition.', { default: 'remap' }),
                    source: text('A program that returns true or ends without an error.'),
                  },
                  'A condition.',
                ),
                'A condition.',
              ),
              'Conditions. At least one event must meet all of them.',
            ),
          ),
          expected_event_count: optional(uint('Expected number of events.', { zero: 'no events' })),
        },
        'An expectation.',
      ),
      'The expected output.',
    ),
  ),
  no_outputs_from: optional(list(text('An output.'), 'Outputs that must emit no events.')),
} as const

type Given = Parsed<typeof testOptions>

export function parseTests(tests: readonly Located[], nodes: readonly GraphNode[], problems: Problem[]): UnitTest[] {
  const parsed: UnitTest[] = []
  const transforms = nodes.filter((node) => node.kind === 'transform')
  for (const located of tests) {
    const checked = parseOptions(testOptions, located.value)
    if (!checked.ok) {
      for (const problem of checked.problems) problems.push(problemAt(located, problem.segments, problem))
      continue
    }
    checkReferences(checked.value, located, transforms, problems)
    parsed.push(testOf(checked.value))
  }
  return parsed
}

function checkReferences(test: Given, located: Located, transforms: readonly GraphNode[], problems: Problem[]): void {
  const ids = transforms.map((node) => node.id)
  const help = (name: string, known: readonly string[]) => {
    const near = closest(name, known)
    return near === undefined ? undefined : `did you mean \`${near}\`?`
  }
  const inputs = test.inputs ?? (test.input === undefined ? [] : [test.input])
  if (inputs.length === 0) {
    problems.push(problemAt(located, [], { message: `inputs missing in test '${test.name}'` }))
  }
  for (const [index, input] of inputs.entries()) {
    const place: Segments = test.inputs === undefined ? ['input'] : ['inputs', index]
    if (!ids.includes(input.insert_at)) {
      const message = `unable to locate target transform '${input.insert_at}' in test '${test.name}'`
      problems.push(problemAt(located, [...place, 'insert_at'], { message, help: help(input.insert_at, ids) }))
    }
    const needed = { raw: 'value', log: 'log_fields', metric: 'metric', vrl: 'source', remap: 'source' } as const
    const field = needed[input.type]
    if (input[field] === undefined) {
      problems.push(
        problemAt(located, place, {
          message: `missing field \`${field}\``,
          help: `inputs of type \`${input.type}\` need it`,
        }),
      )
    }
  }
  const outputs = transforms.flatMap((node) => [node.id, ...(node.ports ?? []).map((port) => `${node.id}.${port}`)])
  const unknownPorts = transforms.filter((node) => node.ports === undefined)
  const target = (name: string, place: Segments) => {
    if (outputs.includes(name) || unknownPorts.some((node) => name.startsWith(`${node.id}.`))) return
    const message = `Invalid extract_from target in test '${test.name}': '${name}' does not exist`
    problems.push(problemAt(located, place, { message, help: help(name, outputs) }))
  }
  for (const [index, output] of (test.outputs ?? []).entries()) {
    const from = output.extract_from
    if (typeof from === 'string') target(from, ['outputs', index, 'extract_from'])
    else for (const [item, name] of from.entries()) target(name, ['outputs', index, 'extract_from', item])
  }
  for (const [index, name] of (test.no_outputs_from ?? []).entries()) target(name, ['no_outputs_from', index])
  if (test.outputs === undefined && test.no_outputs_from === undefined) {
    const message = `the test '${test.name}' has no expectations`
    problems.push(problemAt(located, [], { message, help: 'add `outputs`, `no_outputs_from` or both' }))
  }
}

function testOf(test: Given): UnitTest {
  return {
    name: test.name,
    inputs: (test.inputs ?? (test.input === undefined ? [] : [test.input])).map(inputOf),
    outputs: (test.outputs ?? []).map((output) => ({
      extractFrom: typeof output.extract_from === 'string' ? [output.extract_from] : output.extract_from,
      conditions: (output.conditions ?? []).map((each) => (typeof each === 'string' ? each : each.source)),
      expectedEventCount: output.expected_event_count,
    })),
    noOutputsFrom: test.no_outputs_from ?? [],
  }
}

function inputOf(input: NonNullable<Given['input']>): UnitTestInput {
  return {
    insertAt: input.insert_at,
    type: input.type === 'remap' ? 'vrl' : input.type,
    value: input.value,
    logFields: input.log_fields,
    metric: input.metric,
    source: input.source,
  }
}
