// Patterns in `inputs`: Vector compares them with the names of all outputs.

import { expect, test } from 'vitest'
import { converted } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const inputsOf = (pattern: string) => {
  const text = `sources: { app1: { type: stdin }, app2: { type: demo_logs, format: json }, app10: { type: demo_logs, format: json } }
transforms:
  late: { type: remap, inputs: ["split.*"], source: .a = 1 }
  split: { type: route, inputs: [app10], route: { x: .b == 1, y: .b == 2 } }
sinks: { out: { type: blackhole, inputs: ["${pattern}"] }, all: { type: blackhole, inputs: ["app*", late] } }
`
  const { resource, gaps } = converted(convertVector, [{ file: 'v.yaml', text }])
  const sinks = resource.spec.sinks as { name: string; inputs: string[] }[]
  const late = (resource.spec.transforms as { name: string; inputs: string[] }[]).find(({ name }) => name === 'late')
  return { inputs: sinks.find(({ name }) => name === 'out')?.inputs, late: late?.inputs, gaps }
}

test.each([
  ['app?', ['app1', 'app2']],
  ['app[12]', ['app1', 'app2']],
  ['app[!1]', ['app2']],
  ['app1*', ['app1', 'app10']],
  ['split.[xy]', ['split-x', 'split-y']],
])('%s', (pattern, inputs) => {
  expect(inputsOf(pattern)).toMatchObject({ inputs, gaps: [] })
})

test('a transform before the outputs that its pattern matches', () => {
  expect(inputsOf('late').late).toEqual(['split-x', 'split-y', 'split-unmatched'])
})
