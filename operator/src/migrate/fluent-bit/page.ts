// The tables of the guide for Fluent Bit.

import { mappingTables } from '../page.ts'
import { filters, refusedFilters } from './filters.ts'
import { inputs, refusedInputs } from './inputs.ts'
import { outputs } from './outputs.ts'
import { common, matched } from './plugin.ts'
import { processors, refusedProcessors } from './processors.ts'
import { refusedOutputs } from './refused-outputs.ts'
import { resourceKinds } from './resources.ts'
import { rewriteTag } from './rewrite-tag.ts'

const left = [...Object.keys(common), ...Object.keys(matched)]

export function fluentBitTables(): string {
  return [
    mappingTables('Resources of the fluent-operator', resourceKinds, []),
    mappingTables('Inputs', inputs, refusedInputs, left),
    mappingTables('Filters', [...filters, rewriteTag], refusedFilters, left),
    mappingTables('Processors', processors, refusedProcessors, left),
    mappingTables('Outputs', outputs, refusedOutputs, left),
  ].join('\n')
}
