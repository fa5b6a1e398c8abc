// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the old agents are meant
// Variables of the environment in the values of fields: the program of a ClusterPipeline reads them from the environment of the agent, and
// for a Pipeline of a namespace they are gaps.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../testing/conversions.ts'
import { convertFilebeat } from './filebeat/convert.ts'
import { convertFluentBit } from './fluent-bit/convert.ts'
import { convertFluentd } from './fluentd/convert.ts'
import { convertOtel } from './otel/convert.ts'
import { convertVector } from './vector/convert.ts'

process.env['PENSTOCK_TEST_CLUSTER'] = 'prod'

const pods = '[INPUT]\n  Name tail\n  Path /var/log/containers/*.log\n  Tag kube.*\n  multiline.parser cri\n'
const cases = [
  ...[
    ['a program', `{ type: remap, inputs: [k], source: '.found = "eu-\${PENSTOCK_TEST_CLUSTER}"' }`],
    ['a raw text', `{ type: remap, inputs: [k], source: ".found = s'eu-\${PENSTOCK_TEST_CLUSTER:?no}'" }`],
    ['a call', `{ type: remap, inputs: [k], source: '.found = "eu-" + get_env_var!("PENSTOCK_TEST_CLUSTER")' }`],
    ['an old transform', '{ type: add_fields, inputs: [k], fields: { found: "eu-${PENSTOCK_TEST_CLUSTER}" } }'],
  ].map(([about, transform]) => ({
    agent: `Vector, ${about}`,
    convert: convertVector,
    file: 'vector.yaml',
    text: `sources: { k: { type: kubernetes_logs } }\ntransforms: { t: ${transform} }\nsinks: { c: { type: console, inputs: [t], encoding: { codec: json } } }\n`,
    field: 'found',
  })),
  {
    agent: 'Fluent Bit',
    convert: convertFluentBit,
    file: 'fluent-bit.conf',
    text: `${pods}[FILTER]\n  Name record_modifier\n  Match *\n  Record found eu-\${PENSTOCK_TEST_CLUSTER}\n[OUTPUT]\n  Name stdout\n  Match *\n  Format json_lines\n`,
    field: 'found',
  },
  {
    agent: 'Fluent Bit, modify',
    convert: convertFluentBit,
    file: 'fluent-bit.conf',
    text: `${pods}[FILTER]\n  Name modify\n  Match *\n  Set found eu-\${PENSTOCK_TEST_CLUSTER}\n[OUTPUT]\n  Name stdout\n  Match *\n  Format json_lines\n`,
    field: 'found',
  },
  {
    agent: 'Fluentd',
    convert: convertFluentd,
    file: 'fluent.conf',
    text: `<source>\n  @type tail\n  path /var/log/containers/*.log\n  tag kube.*\n  <parse>\n    @type cri\n  </parse>\n</source>\n<filter **>\n  @type record_transformer\n  <record>\n    found "eu-#{ENV['PENSTOCK_TEST_CLUSTER']}"\n  </record>\n</filter>\n<match **>\n  @type null\n</match>\n`,
    field: 'found',
  },
  {
    agent: 'Filebeat',
    convert: convertFilebeat,
    file: 'filebeat.yml',
    text: `filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }]\nprocessors:\n- add_fields: { target: '', fields: { found: 'eu-\${PENSTOCK_TEST_CLUSTER}' } }\noutput.console: {}\n`,
    field: 'found',
  },
  {
    agent: 'Filebeat, fields of the configuration',
    convert: convertFilebeat,
    file: 'filebeat.yml',
    text: `filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }]\nfields: { found: 'eu-\${PENSTOCK_TEST_CLUSTER:none}' }\nfields_under_root: true\noutput.console: {}\n`,
    field: 'found',
  },
  {
    agent: 'the collector',
    convert: convertOtel,
    file: 'otel.yaml',
    text: `receivers: { filelog: { include: [/var/log/pods/*/*/*.log], operators: [{ type: container }] } }\nprocessors: { resource: { attributes: [{ key: found, value: 'eu-\${env:PENSTOCK_TEST_CLUSTER}', action: upsert }] } }\nexporters: { debug: { verbosity: detailed } }\nservice: { pipelines: { logs: { receivers: [filelog], processors: [resource], exporters: [debug] } } }\n`,
    field: 'resource.attributes.found',
  },
]
const event = {
  message: 'x',
  stream: 'stdout',
  file: '/var/log/pods/shop_web_u/web/0.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: { pod_name: 'web', pod_namespace: 'shop', container_name: 'web' },
}

test.each(cases)('$agent: a program reads the variable', async ({ convert, file, text, field }) => {
  const { document, resource, gaps } = converted(convert, [{ file, text }])
  expect(gaps).toMatchObject([{ isReplaced: true, nearest: expect.stringContaining('`PENSTOCK_TEST_CLUSTER`') }])
  const names = resource.spec.transforms.map(({ name }: { name: string }) => name)
  const last = field.startsWith('resource') ? names.at(-2) : names.at(-1)
  withTest(document, { spec: { ...resource.spec, sinks: [{ name: 'x', inputs: [last] }] } }, event, {
    [field]: 'eu-prod',
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each(cases.filter(({ text }) => !text.includes(':none}')))(
  '$agent: in a namespace the variable is a gap',
  async ({ convert, file, text }) => {
    const { document, gaps } = converted(convert, [{ file, text }], 'shop')
    const missing = gaps.filter(({ isReplaced }) => isReplaced !== true)
    expect(missing.map(({ subject, reason }) => `${subject} ${reason}`).join('\n')).toContain('PENSTOCK_TEST_CLUSTER')
    // A Pipeline of a namespace may have no console sink, as lint says.
    expect((await lint(document.toString({ lineWidth: 0 }))).filter((problem) => !problem.includes('(T9)'))).toEqual([])
  },
)

test.each([
  ['5', 5],
  ['"5"', '5'],
  ['1.5', 1.5],
  ['"01"', '01'],
  ['true', true],
  ['"true"', 'true'],
  ['[a, 1]', ['a', 1]],
  ['{ b: { c: 2 } }', { b: { c: 2 } }],
])('Filebeat: the field %s has the type that YAML gives it', async (value, expected) => {
  const text = `filebeat.inputs: [{ type: log, paths: [/a.log] }]\nprocessors:\n- add_fields: { target: '', fields: { found: ${value} } }\noutput.console: {}\n`
  const { document, resource, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  expect(gaps).toEqual([])
  withTest(document, resource, { message: 'x', file: '/a.log', timestamp: '2026-01-01T00:00:00Z' }, { found: expected })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
