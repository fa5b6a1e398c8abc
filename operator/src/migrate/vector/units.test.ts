// Several configurations at once: events of one do not get into another.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { lint } from '../../testing/conversions.ts'
import { agentFor } from '../agents.ts'
import { Draft } from '../draft.ts'

interface Entry {
  readonly name: string
  readonly type: string
  readonly inputs?: readonly string[]
}

async function converted(files: Readonly<Record<string, string>>) {
  const found = agentFor(Object.entries(files).map(([file, text]) => ({ file, text })))
  if (found === undefined) throw new Error('No agent knows the files.')
  const draft = new Draft()
  found.agent.convert(found.files, () => [], draft)
  const document = draft.document({ name: 'c' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  const { sources, transforms, sinks } = document.toJS().spec as Readonly<Record<string, readonly Entry[]>>
  /** The types of the sources that a component gets events from. */
  const originsOf = (name: string): readonly string[] => {
    const source = sources?.find((each) => each.name === name)
    if (source !== undefined) return [source.type]
    return (transforms?.find((each) => each.name === name)?.inputs ?? []).flatMap(originsOf)
  }
  return (sinks ?? []).map(({ type, inputs = [] }) => [type, ...inputs.flatMap(originsOf)])
}

const own = (source: object, sink: object, input = 'parse') => ({
  sources: { in: source },
  transforms: { parse: { type: 'remap', inputs: ['in'], source: '.a = 1' } },
  sinks: { out: { inputs: [input], encoding: { codec: 'json' }, ...sink } },
})
const pods = { type: 'kubernetes_logs' }
const lines = { type: 'file', include: ['/a'] }
const console = { type: 'console' }
const http = { type: 'http', uri: 'http://b' }
const apart = [
  ['console', 'orchestrator_logs'],
  ['http', 'file'],
]

test.each(['parse', '*'])('values of two charts in one file, with the input %s', async (input) => {
  const text = stringify({
    agent: { role: 'Agent', customConfig: own(pods, console, input === '*' ? 'p*' : input) },
    files: { role: 'Agent', customConfig: own(lines, http, input === '*' ? 'p*' : input) },
  })
  expect(await converted({ 'values.yaml': text })).toEqual(apart)
})

test('two ConfigMaps', async () => {
  const map = (config: object) =>
    stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'v' },
      data: { 'vector.yaml': stringify(config) },
    })
  expect(await converted({ 'v.yaml': `${map(own(pods, console))}---\n${map(own(lines, http))}` })).toEqual(apart)
})

test('two files', async () => {
  const files = { 'a.yaml': stringify(own(pods, console)), 'b.yaml': stringify(own(lines, http)) }
  expect(await converted(files)).toEqual(apart)
})

test('files with different components are one configuration', async () => {
  const { sources, transforms, sinks } = own(pods, console)
  const files = { 'a.yaml': stringify({ sources, transforms }), 'b.yaml': stringify({ sinks }) }
  expect(await converted(files)).toEqual([['console', 'orchestrator_logs']])
})
