// Processors on records of the collector: the transforms produce the record that the collector would have passed on.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { lint, withClock } from '../../testing/conversions.ts'
import { Draft, type Gap } from '../draft.ts'
import { convertOtel } from './convert.ts'
import { byUid } from './presets.ts'

function converted(processors: Readonly<Record<string, unknown>>) {
  const draft = new Draft()
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'] } },
    processors,
    exporters: { nop: null },
    service: {
      pipelines: { logs: { receivers: ['filelog'], processors: Object.keys(processors), exporters: ['nop'] } },
    },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  return { document: draft.document({ name: 'converted' }), gaps: draft.gaps }
}

const missing = (gaps: readonly Gap[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)

/** The effect of the transforms on a record, without the first one, which creates records. */
function checked(processors: Readonly<Record<string, unknown>>, record: object, assert: string | undefined) {
  const { document } = converted(processors)
  const names: string[] = document.toJSON().spec.transforms.map(({ name }: { name: string }) => name)
  document.addIn(['spec', 'transforms'], {
    name: 'last',
    type: 'filter',
    inputs: document.toJSON().spec.sinks[0].inputs,
    config: { condition: 'true' },
  })
  document.setIn(['spec', 'sinks', 0, 'inputs'], ['last'])
  const expected = assert === undefined ? { at: 'last', count: 0 } : { at: 'last', assert }
  const input = { attributes: {}, resource: { attributes: {} }, timestamp: '2026-01-01T00:00:00Z', ...record }
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'record',
        insertAt: names[1] === undefined ? 'last' : withClock(document, names[1]),
        input: { log: input },
        expect: [expected],
      },
    ],
  )
  return lint(String(document))
}

const statement = (...statements: string[]) => ({ transform: { error_mode: 'ignore', log_statements: statements } })

const statements: { name?: string; run: string[]; record: object; assert: string }[] = [
  { run: ['set(attributes["a"], "x")'], record: { message: 'm' }, assert: '.attributes == {"a": "x"}' },
  { run: ['set(log.body, attributes["a"])'], record: { message: 'm', attributes: { a: 1 } }, assert: '.message == 1' },
  {
    name: 'flatten moves up members and items',
    run: ['flatten(attributes, "f")'],
    record: { attributes: { a: { b: { c: 1 }, d: ['x', { e: 2 }] }, l: [[1], 2], n: {}, s: 'y' } },
    assert: '.attributes == {"f.a.b.c": 1, "f.a.d.0": "x", "f.a.d.1.e": 2, "f.l.0": [1], "f.l.1": 2, "f.s": "y"}',
  },
  {
    name: 'flatten to a depth',
    run: ['flatten(attributes, depth=1)'],
    record: { attributes: { a: { b: { c: 1 } }, s: 'y' } },
    assert: '.attributes == {"a.b": {"c": 1}, "s": "y"}',
  },
  {
    name: 'a missing value sets nothing',
    run: ['set(body, attributes["none"])', 'set(body, nil)'],
    record: { message: 'm' },
    assert: '.message == "m"',
  },
  {
    run: ['set(resource.attributes["k8s.cluster.name"], "c")'],
    record: {},
    assert: '.resource.attributes."k8s.cluster.name" == "c"',
  },
  {
    run: ['set(severity_number, SEVERITY_NUMBER_WARN2)', 'set(severity_text, "W")'],
    record: {},
    assert: '.severity_number == 14 && .severity_text == "W"',
  },
  {
    run: ['set(attributes["n"], severity_number) where severity_number >= SEVERITY_NUMBER_ERROR'],
    record: { severity_number: 17 },
    assert: '.attributes.n == 17',
  },
  {
    name: 'a missing severity is zero',
    run: ['set(attributes["low"], true) where severity_number < SEVERITY_NUMBER_INFO'],
    record: {},
    assert: '.attributes.low == true',
  },
  { run: ['set(time_unix_nano, 1700000000250000000)'], record: {}, assert: ".timestamp == t'2023-11-14T22:13:20.25Z'" },
  {
    run: ['set(time, Time(attributes["t"], "%Y-%m-%dT%H:%M:%S.%f%z"))'],
    record: { attributes: { t: '2024-01-01T00:00:00.500000+0100' } },
    assert: ".timestamp == t'2023-12-31T23:00:00.5Z'",
  },
  {
    run: ['merge_maps(attributes, ParseJSON(body), "upsert") where IsMatch(body, "^\\\\{")'],
    record: { message: '{"a":{"b":1}}', attributes: { a: 0, c: 2 } },
    assert: '.attributes == {"a": {"b": 1.0}, "c": 2}',
  },
  {
    run: ['merge_maps(attributes, ParseJSON(body), "insert")'],
    record: { message: '{"a":1,"b":2}', attributes: { a: 0 } },
    assert: '.attributes == {"a": 0, "b": 2.0}',
  },
  {
    run: ['merge_maps(attributes, ParseJSON(body), "update")'],
    record: { message: '{"a":1,"b":2}', attributes: { a: 0 } },
    assert: '.attributes == {"a": 1.0}',
  },
  {
    name: 'a failing statement changes nothing, and the next one runs',
    run: ['set(body, ParseJSON(body)["a"])', 'set(attributes["next"], 1)'],
    record: { message: 'no json' },
    assert: '.message == "no json" && .attributes.next == 1',
  },
  {
    run: [
      'set(cache["j"], ParseJSON(body))',
      'set(attributes["level"], cache["j"]["level"])',
      'set(body, cache["j"]["msg"]) where cache["j"]["msg"] != nil',
    ],
    record: { message: '{"level":"warn","msg":"hi"}' },
    assert: '.attributes.level == "warn" && .message == "hi" && !exists(.cache)',
  },
  {
    name: 'the cache of statements is an object, whatever they store in it',
    run: [
      'set(cache, ParseJSON(body))',
      'flatten(cache, "p")',
      'merge_maps(attributes, cache, "upsert")',
      'set(cache, ParseJSON("[1]"))',
      'set(attributes["kept"], cache["p.a.b"])',
    ],
    record: { message: '{"a":{"b":1},"c":2}' },
    assert: '.attributes == {"p.a.b": 1.0, "p.c": 2.0, "kept": 1.0}',
  },
  {
    name: 'a list in an object that a function gives, and an object of it as pairs',
    run: [
      'set(attributes["first"], ParseJSON(body)["items"][0])',
      'set(attributes["pairs"], ToKeyValueString(ParseJSON(body)["pairs"], ":", ";"))',
    ],
    record: { message: '{"items":["x","y"],"pairs":{"k":1}}' },
    assert: '.attributes == {"first": "x", "pairs": "k:1"}',
  },
  {
    run: ['delete_key(attributes, "a")', 'delete_keys(resource.attributes, ["b", "c.d"])'],
    record: { attributes: { a: 1, z: 1 }, resource: { attributes: { b: 1, 'c.d': 1, e: 1 } } },
    assert: '.attributes == {"z": 1} && .resource.attributes == {"e": 1}',
  },
  {
    run: ['delete_matching_keys(attributes, "^tmp\\\\.")'],
    record: { attributes: { 'tmp.a': 1, tmpb: 1 } },
    assert: '.attributes == {"tmpb": 1}',
  },
  { run: ['keep_keys(attributes, ["a"])'], record: { attributes: { a: 1, b: 2 } }, assert: '.attributes == {"a": 1}' },
  {
    run: ['keep_matching_keys(attributes, "^k8s")'],
    record: { attributes: { 'k8s.a': 1, b: 2 } },
    assert: '.attributes == {"k8s.a": 1}',
  },
  {
    run: ['replace_pattern(body, "password=\\\\S+", "password=***")'],
    record: { message: 'u password=secret x' },
    assert: '.message == "u password=*** x"',
  },
  {
    run: ['replace_pattern(attributes["url"], "/user/(\\\\d+)/(\\\\w+)", "/user/{id}/$$2")'],
    record: { attributes: { url: '/user/17/edit' } },
    assert: '.attributes.url == "/user/{id}/edit"',
  },
  {
    run: ['replace_match(attributes["p"], "/user/*/list", "/user/{}/list")'],
    record: { attributes: { p: '/user/1/list' } },
    assert: '.attributes.p == "/user/{}/list"',
  },
  {
    run: [
      'replace_all_patterns(attributes, "value", "\\\\d{4}", "####")',
      'replace_all_patterns(attributes, "key", "^x_", "y_")',
    ],
    record: { attributes: { x_a: 'n 1234', b: 5 } },
    assert: '.attributes == {"y_a": "n ####", "b": 5}',
  },
  {
    run: ['replace_all_matches(attributes, "/a/*", "$price")'],
    record: { attributes: { p: '/a/1', q: 'x/a/1' } },
    assert: '.attributes == {"p": "$price", "q": "x/a/1"}',
  },
  {
    run: ['limit(attributes, 2, ["keep"])'],
    record: { attributes: { a: 1, b: 2, keep: 3 } },
    assert: '.attributes == {"a": 1, "keep": 3}',
  },
  {
    run: ['truncate_all(attributes, 3)'],
    record: { attributes: { a: 'abcdef', n: 123456 } },
    assert: '.attributes == {"a": "abc", "n": 123456}',
  },
  {
    run: ['flatten(attributes)'],
    record: { attributes: { a: { b: { c: 1 } } } },
    assert: '.attributes == {"a.b.c": 1}',
  },
  { run: ['flatten(attributes, "p")'], record: { attributes: { a: { b: 1 } } }, assert: '.attributes == {"p.a.b": 1}' },
  {
    run: ['append(attributes["tags"], "x")', 'append(attributes["more"], values=["a", "b"])'],
    record: { attributes: { tags: ['w'] } },
    assert: '.attributes == {"tags": ["w", "x"], "more": ["a", "b"]}',
  },
  {
    run: ['set(attributes["c"], Concat([attributes["a"], "-", attributes["none"], 3], ":"))'],
    record: { attributes: { a: 'x' } },
    assert: '.attributes.c == "x:-:<nil>:3"',
  },
  {
    run: [
      'set(attributes["parts"], Split(attributes["p"], "/"))',
      'set(attributes["last"], Split(attributes["p"], "/")[1])',
    ],
    record: { attributes: { p: 'a/b' } },
    assert: '.attributes.parts == ["a", "b"] && .attributes.last == "b"',
  },
  {
    run: ['merge_maps(attributes, ExtractPatterns(body, "^(?P<m>[A-Z]+) (?P<p>\\\\S+)"), "upsert")'],
    record: { message: 'GET /x y' },
    assert: '.attributes == {"m": "GET", "p": "/x"}',
  },
  {
    run: ['merge_maps(attributes, ExtractGrokPatterns(body, "%{WORD:m} %{NUMBER:n}"), "upsert")'],
    record: { message: 'GET 12' },
    assert: '.attributes.m == "GET" && .attributes.n == "12"',
  },
  {
    run: ['merge_maps(attributes, ParseKeyValue(body, ":", ";"), "upsert")'],
    record: { message: 'a:1;b:2' },
    assert: '.attributes == {"a": "1", "b": "2"}',
  },
  {
    run: [
      'merge_maps(attributes, ParseCSV(body, "a,b", mode="lazyQuotes"), "upsert")',
      'set(attributes["strict"], ParseCSV(body, "a,b"))',
    ],
    record: { message: '1,x "y" z' },
    assert: '.attributes == {"a": "1", "b": "x \\"y\\" z"}',
  },
  {
    run: ['set(attributes["u"], URL(body))', 'set(attributes["d"], URL(body)["url.domain"])'],
    record: { message: 'http://me:secret@www.example.com:80/foo.gif?k1=v1&k2=v2#frag' },
    assert:
      '.attributes.d == "www.example.com" && .attributes.u == {"url.original": "http://me:secret@www.example.com:80/foo.gif?k1=v1&k2=v2#frag", "url.scheme": "http", "url.domain": "www.example.com", "url.port": 80, "url.path": "/foo.gif", "url.query": "k1=v1&k2=v2", "url.fragment": "frag", "url.extension": "gif", "url.user_info": "me:secret", "url.username": "me", "url.password": "secret"}',
  },
  {
    run: ['set(attributes["u"], URL(body))'],
    record: { message: 'http://www.example.com' },
    assert:
      '.attributes.u == {"url.original": "http://www.example.com", "url.scheme": "http", "url.domain": "www.example.com", "url.path": ""}',
  },
  {
    run: ['set(cache, ParseJSON(body))', 'flatten(cache, "")', 'merge_maps(attributes, cache, "upsert")'],
    record: { message: '{"a":{"b":1},"c":2}' },
    assert: '.attributes == {"a.b": 1.0, "c": 2.0}',
  },
  {
    run: [
      'set(attributes["a"], Format("%s/%d: 100%% %v", [attributes["s"], attributes["n"], attributes["l"]]))',
      'set(attributes["b"], Format("%d", [attributes["s"]]))',
    ],
    record: { attributes: { s: 'x', n: 7, l: [1] } },
    assert: '.attributes.a == "x/7: 100% [1]" && !exists(.attributes.b)',
  },
  {
    run: [
      'replace_pattern(attributes["m"], "(\\\\w+)@(\\\\w+)", "$$2", SHA256, "<%s>")',
      'replace_all_patterns(attributes, "value", "^Secret", "x$$$$1", ToUpperCase)',
      'replace_match(attributes["t"], "to*", "hidden", MD5)',
    ],
    record: { attributes: { m: 'mail me@host now', s: 'Secret 1', t: 'token' } },
    assert:
      '.attributes.m == "mail <" + sha2("host", variant: "SHA-256") + "> now" && .attributes.s == "X$1 1" && .attributes.t == md5("hidden")',
  },
  {
    run: ['merge_maps(attributes, ParseCSV(body, "a,b"), "upsert")'],
    record: { message: '1,x' },
    assert: '.attributes == {"a": "1", "b": "x"}',
  },
  {
    run: [
      'set(attributes["i"], Int(attributes["s"]))',
      'set(attributes["d"], Double("1.5"))',
      'set(attributes["none"], Int("x"))',
    ],
    record: { attributes: { s: '42' } },
    assert: '.attributes.i == 42 && .attributes.d == 1.5 && !exists(.attributes.none)',
  },
  {
    run: [
      'set(attributes["u"], ToUpperCase(body))',
      'set(attributes["c"], ConvertCase(body, "snake"))',
      'set(attributes["s"], Substring(body, 1, 2))',
      'set(attributes["l"], Len(body))',
    ],
    record: { message: 'someText' },
    assert: '.attributes == {"u": "SOMETEXT", "c": "some_text", "s": "om", "l": 8}',
  },
  {
    run: [
      'set(attributes["d"], Decode(body, "base64"))',
      'set(attributes["r"], Decode("Pz8-Pg", "base64-raw-url"))',
      'set(attributes["u"], Decode(attributes["x"], "utf-8"))',
      'set(attributes["h"], Hex(attributes["x"]))',
    ],
    record: { message: 'aGVsbG8=', attributes: { x: 'é1' } },
    assert: '.attributes == {"x": "é1", "d": "hello", "r": "??>>", "u": "é1", "h": "c3a931"}',
  },
  {
    run: [
      'set(attributes["in"], "yes") where IsInCIDR(body, ["10.0.0.0/8", "2001:db8::/32"])',
      'set(attributes["out"], "yes") where IsInCIDR(body, ["192.168.0.0/16"])',
      'set(attributes["none"], "yes") where IsInCIDR("no address", ["10.0.0.0/8"])',
    ],
    record: { message: '10.1.2.3', attributes: {} },
    assert: '.attributes == {"in": "yes"}',
  },
  {
    run: [
      'set(attributes["h"], SHA256(body))',
      'set(attributes["m"], MD5(body))',
      'set(attributes["t"], Trim(attributes["x"]))',
      'set(attributes["p"], TrimPrefix(body, "a."))',
    ],
    record: { message: 'a.b', attributes: { x: '  y ' } },
    assert:
      'strlen(string!(.attributes.h)) == 64 && .attributes.t == "y" && .attributes.p == "b" && strlen(string!(.attributes.m)) == 32',
  },
  {
    run: [
      'set(attributes["y"], Year(time))',
      'set(attributes["f"], FormatTime(time, "%Y-%m-%d"))',
      'set(attributes["u"], UnixSeconds(time))',
      'set(attributes["n"], Nanosecond(Time("2026-01-01T00:00:00.25Z", "%Y-%m-%dT%H:%M:%S.%fZ")))',
    ],
    record: {},
    assert: '.attributes == {"y": 2026, "f": "2026-01-01", "u": 1767225600, "n": 250000000}',
  },
  {
    run: ['set(attributes["s"], String(attributes["n"]))', 'set(attributes["k"], Keys(attributes["m"]))'],
    record: { attributes: { n: 5, m: { q: 1 } } },
    assert: '.attributes.s == "5" && .attributes.k == ["q"]',
  },
  {
    run: ['set(attributes["sum"], attributes["a"] + 2 * 3)'],
    record: { attributes: { a: 1 } },
    assert: '.attributes.sum == 7',
  },
  {
    run: ['set(attributes["m"], {"a": [1, "x"], "b": attributes["n"]})'],
    record: { attributes: { n: 2 } },
    assert: '.attributes.m == {"a": [1, "x"], "b": 2}',
  },
  {
    run: ['set(body.string, "text")', 'set(body["k"], 1) where IsMap(body)'],
    record: { message: { a: 1 } },
    assert: '.message == "text"',
  },
  {
    run: ['set(instrumentation_scope.name, "app") where scope.name == ""'],
    record: {},
    assert: '.scope.name == "app"',
  },
  {
    name: 'not, and, or with parentheses',
    run: [
      'set(attributes["hit"], true) where not (attributes["a"] == "x" or IsMatch(body, "debug")) and attributes["n"] > 3',
    ],
    record: { message: 'm', attributes: { a: 'y', n: 4.5 } },
    assert: '.attributes.hit == true',
  },
  {
    name: 'a failing condition is false, even if negated',
    run: [
      'set(attributes["a"], 1) where ParseJSON(body)["x"] == 1',
      'set(attributes["b"], 1) where not (ParseJSON(body)["x"] == 1)',
    ],
    record: { message: 'plain' },
    assert: '.attributes == {}',
  },
  {
    name: 'values of different kinds are not equal, and cannot be ordered',
    run: [
      'set(attributes["a"], 1) where attributes["s"] == 5',
      'set(attributes["b"], 1) where attributes["s"] > 5',
      'set(attributes["c"], 1) where attributes["s"] != 5',
    ],
    record: { attributes: { s: '5' } },
    assert: '.attributes == {"s": "5", "c": 1}',
  },
  {
    name: 'IsMatch of numbers and of missing values',
    run: [
      'set(attributes["a"], 1) where IsMatch(attributes["n"], "^4\\\\d$")',
      'set(attributes["b"], 1) where IsMatch(attributes["none"], ".*")',
    ],
    record: { attributes: { n: 42 } },
    assert: '.attributes == {"n": 42, "a": 1}',
  },
  {
    run: ['set(attributes["t"], trace_id.string) where HasPrefix(trace_id.string, "ab")'],
    record: { trace_id: 'abcd' },
    assert: '.attributes.t == "abcd"',
  },
  {
    name: 'identifiers that lack digits are not set',
    run: ['set(trace_id.string, attributes["t"])', 'set(span_id.string, attributes["s"])'],
    record: { attributes: { t: '0AF7651916CD43DD8448EB211C80319C', s: '7' } },
    assert: '.trace_id == "0af7651916cd43dd8448eb211c80319c" && !exists(.span_id)',
  },
]

test.each(statements.map((each) => ({ ...each, title: each.name ?? each.run.join('; ') })))(
  'OTTL: $title',
  async ({ run, record, assert }) => {
    expect(missing(converted(statement(...run)).gaps)).toEqual([])
    expect(await checked(statement(...run), { message: 'm', ...record }, assert)).toEqual([])
  },
)

const cases: { name: string; processors: Record<string, unknown>; record: object; assert?: string }[] = [
  {
    name: 'transform with contexts and conditions',
    processors: {
      transform: {
        log_statements: [
          { context: 'resource', statements: ['set(attributes["env"], "prod")'] },
          {
            context: 'log',
            conditions: ['IsMap(body)', 'attributes["force"] == true'],
            statements: ['set(attributes["a"], 1)', 'set(resource.attributes["b"], 2)'],
          },
          { statements: ['set(log.attributes["c"], resource.attributes["env"])'] },
        ],
      },
    },
    record: { message: 'x', attributes: { force: true } },
    assert: '.resource.attributes == {"env": "prod", "b": 2} && .attributes == {"force": true, "a": 1, "c": "prod"}',
  },
  {
    name: 'transform with conditions that are false',
    processors: {
      transform: {
        log_statements: [{ context: 'log', conditions: ['IsMap(body)'], statements: ['set(attributes["a"], 1)'] }],
      },
    },
    record: { message: 'x' },
    assert: '.attributes == {}',
  },
  {
    name: 'filter discards by a condition',
    processors: {
      filter: {
        logs: {
          log_record: ['IsMatch(body, "health")', 'severity_number < SEVERITY_NUMBER_INFO and severity_number > 0'],
        },
      },
    },
    record: { message: 'GET /healthz' },
  },
  {
    name: 'filter keeps records for which no condition is true',
    processors: { filter: { logs: { log_record: ['IsMatch(body, "health")', 'attributes["a"] == nil'] } } },
    record: { message: 'GET /', attributes: { a: 1 } },
    assert: '.message == "GET /"',
  },
  {
    name: 'filter with the newer lists',
    processors: {
      filter: {
        log_conditions: [{ context: 'resource', conditions: ['attributes["k8s.namespace.name"] == "kube-system"'] }],
      },
    },
    record: { message: 'x', resource: { attributes: { 'k8s.namespace.name': 'kube-system' } } },
  },
  {
    name: 'filter with the older lists includes',
    processors: {
      filter: {
        logs: {
          include: { match_type: 'strict', resource_attributes: [{ key: 'ns', value: 'shop' }] },
          exclude: { match_type: 'regexp', bodies: ['^GET /health'], severity_number: { min: 'INFO' } },
        },
      },
    },
    record: { message: 'GET /health', severity_number: 5, resource: { attributes: { ns: 'shop' } } },
    assert: '.message == "GET /health"',
  },
  {
    name: 'filter with the older lists excludes',
    processors: { filter: { logs: { exclude: { match_type: 'expr', expressions: ['body contains "noise"'] } } } },
    record: { message: 'some noise' },
  },
  {
    name: 'attributes',
    processors: {
      attributes: {
        actions: [
          { key: 'a', action: 'insert', value: 1 },
          { key: 'old', action: 'insert', value: 'no' },
          { key: 'old2', action: 'update', value: 'yes' },
          { key: 'none', action: 'update', value: 1 },
          { key: 'copy', action: 'upsert', from_attribute: 'old' },
          { key: 'gone', action: 'delete' },
          { pattern: '^tmp_', action: 'delete' },
          { key: 'mail', action: 'hash' },
          { key: 'num', action: 'convert', converted_type: 'int' },
          { key: 'url', action: 'extract', pattern: '^(?P<scheme>\\w+)://(?P<host>[^/]+)' },
        ],
      },
    },
    record: {
      message: 'm',
      attributes: { old: 'x', old2: 'n', gone: 1, tmp_a: 1, mail: 'a@b', num: '5', url: 'https://h/p' },
    },
    assert:
      '.attributes.a == 1 && .attributes.old == "x" && .attributes.old2 == "yes" && !exists(.attributes.none) && .attributes.copy == "x" && !exists(.attributes.gone) && !exists(.attributes.tmp_a) && strlen(string!(.attributes.mail)) == 64 && .attributes.num == 5 && .attributes.scheme == "https" && .attributes.host == "h"',
  },
  {
    name: 'logstransform follows its operators',
    processors: {
      logstransform: {
        operators: [
          { type: 'router', routes: [{ expr: 'body == "m"', output: 'end' }], default: 'rest' },
          { type: 'add', id: 'rest', field: 'attributes.rest', value: true },
          { type: 'add', id: 'end', field: 'attributes.end', value: true },
        ],
      },
    },
    record: { message: 'm' },
    assert: '.attributes == {"end": true}',
  },
  {
    name: 'attributes that a pattern names are hashed',
    processors: { attributes: { actions: [{ pattern: '^user', action: 'hash' }] } },
    record: { message: 'm', attributes: { user: 'a', 'user.id': 5, other: 'a' } },
    assert:
      '.attributes.user == sha2("a", variant: "SHA-256") && .attributes."user.id" == sha2("5", variant: "SHA-256") && .attributes.other == "a"',
  },
  {
    name: 'attributes for matching records',
    processors: {
      attributes: {
        include: { match_type: 'strict', attributes: [{ key: 'kind', value: 'x' }] },
        actions: [{ key: 'a', action: 'upsert', value: 1 }],
      },
    },
    record: { message: 'm', attributes: { kind: 'y' } },
    assert: '!exists(.attributes.a)',
  },
  {
    name: 'resource',
    processors: {
      resource: {
        attributes: [
          { key: 'cluster', value: 'c1', action: 'upsert' },
          { key: 'x', action: 'delete' },
        ],
      },
    },
    record: { resource: { attributes: { x: 1 } } },
    assert: '.resource.attributes == {"cluster": "c1"}',
  },
  {
    name: 'groupbyattrs',
    processors: { groupbyattrs: { keys: ['host.name'] } },
    record: { attributes: { 'host.name': 'h', b: 1 } },
    assert: '.attributes == {"b": 1} && .resource.attributes."host.name" == "h"',
  },
  {
    name: 'redaction',
    processors: {
      redaction: {
        allow_all_keys: false,
        allowed_keys: ['a', 'card'],
        ignored_keys: ['raw'],
        blocked_values: ['4[0-9]{12}'],
      },
    },
    record: {
      message: 'card 4123456789012',
      attributes: { a: 1, card: 'n 4123456789012', x: 2, raw: '4123456789012' },
    },
    assert: '.attributes == {"a": 1, "card": "n ****", "raw": "4123456789012"} && .message == "card ****"',
  },
  {
    name: 'probabilistic_sampler with a share of zero',
    processors: { probabilistic_sampler: { sampling_percentage: 0 } },
    record: { message: 'x' },
  },
  {
    name: 'batch and memory_limiter change nothing',
    processors: { memory_limiter: { check_interval: '1s', limit_mib: 100 }, batch: { timeout: '5s' } },
    record: { message: 'x' },
    assert: '.message == "x"',
  },
]

test.each(cases)('$name', async ({ processors, record, assert }) => {
  expect(missing(converted(processors).gaps)).toEqual([])
  expect(await checked(processors, record, assert)).toEqual([])
})

test.each([
  { about: 'a pattern that matches a part', exclude: { pods: [{ name: 'eb-\\d' }] }, isTaken: false },
  { about: 'patterns that match nothing', exclude: { pods: [{ name: '^eb' }, { name: 'api' }] }, isTaken: true },
  { about: 'a pattern of several', exclude: { pods: [{ name: 'api' }, { name: 'web' }] }, isTaken: false },
  { about: 'only the default', exclude: {}, isTaken: true },
])('k8sattributes does not change records of excluded pods: $about', async ({ exclude, isTaken }) => {
  const draft = new Draft()
  const config = {
    receivers: { filelog: { include: ['/var/log/pods/*/*/*.log'], operators: [{ type: 'container' }] } },
    processors: { k8sattributes: { extract: { metadata: ['k8s.node.name'] }, exclude, pod_association: byUid } },
    exporters: { nop: null },
    service: { pipelines: { logs: { receivers: ['filelog'], processors: ['k8sattributes'], exporters: ['nop'] } } },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const document = draft.document({ name: 'converted' })
  const names: string[] = document.toJSON().spec.transforms.map(({ name }: { name: string }) => name)
  const taken = '.resource.attributes."k8s.node.name"'
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'record',
        insertAt: withClock(document, names[0] ?? ''),
        input: {
          log: {
            message: 'hello',
            file: '/var/log/pods/shop_web-1_u/app/0.log',
            timestamp: '2026-01-01T00:00:00Z',
            orchestrator: { pod_name: 'web-1', pod_namespace: 'shop', pod_node_name: 'n1' },
          },
        },
        expect: [{ at: names.at(-1), assert: isTaken ? `${taken} == "n1"` : `!exists(${taken})` }],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

test('k8sattributes and resourcedetection add the metadata of the source', async () => {
  const draft = new Draft()
  const all = [
    'k8s.pod.name',
    'k8s.deployment.name',
    'k8s.cronjob.name',
    'container.image.name',
    'container.image.tag',
    'container.id',
    'k8s.node.name',
  ]
  const config = {
    receivers: {
      filelog: { include: ['/var/log/pods/*/*/*.log'], include_file_name: false, operators: [{ type: 'container' }] },
    },
    processors: {
      k8s_attributes: {
        auth_type: 'serviceAccount',
        filter: { node_from_env_var: 'K8S_NODE_NAME' },
        pod_association: [{ sources: [{ from: 'connection' }] }, ...byUid],
        extract: {
          metadata: all,
          labels: [
            { tag_name: 'app', key: 'app.kubernetes.io/name', from: 'pod' },
            { tag_name: 'label.$$1', key_regex: 'team-(.*)' },
          ],
          annotations: [{ key: 'owner', from: 'pod' }],
          otel_annotations: true,
        },
      },
      resourcedetection: { detectors: ['system'], override: false },
      resource: { attributes: [{ key: 'node', value: '$'.concat('{env:K8S_NODE_NAME}'), action: 'upsert' }] },
    },
    exporters: { nop: null },
    service: {
      pipelines: {
        logs: {
          receivers: ['filelog'],
          processors: ['k8s_attributes', 'resourcedetection', 'resource'],
          exporters: ['nop'],
        },
      },
    },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const document = draft.document({ name: 'converted' })
  const names: string[] = document.toJSON().spec.transforms.map(({ name }: { name: string }) => name)
  const facts: Record<string, string> = {
    'k8s.pod.name': 'web-1',
    'k8s.deployment.name': 'web',
    'container.image.name': 'reg.io:5000/shop/web',
    'container.image.tag': '1.2',
    'container.id': 'abc',
    'k8s.node.name': 'n1',
    app: 'web',
    'label.size': 'xl',
    'k8s.pod.annotations.owner': 'me',
    'service.name': 'shop-web',
    'host.name': 'n1',
    'os.type': 'linux',
    node: 'n1',
  }
  const tests = Object.entries(facts).map(([key, value]) => `.resource.attributes."${key}" == "${value}"`)
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'pod',
        insertAt: withClock(document, names[0] ?? ''),
        input: {
          log: {
            message: 'hello',
            stream: 'stdout',
            file: '/var/log/pods/shop_web-1_u/app/0.log',
            timestamp: '2026-01-01T00:00:00Z',
            orchestrator: {
              pod_name: 'web-1',
              pod_namespace: 'shop',
              pod_owner: 'ReplicaSet/web-5d4',
              pod_node_name: 'n1',
              container_name: 'app',
              container_id: 'containerd://abc',
              container_image: 'reg.io:5000/shop/web:1.2',
              pod_labels: { 'app.kubernetes.io/name': 'web', 'team-size': 'xl' },
              pod_annotations: { owner: 'me', 'resource.opentelemetry.io/service.name': 'shop-web' },
            },
          },
        },
        expect: [
          { at: names.at(-1), assert: `${tests.join(' && ')} && !exists(.resource.attributes."k8s.cronjob.name")` },
        ],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

/** A pod in the form of the source. */
const pod = {
  pod_name: 'web-5d4-x1',
  pod_namespace: 'shop',
  pod_uid: 'u1',
  pod_owner: 'ReplicaSet/web-5d4',
  pod_creation_timestamp: '2026-01-01T08:00:00Z',
  container_name: 'app',
  container_image: 'reg.io:5000/shop/web:1.2@sha256:ab',
}

test.each([
  {
    about: 'the values by default',
    options: {},
    assert: {
      'k8s.pod.start_time': '2026-01-01T08:00:00Z',
      'k8s.deployment.name': 'web',
      'container.image.tag': '1.2',
    },
  },
  {
    about: 'the service of a pod without labels',
    options: { extract: { metadata: ['service.name', 'service.namespace', 'service.version', 'service.instance.id'] } },
    assert: {
      'service.name': 'web',
      'service.namespace': 'shop',
      'service.version': '1.2@sha256:ab',
      'service.instance.id': 'shop.web-5d4-x1.app',
    },
  },
  {
    about: 'the service of a pod with labels',
    options: { extract: { metadata: ['service.name', 'service.version'] } },
    own: {
      pod_labels: {
        'app.kubernetes.io/name': 'n',
        'app.kubernetes.io/instance': 'i',
        'app.kubernetes.io/version': '3',
      },
    },
    assert: { 'service.name': 'i', 'service.version': '3' },
  },
  {
    about: 'the service that annotations name',
    options: { extract: { metadata: ['service.name'], otel_annotations: true } },
    own: {
      pod_labels: { 'app.kubernetes.io/name': 'n' },
      pod_annotations: { 'resource.opentelemetry.io/service.name': 'a' },
    },
    assert: { 'service.name': 'a' },
  },
  {
    about: 'every value for a container',
    options: {
      extract: {
        metadata: [
          'container.image.tags',
          'container.image.name',
          'k8s.container.name',
          'container.image.repo_digests',
        ],
      },
    },
    assert: { 'container.image.name': 'reg.io:5000/shop/web', 'k8s.container.name': 'app' },
  },
  {
    about: 'the service of a pod of a cron job',
    options: { extract: { metadata: ['service.name', 'service.version', 'container.image.tag'] } },
    own: { pod_owner: 'Job/clean-2934', container_image: 'shop/clean' },
    assert: { 'service.name': 'clean', 'container.image.tag': 'latest' },
    absent: ['service.version'],
  },
  {
    about: 'a label for which the record has an attribute',
    options: {
      extract: {
        metadata: [],
        labels: [
          { tag_name: 'env', key: 'env' },
          { tag_name: 'void', key: 'env' },
        ],
      },
    },
    own: { pod_labels: { env: 'from the label' } },
    assert: { env: 'from the record', void: 'from the label' },
  },
  {
    about: 'a part of a label',
    options: { extract: { metadata: [], labels: [{ tag_name: 'v', key: 'v', regex: 'v(?P<value>\\d+)' }] } },
    own: { pod_labels: { v: 'v12-b' } },
    assert: { v: '12' },
  },
  {
    about: 'labels without a name',
    options: { extract: { metadata: [], labels: [{ key: 'a' }, { key_regex: 'b.*', from: 'pod' }] } },
    own: { pod_labels: { a: '1', b1: '2' } },
    assert: { 'k8s.pod.labels.a': '1', 'k8s.pod.labels.b1': '2' },
  },
  {
    about: 'labels without a name, which a statement names in the newer way',
    options: { extract: { metadata: [], labels: [{ key: 'a' }] } },
    statement: 'set(log.attributes["x"], resource.attributes["k8s.pod.label.a"])',
    own: { pod_labels: { a: '1' } },
    assert: { 'k8s.pod.label.a': '1' },
  },
  {
    about: 'nothing to pods in other namespaces than that of its filter',
    options: { filter: { namespace: 'other' } },
    assert: { 'k8s.pod.name': 'web-5d4-x1' },
    absent: ['k8s.deployment.name'],
  },
  {
    about: 'everything to pods in the namespace of its filter',
    options: { filter: { namespace: 'shop' }, exclude: { pods: [{ name: 'api' }] } },
    assert: { 'k8s.deployment.name': 'web' },
  },
  {
    about: 'nothing to pods without the labels of its filter',
    options: { filter: { labels: [{ key: 'a', value: '2' }] } },
    own: { pod_labels: { a: '1' } },
    assert: { 'k8s.pod.name': 'web-5d4-x1' },
    absent: ['k8s.deployment.name'],
  },
  {
    about: 'everything to pods with the labels of its filter',
    options: {
      filter: {
        labels: [
          { key: 'a', value: '1', op: 'equals' },
          { key: 'a', value: '2', op: 'not-equals' },
          { key: 'a', op: 'exists' },
          { key: 'b', op: 'does-not-exist' },
        ],
      },
    },
    own: { pod_labels: { a: '1' } },
    assert: { 'k8s.deployment.name': 'web' },
  },
  {
    about: 'nothing, if it only passes addresses through',
    options: { passthrough: true },
    assert: { 'k8s.pod.name': 'web-5d4-x1' },
    absent: ['k8s.pod.start_time'],
  },
])('k8sattributes adds $about', async ({ options, statement: text, own, assert, absent = [] }) => {
  const draft = new Draft()
  const resource = { env: 'from the record', void: '' }
  const config = {
    receivers: { filelog: { include: ['/var/log/pods/*/*/*.log'], resource, operators: [{ type: 'container' }] } },
    processors: {
      k8sattributes: { pod_association: byUid, ...options },
      transform: { log_statements: text === undefined ? [] : [text] },
    },
    exporters: { nop: null },
    service: {
      pipelines: {
        logs: { receivers: ['filelog'], processors: ['k8sattributes', 'transform'], exporters: ['nop'] },
      },
    },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const document = draft.document({ name: 'converted' })
  const names: string[] = document.toJSON().spec.transforms.map(({ name }: { name: string }) => name)
  const field = (key: string) => `.resource.attributes."${key}"`
  const tests = [
    ...Object.entries(assert).map(([key, value]) => `${field(key)} == "${value}"`),
    ...absent.map((key) => `!exists(${field(key)})`),
  ]
  const log = { message: 'x', file: '/var/log/pods/shop_web_u1/app/0.log', orchestrator: { ...pod, ...own } }
  const expected = [{ at: names.at(-1), assert: tests.join(' && ') }]
  document.setIn(['spec', 'tests'], [{ name: 'pod', insertAt: names[0], input: { log }, expect: expected }])
  expect(await lint(String(document))).toEqual([])
})

test('the source only adds the creation time of pods for a processor that uses it', () => {
  const sourceFor = (metadata: readonly string[]) => {
    const draft = new Draft()
    const config = {
      receivers: { filelog: { include: ['/var/log/pods/*/*/*.log'], operators: [{ type: 'container' }] } },
      processors: { k8sattributes: { pod_association: byUid, extract: { metadata } } },
      exporters: { nop: null },
      service: { pipelines: { logs: { receivers: ['filelog'], processors: ['k8sattributes'], exporters: ['nop'] } } },
    }
    convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
    return draft.document({ name: 'converted' }).toJSON().spec.sources[0].config
  }
  const fields = { pod_creation_timestamp: '.orchestrator.pod_creation_timestamp' }
  expect(sourceFor(['k8s.pod.start_time'])).toHaveProperty('pod_annotation_fields', fields)
  expect(sourceFor(['k8s.pod.name'])).not.toHaveProperty('pod_annotation_fields')
})

test.each([
  ['an unknown function', statement('set(attributes["a"], Murmur3Hash(body))'), 'Murmur3Hash'],
  ['a computed key before another', statement('set(attributes[attributes["k"]]["b"], 1)'), 'computed'],
  ['text that is not a statement', statement('set(attributes["a"] 1)'), 'unexpected'],
  ['a variable', statement('set(attributes["a"], "$'.concat('{env:CLUSTER}")')), 'literal text'],
  ['a processor without a counterpart', { tail_sampling: {} }, 'traces'],
  ['an unknown processor', { wizard: {} }, 'unknown'],
  ['an action', { attributes: { actions: [{ key: 'a', action: 'insert', from_context: 'x' }] } }, 'request'],
  [
    'an unsupported attribute',
    { k8sattributes: { extract: { metadata: ['k8s.cluster.uid'] }, pod_association: byUid } },
    'does not read',
  ],
])('%s is a gap with its line, and the output passes lint', async (_, processors, reason) => {
  const { document, gaps } = converted(processors)
  expect(gaps).toHaveLength(1)
  expect(gaps[0]).toMatchObject({ file: 'c.yaml', reason: expect.stringContaining(reason) })
  expect(gaps[0]?.line).toBeGreaterThan(4)
  expect(gaps[0]?.nearest).not.toBe('')
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['redaction', { redaction: { allow_all_keys: true, summary: 'debug' } }, 'redaction: summary', false],
  ['k8sattributes without an association', { k8sattributes: {} }, 'k8sattributes: pod_association', true],
])('a difference of %s is reported', (_, processors, subject, isReplaced) => {
  const { gaps } = converted(processors)
  expect(gaps.find((gap) => gap.subject === subject)?.isReplaced === true).toBe(isReplaced)
  expect(gaps.map((gap) => gap.subject)).toContain(subject)
})

test('the detector system adds the attributes that its configuration enables', () => {
  const chosen = { 'host.name': { enabled: true }, 'os.type': { enabled: false }, 'host.id': { enabled: true } }
  const { document, gaps } = converted({
    resourcedetection: { detectors: ['system'], system: { resource_attributes: chosen } },
  })
  expect(missing(gaps).map(({ subject }) => subject)).toEqual(['resourcedetection: host.id'])
  expect(String(document)).toContain('host.name')
  expect(String(document)).not.toContain('os.type')
})

test('the detector env reads the environment of the agent', async () => {
  const { document, gaps } = converted({ resourcedetection: { detectors: ['env', 'system'] } })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['resourcedetection: env', true]])
  expect(String(document)).toContain('get_env_var("OTEL_RESOURCE_ATTRIBUTES")')
  expect(await lint(String(document))).toEqual([])
})
