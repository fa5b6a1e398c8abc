// Unit tests of a configuration run the real transforms and print a report for people.

import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig, loadConfigObject } from './load.ts'
import { renderProblems } from './render.ts'
import { runUnitTests } from './unit-tests.ts'

test('the report lists the passed tests, and the reason for each failure', async () => {
  const loaded = await loadConfig({ paths: [join(import.meta.dirname, 'testdata/unit-tests.yaml')], env: {} })
  if (!loaded.ok) throw new Error(renderProblems(loaded.problems))

  const { passed, text } = await runUnitTests(loaded.config)

  expect(passed).toBe(false)
  await expect(`${text}\n`).toMatchFileSnapshot('testdata/unit-tests.txt')
})

const transforms = {
  first: { type: 'remap', inputs: ['in'], source: '.seen = "first"', reroute_dropped: true },
  // One output contains the other.
  second: { type: 'remap', inputs: ['first', 'first.dropped'], source: '.seen = join!([.seen, "second"], " ")' },
  only_metrics: { type: 'remap', inputs: ['in'], source: '.tags.host = "a"' },
}

function run(...tests: object[]) {
  const loaded = loadConfigObject({
    sources: { in: { type: 'internal_metrics' } },
    transforms,
    sinks: { out: { type: 'blackhole', inputs: ['second', 'only_metrics'] } },
    tests,
  })
  if (!loaded.ok) throw new Error(renderProblems(loaded.problems))
  return runUnitTests(loaded.config)
}

test('events continue through the downstream transforms', async () => {
  const result = await run({
    name: 'chain',
    inputs: [{ insert_at: 'first', value: 'x' }],
    outputs: [
      { extract_from: 'second', conditions: ['.seen == "first second" && .message == "x"'], expected_event_count: 1 },
      { extract_from: ['first', 'second'], conditions: ['.seen == "first"'] },
      { extract_from: 'first.dropped', expected_event_count: 0 },
    ],
    no_outputs_from: ['only_metrics', 'first.dropped'],
  })

  expect(result.text).toContain('test chain ... passed')
  expect(result.passed).toBe(true)
})

test('metrics go in and are shown as JSON', async () => {
  const metric = { name: 'hits', kind: 'incremental', tags: { code: '200' }, counter: { value: 2 } }
  const result = await run({
    name: 'metric',
    inputs: [{ insert_at: 'only_metrics', type: 'metric', metric }],
    outputs: [{ extract_from: 'only_metrics', conditions: ['.tags.host == "b"'] }],
  })

  expect(result.passed).toBe(false)
  expect(result.text).toContain(
    '{"name":"hits","tags":{"code":["200"],"host":["a"]},"kind":"incremental","counter":{"value":2.0}}',
  )
})

test('an invalid input event fails only its own test', async () => {
  const good = { name: 'good', inputs: [{ insert_at: 'first', value: '' }], outputs: [{ extract_from: 'second' }] }
  const result = await run(
    { ...good, name: 'no metric', inputs: [{ insert_at: 'only_metrics', type: 'metric', metric: { name: 1 } }] },
    { ...good, name: 'no program', inputs: [{ insert_at: 'first', type: 'vrl', source: '. = ' }] },
    { ...good, name: 'no path', inputs: [{ insert_at: 'first', type: 'log', log_fields: { 'a..b': 1 } }] },
    good,
  )

  expect(result.text).toContain(
    'test no metric ... failed\ntest no program ... failed\ntest no path ... failed\ntest good ... passed',
  )
  expect(result.text).toContain('`name` of a metric must be a string')
  expect(result.text).toContain('error[E')
  expect(result.text).toContain('Invalid field path "a..b" in `log_fields`.')
})

test('a condition that does not compile is reported with its place', async () => {
  const result = await run({
    name: 'broken',
    inputs: [{ insert_at: 'first', value: '' }],
    outputs: [{ extract_from: 'second', conditions: ['.seen ==', 'true'] }],
  })

  expect(result.passed).toBe(false)
  expect(result.text).toContain('condition[0]: The condition does not compile')
  expect(result.text).not.toContain('condition[1]')
})

test('a configuration without tests passes', async () => {
  expect(await run()).toEqual({ passed: true, text: 'No tests found.', tests: [] })
})
