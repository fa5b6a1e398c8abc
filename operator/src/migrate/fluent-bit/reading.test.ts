// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Fluent Bit are meant
import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { readClassic } from './classic.ts'
import { convertFluentBit, isFluentBit } from './convert.ts'
import { readYaml } from './yaml.ts'

interface Transform {
  readonly config: { readonly source: string }
}

const classic = `@SET home=/var/log
# a comment
[INPUT]
    Name  tail
    Path  /logs/*.log

[FILTER]
    Name   grep
    Regex  log ^a #b$
    Regex  level (warn|error)
@INCLUDE more.conf
`

const yaml = `env:
  home: /var/log
includes: [more.yaml]
pipeline:
  inputs:
    - name: tail
      path: /logs/*.log
  filters:
    - name: grep
      regex:
        - 'log ^a #b$'
        - level (warn|error)
`

test('the classic syntax keeps line numbers, the order of entries, and special characters in values', () => {
  const { sections, variables, includes, unread } = readClassic(classic, 'a.conf')
  expect(
    sections.map(({ kind, line, entries }) => [
      kind,
      line,
      entries.map((entry) => [entry.key, entry.value, entry.line]),
    ]),
  ).toEqual([
    [
      'input',
      3,
      [
        ['name', 'tail', 4],
        ['path', '/logs/*.log', 5],
      ],
    ],
    [
      'filter',
      7,
      [
        ['name', 'grep', 8],
        ['regex', 'log ^a #b$', 9],
        ['regex', 'level (warn|error)', 10],
      ],
    ],
  ])
  expect([...variables]).toEqual([['home', '/var/log']])
  expect(includes).toEqual([{ file: 'a.conf', line: 11, key: 'include', value: 'more.conf' }])
  expect(unread).toEqual([])
})

test('the YAML syntax becomes the same sections, with line numbers of the YAML file', () => {
  const { sections, variables, includes } = readYaml(yaml, 'a.yaml')
  expect(
    sections.map(({ kind, line, entries }) => [
      kind,
      line,
      entries.map((entry) => [entry.key, entry.value, entry.line]),
    ]),
  ).toEqual([
    [
      'input',
      6,
      [
        ['name', 'tail', 6],
        ['path', '/logs/*.log', 7],
      ],
    ],
    [
      'filter',
      9,
      [
        ['name', 'grep', 9],
        ['regex', 'log ^a #b$', 11],
        ['regex', 'level (warn|error)', 12],
      ],
    ],
  ])
  expect([...variables]).toEqual([['home', '/var/log']])
  expect(includes.map(({ value, line }) => [value, line])).toEqual([['more.yaml', 3]])
})

test.each([
  ['Name tail\n[INPUT]\n', readClassic, 1],
  ['[INPUT]\n@MAGIC x\n', readClassic, 2],
  ['pipeline:\n  inputs: []\n  sorcery: []\n', readYaml, 3],
  ['a: b\n', readYaml, 1],
  ['pipeline:\n  inputs: [\n', readYaml, 3],
])('unknown text is reported with its line: %j', (text, read, line) => {
  expect(read(text, 'x').unread.map((found) => found.line)).toContain(line)
})

test('a rule of a multiline parser is one entry in both syntaxes', () => {
  const rule = { key: 'rule', value: '"start_state" "/^\\d+/" "cont"' }
  const text = `multiline_parsers:\n  - name: m\n    rules:\n      - state: start_state\n        regex: '/^\\d+/'\n        next_state: cont\n`
  expect(readYaml(text, 'a.yaml').sections[0]?.entries[1]).toMatchObject({ ...rule, line: 4 })
  expect(
    readClassic('[MULTILINE_PARSER]\n    rule "start_state" "/^\\d+/" "cont"\n', 'a').sections[0]?.entries[0],
  ).toMatchObject(rule)
})

test('an unknown processor is one gap', () => {
  const text = `pipeline:
  inputs:
    - name: tail
      path: /a.log
      tag: a
      processors:
        logs:
          - name: tda
            action: insert
            key: env
  outputs:
    - name: stdout
      match: a
      format: json_lines
`
  const { gaps } = converted(convertFluentBit, [{ file: 'f.yaml', text }])
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([['processor tda', 8]])
})

test('the files of a ConfigMap in the YAML syntax include each other, also files with parsers only', () => {
  const text = `apiVersion: v1
kind: ConfigMap
metadata: { name: fluent-bit, namespace: logging }
data:
  fluent-bit.yaml: |
    includes:
      - /fluent-bit/etc/conf/parsers.yaml
    pipeline:
      inputs:
        - name: tail
          path: /a.log
          tag: a
          multiline.parser: trace
      filters:
        - name: parser
          match: a
          key_name: log
          parser: own
      outputs:
        - name: stdout
          match: a
          format: json_lines
  parsers.yaml: |
    parsers:
      - name: own
        format: regex
        regex: '^(?<text>.*)$'
    multiline_parsers:
      - name: trace
        type: regex
        rules:
          - state: start_state
            regex: '/^\\d/'
            next_state: cont
          - state: cont
            regex: '/^\\s/'
            next_state: cont
`
  const file = { file: 'f.yaml', text }
  expect(isFluentBit(file)).toBe(true)
  const { resource, gaps } = converted(convertFluentBit, [file])
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toMatchObject([{ config: { multiline: { start_pattern: '(?m)^\\d' } } }])
  expect(resource.spec.transforms.some(({ config }: Transform) => config.source.includes('(?<text>.*)'))).toBe(true)
})

test('a variable with a default is a gap, because Fluent Bit has none', () => {
  const text = '[INPUT]\n  Name tail\n  Path /a.log\n  Tag a\n[OUTPUT]\n  Name es\n  Match a\n  Index x-${ENV:-dev}\n'
  const { gaps } = converted(convertFluentBit, [{ file: 'f.conf', text }])
  expect(gaps).toMatchObject([{ subject: '${ENV:-dev}', line: 8 }])
})

const outOf = (text: string) => `${text}  outputs:\n    - name: stdout\n      match: '*'\n      format: json_lines\n`

test('variables in a list, and plugins whose names are the keys of their options', () => {
  const text = outOf(`env:
  - name: PLACE
    value: /srv
  - name: TOKEN
    uri: file:///run/token
pipeline:
  inputs:
    - tail:
        path: \${PLACE}/a.log
        tag: a
  filters:
    - record_modifier:
        match: '*'
        record: token \${TOKEN}
`)
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'f.yaml', text }])
  expect(resource.spec.sources).toMatchObject([{ type: 'file', config: { include: ['/srv/a.log'] } }])
  expect(gaps).toMatchObject([{ subject: '${TOKEN}', line: 14, isReplaced: true }])
})

test('a filter with a condition changes the records that meet it, and one that is not active changes none', async () => {
  const rule = (op: string) =>
    `      condition:\n        op: and\n        rules:\n          - field: $log\n            op: ${op}\n            value: ^x\n`
  const text = outOf(`pipeline:
  inputs:
    - name: tail
      path: /a.log
      tag: a
  filters:
    - name: modify
      match: '*'
      add: met yes
${rule('regex')}    - name: grep
      match: '*'
      exclude: log x
${rule('not_regex')}    - name: modify
      match: '*'
      add: off yes
      active: false
`)
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'f.yaml', text }])
  expect(gaps).toEqual([])
  withTest(document, resource, { message: 'x' }, { log: 'x', met: 'yes' })
  expect(await lint(String(document))).toEqual([])
  expect(String(document)).not.toContain('.off')
})

test('inputs without tags have numbers', () => {
  const input = (path: string) => `[INPUT]\n  Name tail\n  Path ${path}\n`
  const text = `${input('/a.log')}${input('/b.log')}[OUTPUT]\n  Name null\n  Match tail.1\n`
  const { resource } = converted(convertFluentBit, [{ file: 'f.conf', text }])
  expect(resource.spec.sources).toMatchObject([{ config: { include: ['/b.log'] } }])
})

const nodes = `[UPSTREAM]
    name search
[NODE]
    name one
    host one.local
    port 9201
[NODE]
    name two
    host two.local
    tls on
`

test.each([
  [
    'a file',
    {
      'fluent-bit.conf':
        '[INPUT]\n  Name tail\n  Path /a.log\n[OUTPUT]\n  Name es\n  Match *\n  Upstream /etc/nodes.conf\n',
      'nodes.conf': nodes,
    },
  ],
  [
    'YAML',
    {
      'fluent-bit.yaml': outOf(
        'upstream_servers:\n  - name: search\n    nodes:\n      - { name: one, host: one.local, port: 9201 }\n      - { name: two, host: two.local, tls: on }\npipeline:\n  inputs:\n    - name: tail\n      path: /a.log\n',
      )
        .replace('name: stdout', 'name: es\n      upstream: search')
        .replace('      format: json_lines\n', ''),
    },
  ],
])('es sends to the nodes of an upstream, from %s', (_, files) => {
  const data = Object.entries(files).map(([name, text]) => `  ${name}: |\n${text.replace(/^(?=.)/gm, '    ')}`)
  const map = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: fb, namespace: logging }\ndata:\n${data.join('')}`
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'map.yaml', text: map }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toMatchObject([
    { config: { endpoints: ['http://one.local:9201', 'https://two.local:9200'] } },
  ])
})

test('an upstream whose file is missing is a gap', () => {
  const text = '[INPUT]\n  Name tail\n  Path /a.log\n[OUTPUT]\n  Name es\n  Match *\n  Upstream /etc/nodes.conf\n'
  const { gaps } = converted(convertFluentBit, [{ file: 'f.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'upstream /etc/nodes.conf', line: 7 }])
})

test('options that all plugins have need no counterpart', () => {
  const text = `[PLUGINS]
  Path /x.so
[INPUT]
  Name kubernetes_events
  Mem_Buf_Limit 5M
  Threaded on
  Log_Level \${LEVEL}
[FILTER]
  Name grep
  Match *
  Log_Level \${LEVEL}
  Log_Suppress_Interval 10
  Exclude message x
[OUTPUT]
  Name stdout
  Match *
  Format json_lines
  Retry_Limit False
  Workers 2
`
  const { gaps } = converted(convertFluentBit, [{ file: 'f.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
})
