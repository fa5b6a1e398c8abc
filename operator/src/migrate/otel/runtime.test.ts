// Parsers for lines of the container runtime, which the source reads itself: groups have any names, and conditions or a router choose
// among formats.

import { expect, test } from 'vitest'
import { converted, type Given, problems, record } from '../../testing/collector.ts'

const receiver = { include: ['/var/log/pods/*/*/*.log'], include_file_name: false }
const line = {
  message: '{"n":"x"}',
  stream: 'stderr',
  file: '/var/log/pods/shop_web-1_abc-1/app/3.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: {},
}
const missing = (given: Given) => converted(given).gaps.filter(({ isReplaced }) => isReplaced !== true)

const named = [
  { type: 'regex_parser', regex: '^(?P<ts>[^ ]+) (?P<out>stdout|stderr) (?P<tag>[^ ]+) (?P<text>.*)$' },
  { type: 'recombine', combine_field: 'attributes.text', is_last_entry: "attributes.tag == 'F'", combine_with: '' },
  { type: 'move', from: 'attributes.text', to: 'body' },
]

test.each([
  ['groups with other names', named, '{"ts": "2026-01-01T00:00:00.000000000Z", "out": "stderr", "tag": "F"}'],
  [
    'a pattern for the text only',
    [
      { type: 'regex_parser', regex: '^\\S+ (?:stdout|stderr) [FP] (?P<content>.*)$' },
      { type: 'move', from: 'attributes.content', to: 'body' },
    ],
    '{}',
  ],
  [
    'conditions',
    [
      {
        type: 'regex_parser',
        if: 'not (body matches "^\\\\{")',
        regex: '^(?P<time>[^ Z]+) (?P<stream>stdout|stderr) (?P<logtag>[^ ]*) ?(?P<log>.*)$',
      },
      { type: 'json_parser', if: 'body matches "^\\\\{"' },
      { type: 'move', from: 'attributes.log', to: 'body' },
      { type: 'remove', field: 'attributes.time' },
    ],
    '{"stream": "stderr", "logtag": "F"}',
  ],
])('lines of pods become the records of parsers with %s', async (_, operators, attributes) => {
  const given: Given = { receiver, operators }
  expect(missing(given)).toEqual([])
  const assert = `.message == "{\\"n\\":\\"x\\"}" && .attributes == ${attributes}`
  expect(await problems(given, 0, line, assert)).toEqual([])
})

test('a parser behind the one for the runtime reads the text of the program', async () => {
  const own = { type: 'regex_parser', regex: '^(?P<a>\\S+) (?P<b>\\S+) (?P<c>\\S+) (?P<d>.*)$' }
  const given: Given = { receiver, operators: [...named, own] }
  const event = { ...line, message: 'one two three four five' }
  expect(await problems(given, 0, event, '.attributes.b == "two" && .attributes.d == "four five"')).toEqual([])
})

test('a body that stays the whole line is a gap', () => {
  const [parser] = named
  expect(missing({ receiver, operators: [parser ?? {}] }).map(({ subject }) => subject)).toEqual(['filelog: body'])
})

test.each([
  {
    format: 'docker',
    message: '{"log":"hello\\n","stream":"stderr","time":"2024-05-01T10:00:00.25Z","attrs":{"tag":"t"}}',
    assert: '.message == "hello\\n" && .attributes.attrs.tag == "t" && !exists(.attributes.logtag)',
  },
  {
    format: undefined,
    message: '2024-05-01T10:00:00.25Z stderr F hello',
    assert: '.message == "hello" && .attributes.logtag == "F"',
  },
])('the operator container reads lines of files with the format $format', async ({ format, message, assert }) => {
  const operators = [{ type: 'container', format, add_metadata_from_filepath: false }]
  const event = record({ message })
  const time = ".timestamp == t'2024-05-01T10:00:00.25Z'"
  const parts = [assert, '.attributes."log.iostream" == "stderr"', '!exists(.attributes.time)', time]
  expect(await problems({ operators }, 1, event, parts.join(' && '))).toEqual([])
})

test('logs of pods below another folder are those of the host', async () => {
  const include = ['/host/var/log/pods/*/*/*.log']
  const given: Given = {
    receiver: { ...receiver, include, exclude: ['/host/var/log/pods/pay_*/*/*.log'] },
    operators: named,
  }
  const { gaps, spec } = converted(given)
  expect(gaps.map(({ subject }) => subject)).toContain('filelog: include')
  expect(spec.sources[0].type).toBe('orchestrator_logs')
  expect(await problems(given, 0, line, '.message == "{\\"n\\":\\"x\\"}"')).toEqual([])
  const other = { ...line, file: line.file.replace('shop', 'pay') }
  expect(await problems(given, 0, other, undefined)).toEqual([])
})

test.each([
  ['/var/log/pods/{shop,pay}_*/*/*.log', true],
  ['/var/log/pods/{pay,bank}_*/*/*.log', false],
  ['/var/log/pods/[st]hop_*/**/*.log', true],
  ['/var/log/pods/[!s]hop_*/**/*.log', false],
  ['/var/log/pods/shop_*/**/app/*.log', true],
])('the pattern %s reads the file: %s', async (pattern, isRead) => {
  const given: Given = { receiver: { ...receiver, include: [pattern] }, operators: [{ type: 'container' }] }
  const assert = isRead ? '.message == "{\\"n\\":\\"x\\"}"' : undefined
  expect(await problems(given, 0, line, assert)).toEqual([])
})
