// Every option that a mapping lists changes the Pipeline or gives a gap for some value, so none is listed but ignored.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { components, endpoint } from '../alloy/components.ts'
import { convertAlloy } from '../alloy/convert.ts'
import { stageName } from '../alloy/stage-list.ts'
import type { Included, NamedText } from '../draft.ts'
import { Draft } from '../draft.ts'
import { clientOptions, convertPromtail } from '../promtail/convert.ts'
import { multilineStage } from './joining.ts'
import { ruleOptions } from './relabel.ts'
import { stages } from './stages.ts'

function outcome(
  convert: (files: readonly NamedText[], included: Included, draft: Draft) => void,
  file: string,
  text: string,
  beside: readonly NamedText[] = [],
): string {
  const draft = new Draft()
  convert([{ file, text }, ...beside], () => [], draft)
  const gaps = draft.gaps.map(({ subject, reason }) => `${subject}: ${reason}`)
  // An additional option changes line numbers.
  return `${draft.document({ name: 'x' }).toString({ lineWidth: 0 })}${gaps.join('\n')}`.replace(
    /\((?:f|g)\.\w+:\d+\)/g,
    '',
  )
}

const yaml = (text: string) => outcome(convertPromtail, 'f.yaml', text)

/** Options that other options need to have an effect, as one line of YAML. */
const stageBase: Readonly<Record<string, string>> = {
  json: 'expressions: { a: }',
  logfmt: 'mapping: { a: }',
  regex: "expression: '(?P<a>.)'",
  replace: "expression: '(x)'",
  template: 'source: a, template: t',
  timestamp: 'source: a, format: RFC3339',
  drop: 'source: a',
  match: `selector: '{a="b"}', stages: [decolorize: ]`,
  pack: 'labels: [a]',
  sampling: 'rate: 0.5',
  tenant: 'value: zz',
  multiline: "firstline: '^a'",
  output: 'source: zz',
}
const stageBesides: Readonly<Record<string, string>> = {
  'drop separator': 'source: "a,b", expression: x',
  'drop value': 'source: a',
  'replace replace': "expression: '(x)'",
  'tenant source': '',
  'tenant label': '',
  'template source': 'template: t',
  'timestamp location': 'source: a, format: "2006-01-02 15:04:05"',
  'multiline firstline': 'max_wait_time: 1s',
}
const values = [
  'x',
  '"a,b"',
  'true',
  'false',
  '0.5',
  '17',
  '5s',
  '8kb',
  '-',
  "'(?P<n>y)'",
  '{ b: c }',
  '[b]',
  'Unix',
  '[Unix]',
  'Europe/Berlin',
  'skip',
  'drop',
  `'{c="d"}'`,
  '[static_labels: { a: b }]',
  "'^b'",
]

const job = (stage: string) =>
  `clients: [{ url: "http://l/loki/api/v1/push" }]\nscrape_configs:\n- job_name: j\n  static_configs: [{ labels: { __path__: /a } }]\n  pipeline_stages:\n  - ${stage}\n`

const listed = [...stages, multilineStage].flatMap(({ name, options }) =>
  Object.keys(options).map((option) => ({ name, option })),
)

test.each(listed)('stage $name: $option has an effect', ({ name, option }) => {
  const base = (stageBesides[`${name} ${option}`] ?? stageBase[name] ?? '')
    .split(/, (?=\w+:)/)
    .filter((part) => part !== '' && !part.startsWith(`${option}:`))
  const made = (parts: readonly string[]) => yaml(job(`${name}: { ${parts.join(', ')} }`))
  const without = made(base)
  const changing = values.filter((value) => made([...base, `${option}: ${value}`]) !== without)
  expect(changing).not.toEqual([])
})

const needless = [...stages, multilineStage].flatMap(({ name, itself = {} }) =>
  Object.keys(itself).map((option) => ({ name, option })),
)
test.each(needless)(
  'stage $name: $option has no effect, because Penstock does this in another way',
  ({ name, option }) => {
    const made = (more: string) =>
      yaml(job(`${name}: { ${[stageBase[name] ?? '', more].filter((part) => part !== '').join(', ')} }`))
    expect(made(`${option}: 7`)).toBe(made(''))
  },
)

test.each(Object.keys(ruleOptions))('rule: %s has an effect', (option) => {
  const bases = [
    'source_labels: [a]',
    'target_label: t',
    'action: replace',
    'regex: "(.)"',
    'separator: "-"',
    'modulus: 3',
    'replacement: r',
  ]
  const made = (parts: readonly string[]) =>
    yaml(
      `clients: [{ url: "http://l/loki/api/v1/push" }]\nscrape_configs:\n- job_name: j\n  static_configs: [{ labels: { __path__: /a } }]\n  relabel_configs: [{ ${parts.join(', ')} }]\n`,
    )
  const own: Readonly<Record<string, string>> = { modulus: 'action: hashmod', separator: 'source_labels: [a, b]' }
  const base = bases
    .map((part) => (own[option]?.startsWith(part.split(':')[0] ?? '') === true ? (own[option] ?? part) : part))
    .filter((part) => !part.startsWith(`${option}:`))
  const others = ['keep', '[c]', '"+"', '"x.*"', 'u', 'v', '9']
  expect(others.filter((value) => made([...base, `${option}: ${value}`]) !== made(base))).not.toEqual([])
})

const connection: Readonly<Record<string, string>> = {
  basic_auth: '{ username: a, password: b }',
  authorization: '{ credentials: c }',
  tls_config: '{ ca_file: /ca }',
  backoff_config: '{ min_period: 7s }',
  headers: '{ A: b }',
  http_headers: '{ A: [b] }',
  external_labels: '{ a: b }',
  url: 'http://other:1/x',
}
test.each(Object.keys(clientOptions))('client: %s has an effect', (option) => {
  const made = (more: string) =>
    yaml(
      `clients: [{ ${more} }]\nscrape_configs:\n- job_name: j\n  static_configs: [{ labels: { __path__: /a } }]\n  pipeline_stages: []\n`,
    )
  const base = option === 'url' ? 'name: n' : 'url: "http://l/loki/api/v1/push"'
  const others = [connection[option] ?? 'x', '7s', '4096']
  expect(others.filter((value) => made(`${base}, ${option}: ${value}`) !== made(base))).not.toEqual([])
})

const podLogs = { file: 'g.yaml', text: 'kind: PodLogs\nmetadata: { name: p, namespace: n }\nspec: {}\n' }
const alloy = (text: string) => outcome(convertAlloy, 'f.alloy', text, [podLogs])
const write = 'loki.write "w" {\n  endpoint {\n    url = "http://l/loki/api/v1/push"\n  }\n}\n'

test.each(Object.keys(endpoint.options))('endpoint: %s has an effect', (option) => {
  const made = (line: string) =>
    alloy(
      `loki.source.file "f" {\n  targets = [{__path__ = "/a"}]\n  forward_to = [loki.write.w.receiver]\n}\nloki.write "w" {\n  endpoint {\n${line}\n  }\n}\n`,
    )
  const base = option === 'url' ? '' : '    url = "http://l/loki/api/v1/push"\n'
  const others = [
    '"x"',
    '"7s"',
    '4096',
    '{username = "a", password = "b"}',
    '{credentials = "c"}',
    '{ca_file = "/ca"}',
    '{A = "b"}',
    '{A = ["b"]}',
    '"http://other:1/x"',
  ]
  expect(others.filter((value) => made(`${base}    ${option} = ${value}`) !== made(base))).not.toEqual([])
})

/** A configuration with additional text in the block of a component. */
const places: Readonly<Record<string, (line: string) => string>> = {
  'discovery.kubernetes': (line) =>
    `discovery.kubernetes "d" {\n${line}\n}\nloki.source.kubernetes "s" {\n  targets = discovery.kubernetes.d.targets\n  forward_to = [loki.write.w.receiver]\n}\n${write}`,
  'local.file_match': (line) =>
    `local.file_match "d" {\n${line}\n}\nloki.source.file "s" {\n  targets = local.file_match.d.targets\n  forward_to = [loki.write.w.receiver]\n}\n${write}`,
  'loki.write': (line) =>
    `loki.source.file "s" {\n  targets = [{__path__ = "/a"}]\n  forward_to = [loki.write.w.receiver]\n}\nloki.write "w" {\n${line}\n}\n`,
}
const sourceText = (name: string) => (line: string) => `${name} "s" {\n${line}\n}\n${write}`
const componentBase: Readonly<Record<string, string>> = {
  'local.file_match ignore_older_than': 'path_targets = [{__path__ = "/a"}]',
  'discovery.kubernetes namespaces': 'role = "pod"',
  'discovery.kubernetes selectors': 'role = "pod"',
  'loki.source.file encoding': 'targets = [{__path__ = "/a"}]\n  forward_to = [loki.write.w.receiver]',
  'loki.source.file tail_from_end': 'targets = [{__path__ = "/a"}]\n  forward_to = [loki.write.w.receiver]',
  'loki.source.file file_match': 'targets = [{__path__ = "/a"}]\n  forward_to = [loki.write.w.receiver]',
  'loki.source.file forward_to': 'targets = [{__path__ = "/a"}]',
  'loki.write external_labels': 'endpoint {\n    url = "http://l/loki/api/v1/push"\n  }',
  'loki.write wal': 'endpoint {\n    url = "http://l/loki/api/v1/push"\n  }',
  'loki.source.podlogs selector': 'forward_to = [loki.write.w.receiver]',
  'loki.source.podlogs namespace_selector': 'forward_to = [loki.write.w.receiver]',
  'loki.source.podlogs tail_from_end': 'forward_to = [loki.write.w.receiver]',
  'loki.source.kubernetes_events log_format': 'forward_to = [loki.write.w.receiver]',
  'loki.source.kubernetes_events job_name': 'forward_to = [loki.write.w.receiver]',
  'loki.source.kubernetes_events namespaces': 'forward_to = [loki.write.w.receiver]',
}
const lines = [
  '= "service"',
  '= [loki.write.w.receiver]',
  '= [{__path__ = "/b"}]',
  '= "json"',
  '= ["shop"]',
  '= {a = "b"}',
  '= true',
  '= "1h"',
  '{\n    names = ["shop"]\n  }',
  '{\n    role = "pod"\n    label = "a=b"\n  }',
  '{\n    target_label = "a"\n    replacement = "b"\n  }',
  '{\n    url = "http://o/loki/api/v1/push"\n  }',
  '{\n    match_labels = {a = "b"}\n  }',
  '{\n    enabled = true\n    ignore_older_than = "1h"\n  }',
]

const componentOptions = components
  .filter(({ name }) => places[name] !== undefined || name.startsWith('loki.source.'))
  .flatMap(({ name, options }) => Object.keys(options).map((option) => ({ name, option })))

test.each(componentOptions)('$name: $option has an effect', ({ name, option }) => {
  const place = places[name] ?? sourceText(name)
  const base = componentBase[`${name} ${option}`] ?? ''
  expect(
    lines.filter((line) => alloy(place(`  ${base}\n  ${option} ${line}`)) !== alloy(place(`  ${base}`))),
  ).not.toEqual([])
})

const twice = [...stages, multilineStage, ...components, endpoint].flatMap(({ name, options, itself = {} }) =>
  Object.keys(itself).map((option) => ({ name, option, isRead: Object.hasOwn(options, option) })),
)
test.each(twice)('$name: $option is in only one list', ({ isRead }) => expect(isRead).toBe(false))

test('stages use the names of Alloy', () => {
  expect(['labels', 'labeldrop', 'labelallow'].map(stageName)).toEqual([
    'stage.labels',
    'stage.label_drop',
    'stage.label_keep',
  ])
})

test.each([
  ['tls_config: { ca_file: certs/ca.pem }', 'client: tls_config.ca_file'],
  ['proxy_url: "socks5://u:p@proxy:1080"', 'client: proxy_url'],
  ['url: "http://loki:99999/loki/api/v1/push"', 'client: url'],
])('the value of a client %s gives a gap and a Pipeline that lint accepts', async (value, subject) => {
  const url = value.startsWith('url') ? '' : 'url: "http://l/loki/api/v1/push", '
  const text = job('decolorize:').replace(/\{ url.*\}/, `{ ${url}${value} }`)
  const { document, gaps } = converted(convertPromtail, [{ file: 'f.yaml', text }])
  expect(gaps.map((gap) => gap.subject)).toEqual([subject])
  expect(gaps[0]?.reason).not.toContain('u:p')
  expect(await lint(String(document))).toEqual([])
})

test('a file with a password that has no name is not set', () => {
  const made = (more: string) => yaml(job('decolorize:').replace('push" }', `push"${more} }`))
  expect(made(', bearer_token_file: ""')).toBe(made(''))
})
