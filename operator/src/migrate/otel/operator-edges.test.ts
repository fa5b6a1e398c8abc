// Operators and receivers at their edges, as the sources of the collector define them: missing and odd values, failures, and the kinds of
// numbers.

import { expect, test } from 'vitest'
import { type Case, converted, type Given, problems, record } from '../../testing/collector.ts'

const one = (type: string, options: object = {}): Given => ({ operators: [{ type, ...options }] })
const epoch = (layout: string) => one('time_parser', { parse_from: 'attributes.t', layout_type: 'epoch', layout })
const unchanged = ".timestamp == t'2026-01-01T00:00:00Z'"

const operators: readonly Case[] = [
  { name: 'a missing epoch does not change the time', given: epoch('s'), record: {}, assert: unchanged },
  {
    name: 'a boolean does not change the time',
    given: epoch('ms'),
    record: { attributes: { t: true } },
    assert: unchanged,
  },
  {
    name: 'an epoch with a fraction keeps its last digit',
    given: epoch('s.ms'),
    record: { attributes: { t: 1700000000.123 } },
    assert: ".timestamp == t'2023-11-14T22:13:20.123Z'",
  },
  {
    name: 'an epoch with microseconds keeps its last digit',
    given: epoch('s.us'),
    record: { attributes: { t: 1700000000.123457 } },
    assert: ".timestamp == t'2023-11-14T22:13:20.123457Z'",
  },
  {
    name: 'an epoch in a text keeps all nanoseconds',
    given: epoch('s.ns'),
    record: { attributes: { t: '1700000000.123456789' } },
    assert: ".timestamp == t'2023-11-14T22:13:20.123456789Z'",
  },
  {
    name: 'an epoch in a text without its fraction does not change the time',
    given: epoch('s.ns'),
    record: { attributes: { t: '1700000000' } },
    assert: unchanged,
  },
  ...[
    { layout: '%Y-%m-%d', text: '2024-05-01', time: '2024-05-01T00:00:00Z' },
    { layout: '%b %g %Y %l%p', text: 'May 1 2024 7PM', time: '2024-05-01T19:00:00Z' },
    { layout: '%Y-%m', text: '2024-05', time: '2024-05-01T00:00:00Z' },
    { layout: '%Y', text: '2024', time: '2024-01-01T00:00:00Z' },
  ].map(({ layout, text, time }) => ({
    name: `a time without some parts, by ${layout}`,
    given: one('time_parser', { parse_from: 'attributes.t', layout }),
    record: { attributes: { t: text } },
    assert: `.timestamp == t'${time}'`,
  })),
  ...[
    ['2006.01.02 15:04:05.999999', '2024.05.03 10:11:12.250001', '2024-05-03T10:11:12.250001Z'],
    ['2006.01.02 15.04.05', '2024.05.03 10.11.12', '2024-05-03T10:11:12Z'],
    ['02.01.2006 15:04:05', '03.05.2024 10:11:12', '2024-05-03T10:11:12Z'],
    ['02.01.06 15:04:05.000', '03.05.24 10:11:12.250', '2024-05-03T10:11:12.25Z'],
    ['2.1.2006 3:4:5 PM', '3.5.2024 7:8:9.5 PM', '2024-05-03T19:08:09.5Z'],
    ['2006.002 15:04:05', '2024.124 10:11:12', '2024-05-03T10:11:12Z'],
    ['2006-01-02 15:04:05,000', '2024-05-03 10:11:12,250', '2024-05-03T10:11:12.25Z'],
    ['2006,01,02 15:04:05,999999', '2024,05,03 10:11:12,250001', '2024-05-03T10:11:12.250001Z'],
    ['2006-01-02T15:04:05.999999999Z07:00', '2024-05-03T10:11:12.25+02:00', '2024-05-03T08:11:12.25Z'],
    ['2006-01-02T15:04:05.00Z07:00', '2024-05-03T10:11:12.25Z', '2024-05-03T10:11:12.25Z'],
    ['Mon Jan _2 15:04:05.000 2006', 'Fri May  3 10:11:12.250 2024', '2024-05-03T10:11:12.25Z'],
    ['02_01_2006 15:04:05', '03_05_2024 10:11:12', '2024-05-03T10:11:12Z'],
    ['15:04:05.000 02.01.2006', '10:11:12.250 03.05.2024', '2024-05-03T10:11:12.25Z'],
    ['20060102.150405', '20240503.101112', '2024-05-03T10:11:12Z'],
    ['20060102.030405PM', '20240503.071112PM', '2024-05-03T19:11:12Z'],
  ].map(([layout, text, time]) => ({
    name: `a layout of Go, ${layout}`,
    given: one('time_parser', { parse_from: 'attributes.t', layout_type: 'gotime', layout }),
    record: { attributes: { t: text } },
    assert: `.timestamp == t'${time}'`,
  })),
  {
    name: 'numbers in JSON are floats',
    given: one('json_parser'),
    record: { message: '{"n": 200, "o": {"l": [1, "x", 2.5]}}' },
    assert:
      '.attributes.n == 200 && is_float(.attributes.n) && is_float(.attributes.o.l[0]) && .attributes.o.l[1] == "x"',
  },
  {
    name: 'numbers in JSON are integers on demand',
    given: one('json_parser', { parse_ints: true }),
    record: { message: '{"n": 200, "m": 2.5}' },
    assert: 'is_integer(.attributes.n) && .attributes.m == 2.5',
  },
  {
    name: 'a number in JSON has a severity and is in a list of integers',
    given: {
      operators: [
        { type: 'json_parser', severity: { parse_from: 'attributes.level', mapping: { info: 30, error: [50] } } },
        { type: 'add', field: 'attributes.hit', value: true, if: 'attributes.level in [10, 30]' },
      ],
    },
    record: { message: '{"level": 30}' },
    assert: '.severity_number == 9 && .severity_text == "30" && .attributes.hit == true',
  },
  {
    name: 'a parser sets the body, the trace and the scope',
    given: one('json_parser', {
      body: 'attributes.msg',
      trace: { trace_id: { parse_from: 'attributes.t' }, span_id: { parse_from: 'attributes.s' } },
      scope_name: { parse_from: 'attributes.logger' },
    }),
    record: {
      message: '{"msg": "hi", "t": "0AF7651916CD43DD8448EB211C80319C", "s": "00f067aa0ba902b7", "logger": "app"}',
    },
    assert:
      '.message == "hi" && .trace_id == "0af7651916cd43dd8448eb211c80319c" && .span_id == "00f067aa0ba902b7" && .scope.name == "app"',
  },
  {
    name: 'on_error: drop discards a record whose time cannot be parsed',
    given: one('json_parser', { on_error: 'drop', timestamp: { parse_from: 'attributes.t', layout: '%Y-%m-%d' } }),
    record: { message: '{"t": "soon"}' },
  },
  {
    name: 'on_error: drop keeps a record whose time can be parsed',
    given: one('json_parser', { on_error: 'drop', timestamp: { parse_from: 'attributes.t', layout: '%Y-%m-%d' } }),
    record: { message: '{"t": "2024-05-01"}' },
    assert: ".timestamp == t'2024-05-01T00:00:00Z'",
  },
  {
    name: 'on_error: drop discards a record without a severity',
    given: one('severity_parser', { on_error: 'drop_quiet', parse_from: 'attributes.level' }),
    record: {},
  },
  {
    name: 'on_error: drop discards a record without the field to move',
    given: one('move', { on_error: 'drop', from: 'attributes.a', to: 'attributes.b' }),
    record: {},
  },
  {
    name: 'on_error: drop discards a record without the field to remove',
    given: one('remove', { on_error: 'drop', field: 'attributes.a' }),
    record: {},
  },
  {
    name: 'an operator passes records to all of its outputs',
    given: {
      operators: [
        { type: 'noop', output: ['a', 'b'] },
        { type: 'add', id: 'a', field: 'attributes.a', value: 1, output: 'end' },
        { type: 'filter', id: 'b', expr: 'true' },
        { type: 'noop', id: 'end' },
      ],
    },
    record: {},
    assert: '.attributes == {"a": 1}',
  },
  {
    name: 'a filter discards records for which its expression fails',
    given: one('filter', { expr: 'attributes.n > 5' }),
    record: {},
  },
  {
    name: 'a filter discards records whose body is an object',
    given: one('filter', { expr: 'body contains "noise"' }),
    record: { message: { a: 1 } },
  },
  {
    name: 'a filter keeps records that a test before the failing part decides',
    given: one('filter', { expr: 'attributes.n != nil && attributes.n > 5' }),
    record: {},
    assert: '.message == "m"',
  },
  {
    name: 'a filter keeps records without the text',
    given: one('filter', { expr: 'attributes.level matches "^debug$"' }),
    record: {},
    assert: '.message == "m"',
  },
  {
    name: 'a condition that fails below a negation is false',
    given: one('add', { field: 'attributes.a', value: 1, if: 'not (attributes.n < 5)' }),
    record: {},
    assert: '.attributes == {}',
  },
  {
    name: 'a missing text matches nothing, so a negation is true',
    given: one('add', { field: 'attributes.a', value: 1, if: 'not (attributes.level matches "x")' }),
    record: {},
    assert: '.attributes.a == 1',
  },
  {
    name: 'expressions split and replace texts',
    given: {
      operators: [
        { type: 'add', field: 'attributes.a', value: 'EXPR(split(body, " ")[1])' },
        { type: 'add', field: 'attributes.b', value: 'EXPR(replace(body, "two", "$1"))' },
        { type: 'add', field: 'attributes.c', value: 1, if: 'hasPrefix(body, "one") and not hasSuffix(body, "one")' },
      ],
    },
    record: { message: 'one two' },
    assert: '.attributes == {"a": "two", "b": "one $1", "c": 1}',
  },
  {
    name: 'retain keeps times, and no severity or trace',
    given: one('retain', { fields: ['attributes.a'] }),
    record: {
      attributes: { a: 1, b: 2 },
      severity_number: 9,
      severity_text: 'INFO',
      trace_id: 'x',
      scope: { name: 'n' },
    },
    assert: `${unchanged} && .attributes == {"a": 1} && !exists(.severity_number) && !exists(.severity_text) && !exists(.trace_id) && !exists(.scope)`,
  },
  ...[
    { text: 'a=1 b="x y" c=\'z\'', pairs: { a: '1', b: 'x y', c: 'z' } },
    { text: 'a=1 a=2  b==3', pairs: { a: '2', b: '=3' } },
    { text: 'a=pre"x y"post', pairs: { a: 'prex ypost' } },
    { text: 'a=1 word b=2', pairs: undefined },
    { text: "a=it's", pairs: undefined },
    { text: 'a = 1', pairs: undefined },
  ].map(({ text, pairs }) => ({
    name: `key_value_parser reads ${text}`,
    given: one('key_value_parser', { parse_to: 'attributes.kv' }),
    record: { message: text },
    assert: pairs === undefined ? '!exists(.attributes.kv)' : `.attributes.kv == ${JSON.stringify(pairs)}`,
  })),
]

test.each(operators)('operators: $name', async ({ given, record: more, assert }) => {
  expect(await problems(given, 1, record(more), assert)).toEqual([])
})

const line = (message: string) => ({ message, file: '/srv/app.log', timestamp: '2026-01-01T00:00:00Z' })
const podLine = (message: string) => ({
  message,
  stream: 'stdout',
  file: '/var/log/pods/shop_web-1_abc-1/app/3.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: { pod_name: 'web-1', pod_namespace: 'shop', pod_uid: 'abc-1', container_name: 'app' },
})
const pods: Given = {
  operators: [{ type: 'container' }],
  receiver: { include: ['/var/log/pods/*/*/*.log'] },
}

test.each([
  { name: 'an empty line of a file is skipped', given: {}, event: line(' \t'), assert: undefined },
  {
    name: 'a line of a file loses white space at its ends',
    given: {},
    event: line(' a b\r'),
    assert: '.message == "a b"',
  },
  {
    name: 'a line of a file keeps white space on demand',
    given: { receiver: { preserve_leading_whitespaces: true, preserve_trailing_whitespaces: true } },
    event: line(' a '),
    assert: '.message == " a "',
  },
  {
    name: 'a line of a pod loses white space at its end',
    given: pods,
    event: podLine('  a b \r'),
    assert: '.message == "  a b"',
  },
  { name: 'an empty line of a pod is a record', given: pods, event: podLine(''), assert: '.message == ""' },
])('lines: $name', async ({ given, event, assert }) => {
  expect(await problems(given, 0, event, assert)).toEqual([])
})

test('lines of files may be as long as in the collector', () => {
  const limitOf = (receiver: Given['receiver']) =>
    converted({ receiver: { ...receiver } }).spec.sources[0].config.max_line_bytes
  expect([limitOf({}), limitOf({ max_log_size: '2MiB' })]).toEqual([1024 ** 2, 2 * 1024 ** 2])
})

test.each([
  { overwrite_with: undefined, rows: 1 },
  { overwrite_with: 'oldest', rows: 0 },
])(
  'the time of joined lines with overwrite_with $overwrite_with is reported in $rows row(s)',
  ({ overwrite_with, rows }) => {
    const recombine = { type: 'recombine', combine_field: 'body', is_first_entry: 'body matches "^a"', overwrite_with }
    const { gaps } = converted({ operators: [recombine] })
    expect(gaps.filter(({ reason }) => reason.includes('first line'))).toHaveLength(rows)
  },
)

process.env['AGENT_SELF_NODE_NAME'] = 'n1'
const node = (variable: string) => '$'.concat(variable)
const nodeTest = (options: Given, field: string, value = 'n1') => ({
  name: `${JSON.stringify(options)}`,
  given: options,
  assert: `${field} == "${value}"`,
})
const added = (value: string) => one('add', { field: 'attributes.node', value })
const action = (options: object) => ({ attributes: { actions: [{ key: 'node', ...options }] } })

const nodeCases = [
  nodeTest(added(node('{env:K8S_NODE_NAME}')), '.attributes.node'),
  nodeTest(added(node('{NODE_NAME}')), '.attributes.node'),
  nodeTest(added(node('KUBE_NODE_NAME')), '.attributes.node'),
  nodeTest(added(`x-${node('{env:K8S_NODE_NAME}')}`), '.attributes.node', 'x-n1'),
  nodeTest(added('EXPR(env("K8S_NODE_NAME"))'), '.attributes.node'),
  nodeTest({ receiver: { attributes: { node: node('{env:NODE_NAME}') } } }, '.attributes.node'),
  nodeTest({ receiver: { resource: { node: `x-${node('{env:NODE_NAME}')}` } } }, '.resource.attributes.node', 'x-n1'),
  ...['insert', 'upsert'].map((name) =>
    nodeTest({ processors: action({ action: name, value: node('{env:K8S_NODE_NAME}') }) }, '.attributes.node'),
  ),
  nodeTest(
    { processors: { resource: { attributes: [{ key: 'host.name', value: node('{env:K8S_NODE_NAME}') }] } } },
    '.resource.attributes."host.name"',
  ),
  nodeTest({ processors: { logstransform: { ...added(node('{env:K8S_NODE_NAME}')) } } }, '.attributes.node'),
  nodeTest({ processors: { resourcedetection: { detectors: ['k8snode'] } } }, '.resource.attributes."k8s.node.name"'),
]

test.each(nodeCases)('the name of the node in a record of a file: $name', async ({ given, assert }) => {
  expect(await problems(given, 0, line('a'), assert)).toEqual([])
})

test.each(nodeCases)('the name of the node in a record of a pod: $name', async ({ given, assert }) => {
  const ofPods = {
    ...given,
    operators: [...(pods.operators ?? []), ...(given.operators ?? [])],
    receiver: { ...pods.receiver, ...given.receiver },
  }
  const event = { ...podLine('a'), orchestrator: { pod_node_name: 'n2' } }
  expect(await problems(ofPods, 0, event, assert.replace('n1', 'n2'))).toEqual([])
})

test('a variable with the name of the node is a gap where the Pipeline has only text', () => {
  const pattern = { key: 'a', action: 'extract', pattern: node('{env:K8S_NODE_NAME}') }
  const { gaps } = converted({ processors: { attributes: { actions: [pattern] } } })
  expect(gaps.map(({ subject }) => subject)).toEqual([`attributes: ${node('{env:K8S_NODE_NAME}')}`])
})

test('a variable in an operator of `logstransform` is reported once', () => {
  const { gaps } = converted({ processors: { logstransform: { ...added(node('{env:OTHER}')) } } })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    [`logstransform: ${node('{env:OTHER}')}`, true],
  ])
})
