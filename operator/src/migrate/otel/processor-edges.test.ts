// Processors at their edges, as the sources of the collector define them: missing and odd values, and failures.

import { expect, test } from 'vitest'
import { type Case, converted, type Given, problems, record } from '../../testing/collector.ts'

const actions = (...list: object[]): Given => ({ processors: { attributes: { actions: list } } })
const statements = (...list: string[]): Given => ({
  processors: { transform: { error_mode: 'ignore', log_statements: list } },
})
const redaction = (options: object): Given => ({ processors: { redaction: options } })
const sampler = (options: object): Given => ({ processors: { probabilistic_sampler: options } })
const filter = (logs: object): Given => ({ processors: { filter: { error_mode: 'ignore', logs } } })

const processors: readonly Case[] = [
  {
    name: 'extract reads no missing attribute',
    given: actions({ key: 'url', action: 'extract', pattern: '^(?P<host>[^/]*)' }),
    record: {},
    assert: '.attributes == {}',
  },
  {
    name: 'the hash of an empty text is empty',
    given: actions({ key: 'a', action: 'hash' }),
    record: { attributes: { a: '' } },
    assert: '.attributes.a == ""',
  },
  {
    name: 'an object becomes JSON text',
    given: actions({ key: 'a', action: 'convert', converted_type: 'string' }),
    record: { attributes: { a: { b: 'c' } } },
    assert: '.attributes.a == "{\\"b\\":\\"c\\"}"',
  },
  {
    name: 'all attributes of a list must match',
    given: filter({
      exclude: {
        match_type: 'strict',
        record_attributes: [
          { key: 'a', value: 'x' },
          { key: 'b', value: 'y' },
        ],
      },
    }),
    record: { attributes: { a: 'x', b: 'z' } },
    assert: '.attributes.a == "x"',
  },
  {
    name: 'a condition on the resource discards its records',
    given: filter({ resource: ['attributes["k8s.namespace.name"] == "kube-system"'] }),
    record: { resource: { attributes: { 'k8s.namespace.name': 'kube-system' } } },
  },
  {
    name: 'redaction masks values in a body that is an object',
    given: redaction({ allow_all_keys: true, blocked_values: ['4[0-9]{12}'] }),
    record: { message: { card: '4111111111111', deep: [{ n: 'id 4111111111111', m: 5 }] } },
    assert: '.message == {"card": "****", "deep": [{"n": "id ****", "m": 5}]}',
  },
  {
    name: 'redaction masks and removes keys in bodies',
    given: redaction({
      allowed_keys: ['user', 'nested', 'token'],
      ignored_keys: ['id'],
      blocked_key_patterns: ['token'],
      blocked_values: ['secret'],
    }),
    record: {
      message: { user: 'a secret', nested: { token: 'x', id: 'secret', gone: 1 }, gone: 2 },
      attributes: { token: 7, user: 'secret', gone: 1 },
    },
    assert:
      '.message == {"user": "a ****", "nested": {"token": "****", "id": "secret"}} && .attributes == {"token": "****", "user": "****"}',
  },
  {
    name: 'redaction keeps allowed values, and hashes others',
    given: redaction({
      allow_all_keys: true,
      blocked_values: ['\\w+@\\w+'],
      allowed_values: ['@example$'],
      hash_function: 'md5',
    }),
    record: { message: 'to b@c', attributes: { a: 'x@example', b: 'b@c' } },
    assert: '.attributes == {"a": "x@example", "b": md5("b@c")} && .message == "to " + md5("b@c")',
  },
  {
    name: 'a record without the attribute to hash is not sampled',
    given: sampler({ sampling_percentage: 50, attribute_source: 'record', from_attribute: 'id' }),
    record: {},
  },
  {
    name: 'a record without the attribute to hash is sampled on demand',
    given: sampler({ sampling_percentage: 1, attribute_source: 'record', from_attribute: 'id', fail_closed: false }),
    record: {},
    assert: '.message == "m"',
  },
  {
    name: 'an attribute raises the share',
    given: sampler({ sampling_percentage: 0, sampling_priority: 'p' }),
    record: { attributes: { p: 100 } },
    assert: '.attributes.p == 100',
  },
  {
    name: 'ExtractPatterns returns an empty object for a text that does not match',
    given: statements('set(attributes["p"], ExtractPatterns(body, "^(?P<n>[0-9]+)$"))'),
    record: {},
    assert: '.attributes.p == {}',
  },
  {
    name: 'ExtractPatterns returns groups that a number names',
    given: statements(
      'set(cache, ExtractPatterns(body, "(?P<0>[a-z]+) (?P<b>[a-z]+)"))',
      'set(attributes["w"], cache)',
    ),
    record: { message: '1 two three' },
    assert: '.attributes.w == {"0": "two", "b": "three"}',
  },
  {
    name: 'ParseJSON returns floats',
    given: statements('merge_maps(attributes, ParseJSON(body), "upsert")'),
    record: { message: '{"n": 1, "l": [2]}' },
    assert: 'is_float(.attributes.n) && is_float(.attributes.l[0]) && .attributes.n == 1',
  },
  {
    name: 'ExtractGrokPatterns gives types, and no empty fields',
    given: statements(
      'merge_maps(attributes, ExtractGrokPatterns(body, "%{WORD:verb} %{PLACE:path} %{INT:status:int}(?: %{GREEDYDATA:rest})?", true, ["PLACE=/[a-z]*"]), "upsert")',
    ),
    record: { message: 'GET /a 200 ' },
    assert: '.attributes == {"verb": "GET", "path": "/a", "status": 200}',
  },
  {
    name: 'TruncateTime, Coalesce and Base64Encode',
    given: statements(
      'set(time, TruncateTime(time, Duration("24h")))',
      'set(attributes["a"], Coalesce([attributes["none"], attributes["x"], "z"]))',
      'set(attributes["b"], Base64Encode(body))',
    ),
    record: { timestamp: '2026-03-04T05:06:07.5Z', attributes: { x: 'y' } },
    assert: '.timestamp == t\'2026-03-04T00:00:00Z\' && .attributes.a == "y" && .attributes.b == "bQ=="',
  },
  {
    name: 'a replacement with groups before letters',
    given: statements('replace_pattern(body, "(k)=(\\\\w+)", "$${1}_x=$${2}")'),
    record: { message: 'k=v' },
    assert: '.message == "k_x=v"',
  },
  {
    name: 'a member of a text cannot be set',
    given: statements('set(body["a"], 1)', 'set(attributes["t"]["b"], 1)', 'set(attributes["o"]["b"], 1)'),
    record: { message: 'text', attributes: { t: 'x', o: {} } },
    assert: '.message == "text" && .attributes == {"t": "x", "o": {"b": 1}}',
  },
  {
    name: 'a member of a missing object can be set',
    given: statements('set(attributes["n"]["b"], "x")', 'set(body["a"], "y")'),
    record: { message: {} },
    assert: '.message == {"a": "y"} && .attributes == {"n": {"b": "x"}}',
  },
  {
    name: 'Concat adds nothing for objects and lists',
    given: statements(
      'set(attributes["c"], Concat([attributes["o"], body, attributes["l"], attributes["none"]], "-"))',
    ),
    record: { attributes: { o: { a: 1 }, l: ['x'] } },
    assert: '.attributes.c == "-m--<nil>"',
  },
  {
    name: 'unroll keeps a body that is a text',
    given: { processors: { unroll: { recursive: true } } },
    record: {},
    assert: '.message == "m"',
  },
  ...['a', 'b'].map((item) => ({
    name: `unroll makes a record of the item ${item}`,
    given: { processors: { unroll: { recursive: true } } },
    record: { message: ['a', ['b']], attributes: { k: 1 } },
    assert: `.message == "${item}" && .attributes == {"k": 1}`,
  })),
  {
    name: 'truncate_all with a marker',
    given: statements('truncate_all(attributes, 5, truncation_marker = "..")'),
    record: { attributes: { a: 'abcdefg', b: 'abcde', n: 1 } },
    assert: '.attributes == {"a": "abc..", "b": "abcde", "n": 1}',
  },
]

test.each(processors)('processors: $name', async ({ given, record: more, assert }) => {
  expect(await problems(given, 1, record(more), assert)).toEqual([])
})

test.each([
  { error_mode: undefined, rows: [':error_mode'] },
  { error_mode: 'propagate', rows: [':error_mode'] },
  { error_mode: 'ignore', rows: [] },
])('the effect of failing statements with error_mode $error_mode is reported', ({ error_mode, rows }) => {
  const log_statements = ['set(attributes["a"], ParseJSON(body))', 'set(attributes["b"], "x")']
  const { gaps } = converted({ processors: { transform: { error_mode, log_statements } } })
  expect(gaps.map(({ subject, isReplaced }) => [subject.replace(/.*: /, ':'), isReplaced])).toEqual(
    rows.map((row) => [row, true]),
  )
})

test('the mode of a group of statements counts, and its unknown options are gaps', () => {
  const group = { context: 'log', error_mode: 'ignore', odd: 1, statements: ['set(attributes["a"], ParseJSON(body))'] }
  const { gaps } = converted({ processors: { transform: { log_statements: [group] } } })
  expect(gaps.map(({ subject }) => subject)).toEqual(['transform: odd'])
})
