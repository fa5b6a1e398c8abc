// Configurations with more components than a Pipeline may have become several Pipelines, which deliver the same events together.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../testing/conversions.ts'
import { Draft } from './draft.ts'
import { convertVector } from './vector/convert.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
const entries = <Entry>(count: number, entry: (index: number) => [string, Entry]): Record<string, Entry> =>
  Object.fromEntries(numbers(count).map(entry))
const sink = (...inputs: string[]) => ({ type: 'console', inputs, encoding: { codec: 'json' } })
const remap = (...inputs: string[]) => ({ type: 'remap', inputs, source: '.a = 1' })
const file = (index: number) => ({ type: 'file', include: [`/srv/${index}.log`] })

test.each([
  {
    about: 'many branches of one source are split by sink',
    config: {
      sources: { in: file(0) },
      transforms: { first: remap('in'), ...entries(100, (index) => [`t${index}`, remap('first')]) },
      sinks: entries(50, (index) => [`s${index}`, sink(`t${2 * index}`, `t${2 * index + 1}`)]),
    },
    pipelines: 2,
  },
  {
    about: 'many sources of one sink are split by source',
    config: {
      sources: entries(70, (index) => [`in${index}`, file(index)]),
      transforms: entries(70, (index) => [`t${index}`, remap(`in${index}`)]),
      sinks: { out: sink('t*') },
    },
    pipelines: 2,
  },
  {
    about: 'many branches between one source and one sink are split by the inputs of the sink',
    config: {
      sources: { in: file(0) },
      transforms: entries(100, (index) => [`t${index}`, remap('in')]),
      sinks: { out: sink('t*') },
    },
    pipelines: 2,
  },
  {
    about: 'a configuration of a valid size stays one Pipeline',
    config: {
      sources: { in: file(0) },
      transforms: entries(64, (n) => [`t${n}`, remap('in')]),
      sinks: { s: sink('t*') },
    },
    pipelines: 1,
  },
])('$about', async ({ config, pipelines }) => {
  const draft = new Draft()
  convertVector([{ file: 'vector.json', text: JSON.stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const documents = draft.documents({ name: 'shop' })
  expect(documents).toHaveLength(pipelines)
  const specs = documents.map((document) => document.toJSON().spec)
  const transforms = specs.flatMap((spec) => spec.transforms as { name: string; inputs: string[] }[])
  const edges = specs.flatMap((spec) => spec.sinks as { name: string; inputs: string[] }[])
  const old = Object.entries(config.sinks as Record<string, ReturnType<typeof sink>>).flatMap(([name, { inputs }]) => {
    const all = inputs.includes('t*') ? Object.keys(config.transforms) : inputs
    return all.map((input) => `${input} -> ${name}`)
  })
  expect(edges.flatMap(({ name, inputs }) => inputs.map((input) => `${input} -> ${name}`)).toSorted()).toEqual(
    old.toSorted(),
  )
  expect(new Set(transforms.map(({ name }) => name))).toEqual(new Set(Object.keys(config.transforms)))
  for (const document of documents) expect(await lint(String(document))).toEqual([])
})

/** A path of filters and programs, of which each reads the one before it. */
const path = (count: number, step: (index: number) => object) => ({
  sources: { in: file(0) },
  transforms: entries(count, (index) => [
    `t${index}`,
    { inputs: [index === 0 ? 'in' : `t${index - 1}`], ...step(index) },
  ]),
  sinks: { out: sink(`t${count - 1}`) },
})
const convert = (config: object) =>
  converted(convertVector, [{ file: 'vector.json', text: JSON.stringify(config, null, 1) }])
const step = (index: number) =>
  index % 3 === 0
    ? { type: 'filter', condition: `n = "${index}"\n.message != n` }
    : { type: 'remap', source: index === 1 ? 'if .message == "stop" { abort }\n.n1 = 1' : `.n${index} = ${index}` }

test.each([
  { message: 'x', expected: { message: 'x', n1: 1, n2: 2, n88: 88, n89: 89 } },
  { message: '0', expected: undefined },
  { message: '87', expected: undefined },
  { message: 'stop', expected: undefined },
])('neighbouring programs of a path that is too long become one: $message', async ({ message, expected }) => {
  const { document, gaps, resource } = convert(path(90, step))
  expect(gaps).toEqual([])
  expect(resource.spec.transforms).toHaveLength(64)
  withTest(document, resource, { message }, expected)
  expect(await lint(String(document))).toEqual([])
})

test('programs that can fail stay alone, and those that do not fit are a gap', async () => {
  const { document, gaps, resource } = convert(
    path(70, (index) => ({ type: 'remap', source: `.n${index} = string!(.message)` })),
  )
  expect(gaps).toEqual([
    {
      file: 'vector.json',
      line: expect.any(Number),
      subject: 't64',
      reason:
        'a Pipeline may have 64 transforms; this path has 70, so `t64`, `t65`, `t66`, `t67`, `t68`, `t69` are left out',
      nearest: 'Write several of the programs as one, and convert again.',
    },
  ])
  expect(gaps[0]?.line).toBeGreaterThan(300)
  expect(resource.spec.sinks[0].inputs).toEqual(['t63'])
  expect(await lint(String(document))).toEqual([])
})
