// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// Common configurations: combinations of inputs, processors and outputs, in the files that contain them. All become Pipelines that pass
// lint, and parts without a counterpart become gaps with line numbers.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { mutated } from '../../testing/mistakes.ts'
import { oldAgents } from '../agents.ts'
import { convertFilebeat } from './convert.ts'

interface Part {
  readonly about: string
  readonly text: string
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const inputs: readonly Part[] = [
  {
    about: 'pods',
    text: 'filebeat.inputs:\n  - type: container\n    paths:\n      - /var/log/containers/*.log\n    processors:\n      - add_kubernetes_metadata:\n          host: ${NODE_NAME}\n          matchers:\n            - logs_path:\n                logs_path: "/var/log/containers/"\n',
    whole: true,
  },
  {
    about: 'filestream of pods',
    text: 'filebeat.inputs:\n- type: filestream\n  id: pods\n  prospector.scanner:\n    symlinks: true\n    fingerprint.enabled: true\n    exclude_files: ["\\\\.gz$", "_kube-system_"]\n  file_identity.fingerprint: ~\n  paths: [/var/log/containers/*.log]\n  parsers:\n    - container: ~\n    - multiline:\n        type: pattern\n        pattern: "^[[:space:]]"\n        negate: false\n        match: after\n',
    whole: true,
  },
  {
    about: 'pods with JSON',
    text: 'filebeat:\n  inputs:\n    - type: filestream\n      id: json\n      paths: [/var/log/containers/*.log]\n      parsers:\n        - container: { stream: stdout }\n        - ndjson: { target: "", overwrite_keys: true, add_error_key: true }\n      exclude_lines: ["^DBG", "healthz"]\n      fields: { team: shop }\n      fields_under_root: true\n      tags: [k8s]\n',
    whole: true,
  },
  {
    about: 'files',
    text: 'filebeat.inputs:\n- type: log\n  enabled: true\n  paths: ["/var/log/nginx/*.log", /srv/app.log]\n  include_lines: ["^ERR", "^WARN"]\n  ignore_older: 24h\n  close_inactive: 5m\n  multiline.pattern: "^\\\\d{4}-"\n  multiline.negate: true\n  multiline.match: after\n- type: log\n  enabled: false\n  paths: [/never]\n',
    whole: true,
  },
  {
    about: 'files with JSON',
    text: 'filebeat.inputs:\n- type: log\n  paths: [/srv/a.json]\n  json.keys_under_root: true\n  json.overwrite_keys: true\n  json.message_key: msg\n  scan_frequency: 5s\n',
    whole: true,
  },
  {
    about: 'hints',
    text: 'filebeat.autodiscover:\n  providers:\n    - type: kubernetes\n      node: ${NODE_NAME}\n      hints.enabled: true\n      hints.default_config:\n        type: container\n        paths:\n          - /var/log/containers/*${data.kubernetes.container.id}.log\n',
    whole: true,
  },
  {
    about: 'templates',
    text: 'filebeat.autodiscover:\n  providers:\n    - type: kubernetes\n      templates:\n        - condition:\n            equals:\n              kubernetes.namespace: shop\n          config:\n            - type: container\n              paths: ["/var/log/containers/*-${data.kubernetes.container.id}.log"]\n              multiline.pattern: "^\\\\["\n              multiline.negate: true\n              multiline.match: after\n        - condition.contains:\n            kubernetes.labels.app: web\n          config:\n            - type: container\n              paths: ["/var/log/containers/*-${data.kubernetes.container.id}.log"]\n              exclude_lines: ["^\\\\s+[\\\\-`(\'.|_]"]\n',
    whole: true,
  },
  {
    about: 'a module',
    text: 'filebeat.modules:\n- module: nginx\n  access:\n    enabled: true\nfilebeat.inputs:\n- type: container\n  paths: [/var/log/containers/*.log]\n',
    whole: false,
  },
  {
    about: 'a port',
    text: 'filebeat.inputs:\n- type: syslog\n  protocol.udp:\n    host: "localhost:9000"\n',
    whole: false,
  },
  {
    about: 'files elsewhere',
    text: 'filebeat.config:\n  inputs:\n    path: ${path.config}/inputs.d/*.yml\n    reload.enabled: false\nfilebeat.inputs:\n- type: container\n  paths: [/var/log/containers/*.log]\n',
    whole: false,
  },
]

const chains: readonly Part[] = [
  { about: 'nothing', text: '', whole: true },
  {
    about: 'metadata',
    text: 'processors:\n  - add_kubernetes_metadata:\n      host: ${NODE_NAME}\n      labels.dedot: true\n',
    whole: true,
  },
  {
    about: 'fewer events',
    text: 'processors:\n- drop_event:\n    when:\n      or:\n        - equals:\n            kubernetes.namespace: kube-system\n        - regexp:\n            message: "^\\\\s*$"\n        - and:\n            - range:\n                http.response.status_code.gte: 200\n                http.response.status_code.lt: 300\n            - has_fields: ["http.response.status_code"]\n- drop_event.when.contains:\n    message: healthz\n- drop_event:\n    when.not.network:\n      source.ip: [private, 192.0.2.0/24]\n',
    whole: true,
  },
  {
    about: 'fields',
    text: 'processors:\n- add_fields:\n    target: project\n    fields:\n      name: shop\n      id: 7\n- add_fields:\n    target: ""\n    fields: { env: prod }\n- add_labels: { labels: { a: b } }\n- add_tags: { tags: [x, y] }\n- rename:\n    fields:\n      - { from: a.b, to: c }\n    ignore_missing: true\n- copy_fields:\n    fields:\n      - from: message\n        to: event.original\n    fail_on_error: false\n- drop_fields:\n    fields: [agent, ecs.version, /^host/]\n    ignore_missing: true\n',
    whole: true,
  },
  {
    about: 'JSON',
    text: 'processors:\n- decode_json_fields:\n    fields: [message]\n    target: ""\n    overwrite_keys: true\n    max_depth: 2\n- decode_json_fields:\n    fields: [payload]\n    target: parsed\n    when.has_fields: [payload]\n',
    whole: true,
  },
  {
    about: 'parts',
    text: 'processors:\n- dissect:\n    tokenizer: "%{level} [%{logger->}] %{?skip} %{text}"\n    field: message\n    target_prefix: ""\n- timestamp:\n    field: ts\n    layouts:\n      - "2006-01-02T15:04:05.999Z07:00"\n      - "2006-01-02 15:04:05"\n      - UNIX_MS\n- convert:\n    fields:\n      - { from: status, to: http.status, type: integer }\n      - { from: took, type: float }\n    mode: rename\n- truncate_fields: { fields: [message], max_characters: 2000 }\n- replace:\n    fields:\n      - { field: message, pattern: "\\\\d{16}", replacement: "****" }\n',
    whole: true,
  },
  {
    about: 'ids',
    text: 'processors:\n- fingerprint: { fields: [message, "@timestamp"], target_field: "@metadata._id" }\n- add_id: ~\n- lowercase: { fields: [level] }\n- urldecode:\n    fields: [{ from: url }]\n- include_fields: { fields: [message, level, kubernetes] }\n',
    whole: true,
  },
  {
    about: 'a branch',
    text: 'processors:\n- if:\n    equals: { level: error }\n  then:\n    - add_tags: { tags: [bad] }\n  else:\n    - add_tags: { tags: [good] }\n',
    whole: true,
  },
  {
    about: 'facts of the machine',
    text: 'processors:\n  - add_host_metadata: ~\n  - add_cloud_metadata: ~\n',
    whole: false,
  },
  {
    about: 'a script',
    text: 'processors:\n- script:\n    lang: javascript\n    source: >\n      function process(event) { event.Tag("js"); }\n- rate_limit: { limit: "100/s" }\n',
    whole: false,
  },
]

const ends: readonly Part[] = [
  {
    about: 'search',
    text: 'output.elasticsearch:\n  hosts: ["https://es.logging.svc:9200"]\n  username: elastic\n  password: ${ELASTIC_PASSWORD}\n  index: "logs-%{[kubernetes.namespace]}-%{+yyyy.MM.dd}"\n  ssl.verification_mode: none\nsetup.ilm.enabled: false\nsetup.template:\n  name: logs\n  pattern: logs-*\n',
    whole: true,
  },
  {
    about: 'search by host and key',
    text: 'output:\n  elasticsearch:\n    hosts: [es:9200, "es2:9200"]\n    protocol: https\n    api_key: ${ID}\n    ssl:\n      certificate_authorities: [/etc/ca.pem]\n    compression_level: 5\n    bulk_max_size: 50\n    pipeline: in\nlogging.level: warning\n',
    whole: true,
  },
  {
    about: 'indices',
    text: 'output.elasticsearch:\n  hosts: ["http://es:9200"]\n  index: rest\n  indices:\n    - index: shop\n      when.equals: { kubernetes.namespace: shop }\n    - index: errors\n      when.contains: { message: ERR }\n',
    whole: true,
  },
  { about: 'a console', text: 'output.console:\n  pretty: true\n', whole: true },
  {
    about: 'a file',
    text: 'output.file:\n  path: /tmp/filebeat\n  filename: out\n  rotate_every_kb: 10000\n',
    whole: true,
  },
  { about: 'Logstash', text: 'output.logstash:\n  hosts: ["logstash:5044"]\n', whole: false },
  { about: 'a queue', text: 'output.kafka:\n  hosts: ["kafka:9092"]\n  topic: logs\n', whole: false },
]

const cases = chains.flatMap((chain, at) =>
  Array.from({ length: 7 }, (_, step) => {
    const input = inputs[(at + 3 * step) % inputs.length] as Part
    const end = ends[(at + step * 4) % ends.length] as Part
    return {
      name: `${input.about}, ${chain.about}, ${end.about}`,
      text: `${input.text}${chain.text}${end.text}`,
      whole: input.whole && chain.whole && end.whole,
    }
  }),
)

const indented = (text: string, by: number) => text.replace(/^(?=.)/gm, ' '.repeat(by))
const simple = `${inputs[0]?.text}${ends[0]?.text}`
const places = [
  {
    name: 'a ConfigMap',
    file: 'map.yaml',
    text: `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: filebeat-config }\ndata:\n  filebeat.yml: |-\n${indented(simple, 4)}`,
  },
  {
    name: 'values of the chart',
    file: 'values.yaml',
    text: `daemonset:\n  filebeatConfig:\n    filebeat.yml: |\n${indented(simple, 6)}`,
  },
  {
    name: 'a Beat',
    file: 'beat.yaml',
    text: `apiVersion: beat.k8s.elastic.co/v1beta1\nkind: Beat\nmetadata: { name: a }\nspec:\n  type: filebeat\n  version: 8.15.0\n  config:\n${indented(simple, 4)}`,
  },
]

test('the corpus has the expected size', () => {
  expect(cases.length).toBeGreaterThanOrEqual(60)
  expect(new Set(cases.map(({ text }) => text)).size).toBe(cases.length)
})

test.each([
  ...cases.map((each) => ({ ...each, file: 'filebeat.yml' })),
  ...places.map((each) => ({ ...each, whole: true })),
])('$name', async ({ file, text, whole }) => {
  const given = { file, text }
  expect(oldAgents.filter(({ recognises }) => recognises(given)).map(({ name }) => name)).toEqual(['filebeat'])
  const { document, gaps } = converted(convertFilebeat, [given])
  const missing = gaps.filter(({ isReplaced }) => isReplaced !== true)
  if (whole) expect(missing).toEqual([])
  else expect(missing.length).toBeGreaterThan(0)
  for (const gap of gaps) {
    expect(gap.file).toBe(file)
    expect(gap.line).toBeGreaterThan(0)
    expect(text.split('\n').length).toBeGreaterThanOrEqual(gap.line)
    expect(gap.reason).not.toBe('')
    expect(gap.nearest).toMatch(/\.$/)
  }
  expect(await lint(document.toString())).toEqual([])
})

test('configurations with mistakes give an output that passes lint, and gaps with line numbers', async () => {
  for (let seed = 1; seed <= 150; seed++) {
    const text = mutated(cases[seed % cases.length]?.text ?? '', seed)
    const { document, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
    for (const { line, reason, nearest } of gaps) {
      expect([line > 0, reason === '', nearest === ''], `seed ${seed}`).toEqual([true, false, false])
    }
    expect(await lint(document.toString()), `seed ${seed}`).toEqual([])
  }
})
