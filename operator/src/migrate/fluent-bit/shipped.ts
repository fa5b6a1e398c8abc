// Parsers from the file that Fluent Bit ships, for configurations that name them but do not define them.

import type { Entry, Section } from './sections.ts'

const place = { file: 'parsers.conf', line: 1 }
const parser = (name: string, options: Readonly<Record<string, string>>): [string, Section] => [
  name,
  {
    ...place,
    kind: 'parser',
    entries: Object.entries({ name, ...options }).map(([key, value]): Entry => ({ ...place, key, value })),
  },
]
const regex = (name: string, expression: string, options: Readonly<Record<string, string>> = {}) =>
  parser(name, { format: 'regex', regex: expression, ...options })

const webTime = { time_key: 'time', time_format: '%d/%b/%Y:%H:%M:%S %z' }
const isoTime = { time_key: 'time', time_format: '%Y-%m-%dT%H:%M:%S.%L', time_keep: 'on' }
const syslogTime = { time_key: 'time', time_format: '%b %d %H:%M:%S', time_keep: 'on' }
const proxyTime = { time_key: 'start_time', time_format: '%Y-%m-%dT%H:%M:%S.%L%z', time_keep: 'on' }

/** `name="value"` without white space in the value; `""` in quotes, where it may contain some. */
const words = (names: string) => names.split(' ').map((name) => `(?<${name}>[^ ]*)`)
const request = '"(?<method>\\S+)(?: +(?<path>[^"]*?)(?: +\\S*)?)?"'
const proxyRequest = '"(?<method>\\S+)(?: +(?<path>[^"]*?)(?: +\\S*)?)? (?<protocol>\\S+)"'
const agents = '"(?<referer>[^"]*)" "(?<agent>[^"]*)"'
const program = '(?<ident>[a-zA-Z0-9_/.-]*)(?:\\[(?<pid>[0-9]+)\\])?(?:[^:]*:)? *(?<message>.*)$'
const syslogStart = '^<(?<pri>[0-9]+)>(?<time>[^ ]* {1,2}[^ ]* [^ ]*)'
const requests = '"(?<x_forwarded_for>[^ ]*)" "(?<user_agent>[^"]*)" "(?<request_id>[^"]*)" "(?<authority>[^ ]*)"'

export const shipped: ReadonlyMap<string, Section> = new Map<string, Section>([
  parser('json', { format: 'json', ...webTime }),
  parser('logfmt', { format: 'logfmt' }),
  parser('docker', {
    format: 'json',
    time_key: 'time',
    time_format: '%Y-%m-%dT%H:%M:%S.%L%z',
    time_keep: 'on',
  }),
  regex('cri', '^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[^ ]*) (?<message>.*)$', {
    time_key: 'time',
    time_format: '%Y-%m-%dT%H:%M:%S.%L%z',
  }),
  regex(
    'nginx',
    `^(?<remote>[^ ]*) (?<host>[^ ]*) (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] ${request} ${words('code size').join(' ')}(?: ${agents})`,
    webTime,
  ),
  regex(
    'apache2',
    `^(?<host>[^ ]*) [^ ]* (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] "(?<method>\\S+)(?: +(?<path>[^ ]*) +\\S*)?" ${words('code size').join(' ')}(?: "(?<referer>[^"]*)" "(?<agent>.*)")?$`,
    webTime,
  ),
  regex(
    'apache',
    `^(?<host>[^ ]*) [^ ]* (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] ${request} ${words('code size').join(' ')}(?: ${agents})?$`,
    webTime,
  ),
  regex(
    'k8s-nginx-ingress',
    [
      `^(?<host>[^ ]*) - \\[(?<real_ip>[^ ]*)\\] - (?<user>[^ ]*) \\[(?<time>[^\\]]*)\\] ${request}`,
      ...words('code size'),
      agents,
      ...words('request_length request_time'),
      '\\[(?<proxy_upstream_name>[^ ]*)\\]',
      ...words('upstream_addr upstream_response_length upstream_response_time upstream_status'),
      '(?<last>[^$]*)',
    ].join(' '),
    webTime,
  ),
  regex(
    'apache_error',
    '^\\[[^ ]* (?<time>[^\\]]*)\\] \\[(?<level>[^\\]]*)\\](?: \\[pid (?<pid>[^\\]]*)\\])?( \\[client (?<client>[^\\]]*)\\])? (?<message>.*)$',
  ),
  regex('docker-daemon', 'time="(?<time>[^ ]*)" level=(?<level>[^ ]*) msg="(?<msg>[^ ].*)"', isoTime),
  regex(
    'syslog-rfc5424',
    '^<(?<pri>[0-9]{1,5})>1 (?<time>[^ ]+) (?<host>[^ ]+) (?<ident>[^ ]+) (?<pid>[-0-9]+) (?<msgid>[^ ]+) (?<extradata>(\\[(.*)\\]|-)) (?<message>.+)$',
    { ...isoTime, time_format: '%Y-%m-%dT%H:%M:%S.%L%z' },
  ),
  regex('syslog-rfc3164-local', `${syslogStart} ${program}`, syslogTime),
  regex('syslog-rfc3164', `${syslogStart} (?<host>[^ ]*) ${program}`, syslogTime),
  regex(
    'mongodb',
    '^(?<time>[^ ]*)\\s+(?<severity>\\w)\\s+(?<component>[^ ]+)\\s+\\[(?<context>[^\\]]+)]\\s+(?<message>.*?) *(?<ms>(\\d+))?(:?ms)?$',
    isoTime,
  ),
  regex(
    'envoy',
    [
      `^\\[(?<start_time>[^\\]]*)\\] ${proxyRequest}`,
      ...words('code response_flags bytes_received bytes_sent duration x_envoy_upstream_service_time'),
      requests,
      '"(?<upstream_host>[^ ]*)"',
    ].join(' '),
    proxyTime,
  ),
  regex(
    'kube-custom',
    '(?<tag>[^.]+)?\\.?(?<pod_name>[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)_(?<namespace_name>[^_]+)_(?<container_name>.+)-(?<docker_id>[a-z0-9]{64})\\.log$',
  ),
])

/** The parsers that annotations of pods usually name. */
export const annotated: readonly string[] = [
  'json',
  'logfmt',
  'docker',
  'nginx',
  'apache2',
  'apache',
  'k8s-nginx-ingress',
]
