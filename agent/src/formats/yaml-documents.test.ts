// Small texts, or texts that look small, that are expensive for a YAML parser: each must give a problem at its position. Each text is read
// in a worker with little memory, which fails if a limit is not enforced.

import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { readYamlDocuments, yamlLimits } from './yaml-documents.ts'

const { depth, parts } = yamlLimits
const many = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => make(index))

/** Each anchor contains the previous one nine times. */
const nested = (levels: number, make: (inner: string, index: number) => string) =>
  ['a0: &a0 [x]', ...many(levels, (index) => `a${index + 1}: &a${index + 1} ${make(`*a${index}`, index)}`)].join('\n')

const attacks: readonly {
  readonly what: string
  readonly text: string
  readonly says: RegExp
  readonly line?: number
}[] = [
  { what: 'brackets', text: `a:\n  ${'['.repeat(100_000)}`, says: /nested deeper than 128/, line: 2 },
  { what: 'closed brackets', text: `a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`, says: /nested deeper than 128/ },
  { what: 'braces', text: `a: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`, says: /nested deeper than 128/ },
  { what: 'lists on one line', text: `a:\n  ${'- '.repeat(20_000)}1`, says: /nested deeper than 128/, line: 2 },
  { what: 'keys on one line', text: `${'? '.repeat(20_000)}1`, says: /nested deeper than 128/ },
  {
    what: 'blocks',
    text: many(1500, (level) => `${' '.repeat(level)}a:`).join('\n'),
    says: /nested deeper than 128/,
    line: depth + 1,
  },
  { what: 'just too deep', text: `a: ${'['.repeat(depth)}${']'.repeat(depth)}`, says: /nested deeper than 128/ },
  { what: 'parts', text: `[${'1,'.repeat(parts + 10)}]`, says: /more than 300000 parts/ },
  {
    what: 'length',
    text: `a: "${'x'.repeat(16 << 20)}"`,
    says: /^The text has \d+ characters; at most 16777216 are read/,
  },
  { what: 'lists of aliases', text: nested(9, (inner) => `[${many(9, () => inner).join()}]`), says: /alias/ },
  {
    what: 'merged aliases',
    text: nested(9, (inner, index) => `{<<: [${many(9, () => inner).join()}], k${index}: 1}`),
    says: /alias/,
  },
  { what: 'aliases', text: `a: &a v\nb: [${'*a,'.repeat(50_000)}]`, says: /[Aa]lias/ },
  {
    what: 'aliases of a large part',
    text: `a: &a [${'1,'.repeat(3000)}]\nb: [${'*a,'.repeat(200)}]`,
    says: /more than 300000 parts, with those that aliases repeat/,
  },
  {
    what: 'aliases that nest',
    text: nested(100, (inner) => `[[${inner}]]`),
    says: /[Aa]lias/,
  },
  {
    what: 'a part in itself',
    text: 'a:\n  - &a [*a, *a]',
    says: /The alias \*a refers to a part that contains it/,
    line: 2,
  },
  { what: 'a table in itself', text: 'a: &a {b: {c: *a}}', says: /refers to a part that contains it/ },
  { what: 'a merge of itself', text: 'a: &a {<<: *a}', says: /refers to a part that contains it/ },
  { what: 'a key twice', text: 'a: 1\nb: {c: 1, c: 2}', says: /Map keys must be unique/, line: 2 },
  { what: 'a key in quotes twice', text: '"a": 1\na: 2', says: /Map keys must be unique/, line: 2 },
  { what: 'an alias of nothing', text: 'a: *b', says: /Unresolved alias/ },
]

const source = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.module).then(({ readYamlDocuments }) => {
    const { documents, lines, problem } = readYamlDocuments(workerData.text)
    const found = problem ?? documents.flatMap(({ problems }) => problems)[0]
    const read = documents.filter(({ value }) => value !== undefined).length
    const line = found === undefined ? 0 : workerData.text.slice(0, found.offset).split('\\n').length
    parentPort.postMessage({ message: found?.message, line, read })
  })`

test.each(attacks)('$what: a problem in little memory', async ({ text, says, line = undefined }) => {
  const module = new URL('./yaml-documents.ts', import.meta.url).href
  const resourceLimits = { maxOldGenerationSizeMb: 256 }
  const worker = new Worker(source, {
    eval: true,
    workerData: { module, text },
    resourceLimits,
    execArgv: ['--conditions=source'],
  })
  const found = await new Promise<{ message?: string; line: number; read: number }>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  await worker.terminate()
  expect(found.message).toMatch(says)
  expect(found.read).toBe(0)
  if (line !== undefined) expect(found.line).toBe(line)
})

test('reads documents that users write as before', () => {
  const text = `x: &x {a: 1, b: 2}
y:
  <<: *x
  b: 3
z: [*x, *x]
"1": one
---
second: ${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}
`
  const { documents } = readYamlDocuments(text)
  const x = { a: 1, b: 2 }
  expect(documents.flatMap(({ problems }) => problems)).toEqual([])
  expect(documents[0]?.value).toEqual({ x, y: { a: 1, b: 3 }, z: [x, x], '1': 'one' })
  expect(documents).toHaveLength(2)
})

test('a table of very many keys is read at once', () => {
  const { documents } = readYamlDocuments(many(100_000, (index) => `k${index}: v`).join('\n'))
  expect(Object.keys(documents[0]?.value as object)).toHaveLength(100_000)
})
