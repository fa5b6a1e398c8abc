// The tables of the guide for Fluentd. Options that many plugins share have their own table.

import { type Described, mappingTables } from '../page.ts'
import { filters, refusedFilters } from './filters.ts'
import { flows } from './flows.ts'
import { operatorKinds } from './fluent-operator.ts'
import { always, common, inputs, refusedInputs } from './inputs.ts'
import { outputs, refusedOutputs } from './outputs.ts'
import { parseItself, parseOptions } from './parsers.ts'
import { resourceKinds } from './resources.ts'
import { buffered, itself } from './translation.ts'

const shared: readonly Described[] = [
  { name: '<parse>', becomes: 'part of the transform', options: parseOptions, itself: parseItself },
  { name: '<buffer>, <inject>', becomes: 'options of the sink', options: buffered, itself: itself ?? {} },
]
const known = new Set(
  [common, always, ...shared.flatMap((each) => [each.options, each.itself ?? {}])].flatMap(Object.keys),
)

/** Options with a number, of which the first one stands for all. */
const numbered = /(?:^|\.)(?:(?:regexp|exclude)\d+|(?:format|rename_rule|replace_rule)(?:[2-9]|\d\d))$/

const withoutNumbers = <Value>(all: Readonly<Record<string, Value>>) =>
  Object.fromEntries(Object.entries(all).filter(([option]) => !numbered.test(option)))

/** A mapping without the shared options. */
function own({ name, becomes, options, itself: rest = {} }: Described): Described {
  const without = <Value>(all: Readonly<Record<string, Value>>) =>
    withoutNumbers(Object.fromEntries(Object.entries(all).filter(([option]) => !known.has(option))))
  return { name, becomes, options: without(options), itself: without(rest) }
}

export function fluentdTables(): string {
  return [
    mappingTables('Resources of the logging-operator', resourceKinds, []),
    mappingTables('Resources of the fluent-operator', operatorKinds, []),
    mappingTables(
      'Elements within plugins',
      shared.map((each) => ({ ...each, options: withoutNumbers(each.options) })),
      [],
    ),
    mappingTables('Sources', inputs.map(own), refusedInputs),
    mappingTables('Filters', filters.map(own), refusedFilters),
    mappingTables('Matches', [...flows, ...outputs.map(own)], refusedOutputs),
  ].join('\n')
}
