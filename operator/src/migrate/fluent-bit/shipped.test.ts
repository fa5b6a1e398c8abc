// Parsers from the file that Fluent Bit ships, in configurations that do not define them.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

test('lines of files of Docker are records with the time of the line', async () => {
  const text =
    '[INPUT]\n  Name tail\n  Path /var/lib/docker/containers/*/*-json.log\n  Tag d\n  Parser docker\n[OUTPUT]\n  Name stdout\n  Match *\n  Format json_lines\n'
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const line = { log: 'hello\n', stream: 'stderr', time: '2026-01-02T03:04:05.5Z' }
  withTest(
    document,
    resource,
    { message: JSON.stringify(line), timestamp: '2020-01-01T00:00:00Z' },
    { ...line, timestamp: '2026-01-02T03:04:05.5Z' },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [
    'k8s-nginx-ingress',
    '10.0.0.1 - [10.0.0.2] - bob [02/Jan/2026:03:04:05 +0000] "GET /a?b=c HTTP/1.1" 502 12 "-" "curl/8" 7 0.5 [shop-web-80] 10.1.1.1:80 12 0.4 502 r1',
    {
      ...{ host: '10.0.0.1', real_ip: '10.0.0.2', user: 'bob', method: 'GET', path: '/a?b=c', code: '502', size: '12' },
      ...{
        referer: '-',
        agent: 'curl/8',
        request_length: '7',
        request_time: '0.5',
        proxy_upstream_name: 'shop-web-80',
      },
      ...{ upstream_addr: '10.1.1.1:80', upstream_response_length: '12', upstream_response_time: '0.4' },
      ...{ upstream_status: '502', last: 'r1', timestamp: '2026-01-02T03:04:05Z' },
    },
  ],
  [
    'apache',
    '10.0.0.1 - bob [02/Jan/2026:03:04:05 +0100] "GET /a HTTP/1.1" 200 12',
    {
      ...{ host: '10.0.0.1', user: 'bob', method: 'GET', path: '/a', code: '200', size: '12' },
      timestamp: '2026-01-02T02:04:05Z',
    },
  ],
  [
    'syslog-rfc5424',
    '<34>1 2026-01-02T03:04:05.003Z web su - ID47 - failed',
    {
      ...{ pri: '34', time: '2026-01-02T03:04:05.003Z', host: 'web', ident: 'su', pid: '-', msgid: 'ID47' },
      ...{ extradata: '-', message: 'failed', timestamp: '2026-01-02T03:04:05.003Z' },
    },
  ],
  [
    'envoy',
    '[2026-01-02T03:04:05.123Z] "GET /a HTTP/2" 200 - 1 2 3 4 "-" "curl/8" "id" "shop" "10.1.1.1:80"',
    {
      ...{ start_time: '2026-01-02T03:04:05.123Z', method: 'GET', path: '/a', protocol: 'HTTP/2', code: '200' },
      ...{ response_flags: '-', bytes_received: '1', bytes_sent: '2', duration: '3' },
      ...{ x_envoy_upstream_service_time: '4', x_forwarded_for: '-', user_agent: 'curl/8', request_id: 'id' },
      ...{ authority: 'shop', upstream_host: '10.1.1.1:80', timestamp: '2026-01-02T03:04:05.123Z' },
    },
  ],
  ['json', '{"time":"02/Jan/2026:03:04:05 +0000","n":1}', { n: 1, timestamp: '2026-01-02T03:04:05Z' }],
  ['json', '{"time":"now","n":1}', { n: 1, time: 'now', timestamp: '2020-01-01T00:00:00Z' }],
])('the parser %s reads %s', async (parser, message, expected) => {
  const text = `[INPUT]\n  Name tail\n  Path /srv/a.log\n  Tag d\n  Parser ${parser}\n[OUTPUT]\n  Name null\n  Match *\n`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
  expect(gaps).toEqual([])
  withTest(document, resource, { message, timestamp: '2020-01-01T00:00:00Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['Time_Key time\n  Time_Format %Y-%m-%dT%H:%M:%S.%L', false],
  ['Time_Key time\n  Time_Format %Y-%m-%dT%H:%M:%S.%L\n  Time_Keep On', true],
  ['Decode_Field_As escaped_utf8 log do_next', true],
])('a parser of JSON for pods reads the lines of Docker: %s', async (options, keepsTime) => {
  const own = `[PARSER]\n  Name own\n  Format json\n  ${options}\n  Decode_Field_As json log\n`
  const input = '[INPUT]\n  Name tail\n  Path /var/log/containers/*.log\n  Tag kube.*\n  Parser own\n'
  const file = { file: 'fluent-bit.conf', text: `${own}${input}[OUTPUT]\n  Name null\n  Match *\n` }
  const { document, resource, gaps } = converted(convertFluentBit, [file])
  expect(gaps).toMatchObject([{ subject: 'tail: parser own', isReplaced: true }])
  const log = { message: '{"a":1}', stream: 'stdout' }
  const assert = `.log == { "a": 1 } && .stream == "stdout" && exists(.time) == ${keepsTime}`
  const [{ name: insertAt }] = resource.spec.transforms
  const at = resource.spec.sinks[0].inputs[0]
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt, input: { log }, expect: [{ at, assert }] }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
