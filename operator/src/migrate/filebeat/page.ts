// The tables of the guide for Filebeat.

import { mappingTables, refusalTable } from '../page.ts'
import { refusedParts } from './convert.ts'
import { inputs, refusedInputs } from './inputs.ts'
import { outputs, refusedOutputs } from './outputs.ts'
import { processors } from './processors.ts'
import { refusedProcessors } from './refused-processors.ts'

export function filebeatTables(): string {
  const [container, ...others] = inputs
  return [
    mappingTables(
      'Inputs',
      [
        ...(container === undefined ? [] : [container]),
        ...others.map((each) => ({ ...each, options: {}, itself: {} })),
      ],
      refusedInputs,
    ),
    mappingTables('Processors', processors, refusedProcessors, ['when']),
    mappingTables('Outputs', outputs, refusedOutputs),
    refusalTable('Other parts', refusedParts),
  ].join('\n')
}
