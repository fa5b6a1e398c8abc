// Functions of OTTL with several forms: durations, divisions, severities, lists, and tests for empty values.

import { expect, test } from 'vitest'
import { type Case, type Given, problems, record } from '../../testing/collector.ts'

const statements = (...list: string[]): Given => ({
  processors: { transform: { error_mode: 'ignore', log_statements: list } },
})

const cases: readonly Case[] = [
  {
    name: 'times and durations',
    given: statements(
      'set(attributes["old"], true) where Now() - time > Duration("24h")',
      'set(attributes["new"], true) where time > Now() - Duration("1h30m")',
      'set(attributes["ms"], Milliseconds(time - Time("2025-12-31T23:59:58.5Z", "%Y-%m-%dT%H:%M:%SZ")))',
      'set(attributes["h"], Hours(Duration("90m")))',
      'set(time, time + Duration("2s"))',
    ),
    record: { timestamp: '2026-01-01T00:00:00Z' },
    assert:
      ".attributes.ms == 1500 && .attributes.h == 1.5 && .attributes.old == true && !exists(.attributes.new) && .timestamp == t'2026-01-01T00:00:02Z'",
  },
  {
    name: 'durations in fields',
    given: statements(
      'set(attributes["a"], Milliseconds(Duration(attributes["a"])))',
      'set(attributes["b"], Seconds(Duration(attributes["b"])))',
      'set(attributes["c"], Nanoseconds(Duration(attributes["c"])))',
      'set(attributes["d"], Minutes(Duration(attributes["d"])))',
      'set(attributes["e"], Minutes(Duration(attributes["e"])))',
      'set(attributes["f"], Minutes(Duration(attributes["none"])))',
    ),
    record: { attributes: { a: '1m2.5s', b: '-1.5s', c: '3.μs', d: '0', e: '1d' } },
    assert: '.attributes == { "a": 62500, "b": -1.5, "c": 3000, "d": 0.0, "e": "1d" }',
  },
  {
    name: 'a division of integers has no fraction',
    given: statements(
      'set(attributes["a"], attributes["n"] / 2)',
      'set(attributes["b"], attributes["f"] / 2)',
      'set(attributes["c"], -7 / 2)',
      'set(attributes["d"], 1 / 0)',
      'set(attributes["e"], UnixNano(time) / 1000000)',
    ),
    record: { attributes: { n: 7, f: 7.5 }, timestamp: '2026-01-01T00:00:00.123Z' },
    assert:
      '.attributes.a == 3 && .attributes.b == 3.75 && .attributes.c == -3 && !exists(.attributes.d) && .attributes.e == 1767225600123',
  },
  {
    name: 'severities by texts and ranges',
    given: statements(
      'set(severity_text, ParseSeverity(attributes["l"], {"error": [{"equals": ["E", "err"]}, {"range": {"min": 3, "max": 4}}], "info": [{"range": "2xx"}]}))',
      'set(attributes["s"], ParseSeverity(attributes["n"], {"error": [{"equals": ["E"]}], "info": [{"range": "2xx"}]}))',
      'set(attributes["none"], ParseSeverity(body, {"error": [{"equals": ["E"]}]}))',
    ),
    record: { attributes: { l: 'err', n: 204 } },
    assert: '.severity_text == "error" && .attributes.s == "info" && !exists(.attributes.none)',
  },
  {
    name: 'positions in texts and lists',
    given: statements(
      'set(attributes["a"], Index(body, "b"))',
      'set(attributes["b"], Index(attributes["l"], 5))',
      'set(attributes["c"], Index(body, "z"))',
      'set(attributes["d"], Index(attributes["none"], "z"))',
      'delete_index(attributes["l"], 0)',
      'delete_index(attributes["m"], 1, 3)',
      'delete_index(attributes["m"], 9)',
    ),
    record: { message: 'abc', attributes: { l: [4, 5], m: [1, 2, 3, 4] } },
    assert: '.attributes == {"a": 1, "b": 1, "c": -1, "l": [5], "m": [1, 4]}',
  },
  {
    name: 'lists of objects as objects',
    given: statements(
      'set(attributes["a"], SliceToMap(attributes["l"], ["k"], ["v"]))',
      'set(attributes["b"], SliceToMap(attributes["l"], ["k"]))',
      'set(attributes["c"], SliceToMap(attributes["l"]))',
      'delete_key(attributes, "l")',
    ),
    record: { attributes: { l: [{ k: 'x', v: 1 }, 'odd', { v: 2 }] } },
    assert:
      '.attributes == {"a": {"x": 1}, "b": {"x": {"k": "x", "v": 1}}, "c": {"0": {"k": "x", "v": 1}, "2": {"v": 2}}}',
  },
  {
    name: 'empty values',
    given: statements(
      ...['none', 't', 'l', 'o', 'n'].map((key) => `set(cache["${key}"], 1) where IsEmpty(attributes["${key}"])`),
      'set(cache["full"], 1) where IsEmpty(body)',
      'set(cache["id"], 1) where IsEmpty(trace_id)',
      'set(attributes, cache)',
    ),
    record: { attributes: { t: '', l: [], o: {}, n: 0 } },
    assert: '.attributes == {"none": 1, "t": 1, "l": 1, "o": 1, "n": 1, "id": 1}',
  },
  {
    name: 'numbers with zeros in a text',
    given: statements('set(attributes["a"], Format("%s-%02d-%03d-%02d", [body, 7, -5, 123]))'),
    record: {},
    assert: '.attributes.a == "m-07--05-123"',
  },
  {
    name: 'computed keys',
    given: statements(
      'set(attributes[attributes["k"]], "v")',
      'set(attributes[Concat(["app", attributes["k"]], ".")], body["m"][attributes["k"]])',
      'set(attributes["none"], attributes[attributes["missing"]])',
      'set(attributes["read"], attributes[attributes["k"]])',
      'delete_key(body, attributes["old"])',
    ),
    record: { message: { m: { x: 1 }, n: 2 }, attributes: { k: 'x', old: 'n' } },
    assert: '.attributes == {"k": "x", "old": "n", "x": "v", "app.x": 1, "read": "v"} && .message == {"m": {"x": 1}}',
  },
  {
    name: 'booleans',
    given: statements(
      ...['"true"', '"F"', '"x"', '2', '0', '0.5', 'true', 'attributes["none"]'].map(
        (value, index) => `set(attributes["${index}"], Bool(${value}))`,
      ),
    ),
    record: {},
    assert: '.attributes == {"0": true, "1": false, "3": true, "4": false, "5": true, "6": true}',
  },
  {
    name: 'texts of all values',
    given: statements('stringify_all(attributes)'),
    record: { attributes: { a: 'x', n: 5, b: true, o: { k: [1] } } },
    assert: '.attributes == {"a": "x", "n": "5", "b": "true", "o": "{\\"k\\":[1]}"}',
  },
  {
    name: 'names of arguments in both spellings',
    given: statements(
      'set(attributes["a"], ConvertCase(target=body, to_case="upper"))',
      'replace_pattern(body, "m", "x", function=SHA1, replacementFormat="<%s>")',
    ),
    record: {},
    assert: '.attributes.a == "M" && .message == "<" + sha1("x") + ">"',
  },
]

test.each(cases)('$name', async ({ given, record: more, assert }) => {
  expect(await problems(given, 1, record(more), assert)).toEqual([])
})
