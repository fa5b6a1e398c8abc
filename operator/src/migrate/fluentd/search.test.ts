// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Outputs of Fluentd for search engines and Loki: the sink has the address, the credentials and the headers of the output.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
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
