// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Fluent Bit are meant
// Record accessors in options: the values that events get from fields, tags and groups of expressions.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'
import { matchedBy } from './tags.ts'

const input = '[INPUT]\n    Name tail\n    Tag app.web\n    Path /srv/app.log\n'
const rule = (text: string) => `[FILTER]\n    Name rewrite_tag\n    Match app.*\n    Rule ${text}\n`
const es = (key: string) => `Name es\n    Logstash_Format On\n    Logstash_Prefix_Key ${key}`

test.each([
  { name: 'a field without the sign', output: es("pod['labels']['app']"), assert: '%logstash_prefix == "shop"' },
  { name: 'a field with the sign', output: es("$pod['labels']['app']"), assert: '%logstash_prefix == "shop"' },
  { name: 'a number', output: es('n'), assert: '%logstash_prefix == "7"' },
  { name: 'a missing field', output: es('$none'), assert: '%logstash_prefix == "logstash"' },
  { name: 'several fields', output: es("$log.$pod['labels']['app']"), assert: '%logstash_prefix == "eu-west.shop"' },
  { name: 'a part of the tag', output: es('$TAG[1]'), assert: '%logstash_prefix == "web"' },
  {
    name: 'groups of a rule',
    rules: rule('$log ^([a-z]+)-(?:x|([a-z]+))$ idx.$2.$1.$TAG[1] false'),
    output: es('$TAG'),
    assert: '%logstash_prefix == "idx.west.eu.web"',
  },
  {
    name: 'groups with names, which hide the others, and the whole match',
    rules: rule('$log (e)(?<second>.) $1.$0 false'),
    output: es('$TAG'),
    assert: '%logstash_prefix == "u.eu"',
  },
  {
    name: 'a label from a field and the tag',
    output: 'Name loki\n    Labels from=$TAG[0]/$log, tag=$TAG, n=$n',
    assert: '%label_1 == "app/eu-west" && %label_2 == "app.web"',
  },
  {
    name: 'metadata from the tag',
    output: 'Name loki\n    Structured_Metadata tag=$TAG',
    assert: '%metadata_1 == "app.web"',
  },
])('$name', async ({ rules = '', output, assert }) => {
  const file = { file: 'fluent-bit.conf', text: `${input}${rules}[OUTPUT]\n    Match *\n    ${output}\n` }
  const { document, resource, gaps } = converted(convertFluentBit, [file])
  const at = resource.spec.sinks[0].inputs[0]
  const [first] = resource.spec.transforms
  const source = `${first.config.source}\n. = merge(object!(parse_json!(.log)), { "timestamp": now() })`
  document.setIn(['spec', 'transforms', 0, 'config', 'source'], source)
  const log = { message: '{"log":"eu-west","n":7,"pod":{"labels":{"app":"shop"}}}' }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: first.name, input: { log }, expect: [{ at, assert }] }])
  expect(gaps).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a prefix that a program cannot determine is a gap', () => {
  const file = { file: 'fluent-bit.conf', text: `${input}[OUTPUT]\n    Match *\n    ${es("$pod['a'][0]")}\n` }
  const { resource, gaps } = converted(convertFluentBit, [file])
  expect(gaps).toMatchObject([{ subject: "logstash_prefix_key $pod['a'][0]", line: 9 }])
  expect(resource.spec.sinks).toMatchObject([{ config: { bulk: { index: 'logstash-%Y.%m.%d' } } }])
})

test.each([
  ['^tenant\\.(a|b)\\.', 'none'],
  ['/^ten/', 'none'],
  ['^appendix', 'none'],
  ['^app\\.a', 'some'],
  ['^app\\.z?', 'all'],
  ['^tenant|^app', 'all'],
  ['^(tenant|app)\\..*$', 'all'],
  ['tenant|a-1', 'some'],
  // The samples match, but other tags may not.
  ['^app\\.[a-z]+-\\d$', 'some'],
  ['^app\\.(?!x)', 'some'],
])('an expression matches all, some or none of the tags with a known beginning: %s', (value, matched) => {
  const place = { file: 'fluent-bit.conf', line: 1 }
  const section = { ...place, kind: 'output', entries: [{ ...place, key: 'match_regex', value }] }
  const tag = { text: 'app.$1', samples: ['app.a-1', 'app.zz-9'], program: ['tag = "app." + string!(.log)'] }
  expect(matchedBy(section, tag)).toBe(matched)
})
