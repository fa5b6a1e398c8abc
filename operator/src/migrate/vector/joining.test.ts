// The transform `reduce` after a source: the source joins the lines if the transform does nothing else.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSource } from '@penstock/agent/testing/harness'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-joining-'))
afterAll(() => rmSync(folder, { recursive: true }))

const pods = { type: 'kubernetes_logs' }
const lines = { type: 'reduce', inputs: ['k'], merge_strategies: { message: 'concat_newline' } }
const ofPods = {
  ...lines,
  group_by: ['kubernetes.pod_uid', 'kubernetes.container_name', 'stream'],
  expire_after_ms: 2000,
}
const convert = (reduce: object, source: object = pods, more: object = {}) =>
  converted(convertVector, [
    {
      file: 'v.yaml',
      text: stringify({
        sources: { k: source },
        transforms: { r: reduce, ...more },
        sinks: { out: { type: 'console', inputs: ['r', ...Object.keys(more)], encoding: { codec: 'json' } } },
      }),
    },
  ])
const begins = String.raw`^\d{4}-\d{2}`

test.each([
  ['a call that aborts', `match!(.message, r'${begins}')`],
  ['a text for sure', `match(string!(.message), r'${begins}')`],
  ['a default', `match(string(.message) ?? "", r'${begins}')`],
  ['an error that is false', `match(.message, r'${begins}') ?? false`],
  [
    'the form of the documentation',
    `m, err = match(.message, r'${begins}');\nif err != null {\n  false;\n} else {\n  m;\n}`,
  ],
  ['a comment', `# the first line\nmatch!(.message, r'${begins}')\n`],
  ['a program as a table', { type: 'vrl', source: `match!(.message, r'${begins}')` }],
  ['a predicate', { type: 'check_fields', 'message.regex': begins }],
])('the beginning of an event is %s', async (_, starts_when) => {
  const { document, resource, gaps } = convert({ ...ofPods, starts_when })
  expect(resource.spec.sources[0].multiline).toEqual({
    custom: { start: '^', condition: begins, mode: 'halt_before', timeoutMs: 2000 },
  })
  expect(resource.spec.transforms.map(({ name }: { name: string }) => name)).toEqual(['k-fields'])
  expect(gaps).toMatchObject([{ subject: 'r', isReplaced: true, reason: expect.stringContaining('timestamp_end') }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [
    'a line other than a continuation',
    { starts_when: "!match!(.message, r'^\\s')" },
    ['^', '^\\s', 'continue_through'],
  ],
  ['the last line', { ends_when: "match!(.message, r'it\\'s over$')" }, ['^', "it's over$", 'end_with']],
  ['a last line without a sign', { ends_when: "!match(string!(.message), r'&$')" }, ['&$', '&$', 'continue_past']],
  [
    'several expressions',
    { starts_when: "match_any!(string!(.message), [r'^\\d', r'^\\['])" },
    ['^', '(?:^\\d)|(?:^\\[)', 'halt_before'],
  ],
  [
    'several tests',
    { starts_when: `starts_with(string!(.message), "a.b") || match(string!(.message), r'^x')` },
    ['^', '(?:^a\\.b)|(?:^x)', 'halt_before'],
  ],
  [
    'a text in any case',
    { ends_when: `contains(string!(.message), "end", case_sensitive: false)` },
    ['^', '(?i)end', 'end_with'],
  ],
])('an event is delimited by %s', (_, options, [start, condition, mode]) => {
  const { resource } = convert({ ...ofPods, ...options })
  expect(resource.spec.sources[0].multiline.custom).toMatchObject({ start, condition, mode })
})

test('a source of files has the rules among its options', async () => {
  const { document, resource } = convert(
    { ...lines, group_by: ['file', 'host'], starts_when: `match!(.message, r'${begins}')` },
    { type: 'file', include: ['/srv/*.log'] },
  )
  expect(resource.spec.sources[0].config).toEqual({
    include: ['/srv/*.log'],
    multiline: { start_pattern: '^', condition_pattern: begins, mode: 'halt_before', timeout_ms: 30_000 },
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const starts_when = `match!(.message, r'${begins}')`
test.each([
  ['groups by another field', { ...ofPods, starts_when, group_by: ['request_id'] }],
  ['does not separate containers', { ...ofPods, starts_when, group_by: ['kubernetes.pod_namespace'] }],
  ['collects messages', { ...ofPods, starts_when, merge_strategies: { message: 'array' } }],
  ['collects other fields', { ...ofPods, starts_when, merge_strategies: { message: 'concat_newline', n: 'sum' } }],
  ['tests another field', { ...ofPods, starts_when: `match!(.level, r'${begins}')` }],
  ['has two conditions', { ...ofPods, starts_when, ends_when: starts_when }],
  ['has another option', { ...ofPods, starts_when, end_every_period_ms: 5 }],
  ['has an expression that is not valid', { ...ofPods, starts_when: "match!(.message, r'(')" }],
])('a transform that %s stays a gap', (_, reduce) => {
  const { resource, gaps } = convert(reduce)
  expect(resource.spec.sources[0].multiline).toBeUndefined()
  expect(gaps).toMatchObject([{ subject: 'r: reduce', isAbsent: true }])
})

test('a source that others read, too, has a copy that joins lines', async () => {
  const { document, resource, gaps } = convert({ ...ofPods, starts_when }, pods, {
    other: { type: 'filter', inputs: ['k'], condition: 'true' },
  })
  expect(resource.spec.sources.map(({ name, multiline }: Entry) => [name, multiline?.custom.mode])).toEqual([
    ['k', undefined],
    ['k-r', 'halt_before'],
  ])
  expect(resource.spec.sinks).toMatchObject([{ inputs: ['k-r-fields', 'other'] }])
  expect(gaps.map(({ subject, line, isReplaced }) => [subject, line, isReplaced])).toEqual([
    ['r', 5, true],
    ['r', 5, true],
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

interface Entry {
  readonly name: string
  readonly inputs?: readonly string[]
  readonly multiline?: { readonly custom: { readonly mode: string } }
}

/** Transforms between the source and `r`, which reads the last of them. */
const chain = (transforms: Readonly<Record<string, object>>, last: string) => {
  const out = { type: 'console', inputs: ['r'], encoding: { codec: 'json' } }
  const rest = { type: 'console', inputs: ['r*._unmatched'], encoding: { codec: 'json' } }
  const read = Object.keys(transforms).some((name) => name === 'rest')
  const config = {
    sources: { pods },
    transforms: { ...transforms, r: { ...ofPods, starts_when, inputs: [last] } },
    sinks: { out, ...(read && { other: rest }) },
  }
  return converted(convertVector, [{ file: 'v.yaml', text: stringify(config) }])
}

const java = '.kubernetes.pod_labels.lang == "java"'
test.each([
  ['a filter by labels', { f: { type: 'filter', inputs: ['pods'], condition: java } }, 'f'],
  ['a route by labels', { by: { type: 'route', inputs: ['pods'], route: { java, all: 'true' } } }, 'by.java'],
  [
    'events that no route takes',
    { by: { type: 'exclusive_route', inputs: ['pods'], routes: [{ name: 'java', condition: java }] } },
    'by._unmatched',
  ],
  [
    'a field of the pod',
    {
      m: { type: 'remap', inputs: ['pods'], source: '.app = .kubernetes.pod_labels.app\ndel(.stream)' },
      f: { type: 'filter', inputs: ['m'], condition: '.app == "web"' },
    },
    'f',
  ],
])('the source joins lines before %s', async (_, transforms, last) => {
  const { document, resource, gaps } = chain(transforms, last)
  expect(resource.spec.sources).toMatchObject([{ multiline: { custom: { condition: begins } } }])
  expect(gaps.every(({ isReplaced }) => isReplaced)).toBe(true)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['drops lines', { f: { type: 'filter', inputs: ['pods'], condition: '.message != ""' } }, 'f'],
  ['changes lines', { m: { type: 'remap', inputs: ['pods'], source: '.message = strip_whitespace!(.message)' } }, 'm'],
  ['copies lines', { m: { type: 'remap', inputs: ['pods'], source: '.text = .message' } }, 'm'],
  ['reads the clock', { m: { type: 'remap', inputs: ['pods'], source: '.at = now()' } }, 'm'],
  ['replaces the event', { m: { type: 'remap', inputs: ['pods'], source: '. = { "kubernetes": .kubernetes }' } }, 'm'],
  ['changes the groups', { m: { type: 'remap', inputs: ['pods'], source: '.kubernetes.pod_uid = "x"' } }, 'm'],
  ['selects at random', { s: { type: 'sample', inputs: ['pods'], rate: 2 } }, 's'],
])('a transform before it that %s keeps it a gap', (_, transforms, last) => {
  const { resource, gaps } = chain(transforms, last)
  expect(resource.spec.sources[0].multiline).toBeUndefined()
  expect(gaps).toContainEqual(expect.objectContaining({ subject: 'r: reduce', isAbsent: true }))
})

test('only shared components get copies', () => {
  const text = stringify({
    sources: { pods },
    transforms: {
      named: { type: 'remap', inputs: ['pods'], source: '.app = .kubernetes.pod_labels.app' },
      java: { type: 'filter', inputs: ['named'], condition: '.app == "java"' },
      r: { ...ofPods, starts_when, inputs: ['java'] },
      others: { type: 'filter', inputs: ['named'], condition: '.app != "java"' },
    },
    sinks: { out: { type: 'console', inputs: ['r', 'others'], encoding: { codec: 'json' } } },
  })
  const { resource } = converted(convertVector, [{ file: 'v.yaml', text }])
  const { sources, transforms } = resource.spec as { sources: Entry[]; transforms: Entry[] }
  expect(sources.map(({ name }) => name)).toEqual(['pods', 'pods-r'])
  expect(transforms.map(({ name, inputs }) => [name, inputs])).toEqual([
    ['pods-fields', ['pods']],
    ['pods-r-fields', ['pods-r']],
    ['named', ['pods-fields']],
    ['named-r', ['pods-r-fields']],
    ['java', ['named-r']],
    ['others', ['named']],
  ])
})

test('copies do not match the patterns of other components', () => {
  const { resource, gaps } = chain({ rest: { type: 'route', inputs: ['pods'], route: { java } } }, 'rest.java')
  expect(resource.spec.sources).toHaveLength(1)
  expect(gaps).toContainEqual(expect.objectContaining({ subject: 'r: reduce', isAbsent: true }))
})

const input = ['one;', 'two', 'three;', 'BEGIN', ' a', ' b', 'BEGIN', 'four;', '', ';', ' five', 'six']

/** The events of the old transform. */
function reduced(options: Readonly<Record<string, (line: string) => boolean>>): string[] {
  const events: string[] = []
  let lines: string[] = []
  const flush = () => {
    if (lines.length > 0) events.push(lines.join('\n'))
    lines = []
  }
  for (const line of input) {
    if (options['starts_when']?.(line)) flush()
    lines.push(line)
    if (options['ends_when']?.(line)) flush()
  }
  flush()
  return events
}

test.each([
  ['starts_when', "match(string!(.message), r'^BEGIN')", (line: string) => line.startsWith('BEGIN')],
  ['starts_when', "!match(string!(.message), r'^\\s')", (line: string) => !/^\s/.test(line)],
  ['ends_when', "match(string!(.message), r';$')", (line: string) => line.endsWith(';')],
  ['ends_when', "!match(string!(.message), r'^[a-z ]')", (line: string) => !/^[a-z ]/.test(line)],
])('the source joins the same lines by `%s: %s`', async (name, condition, holds) => {
  const reduce = { ...lines, group_by: ['file'], [name]: condition, expire_after_ms: 50 }
  const file = join(folder, `${name}-${condition.length}.log`)
  writeFileSync(file, `${input.join('\n')}\n`)
  const { resource } = convert(reduce, { type: 'file', include: [file] })
  const expected = reduced({ [name]: holds })
  await using source = await startSource('file', { ...resource.spec.sources[0].config, read_from: 'beginning' })
  await source.received(expected.length)
  expect(source.sent.map((event) => String((event as { fields: Record<string, unknown> }).fields['message']))).toEqual(
    expected,
  )
})

test('lines can be joined by spaces', async () => {
  const { document, resource } = convert({ ...ofPods, starts_when, merge_strategies: { message: 'concat' } })
  expect(resource.spec.transforms.map(({ name }: Entry) => name)).toEqual(['k-fields', 'r'])
  withTest(document, resource, { message: '2026-01 a\nb\nc' }, { message: '2026-01 a b c' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
