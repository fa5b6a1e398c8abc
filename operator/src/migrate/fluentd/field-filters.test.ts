// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Filters for single fields, in both syntaxes of a configuration.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const time = '2026-11-24T10:11:12Z'
const missing = (gaps: readonly { isReplaced?: true }[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)
const convert = (filter: string) =>
  converted(convertFluentd, [
    {
      file: 'fluent.conf',
      text: `<source>\n  @type tail\n  path /srv/a.log\n  tag a\n  <parse>\n    @type json\n  </parse>\n</source>\n<filter a>\n${filter}\n</filter>\n<match a>\n  @type stdout\n</match>\n`,
    },
  ])
const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0'

test.each<[about: string, filter: string, record: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'the first rule that matches, also in nested objects',
    '@type rename_key\nrename_rule2 ^a(.*) y${md[1]}\nrename_rule1 ^ab x',
    { ab: 1, ac: { ab: 2 }, d: 3 },
    { x: 1, yc: { x: 2 }, d: 3 },
  ],
  ['the outer names alone', '@type rename_key\ndeep_rename false\nrename_rule1 a b', { a: { a: 1 } }, { b: { a: 1 } }],
  ['parts of names', '@type rename_key\nreplace_rule1 [.-] _', { 'a.b-c': 1 }, { a_b_c: 1 }],
  [
    'a name that is that of the time',
    '@type rename_key\nrename_rule1 ^ts$ timestamp',
    { ts: 'x' },
    { 'ts == null && .log_timestamp': 'x', timestamp: time },
  ],
  [
    'the parts of a user agent',
    '@type ua_parser\nkey_name u\nout_key o\ndelete_key true',
    { u: firefox },
    { 'u == null && .o.browser': { family: 'Firefox', version: '120.0', major_version: 120 }, 'o.device': 'Other' },
  ],
  [
    'flat parts of a user agent',
    '@type ua_parser\nflatten true',
    { user_agent: firefox },
    { ua_browser_family: 'Firefox' },
  ],
  [
    'the first time that is not empty',
    '@type kube_events_timestamp\nmapped_time_key t',
    { 'event.eventTime': '', 'event.lastTimestamp': 'x' },
    { t: 'x' },
  ],
  ['the time of the event', '@type kube_events_timestamp', {}, { triggerts: '2026-11-24T10:11:12.000+0000' }],
  [
    'a group by its name',
    '@type record_modifier\n<replace>\n  key m\n  expression /(?<head>card=)\\d+/\n  replace \\k<head>x\n</replace>',
    { m: 'card=12 a' },
    { m: 'card=x a' },
  ],
  [
    'names in quotes, and names of files',
    '@type record_transformer\nenable_ruby true\n<record>\n  "a.b/c" ${File.basename(record["f"], ".log")}\n  d ${File.extname(record["f"])}\n</record>',
    { f: '/var/x.y.log' },
    { '"a.b/c"': 'x.y', d: '.log' },
  ],
])('%s', async (_, filter, record, expected) => {
  const { document, resource, gaps } = convert(filter)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const yaml = `# The pipeline of the team.
system:
  workers: 2
config:
  - source:
      $type: tail
      $label: '@MAIN'
      path: /srv/a.log
      tag: a
      parse: { $type: json, types: "n:integer" }
  - label:
      $name: '@MAIN'
      config:
        - filter:
            $type: grep
            $tag: a
            or:
              - regexp:
                  - { key: level, pattern: /^warn/ }
                  - { key: $.h.status, pattern: /^5/ }
        - filter:
            $type: record_transformer
            $tag: a
            record: { team: !fluent/s "#{ENV['TEAM'] || 'red'}", odd: !fluent/json {"x": 1} }
        - match:
            $type: copy
            $tag: '**'
            store:
              - { $type: stdout, odd_option: 1 }
              - { $type: 'null' }
`

test.each([
  [
    { level: 'warning', n: '7' },
    { team: 'red', n: 7, odd: { x: 1 } },
  ],
  [{ h: { status: 503 } }, { team: 'red' }],
  [{ level: 'info' }, undefined],
])('a configuration in YAML: %j', async (record, expected) => {
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.yaml', text: yaml }])
  expect(missing(gaps)).toMatchObject([{ subject: 'stdout: odd_option', line: 29 }])
  expect(resource.spec.sinks.map(({ type }: { type: string }) => type)).toEqual(['console', 'blackhole'])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
