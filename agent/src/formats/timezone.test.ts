import { expect, test } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import { components } from '../registry.ts'
import { problemsOf } from '../testing/harness.ts'
import { findZone } from './timezone.ts'

/** Options of the components that have a time zone. */
const options: Readonly<Record<string, (timezone: string) => object>> = {
  'source orchestrator_logs': (timezone) => ({ timezone }),
  'transform remap': (timezone) => ({ source: '.', timezone }),
  'transform metric_to_log': (timezone) => ({ timezone }),
  'sink search_engine': (timezone) => ({ endpoints: ['http://h'], metrics: { timezone } }),
}

function globalProblems(timezone: string): string[] {
  const loaded = loadConfigObject({
    timezone,
    sources: { in: { type: 'demo_logs', format: 'json' } },
    sinks: { out: { type: 'blackhole', inputs: ['in'] } },
  })
  return loaded.ok ? [] : loaded.problems.map(({ path }) => path)
}

test('the table above contains every component with a time zone', () => {
  const found = components.filter((component) => JSON.stringify(component.options).includes('"timezone":'))
  expect(found.map(({ kind, type }) => `${kind} ${type}`).toSorted()).toEqual(Object.keys(options).toSorted())
})

// `Intl` also accepts offsets, which the functions for times do not know: they would use UTC instead.
test.each(['+02:00', '-0500', 'UTC+2', 'Mars/Base', ''])('no option accepts `%s` as a time zone', (name) => {
  expect(findZone(name)).toBeUndefined()
  for (const [component, given] of Object.entries(options)) {
    const [kind, type] = component.split(' ') as ['source' | 'transform' | 'sink', string]
    const paths = problemsOf(kind, type, given(name)).map(({ path }) => path)
    expect([component, ...paths]).toEqual([component, kind === 'sink' ? 'metrics.timezone' : 'timezone'])
  }
  expect(globalProblems(name)).toEqual(['timezone'])
})

test.each(['UTC', 'local', 'Europe/Berlin', 'EST5EDT'])('every option accepts `%s` as a time zone', (name) => {
  expect(findZone(name)).toBeDefined()
  for (const [component, given] of Object.entries(options)) {
    const [kind, type] = component.split(' ') as ['source' | 'transform' | 'sink', string]
    expect([component, ...problemsOf(kind, type, given(name))]).toEqual([component])
  }
  expect(globalProblems(name)).toEqual([])
})
