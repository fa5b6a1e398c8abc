import { expect, test } from 'vitest'
import { PenstockError } from './errors.ts'
import { LogEvent } from './event/log.ts'
import { MetricEvent } from './event/metric.ts'
import { Float } from './event/value.ts'
import { compileTemplate, maxJoinedLength, templateProblem } from './template.ts'
import { at, log } from './testing/events.ts'

const event = log({
  timestamp: '2026-01-02T03:04:05.678Z',
  app: 'web',
  status: 200,
  whole: new Float(3),
  none: null,
  ok: true,
  when: at('2026-02-03T00:00:00.5Z'),
  kubernetes: { pod: { name: 'p-1' }, labels: { 'app.io/name': 'shop' } },
  list: [1, 'two'],
})

test.each([
  ['plain text', 'plain text'],
  ['penstock-%Y.%m.%d', 'penstock-2026.01.02'],
  ['%H:%M:%S %%', '03:04:05 %'],
  ['%s and %3f', '1767323045 and 678'],
  ['{{ app }}-%Y/{{status}}', 'web-2026/200'],
  ['{{ kubernetes.pod.name }}', 'p-1'],
  ['{{ .kubernetes.labels."app.io/name" }}', 'shop'],
  ['{{ list[1] }}', 'two'],
  ['{{ list }}', '[1,"two"]'],
  ['{{ whole }} {{ none }} {{ ok }} {{ when }}', '3 <null> true 2026-02-03T00:00:00.500Z'],
  ['', ''],
])('%s renders as %s', (text, rendered) => {
  const template = compileTemplate(text)
  expect(template.render(event)).toBe(rendered)
  expect(template.render(event)).toBe(rendered)
})

test('a missing field gives no text, and its name', () => {
  const template = compileTemplate('{{ app }} {{ a.b }} {{ c }}')
  expect(template.render(event)).toBeUndefined()
  expect(template.missing(event)).toEqual(['a.b', 'c'])
  expect(template.paths).toHaveLength(3)
})

test('fields that are too long together result in no text, and a single field in its own text', () => {
  const long = log({ a: 'x'.repeat(maxJoinedLength / 2), b: 'x'.repeat(2 * maxJoinedLength) })
  const twice = compileTemplate('{{ a }}{{ a }}')
  const threeTimes = compileTemplate('{{ a }}{{ a }}{{ a }}')
  expect(twice.render(long)).toHaveLength(maxJoinedLength)
  expect(threeTimes.render(long)).toBeUndefined()
  expect(threeTimes.missing(long)).toEqual([])
  expect(compileTemplate('{{ b }}').render(long)).toHaveLength(2 * maxJoinedLength)
})

test('a template without fields and times is static, also with an escaped percent sign', () => {
  expect(compileTemplate('a').isStatic).toBe(true)
  expect(compileTemplate('100%%').isStatic).toBe(true)
  expect(compileTemplate('100%%').render(event)).toBe('100%')
  expect(compileTemplate('%Y').isStatic).toBe(false)
  expect(compileTemplate('{{ a }}').isStatic).toBe(false)
})

test('the text follows the day of each event, in any order', () => {
  const template = compileTemplate('i-%F')
  const days = ['2026-01-01T23:59:59Z', '2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z', '1969-12-31T23:00:00Z']
  expect(days.map((timestamp) => template.render(log({ timestamp })))).toEqual([
    'i-2026-01-01',
    'i-2026-01-02',
    'i-2026-01-01',
    'i-1969-12-31',
  ])
})

test('without a timestamp, the current time counts, and the timestamp key is configurable', () => {
  expect(compileTemplate('%Y').render(new LogEvent({ message: 'x' }))).toBe(String(new Date().getUTCFullYear()))
  expect(compileTemplate('%Y', 'ts').render(new LogEvent({ ts: at('1999-01-01T00:00:00Z') }))).toBe('1999')
})

test('metrics have a name, a namespace, tags and a timestamp', () => {
  const metric = new MetricEvent({
    name: 'requests',
    namespace: 'app',
    kind: 'incremental',
    value: { type: 'counter', value: 1 },
    tags: new Map([['host', 'web-1']]),
    timestamp: at('2026-01-02T03:04:05Z'),
  })
  expect(compileTemplate('{{ namespace }}_{{ name }} {{ tags.host }} %d').render(metric)).toBe('app_requests web-1 02')
  expect(compileTemplate('{{ tags.none }}').missing(metric)).toEqual(['tags.none'])
  expect(compileTemplate('{{ value }}').render(metric)).toBeUndefined()
})

test.each([
  ['{{ a..b }}', 'Invalid field path in template "{{ a..b }}"'],
  ['{{ }}', 'Invalid field path in template "{{ }}"'],
  ['%E', 'Invalid strftime item in template "%E"'],
  ['50%', 'Invalid strftime item in template "50%"'],
])('%s is refused', (text, problem) => {
  expect(templateProblem(text)).toBe(problem)
  expect(() => compileTemplate(text)).toThrow(PenstockError)
})

test('a valid template has no problem', () => {
  expect(templateProblem('{{ a }}-%Y')).toBeUndefined()
})
