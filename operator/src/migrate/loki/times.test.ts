// Layouts of the stage `timestamp`, as Go reads them.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertPromtail } from '../promtail/convert.ts'

const readAt = '2026-01-01T00:00:00Z'

function convert(layout: string, more = '') {
  const text = `clients: [{ url: 'http://loki:3100/loki/api/v1/push' }]
scrape_configs:
- job_name: app
  static_configs: [{ labels: { job: app, __path__: /srv/app.log } }]
  pipeline_stages:
  - regex: { expression: '^(?P<t>.*)$' }
  - timestamp: { source: t, format: '${layout}', action_on_failure: skip${more} }
`
  return converted(convertPromtail, [{ file: 'promtail.yaml', text }])
}

test.each([
  ['2006-01-02 15:04:05', '2026-11-27 10:00:00,123', '2026-11-27T10:00:00.123Z'],
  ['2006-01-02 15:04:05.000', '2026-11-27 10:00:00,123', '2026-11-27T10:00:00.123Z'],
  ['2006-01-02 15:04:05,000', '2026-11-27 10:00:00.123', '2026-11-27T10:00:00.123Z'],
  ['2006-01-02 15:04:05,000000', '2026-11-27 10:00:00,123456', '2026-11-27T10:00:00.123456Z'],
  ['2006-01-02 15:04:05,999', '2026-11-27 10:00:00,5', '2026-11-27T10:00:00.5Z'],
  ['RFC3339', '2026-11-27T10:00:00,5+01:00', '2026-11-27T09:00:00.5Z'],
  ['2006-01-02T15:04:05Z07', '2026-11-27T10:00:00+01', '2026-11-27T09:00:00Z'],
  ['2006-01-02T15:04:05Z07', '2026-11-27T10:00:00Z', '2026-11-27T10:00:00Z'],
  ['2,Jan,2006 15:04:05', '27,Nov,2026 10:00:00', '2026-11-27T10:00:00Z'],
  ['Mon, 2 Jan 2006 3:04:05 PM', 'Sun, 7 Nov 2026 1:00:00 PM', '2026-11-07T13:00:00Z'],
  ['Jan _2 15:04:05 2006', 'nov  7 10:00:00 2026', '2026-11-07T10:00:00Z'],
  // Go does not read these.
  ['RFC3339', '2026-11-27T10:00:00+0100', readAt],
  ['RFC3339Nano', '2026-11-27 10:00:00Z', readAt],
  ['2006-01-02 15:04:05', '2026-1-2 10:00:00', readAt],
  ['2006-01-02 15:04:05.000', '2026-11-27 10:00:00.123456', readAt],
  ['2006-01-02 15:04:05.000', '2026-11-27 10:00:00', readAt],
  ['2006-01-02 03:04:05 pm', '2026-11-27 10:00:00 PM', readAt],
])('the layout %s reads %s', async (layout, text, time) => {
  const { document, resource, gaps } = convert(layout)
  expect(gaps).toEqual([])
  withTest(document, resource, { message: text, file: '/srv/app.log', timestamp: readAt }, { timestamp: time })
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['Local', 'timestamp: location', true],
  ['Nowhere/Land', 'stage timestamp', undefined],
])('the location %s has a row', (location, subject, isReplaced) => {
  const { gaps, resource } = convert('2006-01-02 15:04:05', `, location: ${location}`)
  expect(gaps.map((gap) => [gap.subject, gap.isReplaced])).toEqual([[subject, isReplaced]])
  expect(resource.spec.transforms[0].config.source.includes('timezone: "UTC"')).toBe(isReplaced === true)
})
