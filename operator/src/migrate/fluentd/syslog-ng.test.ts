// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of syslog-ng are meant
// Resources of the logging-operator for syslog-ng: the events that a flow keeps, what it makes of them, and what an output sends.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const head = (kind: string, name: string) =>
  `apiVersion: logging.banzaicloud.io/v1beta1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: shop }\nspec:\n`
const indented = (text: string) => text.replace(/^(?=.)/gm, '  ')
const file = `---\n${head('SyslogNGOutput', 'out')}  file: { path: /srv/out, template: "$(format-json --subkeys json.)\\n" }\n`

function convert(flow: string, output = file) {
  const text = `${head('SyslogNGFlow', 'web')}${indented(flow)}\n  localOutputRefs: [out]\n${output}`
  return converted(convertFluentd, [{ file: 'l.yaml', text }])
}

const event = (message: string, labels: object = {}) => ({
  message,
  stream: 'stdout',
  timestamp: '2026-11-24T10:11:12Z',
  orchestrator: { pod_name: 'web-1', pod_namespace: 'shop', container_name: 'web', pod_labels: labels },
})

const regexp = (value: string, pattern: string, more = '') =>
  `{ regexp: { value: "${value}", pattern: "${pattern}"${more} } }`

test.each<[about: string, match: string, message: string, isKept: boolean]>([
  ['a pattern', regexp('json.message', '^x+'), 'xx y', true],
  ['a pattern that begins within the text', regexp('json.message', '^y'), 'x\ny', false],
  ['an equal text', regexp('json.message', 'x.y', ', type: string'), 'x.y', true],
  ['a part of a text', regexp('json.message', 'x', ', type: string'), 'xy', false],
  ['a part, by a flag', regexp('json.message', 'X', ', type: string, flags: [substring, ignore-case]'), 'yxy', true],
  ['the beginning', regexp('json.message', 'x', ', type: string, flags: [prefix]'), 'yx', false],
  ['signs that stand for others', regexp('json.message', '*b?d', ', type: glob'), 'a\nbcd', true],
  ['a name with the delimiter in it', regexp('json.kubernetes.labels.app.io/name', 'web', ', type: string'), 'x', true],
  ['another delimiter', regexp('json#kubernetes#labels#app.io/name', 'web', ', type: string'), 'x', true],
  ['a missing field', regexp('json.none', '.', ''), 'x', false],
  ['both', `{ and: [ ${regexp('json.message', 'x')}, { not: ${regexp('json.message', 'y')} } ] }`, 'xy', false],
  ['one of two', `{ or: [ ${regexp('json.message', 'x')}, ${regexp('json.message', 'y')} ] }`, 'y', true],
])('a condition: %s', async (_about, match, message, isKept) => {
  const { document, resource, gaps } = convert(`match: ${match}`)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, event(message, { 'app.io/name': 'web' }), isKept ? { message } : undefined)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('rules that rewrite a record', async () => {
  const { document, resource, gaps } = convert(`filters:
  - parser: { regexp: { patterns: ["^(?<verb>[A-Z]+) (?<lvl>\\\\w+)"], template: "\${json.message}", prefix: "json." } }
  - rewrite:
      - set: { field: json.from, value: "\${json.kubernetes.namespace_name}/\${json.none}!" }
      - rename: { oldName: json.lvl, newName: json.level }
      - subst: { field: json.message, pattern: "\\\\d+", replace: "#", flags: [global] }
      - unset: { field: json.stream }
      - group_unset: { pattern: json.logt* }
      - set: { field: json.canary, value: "yes", condition: ${regexp('json.message', 'none')} }`)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, event('GET info 12 and 3'), {
    verb: 'GET',
    level: 'info',
    from: 'shop/!',
    message: 'GET info # and #',
    stream: null,
    logtag: null,
    canary: null,
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a text that no pattern of a parser matches ends the way of the event', async () => {
  const { document, resource } = convert(
    'filters: [ { parser: { regexp: { patterns: ["^(?<a>x)"], template: "${json.message}", prefix: "json." } } } ]',
  )
  withTest(document, resource, event('y'), undefined)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  {
    about: 'the documents of an index by date',
    output:
      'elasticsearch: { url: "https://es:9200/_bulk", index: "a-${YEAR}.${MONTH}", user: u, template: "$(format-json --subkeys json. --exclude json.kubernetes.*)", tls: { peer_verify: false } }',
    config: { endpoints: ['https://es:9200'], bulk: { index: 'a-%Y.%m' }, tls: { verify_certificate: false } },
    sent: { message: 'x', kubernetes: null },
  },
  {
    about: 'a line and labels for Loki',
    output:
      'loki: { url: "loki:9095", labels: { ns: "${json.kubernetes.namespace_name}" }, template: "${json.stream}: ${json.message}" }',
    config: { endpoint: 'http://loki:3100', labels: { ns: '{{ label_0 }}' } },
    sent: { message: 'stdout: x', label_0: 'shop' },
    subjects: ['loki: url'],
  },
  {
    about: 'a list of records with headers and credentials',
    output:
      'http: { url: "https://h/in", method: POST, headers: ["X-A: b: c"], body: "$(format-json --subkeys json.)", body-prefix: "[", body-suffix: "]", delimiter: ",", user: u, password: { value: p }, batch-timeout: 5000 }',
    config: {
      uri: 'https://h/in',
      auth: { user: 'u', password: 'p' },
      request: { headers: { 'X-A': 'b: c' } },
      batch: { timeout_secs: 5 },
    },
    sent: { message: 'x' },
  },
])('an output: $about', async ({ output, config, sent, subjects = [] }) => {
  const { document, resource, gaps } = convert('match: {}', `---\n${head('SyslogNGOutput', 'out')}  ${output}\n`)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(subjects)
  expect(resource.spec.sinks[0].config).toMatchObject(config)
  withTest(document, resource, event('x'), sent)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
