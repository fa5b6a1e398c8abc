// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Members of an event for Splunk whose values are not plain texts: tags, fields, and variables of the environment.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from '../fluent-bit/convert.ts'
import { convertFluentd } from './convert.ts'

process.env['PENSTOCK_TEST_INDEX'] = 'main'
const given = { message: 'x', timestamp: '2026-01-01T00:00:00Z' }

test.each([
  { value: '${tag}', expected: 'a.b' },
  { value: 'x-${tag_parts[1]}', expected: 'x-b' },
  { value: `"#{ENV['PENSTOCK_TEST_INDEX']}"`, expected: 'main' },
  { value: 'plain', expected: 'plain' },
  { value: 'x-${$.kubernetes.namespace_name}', expected: 'x-' },
])('in Fluentd, $value is $expected', async ({ value, expected }) => {
  const text = `<source>\n  @type tail\n  path /a.log\n  tag a.b\n  <parse>\n    @type none\n  </parse>\n</source>\n<match **>\n  @type splunk_hec\n  hec_host s\n  hec_token t\n  index ${value}\n</match>\n`
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, given, { index: expected })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each(['${tag_suffix[1]}'])('in Fluentd, %s is a gap', (value) => {
  const text = `<source>\n  @type sample\n  tag a.b\n</source>\n<match **>\n  @type splunk_hec\n  hec_host s\n  hec_token t\n  sourcetype ${value}\n</match>\n`
  const { gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toContainEqual(expect.objectContaining({ subject: `splunk_hec: sourcetype ${value}` }))
})

test.each([
  { option: 'Event_Index', value: '${PENSTOCK_TEST_INDEX}', expected: 'main' },
  // Only the option with a key refers to fields.
  { option: 'Event_Index', value: '$log', expected: '$log' },
  { option: 'Event_Index_Key', value: '$log', expected: 'x' },
])('in Fluent Bit, $option $value is $expected', async ({ option, value, expected }) => {
  const text = `[INPUT]\n  Name tail\n  Path /a.log\n  Tag a\n[OUTPUT]\n  Name splunk\n  Match *\n  Host s\n  Splunk_Token t\n  ${option} ${value}\n`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, given, { index: expected })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { url: 'https://hec.example:443/proxy/services/collector', uri: 'https://hec.example:443/proxy/services/collector' },
  { url: 'http://hec.example/services/collector/event', uri: 'http://hec.example/services/collector/event' },
  { url: '"#{ENV[\'PENSTOCK_TEST_HEC_URL\']}"', uri: 'SECRET[env.PENSTOCK_TEST_HEC_URL]' },
  { url: 'https://${HEC}/services/collector', uri: 'https://SECRET[env.HEC]/services/collector' },
])('in Fluentd, full_url $url is the whole address', async ({ url, uri }) => {
  const text = `<source>\n  @type tail\n  path /a.log\n  tag a\n  <parse>\n    @type none\n  </parse>\n</source>\n<match **>\n  @type splunk_hec\n  full_url ${url}\n  hec_token t\n</match>\n`
  const { document, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const { spec } = document.toJS() as { spec: { sinks: { config: { uri?: string; tls?: unknown } }[] } }
  expect(spec.sinks[0]?.config.uri).toBe(uri)
})
