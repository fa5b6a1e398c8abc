// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Fluent Bit are meant
// Configurations within other files: the agent they belong to, their line numbers, and the Secrets next to them.

import { expect, test } from 'vitest'
import { lint } from '../testing/conversions.ts'
import { agentFor, oldAgents } from './agents.ts'
import { Draft, type NamedText } from './draft.ts'
import { secretsIn } from './inner.ts'

function convert(...files: NamedText[]) {
  const found = agentFor(files)
  if (found === undefined) throw new Error('No agent knows the files.')
  const draft = new Draft()
  for (const file of found.files) for (const [name, key] of secretsIn(file)) draft.secrets.set(name, key)
  draft.gaps.push(...found.gaps)
  found.agent.convert(found.files, () => [], draft)
  const document = draft.document({ name: 'converted' })
  return {
    agent: found.agent.name,
    text: document.toString({ lineWidth: 0 }),
    resource: document.toJSON(),
    gaps: draft.gaps,
  }
}

const yaml = (text: string): NamedText => ({ file: 'values.yaml', text })
const indented = (text: string, by: number) => text.replace(/^(?=.)/gm, ' '.repeat(by))

const vector = `customConfig:
  sources:
    logs: { type: kubernetes_logs }
  sinks:
    out:
      type: loki
      inputs: [logs]
      endpoint: http://loki:3100
      labels: { a: b }
      encoding: { codec: json }
      frobnicate: 1
`
const fluentBit = `config:
  inputs: |
    [INPUT]
        Name tail
        Path /var/log/containers/*.log
        Tag kube.*
        multiline.parser docker, cri
  filters: ""
  outputs: |
    [OUTPUT]
        Name stdout
        Match *
        Frobnicate 1
`
const otel = `config:
  receivers: { filelog: { include: [/var/log/pods/*/*/*.log] } }
  exporters: { debug: {} }
  service: { pipelines: { logs: { receivers: [filelog], exporters: [debug] } } }
`

test.each([
  { name: 'a HelmRelease', before: 'kind: HelmRelease\nspec:\n  chart: { spec: { chart: x } }\n  values:\n', by: 4 },
  { name: 'an Application', before: 'kind: Application\nspec:\n  source:\n    helm:\n      valuesObject:\n', by: 8 },
  {
    name: 'texts of an Application',
    before: 'kind: Application\nspec:\n  source:\n    helm:\n      values: |\n',
    by: 8,
  },
  {
    name: 'several sources',
    before: 'kind: Application\nspec:\n  sources:\n    - ref: x\n    - helm:\n        values: |\n',
    by: 10,
  },
  {
    name: 'an ApplicationSet',
    before:
      'kind: ApplicationSet\nspec:\n  template:\n    spec:\n      source:\n        helm:\n          valuesObject:\n',
    by: 12,
  },
  { name: 'a HelmChart', before: 'kind: HelmChart\nspec:\n  chart: x\n  valuesContent: |-\n', by: 4 },
  { name: 'a Kustomization', before: 'kind: Kustomization\nhelmCharts:\n- name: x\n  valuesInline:\n', by: 4 },
  { name: 'a release of Helmfile', before: 'releases:\n- name: x\n  values:\n  - a.yaml\n  -\n', by: 4 },
  { name: 'an umbrella chart', before: 'grafana:\n  replicas: 1\nlogs:\n', by: 2 },
  { name: 'an umbrella in a HelmRelease', before: 'kind: HelmRelease\nspec:\n  values:\n    logs:\n', by: 6 },
  { name: 'another document', before: 'kind: Namespace\n---\nkind: HelmRelease\nspec:\n  values:\n', by: 4 },
  {
    name: 'a list',
    before: 'kind: List\nitems:\n  - kind: Namespace\n  - kind: HelmRelease\n    spec:\n      values:\n',
    by: 8,
  },
])('values in $name are found, and keep their line numbers', async ({ before, by }) => {
  for (const [values, agent] of [
    [vector, 'vector'],
    [fluentBit, 'fluent-bit'],
    [otel, 'otel'],
  ] as const) {
    const text = before + indented(values, by)
    const found = convert(yaml(text))
    expect(found.agent).toBe(agent)
    if (agent !== 'otel') {
      const line = 1 + text.slice(0, text.toLowerCase().indexOf('frobnicate')).split('\n').length - 1
      expect(found.gaps.find(({ subject }) => /frobnicate/.test(subject))).toMatchObject({ file: 'values.yaml', line })
    }
    expect(await lint(found.text)).toEqual([])
  }
})

test('files of a ConfigMap can include one another in any order', async () => {
  const { agent, text, gaps, resource } = convert(
    yaml(`kind: ConfigMap
data:
  a.lua: |
    function cb(tag, ts, record)
      return 0, ts, record
    end
  fluent-bit.conf: |
    [SERVICE]
        Parsers_File parsers.conf
    @INCLUDE input-*.conf
    @INCLUDE output.conf
  output.conf: |
    [OUTPUT]
        Name loki
        Match *
        Host loki
  input-kubernetes.conf: |
    [INPUT]
        Name tail
        Path /var/log/containers/*.log
        Parser own
        Tag kube.*
    [FILTER]
        Name lua
        Match *
        script a.lua
        call cb
  parsers.conf: |
    [PARSER]
        Name own
        Format regex
        Regex ^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[^ ]*) (?<message>.*)$
        Time_Key time
        Time_Format %Y-%m-%dT%H:%M:%S.%L%z
`),
  )
  expect(agent).toBe('fluent-bit')
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([['filter lua', 23]])
  expect(text).toContain('# Its program:\n    # function cb(tag, ts, record)\n')
  expect(resource.spec.sinks).toHaveLength(1)
  expect(await lint(text)).toEqual([])
})

test('a Secret contains a configuration in base64', () => {
  const inner = '[INPUT]\n  Name tail\n  Path /srv/*.log\n  Tag a\n[OUTPUT]\n  Name stdout\n  Match *\n'
  const { agent, resource } = convert(
    yaml(`kind: Secret\ndata:\n  fluent-bit.conf: ${Buffer.from(inner).toString('base64')}\n`),
  )
  expect(agent).toBe('fluent-bit')
  expect(resource.spec.sources[0].config.include).toEqual(['/srv/*.log'])
})

test('defaults of the chart replace parts that values of Fluent Bit omit', async () => {
  const { resource, text } = convert(
    yaml('config:\n  outputs: |\n    [OUTPUT]\n        Name loki\n        Match kube.*\n        Host loki\n'),
  )
  expect(resource.spec.sources[0].type).toBe('orchestrator_logs')
  expect(text).toContain('.kubernetes = filter(')
  expect(resource.spec.sinks.map(({ type }: { type: string }) => type)).toEqual(['log_aggregator'])
  expect(await lint(text)).toEqual([])
})

test.each([
  { template: '{{ include "x.name" . }}', isReplaced: undefined },
  { template: '{{ .Release.Name }}', isReplaced: true },
])('$template in values of Fluent Bit has a row with its line', ({ template, isReplaced }) => {
  const { gaps } = convert(yaml(fluentBit.replace('Frobnicate 1', `Alias ${template}`)))
  expect(gaps.find(({ subject }) => subject === template)).toMatchObject({
    line: 13,
    ...(isReplaced && { isReplaced }),
  })
})

test('files of a chart of Fluentd follow one another', async () => {
  const { agent, resource, text } = convert(
    yaml(`fileConfigs:
  01_sources.conf: |-
    <source>
      @type tail
      path /var/log/containers/*.log
      tag kubernetes.*
      @label @OUT
      <parse>
        @type cri
      </parse>
    </source>
  04_outputs.conf: |-
    <label @OUT>
      <match **>
        @type stdout
      </match>
    </label>
`),
  )
  expect(agent).toBe('fluentd')
  expect(resource.spec.sinks[0].type).toBe('console')
  expect(await lint(text)).toEqual([])
})

test('variables for keys of Secrets become references to these keys', () => {
  const { resource, gaps } = convert(
    yaml(`env:
  - name: PASSWORD
    valueFrom: { secretKeyRef: { name: es.user, key: pass.word } }
  - name: HOST
    value: es.logging
config:
  inputs: |
    [INPUT]
        Name tail
        Path /srv/a.log
        Tag a
  filters: ""
  outputs: |
    [OUTPUT]
        Name es
        Match *
        Host \${HOST}
        HTTP_User u-\${PASSWORD}
        HTTP_Passwd \${PASSWORD}
`),
  )
  const [sink] = resource.spec.sinks
  expect(sink.config).toMatchObject({
    endpoints: ['http://es.logging:9200'],
    auth: {
      user: 'u-SECRET[es-user.pass.word]',
      password: { valueFrom: { secretKeyRef: { name: 'es.user', namespace: 'penstock-system', key: 'pass.word' } } },
    },
  })
  expect(resource.spec.secrets).toEqual([{ alias: 'es-user', secretName: 'es.user', namespace: 'penstock-system' }])
  expect(gaps.filter(({ subject }) => subject === 'Secret es.user')).toMatchObject([{ isReplaced: true }])
})

test('an input whose tag matches no output is left out, and reported', () => {
  const { resource, gaps } = convert({
    file: 'fluent-bit.conf',
    text: '[INPUT]\n  Name tail\n  Path /a.log\n  Tag a\n[INPUT]\n  Name tail\n  Path /b.log\n  Tag b\n[OUTPUT]\n  Name stdout\n  Match a\n',
  })
  expect(resource.spec.sources).toHaveLength(1)
  expect(gaps.map(({ subject, line }) => [subject, line])).toContainEqual(['input tail', 5])
})

test.each(oldAgents.map(({ name }) => name))(
  'a file that holds nothing for %s gives a Pipeline and a gap with its name',
  async (name) => {
    for (const text of ['', 'a: [', '[a', '{}\n']) {
      const found = agentFor([{ file: 'empty.yaml', text }], name)
      const draft = new Draft()
      found?.agent.convert(found.files, () => [], draft)
      const document = draft.document({ name: 'converted' })
      expect(draft.gaps.length).toBeGreaterThan(0)
      for (const gap of draft.gaps) expect(gap.file).toBe('empty.yaml')
      expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
    }
  },
)

const workload = (values: string) => `apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent }
spec:
  template:
    spec:
      containers:
      - name: agent
        env:
${indented(values, 8)}`

test.each([
  [
    'fluent-bit',
    'fluent-bit.conf: |\n  [INPUT]\n    Name tail\n    Path /var/log/containers/*.log\n    Parser cri\n    Tag kube.*\n  [OUTPUT]\n    Name es\n    Match *\n    Host ${ES_HOST}\n    Port ${ES_PORT}',
  ],
  [
    'fluentd',
    `fluent.conf: |\n  <source>\n    @type tail\n    path /var/log/containers/*.log\n    tag kube.*\n    <parse>\n      @type cri\n    </parse>\n  </source>\n  <match **>\n    @type elasticsearch\n    host "#{ENV['ES_HOST']}"\n    port "#{ENV.fetch('ES_PORT', '1') || '2'}"\n  </match>`,
  ],
  [
    'filebeat',
    'filebeat.yml: |\n  filebeat.inputs:\n  - { type: container, paths: [/var/log/containers/*.log] }\n  output.elasticsearch:\n    hosts: ["${ES_HOST:other}:${ES_PORT:1}"]\n    index: a',
  ],
  [
    'vector',
    'vector.yaml: |\n  sources: { k: { type: kubernetes_logs } }\n  sinks: { e: { type: elasticsearch, inputs: [k], endpoints: ["http://${ES_HOST}:$ES_PORT"] } }',
  ],
])('variables of %s have the values that a workload sets', async (agent, config) => {
  const text = `kind: ConfigMap\nmetadata: { name: c }\ndata:\n${indented(config, 2)}\n---\n${workload('- name: ES_HOST\n  value: es.logging\n- { name: ES_PORT, value: "9201" }\n')}`
  const made = convert({ file: 'all.yaml', text })
  expect(made.agent).toBe(agent)
  expect(made.resource.spec.sinks[0].config.endpoints).toEqual(['http://es.logging:9201'])
  expect(made.gaps.filter(({ subject }) => subject.includes('ES_'))).toEqual([])
  expect(await lint(made.text)).toEqual([])
})

test.each(['extraEnvs', 'extraEnv', 'extraEnvVars', 'env'])(
  'variables have the values in the list %s of a chart',
  async (list) => {
    const config =
      'filebeat.inputs: [{ type: log, paths: [/a.log] }]\noutput.elasticsearch: { hosts: ["${ES_HOST:other}"] }\n'
    const made = convert(
      yaml(
        `${list}:\n- { name: ES_HOST, value: es.logging }\nfilebeatConfig:\n  filebeat.yml: |\n${indented(config, 4)}`,
      ),
    )
    expect(made.resource.spec.sinks[0].config.endpoints).toEqual(['http://es.logging:9200'])
    expect(await lint(made.text)).toEqual([])
  },
)

test('a variable of a workload without a value is empty', () => {
  const config =
    'filebeat.inputs: [{ type: log, paths: [/a.log] }]\ncloud.id: ${CLOUD_ID}\noutput.elasticsearch: { hosts: ["${HOST:es}"], index: a }\n'
  const text = `kind: ConfigMap\nmetadata: { name: c }\ndata:\n  filebeat.yml: |\n${indented(config, 4)}---\n${workload('- name: CLOUD_ID\n  value:\n- { name: HOST, value: store }\n')}`
  const made = convert({ file: 'all.yaml', text })
  expect(made.resource.spec.sinks[0].config.endpoints).toEqual(['http://store:9200'])
  expect(made.gaps).toEqual([])
})

test('variables have the values that a resource of the fluent-operator sets', () => {
  const group = 'apiVersion: fluentbit.fluent.io/v1alpha2'
  const text = [
    `${group}\nkind: FluentBit\nmetadata: { name: f }\nspec: { envVars: [{ name: ES_HOST, value: es.logging }] }`,
    `${group}\nkind: ClusterInput\nmetadata: { name: i }\nspec: { tail: { tag: kube.*, path: /var/log/containers/*.log, parser: cri } }`,
    `${group}\nkind: ClusterOutput\nmetadata: { name: o }\nspec: { match: "*", es: { host: "\${ES_HOST}" } }`,
  ].join('\n---\n')
  const { resource } = convert({ file: 'all.yaml', text })
  expect(resource.spec.sinks[0].config.endpoints).toEqual(['http://es.logging:9200'])
})

test('a variable without a value can be the port of an address', async () => {
  const config =
    '[INPUT]\n  Name tail\n  Path /var/log/containers/*.log\n  Parser cri\n  Tag kube.*\n[OUTPUT]\n  Name es\n  Match *\n  Host ${HOST}\n  Port ${PORT}\n'
  const { resource, text } = convert({ file: 'fluent-bit.conf', text: config })
  expect(resource.spec.sinks[0].config.endpoints).toEqual(['http://SECRET[env.HOST]:SECRET[env.PORT]'])
  expect(await lint(text)).toEqual([])
})

test('sources of nodes and of the cluster become two resources', async () => {
  const draft = new Draft()
  draft.add('sources', 'pods', { type: 'orchestrator_logs' })
  draft.add('sources', 'events', { type: 'orchestrator_events' })
  draft.append(['pods'], [{ type: 'remap', text: '.pod = true' }], 'pods-only', { file: 'a', line: 1, subject: 'a' })
  draft.append(['pods-only', 'events'], [{ type: 'remap', text: '.x = 1' }], 'both', {
    file: 'a',
    line: 1,
    subject: 'a',
  })
  const console = { type: 'console', config: { encoding: { codec: 'json' } } }
  draft.add('sinks', 'out', { ...console, inputs: ['both'] })
  draft.add('sinks', 'pods-out', { ...console, inputs: ['pods-only'], comments: ['Of pods.'] })
  const documents = draft.documents({ name: 'a' })
  const shapes = documents.map((document) => {
    const { metadata, spec } = document.toJSON()
    const inputs = [...spec.transforms, ...spec.sinks].map((each: { name: string; inputs: string[] }) => [
      each.name,
      each.inputs,
    ])
    return { name: metadata.name, inputs }
  })
  expect(shapes).toEqual([
    {
      name: 'a',
      inputs: [
        ['pods-only', ['pods']],
        ['both', ['pods-only']],
        ['out', ['both']],
        ['pods-out', ['pods-only']],
      ],
    },
    {
      name: 'a-aggregator',
      inputs: [
        ['both', ['events']],
        ['out', ['both']],
      ],
    },
  ])
  expect(await lint(documents.map((document) => document.toString({ lineWidth: 0 })).join('---\n'))).toEqual([])
})

const alloy = `// The first line is a comment.
loki.source.file "app" {
  targets    = [{"__path__" = "/srv/app.log", "node" = sys.env("MY_NODE")}]
  forward_to = [loki.write.default.receiver]
  moon       = 1
}
loki.write "default" {
  endpoint { url = "http://loki:3100/loki/api/v1/push" }
}
`

test.each([
  {
    name: 'a Compose file',
    before: 'services: { alloy: { image: alloy } }\nconfigs:\n  alloy:\n    content: |\n',
    by: 6,
  },
  {
    name: 'a Kustomization',
    before:
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nhelmCharts:\n- name: alloy\n  valuesInline:\n    alloy:\n      configMap:\n        content: |\n',
    by: 10,
  },
])('a configuration of Alloy in $name is found, and keeps its line numbers', ({ before, by }) => {
  const text = before + indented(alloy, by)
  const found = convert(yaml(text))
  expect(found.agent).toBe('alloy')
  const line = text.slice(0, text.indexOf('moon')).split('\n').length
  expect(found.gaps.filter(({ isReplaced }) => isReplaced !== true)).toMatchObject([
    { subject: 'loki.source.file.app: moon', line },
  ])
})

test('a variable that workloads set to the name of the node is this name', () => {
  const env = 'extraEnv:\n- name: MY_NODE\n  valueFrom: { fieldRef: { fieldPath: spec.nodeName } }\n'
  const values = `${env}alloy:\n  configMap:\n    content: |\n${indented(alloy, 6)}`
  const promtail = `${env}config:
  clients: [{ url: "http://loki:3100/loki/api/v1/push", external_labels: { node: "\${MY_NODE}" } }]
`
  for (const text of [values, promtail]) {
    const found = convert(yaml(text))
    expect(found.gaps.filter(({ subject }) => subject.includes('MY_NODE'))).toEqual([])
    expect(found.text).toContain('.node = string!(%node_name || "")')
  }
})
