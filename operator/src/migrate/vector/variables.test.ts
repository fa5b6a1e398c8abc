// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the old agent are meant
// Environment variables in types, programs and templates of a Vector configuration.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const convert = (text: string, namespace?: string) => converted(convertVector, [{ file: 'v.yaml', text }], namespace)
const printed = 'sinks: { out: { type: console, inputs: ["*"], encoding: { codec: json } } }\n'
const programs = (text: string, namespace?: string) => {
  const { gaps, resource } = convert(
    `sources: { s: { type: stdin } }\ntransforms: { t: { type: remap, inputs: [s], source: ${JSON.stringify(text)} } }\n${printed}`,
    namespace,
  )
  return { source: resource.spec.transforms[0].config.source, gaps }
}

test('the default of a variable also replaces a type and an input', async () => {
  const { document, resource, gaps } = convert(`
sources: { s: { type: "\${KIND:-kubernetes_logs}" } }
sinks: { out: { type: "\${SINK-console}", inputs: ["\${FROM:-s}"], encoding: { codec: json } } }
`)
  expect(resource.spec.sources).toMatchObject([{ name: 's', type: 'orchestrator_logs' }])
  expect(resource.spec.sinks).toMatchObject([{ type: 'console', inputs: ['s-fields'] }])
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    ['$KIND', true],
    ['$SINK', true],
    ['$FROM', true],
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['.a = "${A}"', '.a = (get_env_var("A") ?? "")'],
  ['.a = "x-$A/${B:?no}\\n"', '.a = ("x-" + (get_env_var("A") ?? "") + "/" + (get_env_var("B") ?? "") + "\\n")'],
  ["# ${C} isn't read\n.a = s'${A}.'", '# ${C} isn\'t read\n.a = ((get_env_var("A") ?? "") + s\'.\')'],
  ['.a = "$$A ${A:-d}"', '.a = "$A d"'],
  ['.n = "${VECTOR_SELF_NODE_NAME}"', '.n = (get_env_var("AGENT_SELF_NODE_NAME") ?? "")'],
  ['.n = get_env_var!("VECTOR_SELF_POD_NAME")', '.n = get_env_var!("POD_NAME")'],
])('%s becomes %s', (given, expected) => {
  const { source, gaps } = programs(given)
  expect(source).toBe(expected)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
})

test('a program that names a variable of the pod needs no variable of the Agent', () => {
  expect(programs('.n = "${VECTOR_SELF_NODE_NAME}"').gaps).toEqual([])
})

test.each([
  ['outside of a text', '.a = ${A}', 'A'],
  ['in an expression', '.a = match(string(.message) ?? "", r\'${A}\')', 'A'],
  ['where the program needs a constant', '. |= parse_grok(.message, "%{${A}:x}") ?? {}', 'A'],
])('a variable %s is a gap', (_, program, name) => {
  const { gaps } = programs(program)
  const missing = gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(missing[0]).toMatchObject({ subject: `$${name}`, nearest: 'Replace it with its value.' })
})

test('variables that differ between pods become fields of metadata in templates, and gaps elsewhere', async () => {
  const { document, resource, gaps } = convert(`
sources: { s: { type: kubernetes_logs } }
sinks:
  out:
    type: loki
    inputs: [s]
    endpoint: http://loki:3100
    labels: { node: "\${VECTOR_SELF_NODE_NAME}", pod: "p-$HOSTNAME", cluster: "\${CLUSTER}" }
    encoding: { codec: json }
    auth: { strategy: basic, user: "\${POD_NAME}", password: x }
`)
  expect(resource.spec.sinks[0].config.labels).toEqual({
    node: '{{ %agent_self_node_name }}',
    pod: 'p-{{ %hostname }}',
    cluster: 'SECRET[env.CLUSTER]',
  })
  expect(resource.spec.transforms.at(-1).config.source).toBe(
    '%agent_self_node_name = get_env_var("AGENT_SELF_NODE_NAME") ?? ""\n%hostname = get_env_var("HOSTNAME") ?? ""',
  )
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    ['$CLUSTER', true],
    ['$POD_NAME', undefined],
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('headers of an HTTP sink contain variables that differ between pods', async () => {
  const { document, resource, gaps } = convert(`
sources: { s: { type: kubernetes_logs } }
sinks:
  out:
    type: http
    inputs: [s]
    uri: https://collector/in
    encoding: { codec: json }
    request: { headers: { X-Node: "\${VECTOR_SELF_NODE_NAME}", Authorization: "Key \${KEY}" } }
`)
  expect(resource.spec.sinks[0].config.request.headers).toEqual({
    'X-Node': '{{ %agent_self_node_name }}',
    Authorization: 'Key SECRET[env.KEY]',
  })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['$KEY', true]])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the program before a sink for a product reads its variables', () => {
  const { resource, gaps } = convert(`
sources: { s: { type: stdin } }
sinks: { out: { type: splunk_hec_logs, inputs: [s], endpoint: 'https://hec:8088', default_token: "\${TOKEN}", index: "i-\${INDEX}", encoding: { codec: json } } }
`)
  expect(resource.spec.transforms[0].config.source).toContain('index = ("i-" + (get_env_var("INDEX") ?? ""))')
  expect(resource.spec.sinks[0].config.request.headers.Authorization).toBe('Splunk SECRET[env.TOKEN]')
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    ['$INDEX', true],
    ['$TOKEN', true],
  ])
})

test('the field of the pod in an `env` entry decides what a variable means', () => {
  const { resource, gaps } = convert(`
env:
  - { name: WHERE, valueFrom: { fieldRef: { fieldPath: spec.nodeName } } }
  - { name: NODE_NAME, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
customConfig:
  sources: { s: { type: stdin } }
  transforms: { t: { type: remap, inputs: [s], source: '.a = "\${WHERE}"; .b = "\${NODE_NAME}"' } }
  ${printed}`)
  expect(resource.spec.transforms[0].config.source).toBe(
    '.a = (get_env_var("AGENT_SELF_NODE_NAME") ?? ""); .b = (get_env_var("NODE_NAME") ?? "")',
  )
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['$NODE_NAME', true]])
})

test.each([
  {
    about: 'TOML',
    file: 'v.toml',
    text: '[sources.f]\ntype = "file"\ninclude = [${LOGS:-/a.log}, "/b.log"]\n[transforms.t]\ntype = "remap"\ninputs = ["f"]\nsource = \'\'\'\n.a = [ $A ]\n\'\'\'\n[sinks.out]\ntype = "loki"\ninputs = ["t"]\nendpoint = $LOKI # a comment\nencoding.codec = "json"\nlabels.a = "b"\nbatch.max_events = ${N}\n',
  },
  {
    about: 'YAML',
    file: 'v.yaml',
    text: 'sources:\n  f:\n    type: file\n    include: [${LOGS:-/a.log}, /b.log]\ntransforms:\n  t:\n    type: remap\n    inputs: [f]\n    source: |\n      .a = [ $A ]\nsinks:\n  out:\n    type: loki\n    inputs: [t]\n    endpoint: $LOKI\n    encoding: { codec: json }\n    labels: { a: b }\n    batch: { max_events: "${N}" }\n',
  },
  {
    about: 'tables of YAML on one line',
    file: 'v.yaml',
    text: 'sources: { f: { type: file, include: [/a.log, /b.log] } }\ntransforms:\n  t:\n    type: remap\n    inputs: [f]\n    source: |\n      .a = [ $A ]\nsinks: { out: { type: loki, inputs: [t], endpoint: ${LOKI}, encoding: { codec: json }, labels: { a: ${B:-b}, c: d }, batch: { max_events: ${N} } } }\n',
  },
])('in $about, a variable may stand outside of quotes', async ({ file, text }) => {
  const { document, resource, gaps } = converted(convertVector, [{ file, text }])
  expect(resource.spec.sources).toMatchObject([{ name: 'f', config: { include: ['/a.log', '/b.log'] } }])
  expect(resource.spec.sinks[0].config.endpoint).toBe('SECRET[env.LOKI]')
  expect(JSON.stringify(resource.spec.transforms)).not.toContain('\\"$A\\"')
  expect(gaps).toContainEqual(
    expect.objectContaining({ subject: 'out: batch.max_events', reason: expect.stringMatching(/found a variable$/) }),
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('rows name the place of a variable', () => {
  const { gaps } = convert(`
sources: { s: { type: stdin } }
transforms:
  t:
    type: remap
    inputs: [s]
    source: |
      .a = 1
      .b = get_env_var("A") ?? ""
      .c = "x \${B:-y}" + "\${C}"
sinks:
  out:
    type: http
    inputs: [t]
    uri: http://a
    encoding: { codec: json }
    request:
      headers:
        X-Key: "k \${KEY}"
`)
  expect(gaps.map(({ subject, line, column }) => [subject, line, column])).toEqual([
    ['$B', 10, 15],
    ['$A', 9, 12],
    ['$C', 10, 27],
    ['$KEY', 19, 19],
  ])
})
