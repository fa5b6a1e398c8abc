// Operators of filelog on records of the collector: the transforms produce the record that the collector would have passed on.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { lint, withClock } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'

function converted(operators: readonly object[], receiver: object = {}) {
  const draft = new Draft()
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'], operators, ...receiver } },
    exporters: { nop: null },
    service: { pipelines: { logs: { receivers: ['filelog'], exporters: ['nop'] } } },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  const gaps = draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
  return { document: draft.document({ name: 'converted' }), gaps }
}

const cases: { name: string; operators: object[]; record: object; assert?: string }[] = [
  {
    name: 'json_parser puts members into attributes, and sets time and severity',
    operators: [
      {
        type: 'json_parser',
        timestamp: { parse_from: 'attributes.ts', layout: '%Y-%m-%d %H:%M:%S,%L' },
        severity: { parse_from: 'attributes.level' },
      },
    ],
    record: { message: '{"ts":"2024-05-01 10:00:00,250","level":"Warning2","n":{"m":1}}', attributes: { old: 1 } },
    assert:
      '.attributes.n.m == 1 && .attributes.old == 1 && .severity_number == 14 && .severity_text == "Warning2" && .timestamp == t\'2024-05-01T10:00:00.25Z\' && is_string(.message)',
  },
  {
    name: 'json_parser leaves text unchanged that is not an object',
    operators: [{ type: 'json_parser', parse_to: 'body' }],
    record: { message: 'plain', attributes: {} },
    assert: '.message == "plain" && .attributes == {}',
  },
  {
    name: 'json_parser discards what it cannot parse with on_error: drop',
    operators: [{ type: 'json_parser', on_error: 'drop' }],
    record: { message: 'plain' },
  },
  {
    name: 'json_parser reads a nested field into the body under a condition',
    operators: [{ type: 'json_parser', if: 'attributes.kind == "json" and body matches "^{"', parse_to: 'body' }],
    record: { message: '{"a":[1]}', attributes: { kind: 'json' } },
    assert: '.message.a == [1.0]',
  },
  {
    name: 'regex_parser returns groups, and the empty text for groups without a match',
    operators: [{ type: 'regex_parser', regex: '^(?P<code>\\d{3}) (?P<path>\\S+)(?: (?P<rest>.*))?$' }],
    record: { message: '200 /a' },
    assert: '.attributes.code == "200" && .attributes.path == "/a" && .attributes.rest == ""',
  },
  {
    name: "regex_parser matches only ASCII digits, as Go's classes do",
    operators: [{ type: 'regex_parser', regex: '^(?P<n>\\d+)$' }],
    record: { message: '٣', attributes: {} },
    assert: '!exists(.attributes.n)',
  },
  {
    name: 'key_value_parser',
    operators: [{ type: 'key_value_parser', delimiter: ':', pair_delimiter: ';' }],
    record: { message: 'a:1;b:x' },
    assert: '.attributes.a == "1" && .attributes.b == "x"',
  },
  ...[
    { row: '1,"a ""b"", c"', options: {}, columns: { id: '1', name: 'a "b", c' } },
    { row: '1,a "b" c', options: {}, columns: undefined },
    { row: '1,a "b" c', options: { lazy_quotes: true }, columns: { id: '1', name: 'a "b" c' } },
    { row: ',"a "b" ""c"" d"', options: { lazy_quotes: true }, columns: { id: '', name: 'a "b" "c" d' } },
    { row: '1,', options: { lazy_quotes: true }, columns: { id: '1', name: '' } },
    { row: '1,a,b', options: { lazy_quotes: true }, columns: undefined },
    { row: '"1,"x', options: { ignore_quotes: true }, columns: { id: '"1', name: '"x' } },
    {
      row: "1'a b",
      options: { delimiter: "'", lazy_quotes: true, header: "id'name" },
      columns: { id: '1', name: 'a b' },
    },
    { row: '1\ta b', options: { delimiter: '\t', header_delimiter: ',' }, columns: { id: '1', name: 'a b' } },
    {
      row: '1^a',
      options: { delimiter: '^', header_delimiter: ',', lazy_quotes: true },
      columns: { id: '1', name: 'a' },
    },
    { row: '7,x', options: { header: undefined, header_attribute: 'names' }, columns: { a: '7', b: 'x' } },
    { row: '7,x', options: { header: 'id, name' }, columns: { id: '7', ' name': 'x' } },
  ].map(({ row, options, columns }) => ({
    name: `csv_parser reads ${row} with ${JSON.stringify(options)}`,
    operators: [{ type: 'csv_parser', header: 'id,name', parse_to: 'attributes.row', ...options }],
    record: { message: row, attributes: { names: 'a,b' } },
    assert: columns === undefined ? '!exists(.attributes.row)' : `.attributes.row == ${JSON.stringify(columns)}`,
  })),
  {
    name: 'json_array_parser returns a list, or an object with a header',
    operators: [
      { type: 'json_array_parser', parse_to: 'attributes.list' },
      { type: 'json_array_parser', parse_to: 'attributes', header: 'a,b' },
      { type: 'json_array_parser', parse_from: 'attributes.none', parse_to: 'attributes.no' },
    ],
    record: { message: '[1,"x"]', attributes: {} },
    assert: '.attributes == {"list": [1, "x"], "a": 1, "b": "x"}',
  },
  {
    name: 'syslog_parser removes the length before a message',
    operators: [{ type: 'syslog_parser', protocol: 'rfc5424', enable_octet_counting: true }],
    record: { message: '44 <165>1 2003-10-11T22:14:15Z host app 1 ID47 - hi' },
    assert: '.attributes.hostname == "host" && .attributes.message == "hi"',
  },
  {
    name: 'expressions with optional keys, types and numbers',
    operators: [
      {
        type: 'add',
        field: 'attributes.a',
        value: 'y',
        if: 'attributes?.["@t"] != nil && attributes.app?.["x.y"] == nil',
      },
      { type: 'add', field: 'attributes.b', value: 'y', if: 'type(body) == "map" and type(attributes.none) == "nil"' },
      { type: 'add', field: 'attributes.c', value: 'y', if: 'int(attributes.code) >= 500' },
      { type: 'add', field: 'attributes.d', value: 'y', if: 'int(attributes.none) < 5' },
      { type: 'add', field: 'attributes.e', value: 'y', if: 'get(attributes, "code") == "503"' },
    ],
    record: { message: { m: 1 }, attributes: { '@t': 'z', code: '503' } },
    assert:
      '.attributes.a == "y" && .attributes.b == "y" && .attributes.c == "y" && !exists(.attributes.d) && .attributes.e == "y"',
  },
  {
    name: 'csv_parser',
    operators: [{ type: 'csv_parser', header: 'id,name' }],
    record: { message: '7,"a,b"' },
    assert: '.attributes.id == "7" && .attributes.name == "a,b"',
  },
  {
    name: 'uri_parser',
    operators: [{ type: 'uri_parser', parse_from: 'attributes.url', parse_to: 'attributes.uri' }],
    record: { message: 'x', attributes: { url: 'https://h/p?a=b' } },
    assert: '.attributes.uri == {"scheme": "https", "host": "h", "path": "/p", "query": {"a": ["b"]}}',
  },
  {
    name: 'syslog_parser',
    operators: [{ type: 'syslog_parser', protocol: 'rfc5424' }],
    record: { message: '<34>1 2003-10-11T22:14:15.003Z web su 123 ID47 [ex@1 a="b"] failed' },
    assert:
      '.attributes.priority == 34 && .attributes.facility == 4 && .attributes.hostname == "web" && .attributes.appname == "su" && .attributes.proc_id == "123" && .attributes.msg_id == "ID47" && .attributes.structured_data."ex@1".a == "b" && .severity_number == 18 && .timestamp == t\'2003-10-11T22:14:15.003Z\'',
  },
  {
    name: 'time_parser with a layout of Go',
    operators: [
      { type: 'time_parser', parse_from: 'attributes.t', layout_type: 'gotime', layout: '02/Jan/2006:15:04:05 -0700' },
    ],
    record: { message: 'x', attributes: { t: '10/Oct/2025:13:55:36 +0200' } },
    assert: ".timestamp == t'2025-10-10T11:55:36Z'",
  },
  {
    name: 'time_parser with a layout of Go in RFC 3339',
    operators: [
      {
        type: 'time_parser',
        parse_from: 'attributes.t',
        layout_type: 'gotime',
        layout: '2006-01-02T15:04:05.999999999Z07:00',
      },
    ],
    record: { message: 'x', attributes: { t: '2025-10-10T13:55:36.5Z' } },
    assert: ".timestamp == t'2025-10-10T13:55:36.5Z'",
  },
  {
    name: 'time_parser with a zone, and with a fraction that is not in the layout',
    operators: [
      { type: 'time_parser', parse_from: 'attributes.t', layout: '%Y-%m-%d %H:%M:%S', location: 'Europe/Berlin' },
    ],
    record: { message: 'x', attributes: { t: '2025-01-10 13:00:00.5' } },
    assert: ".timestamp == t'2025-01-10T12:00:00.5Z'",
  },
  {
    name: 'time_parser of an epoch with a fraction',
    operators: [{ type: 'time_parser', parse_from: 'attributes.t', layout_type: 'epoch', layout: 's.ms' }],
    record: { message: 'x', attributes: { t: '1700000000.250' } },
    assert: ".timestamp == t'2023-11-14T22:13:20.25Z'",
  },
  {
    name: 'time_parser of milliseconds',
    operators: [{ type: 'time_parser', parse_from: 'attributes.t', layout_type: 'epoch', layout: 'ms' }],
    record: { message: 'x', attributes: { t: 1_700_000_000_250 } },
    assert: ".timestamp == t'2023-11-14T22:13:20.25Z'",
  },
  {
    name: 'severity_parser with its own mapping',
    operators: [
      {
        type: 'severity_parser',
        parse_from: 'attributes.code',
        overwrite_text: true,
        mapping: { error: '5xx', warn2: [{ min: 400, max: 499 }], fatal: 'boom' },
      },
    ],
    record: { message: 'x', attributes: { code: 404 } },
    assert: '.severity_number == 14 && .severity_text == "WARN2"',
  },
  {
    name: 'severity_parser without a match',
    operators: [{ type: 'severity_parser', parse_from: 'attributes.code', preset: 'none', mapping: { error: 'bad' } }],
    record: { message: 'x', attributes: { code: 'info' } },
    assert: '.severity_number == 0 && .severity_text == "info"',
  },
  {
    name: 'move, copy, add, remove',
    operators: [
      { type: 'move', from: 'attributes.a', to: 'resource["x.y"]' },
      { type: 'copy', from: 'body', to: 'attributes["log.original"]' },
      { type: 'add', field: 'attributes.fixed', value: { k: [1, 'b'] } },
      { type: 'add', field: 'attributes.made', value: 'EXPR(body + "!")' },
      { type: 'remove', field: 'attributes.gone' },
      { type: 'move', from: 'attributes.none', to: 'body' },
    ],
    record: { message: 'm', attributes: { a: 1, gone: 2 } },
    assert:
      '.resource.attributes."x.y" == 1 && !exists(.attributes.a) && .attributes."log.original" == "m" && .attributes.fixed.k == [1, "b"] && .attributes.made == "m!" && !exists(.attributes.gone) && .message == "m"',
  },
  {
    name: 'move of an object merges members',
    operators: [{ type: 'move', from: 'body', to: 'attributes' }],
    record: { message: { b: 2 }, attributes: { a: 1 } },
    assert: '.attributes == {"a": 1, "b": 2} && !exists(.message)',
  },
  {
    name: 'retain keeps fields of the roots that it names',
    operators: [{ type: 'retain', fields: ['attributes.a', 'attributes["c.d"]'] }],
    record: { message: 'm', attributes: { a: 1, b: 2, 'c.d': 3 } },
    assert: '.attributes == {"a": 1, "c.d": 3} && .message == "m"',
  },
  {
    name: 'flatten',
    operators: [{ type: 'flatten', field: 'attributes.k' }],
    record: { message: 'm', attributes: { k: { x: 1 }, y: 2 } },
    assert: '.attributes == {"x": 1, "y": 2}',
  },
  {
    name: 'regex_replace',
    operators: [{ type: 'regex_replace', field: 'body', regex: '(\\w+)@\\w+', replace_with: '$1@…' }],
    record: { message: 'to bob@host' },
    assert: '.message == "to bob@…"',
  },
  {
    name: 'filter discards records for which its expression is true',
    operators: [{ type: 'filter', expr: 'not (attributes.level in ["warn", "error"]) or body contains "noise"' }],
    record: { message: 'x', attributes: { level: 'info' } },
  },
  {
    name: 'filter keeps other records',
    operators: [{ type: 'filter', expr: 'attributes.n > 5 or attributes.missing startsWith "x"' }],
    record: { message: 'x', attributes: { n: 5 } },
    assert: '.message == "x"',
  },
  {
    name: 'the length of a text in characters',
    operators: [{ type: 'filter', expr: 'len(body) > 3' }],
    record: { message: 'äöü' },
    assert: 'exists(.message)',
  },
  {
    name: 'the length of a long text',
    operators: [{ type: 'filter', expr: 'len(body) > 3' }],
    record: { message: 'four' },
  },
  {
    name: 'the length of a list',
    operators: [{ type: 'filter', expr: 'len(attributes.l) == 2' }],
    record: { message: 'x', attributes: { l: [1, 2] } },
  },
  {
    name: 'the length of an object',
    operators: [{ type: 'filter', expr: 'len(attributes.o) < 2' }],
    record: { message: 'x', attributes: { o: { a: 1 } } },
  },
  {
    name: 'a number has no length',
    operators: [
      { type: 'add', field: 'attributes.a', value: 1, if: 'len(attributes.n) >= 0 or len(attributes.none) >= 0' },
    ],
    record: { message: 'x', attributes: { n: 5 } },
    assert: '!exists(.attributes.a)',
  },
  {
    name: 'a router passes records to operators, and each continues at its output',
    operators: [
      {
        type: 'router',
        routes: [
          { expr: 'body startsWith "{"', output: 'json' },
          { expr: 'true', output: 'text' },
        ],
      },
      { type: 'json_parser', id: 'json', output: 'end' },
      { type: 'add', id: 'text', field: 'attributes.text', value: true, output: 'end' },
      { type: 'add', id: 'end', field: 'attributes.end', value: true },
    ],
    record: { message: '{"a":1}', attributes: {} },
    assert: '.attributes == {"a": 1.0, "end": true}',
  },
  {
    name: 'a router adds attributes to the records of a route',
    operators: [
      {
        type: 'router',
        routes: [
          { expr: 'body == "a"', output: 'end', attributes: { kind: 'x', 'n.m': 1 } },
          { expr: 'true', output: 'end', attributes: { kind: 'y' } },
        ],
      },
      { type: 'noop', id: 'end' },
    ],
    record: { message: 'a' },
    assert: '.attributes.kind == "x" && .attributes."n.m" == 1',
  },
  {
    name: 'trace_parser sets valid ids only',
    operators: [
      {
        type: 'trace_parser',
        trace_id: { parse_from: 'attributes.t' },
        span_id: { parse_from: 'attributes.s' },
        trace_flags: { parse_from: 'attributes.f' },
      },
    ],
    record: { message: 'm', attributes: { t: '0AF7651916CD43DD8448EB211C80319C', s: 'none', f: '01' } },
    assert: '.trace_id == "0af7651916cd43dd8448eb211c80319c" && !exists(.span_id) && .flags == 1',
  },
  {
    name: 'scope_name_parser',
    operators: [{ type: 'scope_name_parser', parse_from: 'attributes.logger' }],
    record: { message: 'm', attributes: { logger: 'app.web' } },
    assert: '.scope.name == "app.web"',
  },
  {
    name: "unquote reads Go's escapes",
    operators: [{ type: 'unquote', field: 'body' }],
    record: { message: '"a \\x41 \\\\x41 \\"q\\" \\n"' },
    assert: '.message == "a A \\\\x41 \\"q\\" \\n"',
  },
  {
    name: 'unquote of raw text, and of a text without quotes',
    operators: [
      { type: 'unquote', field: 'body' },
      { type: 'unquote', field: 'attributes.a' },
    ],
    record: { message: '`a \\n`', attributes: { a: 'plain' } },
    assert: '.message == "a \\\\n" && .attributes.a == "plain"',
  },
  {
    name: 'assign_keys names the items of a list',
    operators: [
      { type: 'assign_keys', field: 'body', keys: ['a', 'b'] },
      { type: 'assign_keys', field: 'attributes.short', keys: ['a', 'b'] },
    ],
    record: { message: [1, 'x'], attributes: { short: [1] } },
    assert: '.message == {"a": 1, "b": "x"} && .attributes.short == [1]',
  },
  {
    name: 'expressions with a choice and a default',
    operators: [
      { type: 'add', field: 'attributes.a', value: 'EXPR(body == "m" ? "yes" : "no")' },
      { type: 'add', field: 'attributes.b', value: 'EXPR(attributes.none ?? attributes.x ?? "z")' },
      { type: 'add', field: 'attributes.c', value: 'y', if: '(attributes.x ?? "") == "x" ? true : false' },
    ],
    record: { message: 'm', attributes: { x: 'x' } },
    assert: '.attributes.a == "yes" && .attributes.b == "x" && .attributes.c == "y"',
  },
  {
    name: 'a filter with the share zero passes all records',
    operators: [{ type: 'filter', expr: 'true', drop_ratio: 0 }],
    record: { message: 'm' },
    assert: '.message == "m"',
  },
  {
    name: 'a time with the name of a zone that the collector knows',
    operators: [
      {
        type: 'time_parser',
        parse_from: 'attributes.t',
        layout_type: 'gotime',
        layout: 'Mon Jan _2 15:04:05 MST 2006',
      },
    ],
    record: { message: 'm', attributes: { t: 'Wed May  1 10:00:00 CET 2024' } },
    assert: ".timestamp == t'2024-05-01T09:00:00Z'",
  },
  {
    name: 'a time with the name of another zone is not parsed',
    operators: [{ type: 'time_parser', parse_from: 'attributes.t', layout: '%d %b %Y %H:%M %Z' }],
    record: { message: 'm', attributes: { t: '01 May 2024 10:00 PST' } },
    assert: ".timestamp == t'2026-01-01T00:00:00Z'",
  },
  {
    name: 'a time without a year is within a year before next week',
    operators: [{ type: 'time_parser', parse_from: 'attributes.t', layout: '%b %d %H:%M:%S' }],
    record: { message: 'm', attributes: { t: 'Jan 02 03:04:05' } },
    assert:
      'format_timestamp!(.timestamp, "%m-%d %H:%M:%S") == "01-02 03:04:05" && to_unix_timestamp(timestamp!(.timestamp)) < to_unix_timestamp(now()) + 604800 && to_unix_timestamp(timestamp!(.timestamp)) > to_unix_timestamp(now()) - 31622400 + 604800 - 86400',
  },
  {
    name: 'a time without a date is of today',
    operators: [{ type: 'time_parser', parse_from: 'attributes.t', layout: '%H:%M:%S' }],
    record: { message: 'm', attributes: { t: '03:04:05' } },
    assert:
      'format_timestamp!(.timestamp, "%H:%M:%S") == "03:04:05" && timestamp!(.timestamp) > t\'2026-01-02T00:00:00Z\'',
  },
  {
    name: 'a router discards records that match no route',
    operators: [
      { type: 'router', routes: [{ expr: 'body == "a"', output: 'end' }] },
      { type: 'noop', id: 'end' },
    ],
    record: { message: 'b' },
  },
]

test.each(cases)('$name', async ({ operators, record, assert }) => {
  const { document, gaps } = converted([{ type: 'add', field: 'attributes.first', value: 1 }, ...operators])
  expect(gaps).toEqual([])
  const transforms: { name: string; inputs: string[] }[] = document.toJSON().spec.transforms
  const input = { attributes: {}, resource: { attributes: {} }, timestamp: '2026-01-01T00:00:00Z', ...record }
  const first = transforms.findIndex(({ name }) => name.startsWith('filelog-add'))
  document.setIn(['spec', 'transforms', first, 'config', 'source'], '.')
  const [sink] = document.toJSON().spec.sinks
  document.addIn(['spec', 'transforms'], {
    name: 'last',
    type: 'filter',
    inputs: sink.inputs,
    config: { condition: 'true' },
  })
  document.setIn(['spec', 'sinks', 0, 'inputs'], ['last'])
  const expected = assert === undefined ? { at: 'last', count: 0 } : { at: 'last', assert }
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'record',
        insertAt: withClock(document, transforms[first]?.name ?? ''),
        input: { log: input },
        expect: [expected],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

const pods = { include: ['/var/log/pods/*/*/*.log'], include_file_path: true }
const line = {
  message: 'hello',
  stream: 'stderr',
  file: '/var/log/pods/shop_web-1_abc-1/app/3.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: { pod_name: 'web-1', pod_namespace: 'shop', pod_uid: 'abc-1', container_name: 'app' },
}
const older = [
  {
    type: 'router',
    id: 'get-format',
    routes: [
      { output: 'parser-docker', expr: 'body matches "^\\\\{"' },
      { output: 'parser-crio', expr: 'body matches "^[^ Z]+ "' },
      { output: 'parser-containerd', expr: 'body matches "^[^ Z]+Z"' },
    ],
  },
  {
    type: 'regex_parser',
    id: 'parser-crio',
    regex: '^(?P<time>[^ Z]+) (?P<stream>stdout|stderr) (?P<logtag>[^ ]*) ?(?P<log>.*)$',
    output: 'extract',
    timestamp: { parse_from: 'attributes.time', layout_type: 'gotime', layout: '2006-01-02T15:04:05.999999999Z07:00' },
  },
  {
    type: 'regex_parser',
    id: 'parser-containerd',
    regex: '^(?P<time>[^ ^Z]+Z) (?P<stream>stdout|stderr) (?P<logtag>[^ ]*) ?(?P<log>.*)$',
    output: 'extract',
    timestamp: { parse_from: 'attributes.time', layout: '%Y-%m-%dT%H:%M:%S.%LZ' },
  },
  {
    type: 'json_parser',
    id: 'parser-docker',
    output: 'extract',
    timestamp: { parse_from: 'attributes.time', layout: '%Y-%m-%dT%H:%M:%S.%LZ' },
  },
  {
    type: 'regex_parser',
    id: 'extract',
    regex:
      '^.*\\/(?P<namespace>[^_]+)_(?P<pod_name>[^_]+)_(?P<uid>[a-f0-9\\-]{36}|[^/]+)\\/(?P<container_name>[^\\._]+)\\/(?P<restart_count>\\d+)\\.log$',
    parse_from: 'attributes["log.file.path"]',
  },
  { type: 'move', from: 'attributes.stream', to: 'attributes["log.iostream"]' },
  { type: 'move', from: 'attributes.container_name', to: 'resource["k8s.container.name"]' },
  { type: 'move', from: 'attributes.namespace', to: 'resource["k8s.namespace.name"]' },
  { type: 'move', from: 'attributes.pod_name', to: 'resource["k8s.pod.name"]' },
  { type: 'move', from: 'attributes.restart_count', to: 'resource["k8s.container.restart_count"]' },
  { type: 'move', from: 'attributes.uid', to: 'resource["k8s.pod.uid"]' },
  { type: 'move', from: 'attributes.log', to: 'body' },
]

test.each([
  ['the operator container', [{ type: 'container', id: 'container-parser' }]],
  ['a router and parsers of the runtime', older],
])('lines of pods become the records of %s', async (_, operators) => {
  const { document, gaps } = converted(operators, pods)
  expect(gaps).toEqual([])
  const transforms: { name: string }[] = document.toJSON().spec.transforms
  const facts =
    '.message == "hello" && .attributes."log.iostream" == "stderr" && .attributes."log.file.path" == "/var/log/pods/shop_web-1_abc-1/app/3.log" && .attributes."log.file.name" == "3.log" && .resource.attributes == {"k8s.namespace.name": "shop", "k8s.pod.name": "web-1", "k8s.pod.uid": "abc-1", "k8s.container.name": "app", "k8s.container.restart_count": "3"} && .timestamp == t\'2026-01-01T00:00:00Z\' && is_timestamp(.observed_timestamp)'
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'pod',
        insertAt: withClock(document, transforms[0]?.name ?? ''),
        input: { log: line },
        expect: [{ at: transforms.at(-1)?.name, assert: facts }],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

test.each([
  { include: ['/var/log/pods/shop_*/*/*.log'], exclude: [], isRead: true },
  { include: ['/var/log/pods/other_*/*/*.log'], exclude: [], isRead: false },
  { include: ['/var/log/containers/web-*_shop_*.log'], exclude: [], isRead: true },
  { include: ['/var/log/pods/*/*/*.log'], exclude: ['/var/log/pods/*_web-*_*/app/*.log'], isRead: false },
  { include: ['/var/log/pods/**/*.log'], exclude: ['/var/log/pods/*/otel-collector/*.log'], isRead: true },
])('paths $include without $exclude select pods', async ({ include, exclude, isRead }) => {
  const { document, gaps } = converted([{ type: 'container' }], { include, exclude })
  expect(gaps).toEqual([])
  const transforms: { name: string }[] = document.toJSON().spec.transforms
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'pod',
        insertAt: withClock(document, transforms[0]?.name ?? ''),
        input: { log: line },
        expect: [isRead ? { at: transforms.at(-1)?.name, assert: 'true' } : { at: transforms.at(-1)?.name, count: 0 }],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

test.each([
  [
    'multiline.line_start_pattern',
    [],
    { multiline: { line_start_pattern: '^\\d{4}' } },
    { start_pattern: '^[0-9]{4}', condition_pattern: '^[0-9]{4}', mode: 'halt_before' },
  ],
  [
    'multiline.line_end_pattern',
    [],
    { multiline: { line_end_pattern: ';$' } },
    { start_pattern: '', condition_pattern: ';$', mode: 'end_with' },
  ],
  [
    'recombine by the first entry',
    [{ type: 'recombine', combine_field: 'body', is_first_entry: 'body matches "^\\\\S"', force_flush_period: '2s' }],
    {},
    {
      start_pattern: '^[^\\t\\n\\f\\r ]',
      condition_pattern: '^[^\\t\\n\\f\\r ]',
      mode: 'halt_before',
      timeout_ms: 2000,
    },
  ],
  [
    'recombine by lines that continue',
    [{ type: 'recombine', combine_field: 'body', is_first_entry: 'body not matches "^at "' }],
    {},
    { start_pattern: '', condition_pattern: '^at ', mode: 'continue_through' },
  ],
  [
    'recombine by the last entry',
    [{ type: 'recombine', combine_field: 'body', is_last_entry: 'body matches "END$"' }],
    {},
    { start_pattern: '', condition_pattern: 'END$', mode: 'end_with' },
  ],
  [
    'recombine by the beginning or a part of the text, after changes of attributes',
    [
      { type: 'copy', from: 'attributes.a', to: 'attributes.b' },
      { type: 'remove', field: 'attributes.c' },
      { type: 'recombine', combine_field: 'body', is_first_entry: 'body startsWith "a.b" or body contains "c"' },
    ],
    {},
    { start_pattern: '(?:^a\\.b)|(?:c)', condition_pattern: '(?:^a\\.b)|(?:c)', mode: 'halt_before' },
  ],
])('%s becomes `multiline` of the source', async (_, operators, receiver, multiline) => {
  const { document, gaps } = converted(operators, receiver)
  expect(gaps).toEqual([])
  expect(document.toJSON().spec.sources[0].config.multiline).toMatchObject(multiline)
  expect(await lint(String(document))).toEqual([])
})

test.each([
  [
    'recombine after a parser of the body',
    [
      { type: 'regex_parser', regex: '^(?P<a>.*)$' },
      { type: 'recombine', combine_field: 'body', is_first_entry: 'body matches "^a"' },
    ],
    'operator recombine',
  ],
  [
    'recombine by a field other than the line',
    [{ type: 'recombine', combine_field: 'body', is_first_entry: 'attributes.first matches "yes"' }],
    'operator recombine',
  ],
  [
    'recombine of a field that a parser sets',
    [{ type: 'recombine', combine_field: 'attributes.text', is_first_entry: 'attributes.text matches "^a"' }],
    'operator recombine',
  ],
  ['an unknown operator', [{ type: 'wizard' }], 'operator wizard'],
  [
    'a time with the name of a zone in a location',
    [{ type: 'time_parser', parse_from: 'body', layout: '%d %b %Y %Z', location: 'Europe/Berlin' }],
    'location',
  ],
  ['an expression', [{ type: 'filter', expr: 'count(attributes.x, {# > 1})' }], 'expr'],
  ['a field', [{ type: 'remove', field: 'somewhere.else' }], 'field'],
  ['an option', [{ type: 'move', from: 'body', to: 'attributes.x', pace: 1 }], 'pace'],
])('%s without a counterpart is a gap with its line, and the output passes lint', async (_, operators, subject) => {
  const { document, gaps } = converted(operators)
  expect(gaps).toHaveLength(1)
  expect(gaps[0]).toMatchObject({ file: 'c.yaml', subject: expect.stringContaining(subject) })
  expect(gaps[0]?.line).toBeGreaterThan(5)
  expect(await lint(String(document))).toEqual([])
})

test('recombine after the parsers for lines of the container runtime becomes `multiline` of the source', async () => {
  const { document, gaps } = converted(
    [
      { type: 'regex_parser', regex: '^(?P<time>[^ ]+) (?P<stream>stdout|stderr) (?P<logtag>[^ ]*) ?(?P<log>.*)$' },
      {
        type: 'recombine',
        combine_field: 'attributes.log',
        is_last_entry: "attributes.logtag == 'F'",
        combine_with: '',
      },
      { type: 'move', from: 'attributes.log', to: 'body' },
      { type: 'recombine', combine_field: 'body', is_first_entry: 'body matches "^a"' },
    ],
    { include: ['/var/log/pods/*/*/*.log'] },
  )
  expect(gaps).toEqual([])
  expect(document.toJSON().spec.sources[0].multiline).toMatchObject({ custom: { start: '^a', mode: 'halt_before' } })
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['docker', false],
  ['containerd', true],
])('lines of %s have a tag: %s', async (format, hasTag) => {
  const { document, gaps } = converted([{ type: 'container', format }], { include: ['/var/log/pods/*/*/*.log'] })
  expect(gaps).toEqual([])
  const [at] = document.toJSON().spec.sinks[0].inputs
  const assert = `exists(.attributes.logtag) == ${hasTag} && .attributes."log.iostream" == "stdout"`
  const log = { message: 'x', stream: 'stdout', file: '/var/log/pods/shop_web_u/app/0.log', orchestrator: {} }
  document.setIn(['spec', 'tests'], [{ name: 'tag', insertAt: at, input: { log }, expect: [{ at, assert }] }])
  expect(await lint(String(document))).toEqual([])
})
