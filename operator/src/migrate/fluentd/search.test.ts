// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Outputs of Fluentd for search engines and Loki: the sink has the address, the credentials and the headers of the output.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const source =
  '<source>\n  @type tail\n  path /srv/app.log\n  tag app\n  <parse>\n    @type none\n  </parse>\n</source>\n'
const output = (lines: string) => `${source}<match **>\n${lines.replace(/^(?=.)/gm, '  ')}\n</match>\n`

test.each([
  {
    about: 'an address of a service in a cloud',
    lines:
      '@type opensearch\n<endpoint>\n  url https://logs.example/\n  region eu-west-1\n  assume_role_arn arn:aws:iam::1:role/x\n</endpoint>',
    config: {
      endpoints: ['https://logs.example:443'],
      auth: { strategy: 'aws', assume_role: 'arn:aws:iam::1:role/x' },
      aws: { region: 'eu-west-1' },
    },
  },
  {
    about: 'headers and the password of a key',
    lines:
      '@type elasticsearch\nhosts https://a:9200,https://b:9200\ncustom_headers {"X-A":"b"}\nclient_cert /c\nclient_key /k\nclient_key_pass "#{ENV[\'PASS\']}"',
    config: {
      endpoints: ['https://a:9200', 'https://b:9200'],
      request: { headers: { 'X-A': 'b' } },
      tls: { crt_file: '/c', key_file: '/k', key_pass: 'SECRET[env.PASS]' },
    },
  },
  {
    about: 'URLs with their own ports and paths, and names with the options for them',
    lines:
      '@type elasticsearch\nhosts http://es2,https://es3/x,https://es6:9443/,es4,es5:9300\nport 9201\nscheme http\npath /own',
    config: {
      endpoints: [
        'http://es2:80/own',
        'https://es3:443/x',
        'https://es6:9443/own',
        'http://es4:9201/own',
        'http://es5:9300/own',
      ],
    },
  },
  {
    about: 'names with the default port',
    lines: '@type opensearch\nhosts a,b\nscheme https\nssl_verify false',
    config: { endpoints: ['https://a:9200', 'https://b:9200'], tls: { verify_certificate: false } },
  },
  {
    about: 'certificates for a URL, whatever the scheme for names',
    lines: '@type elasticsearch\nhosts https://a\nscheme http\nssl_verify false',
    config: { endpoints: ['https://a:443'], tls: { verify_certificate: false } },
  },
  {
    about: 'the login of URLs',
    lines: '@type elasticsearch\nhosts https://u:p%40x@es1/pre,https://u:%{p@x}@es2\nuser other\npassword no',
    config: {
      endpoints: ['https://es1:443/pre', 'https://es2:443'],
      auth: { strategy: 'basic', user: 'u', password: 'p@x' },
    },
  },
  {
    about: 'the path of a Loki address',
    lines: '@type loki\nurl https://gateway.example/team/',
    config: { endpoint: 'https://gateway.example:443', path: '/team/loki/api/v1/push' },
  },
  {
    about: 'a variable as the address of Loki',
    lines: '@type loki\nurl "#{ENV[\'LOKI\']}"',
    config: { endpoint: 'SECRET[env.LOKI]' },
  },
])('$about', async ({ lines, config }) => {
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: output(lines) }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject(config)
  expect((await lint(String(document))).filter((problem) => !problem.includes('env.LOKI'))).toEqual([])
})

test('addresses with different logins are a gap', () => {
  const text = output('@type elasticsearch\nhosts https://u:p@a,https://b')
  const { resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(['elasticsearch: hosts'])
  expect(resource.spec.sinks[0].config.endpoints).toEqual(['https://a:443', 'https://b:443'])
})

test.each(['flatten_hashes true', 'customize_template {"a":"b"}', 'template_name t', 'custom_headers no'])(
  '%s is a gap with its reason',
  (option) => {
    const text = output(`@type elasticsearch\nhost es\n${option}`)
    const { gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
    expect(gaps).toHaveLength(1)
    expect(gaps[0]?.subject).toBe(`elasticsearch: ${option.split(' ')[0]}`)
    expect(gaps[0]?.reason).not.toContain('has no counterpart')
  },
)

test('code in the name of an index is worked out for each event', async () => {
  const lines =
    "@type elasticsearch_dynamic\nhost es\nlogstash_format true\nlogstash_prefix ${record['message'].downcase}-${tag_parts[0]}"
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: output(lines) }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config.bulk.index).toBe('{{ %index }}-%Y.%m.%d')
  const { source: program } = resource.spec.transforms.at(-1).config
  resource.spec.transforms.at(-1).config.source = `${program}\n.index = %index`
  document.setIn(['spec', 'transforms'], document.createNode(resource.spec.transforms))
  withTest(document, resource, { message: 'Shop', timestamp: '2026-11-24T10:11:12Z' }, { index: 'shop-app' })
  expect(await lint(String(document))).toEqual([])
})

test('a name that is not a placeholder of an output without code is a gap', () => {
  const text = output("@type elasticsearch\nhost es\nindex_name x-${record['team']}")
  const { gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(["elasticsearch: x-${record['team']}"])
})

test('the data stream of an output for indexes is a gap, and the index stays the same', () => {
  const text = output('@type elasticsearch\nhost es\nindex_name own\ndata_stream_name logs-x-y')
  const { resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(['elasticsearch: data_stream_name'])
  expect(resource.spec.sinks[0].config.bulk.index).toBe('own')
})

test('the tag of a file behind the links contains its own path', async () => {
  const text =
    '<source>\n  @type tail\n  path /var/log/pods/*/*/*.log\n  tag k8s.*\n  <parse>\n    @type cri\n  </parse>\n</source>\n<match k8s.var.log.pods.**>\n  @type elasticsearch\n  host es\n  include_tag_key true\n</match>\n'
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toEqual([])
  const event = { message: 'x', file: '/var/log/pods/shop_api_1/api/0.log', timestamp: '2026-11-24T10:11:12Z' }
  withTest(document, resource, event, { tag: 'k8s.var.log.pods.shop_api_1.api.0.log' })
  expect(await lint(String(document))).toEqual([])
})

test('a tag from a field does not reach the rules again that set it', () => {
  const text = `${source}<match **>
  @type rewrite_tag_filter
  <rule>
    key message
    pattern ^(.+)$
    tag $1.\${tag}
  </rule>
</match>
<match **>
  @type elasticsearch
  host es
  index_name \${tag[0]}
  <buffer tag>
  </buffer>
</match>
`.replace('<match **>', '<match app>')
  const { resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toHaveLength(1)
  expect(resource.spec.sinks[0].config.bulk.index).toBe('{{ %chunk_tag_0 }}')
})

test('fields that are named by variables which may be missing, and switches for templates that are off, are not set', () => {
  const lines =
    '@type elasticsearch\nhost h\nenable_ilm false\ntemplate_overwrite false\ntarget_index_key "#{ENV[\'KEY\'] || use_nil}"\ntarget_type_key "#{ENV[\'TYPE\'] || use_nil}"\nuser "#{ENV[\'NAME\'] || use_default}"'
  const { resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: output(lines) }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    bulk: { index: 'fluentd' },
    auth: { user: 'SECRET[env.NAME]' },
  })
})

test('addresses in a variable are reported', () => {
  const lines = '@type elasticsearch\nhosts "#{ENV[\'ES_HOSTS\']}"'
  const { gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: output(lines) }])
  expect(gaps).toMatchObject([{ subject: 'elasticsearch: hosts', isReplaced: true, line: 9 }])
})
