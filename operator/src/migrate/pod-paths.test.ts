// Inputs that read the logs of some pods, by paths below both folders: which events pass, and that no path is left out in silence.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../testing/conversions.ts'
import { convertFilebeat } from './filebeat/convert.ts'
import { convertFluentBit } from './fluent-bit/convert.ts'
import { convertFluentd } from './fluentd/convert.ts'
import { convertOtel } from './otel/convert.ts'

const event = (pod: string, namespace: string) => ({
  message: 'x',
  stream: 'stdout',
  file: `/var/log/pods/${namespace}_${pod}_1-2/web/0.log`,
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: { pod_name: pod, pod_namespace: namespace, container_name: 'web', container_id: 'containerd://abc' },
})

const agents = [
  {
    agent: 'Fluent Bit',
    convert: convertFluentBit,
    file: 'fluent-bit.conf',
    text: (wanted: string, unwanted: string) =>
      `[INPUT]\n  Name tail\n  Path ${wanted}\n  Exclude_Path ${unwanted}\n  Tag a\n  multiline.parser cri\n[OUTPUT]\n  Name stdout\n  Match *\n  Format json_lines\n`,
  },
  {
    agent: 'Fluentd',
    convert: convertFluentd,
    file: 'fluent.conf',
    text: (wanted: string, unwanted: string) =>
      `<source>\n  @type tail\n  path ${wanted}\n  exclude_path ["${unwanted}"]\n  tag a\n  <parse>\n    @type cri\n  </parse>\n</source>\n<match **>\n  @type stdout\n</match>\n`,
  },
  {
    agent: 'Filebeat',
    convert: convertFilebeat,
    file: 'filebeat.yml',
    text: (wanted: string, unwanted: string) =>
      `filebeat.inputs:\n- type: filestream\n  id: a\n  paths: ["${wanted}"]\n  parsers: [{ container: }]\n  prospector.scanner.exclude_files: ['${unwanted.replaceAll('*', '.*')}']\noutput.console: {}\n`,
  },
]
const paths = [
  { wanted: '/var/log/pods/shop_*/web/*.log', unwanted: '/var/log/pods/*_noisy-*/*/*.log' },
  { wanted: '/var/log/containers/*_shop_web-*.log', unwanted: '/var/log/containers/noisy-*.log' },
]
const events = [
  { pod: 'web-1', namespace: 'shop', isTaken: true },
  { pod: 'web-1', namespace: 'other', isTaken: false },
  { pod: 'noisy-1', namespace: 'shop', isTaken: false },
]

test.each(agents.flatMap((agent) => paths.flatMap((each) => events.map((given) => ({ ...agent, ...each, ...given })))))(
  '$agent: of $pod in $namespace, $wanted without $unwanted takes the line: $isTaken',
  async ({ convert, file, text, wanted, unwanted, pod, namespace, isTaken }) => {
    const { document, resource, gaps } = converted(convert, [{ file, text: text(wanted, unwanted) }])
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    withTest(document, resource, event(pod, namespace), isTaken ? { stream: 'stdout' } : undefined)
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  },
)

const link = '/var/log/containers/web-1_shop_web-abc.log'
const ownFile = '/var/log/pods/shop_web-1_1-2/web/0.log'
const naming = [
  {
    agent: 'Fluent Bit',
    convert: convertFluentBit,
    file: 'fluent-bit.conf',
    text: (path: string) =>
      `[INPUT]\n  Name tail\n  Path ${path}\n  Path_Key at\n  Tag a\n  multiline.parser cri\n[OUTPUT]\n  Name stdout\n  Match *\n  Format json_lines\n`,
    fields: (path: string) => ({ at: path }),
  },
  {
    agent: 'Fluentd',
    convert: convertFluentd,
    file: 'fluent.conf',
    text: (path: string) =>
      `<source>\n  @type tail\n  path ${path}\n  path_key at\n  tag a\n  <parse>\n    @type cri\n  </parse>\n</source>\n<match **>\n  @type stdout\n</match>\n`,
    fields: (path: string) => ({ at: path }),
  },
  {
    agent: 'Filebeat',
    convert: convertFilebeat,
    file: 'filebeat.yml',
    text: (path: string) => `filebeat.inputs: [{ type: container, paths: ["${path}"] }]\noutput.console: {}\n`,
    fields: (path: string) => ({ log: { file: { path } } }),
  },
  {
    agent: 'the collector',
    convert: convertOtel,
    file: 'otel.yaml',
    text: (path: string) =>
      `receivers:\n  filelog: { include: ["${path}"], include_file_path: true, operators: [{ type: container }] }\nexporters: { debug: { verbosity: detailed } }\nservice: { pipelines: { logs: { receivers: [filelog], exporters: [debug] } } }\n`,
    fields: (path: string) => ({
      attributes: {
        'log.iostream': 'stdout',
        logtag: 'F',
        'log.file.name': path.replace(/^.*\//, ''),
        'log.file.path': path,
      },
    }),
  },
]
const names = [
  { pattern: '/var/log/containers/*.log', path: link },
  { pattern: '/var/log/pods/*/*/*.log', path: ownFile },
]

test.each(naming.flatMap((agent) => names.map((each) => ({ ...agent, ...each }))))(
  '$agent: a line of $pattern has the path under which the agent finds the file',
  async ({ convert, file, text, fields, pattern, path }) => {
    const { document, resource } = converted(convert, [{ file, text: text(pattern) }])
    withTest(document, resource, event('web-1', 'shop'), fields(path))
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  },
)
