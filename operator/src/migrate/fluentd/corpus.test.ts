// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Common configurations: combinations of sources, filters and outputs. All become Pipelines that pass lint, and parts without a counterpart
// become gaps with line numbers.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { mutated } from '../../testing/mistakes.ts'
import { oldAgents } from '../agents.ts'
import { convertFluentd } from './convert.ts'

interface Part {
  readonly about: string
  readonly text: string
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const pods = (parse: string, more = '') => `<source>
  @type tail
  @id in_pods
  path /var/log/containers/*.log
  pos_file /var/log/fluentd-containers.log.pos
  tag kubernetes.*
${more}  <parse>
${parse}
  </parse>
</source>
`

const sources: readonly Part[] = [
  { about: 'pods by cri', text: pods('    @type cri', '  read_from_head true\n'), whole: true },
  {
    about: 'pods by cri with JSON in it',
    text: pods(
      '    @type cri\n    merge_cri_fields false\n    <parse>\n      @type json\n      time_key ts\n    </parse>',
    ).replace('time_key ts', ''),
    whole: true,
  },
  {
    about: 'pods by docker',
    text: pods('    @type json\n    time_key time\n    time_format %Y-%m-%dT%H:%M:%S.%NZ\n    keep_time_key false'),
    whole: true,
  },
  {
    about: 'pods of both',
    text: pods(
      '    @type multi_format\n    <pattern>\n      format json\n      time_key time\n      time_format %Y-%m-%dT%H:%M:%S.%NZ\n    </pattern>\n    <pattern>\n      format /^(?<time>.+) (?<stream>stdout|stderr) [^ ]* (?<log>.*)$/\n      time_format %Y-%m-%dT%H:%M:%S.%N%:z\n    </pattern>',
    ),
    whole: true,
  },
  {
    about: 'pods by an expression, but some',
    text: pods(
      '    @type regexp\n    expression /^(?<time>[^ ]+) (?<stream>stdout|stderr)( (?<logtag>.))? (?<log>.*)$/\n    time_format %Y-%m-%dT%H:%M:%S.%L%z',
      '  exclude_path ["/var/log/containers/fluentd-*.log", "/var/log/containers/*_kube-system_*.log"]\n',
    ),
    whole: true,
  },
  {
    about: 'files of nginx',
    text: '<source>\n  @type tail\n  path /var/log/nginx/access.log,/srv/*/access.log\n  tag kubernetes.nginx\n  refresh_interval 10\n  path_key file\n  <parse>\n    @type nginx\n  </parse>\n</source>\n',
    whole: true,
  },
  {
    about: 'files with lines of several',
    text: '<source>\n  @type tail\n  path /srv/app.log\n  tag kubernetes.app\n  multiline_flush_interval 3s\n  <parse>\n    @type multiline\n    format_firstline /^\\d{4}-\\d{2}-\\d{2}/\n    format1 /^(?<time>\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}) (?<level>\\w+) (?<message>.*)/\n    time_format %Y-%m-%d %H:%M:%S\n  </parse>\n</source>\n',
    whole: true,
  },
  {
    about: 'as before 1.0',
    text: '<source>\n  type tail\n  format json\n  path /srv/old.log\n  pos_file /srv/old.pos\n  tag kubernetes.old\n</source>\n',
    whole: true,
  },
  {
    about: 'figures of Fluentd',
    text: `${pods('    @type cri')}<source>\n  @type prometheus\n  bind 0.0.0.0\n  port 24231\n</source>\n<source>\n  @type monitor_agent\n</source>\n`,
    whole: true,
  },
  {
    about: 'a port',
    text: '<source>\n  @type forward\n  port 24224\n  bind 0.0.0.0\n  tag kubernetes.forward\n</source>\n',
    whole: false,
  },
  {
    about: 'the journal',
    text: '<source>\n  @type systemd\n  tag kubernetes.kubelet\n  matches [{ "_SYSTEMD_UNIT": "kubelet.service" }]\n  <storage>\n    @type local\n    path /var/log/kubelet.json\n  </storage>\n</source>\n',
    whole: false,
  },
]

const filter = (type: string, ...lines: string[]) =>
  `<filter kubernetes.**>\n  @type ${type}\n${lines.map((line) => `  ${line}\n`).join('')}</filter>\n`
const metadata = filter(
  'kubernetes_metadata',
  '@id meta',
  'kubernetes_url "https://kubernetes.default.svc"',
  'skip_labels false',
  'watch false',
)

const chains: readonly Part[] = [
  { about: 'nothing', text: '', whole: true },
  { about: 'metadata', text: metadata, whole: true },
  {
    about: 'JSON in the line',
    text:
      metadata +
      filter(
        'parser',
        'key_name log',
        'reserve_data true',
        'remove_key_name_field true',
        'emit_invalid_record_to_error false',
        '<parse>',
        '  @type json',
        '  json_parser oj',
        '</parse>',
      ),
    whole: true,
  },
  {
    about: 'a strict parser',
    text: filter(
      'parser',
      'key_name log',
      'reserve_time true',
      'hash_value_field parsed',
      '<parse>',
      '  @type regexp',
      '  expression /^(?<level>\\w+) (?<text>.*)$/',
      '  types level:string',
      '</parse>',
    ),
    whole: true,
  },
  {
    about: 'fields',
    text:
      metadata +
      filter(
        'record_transformer',
        'enable_ruby true',
        'remove_keys $.docker.container_id, stream',
        '<record>',
        '  cluster prod',
        '  host ${hostname}',
        '  ns ${record["kubernetes"]["namespace_name"]}',
        '  app ${record.dig("kubernetes", "labels", "app") || "none"}',
        '  tag ${tag}',
        '  first ${tag_parts[0]}',
        '  level ${record["level"].downcase}',
        '  day ${time.strftime("%Y-%m-%d")}',
        '</record>',
      ),
    whole: true,
  },
  {
    about: 'new records',
    text:
      filter(
        'record_transformer',
        'renew_record true',
        'keep_keys log,stream',
        '<record>',
        '  service "shop"',
        '</record>',
      ) + filter('record_modifier', 'remove_keys stream', '<record>', '  env "prod"', '</record>'),
    whole: true,
  },
  {
    about: 'Ruby',
    text: filter(
      'record_transformer',
      'enable_ruby',
      '<record>',
      '  n ${record["a"].split(",").map(&:to_i).sum}',
      '  env "#{ENV[\'ENVIRONMENT\']}"',
      '</record>',
    ),
    whole: true,
  },
  {
    about: 'some namespaces',
    text:
      metadata +
      filter(
        'grep',
        '<regexp>',
        '  key $.kubernetes.namespace_name',
        '  pattern /^(shop|cart)$/',
        '</regexp>',
        '<exclude>',
        '  key log',
        '  pattern /healthz|^\\s*$/i',
        '</exclude>',
        '<or>',
        '  <exclude>',
        '    key level',
        '    pattern debug',
        '  </exclude>',
        '  <exclude>',
        '    key level',
        '    pattern trace',
        '  </exclude>',
        '</or>',
      ),
    whole: true,
  },
  {
    about: 'stack traces',
    text: filter(
      'concat',
      'key log',
      'multiline_start_regexp /^(\\d{4}|\\[|\\{)/',
      'flush_interval 5',
      'timeout_label @NORMAL',
    ),
    whole: true,
  },
  {
    about: 'parts of lines',
    text: filter(
      'concat',
      'key message',
      'use_partial_cri_logtag true',
      'partial_cri_logtag_key logtag',
      'partial_cri_stream_key stream',
    ),
    whole: true,
  },
  {
    about: 'names',
    text:
      metadata +
      filter('dedot', 'de_dot true', 'de_dot_separator _', 'de_dot_nested true') +
      filter('elasticsearch_genid', 'hash_id_key _hash'),
    whole: true,
  },
  {
    about: 'limits',
    text:
      filter('throttle', 'group_key kubernetes.container_name', 'group_bucket_limit 5000') +
      filter('prometheus', '<metric>', '  name records', '</metric>'),
    whole: false,
  },
]

const match = (type: string, ...lines: string[]) =>
  `<match kubernetes.**>\n  @type ${type}\n${lines.map((line) => `  ${line}\n`).join('')}</match>\n`
const memory = [
  '<buffer>',
  '  @type memory',
  '  flush_mode interval',
  '  flush_interval 5s',
  '  chunk_limit_size 2M',
  '  retry_forever true',
  '  overflow_action block',
  '</buffer>',
]

const ends: readonly Part[] = [
  {
    about: 'search by date',
    text: match(
      'elasticsearch',
      '@id out_es',
      'host es.logging.svc',
      'port 9200',
      'scheme https',
      'ssl_verify false',
      'user elastic',
      'password "#{ENV[\'PASSWORD\']}"',
      'logstash_format true',
      'logstash_prefix logs',
      'include_tag_key true',
      'type_name _doc',
      'reconnect_on_error true',
      'request_timeout 30s',
      ...memory,
    ),
    whole: true,
  },
  {
    about: 'search by index',
    text: match(
      'opensearch',
      'hosts https://a:9200,https://b:9200',
      'index_name app-${$.kubernetes.namespace_name}',
      'suppress_type_name true',
      ...memory.map((line) => line.replace('<buffer>', '<buffer $.kubernetes.namespace_name>')),
    ),
    whole: true,
  },
  {
    about: 'streams',
    text: match(
      'loki',
      'url "http://loki:3100"',
      'tenant shop',
      'extra_labels {"env":"prod"}',
      'line_format json',
      'remove_keys kubernetes',
      '<label>',
      '  pod $.kubernetes.pod_name',
      '  app $.kubernetes.labels.app',
      '</label>',
      ...memory,
    ),
    whole: true,
  },
  {
    about: 'http',
    text: match(
      'http',
      'endpoint https://collect.example.com/in',
      'open_timeout 2',
      'headers {"X-Team":"shop"}',
      'json_array true',
      '<auth>',
      '  method basic',
      '  username a',
      '  password b',
      '</auth>',
      '<format>',
      '  @type json',
      '</format>',
      ...memory,
    ),
    whole: true,
  },
  {
    about: 'two stores',
    text: match(
      'copy',
      '<store>',
      '  @type stdout',
      '</store>',
      '<store>',
      '  @type splunk_hec',
      '  hec_host splunk',
      '  hec_port 8088',
      '  hec_token token',
      '  index main',
      '  insecure_ssl true',
      '</store>',
    ),
    whole: true,
  },
  {
    about: 'by label',
    text: `${match('relabel', '@label @OUT')}<label @OUT>\n  <filter **>\n    @type record_transformer\n    <record>\n      via label\n    </record>\n  </filter>\n  <match **>\n    @type datadog\n    api_key key\n    dd_source k8s\n    service shop\n  </match>\n</label>\n`,
    whole: true,
  },
  {
    about: 'by rules',
    text: `${match('rewrite_tag_filter', '<rule>', '  key $.kubernetes.namespace_name', '  pattern ^shop$', '  tag shop', '</rule>', '<rule>', '  key log', '  pattern .*', '  tag rest', '</rule>')}<match shop>\n  @type newrelic\n  license_key key\n</match>\n<match rest>\n  @type null\n</match>\n`,
    whole: true,
  },
  {
    about: 'files',
    text: match(
      'file',
      'path /var/log/out/app',
      'append true',
      '<format>',
      '  @type json',
      '</format>',
      '<buffer time>',
      '  timekey 1d',
      '  timekey_wait 10m',
      '</buffer>',
    ),
    whole: true,
  },
  {
    about: 'a queue',
    text: match('kafka2', 'brokers kafka:9092', 'default_topic logs', '<format>', '  @type json', '</format>'),
    whole: false,
  },
  {
    about: 'objects',
    text: match(
      's3',
      's3_bucket logs',
      's3_region eu-west-1',
      'path logs/',
      '<buffer time>',
      '  timekey 3600',
      '</buffer>',
    ),
    whole: false,
  },
  {
    about: 'chunks on disk',
    text: match(
      'elasticsearch',
      'host es',
      'logstash_format true',
      '<buffer>',
      '  @type file',
      '  path /var/log/buffer',
      '</buffer>',
    ),
    whole: true,
  },
]

const system =
  '# Of the daemon set.\n<label @FLUENT_LOG>\n  <match fluent.**>\n    @type null\n  </match>\n</label>\n<system>\n  log_level warn\n</system>\n'

/** Whether a filter joins lines by a part of them that only the parser knows. */
const joinsParts = (source: Part, chain: Part) =>
  /^ {2}format json/m.test(source.text) && chain.text.includes('@type concat')

/** Each chain with several sources and destinations, so that all parts occur several times. */
const cases = chains.flatMap((chain, at) =>
  Array.from({ length: 6 }, (_, step) => {
    const source = sources[(at + 2 * step) % sources.length] as Part
    const end = ends[(at * 3 + step * 5) % ends.length] as Part
    return {
      name: `${source.about}, ${chain.about}, ${end.about}`,
      text: `${system}${source.text}${chain.text}${end.text}`,
      whole: source.whole && chain.whole && end.whole && !joinsParts(source, chain),
    }
  }),
)

test('the corpus has the expected size', () => {
  expect(cases.length).toBeGreaterThanOrEqual(60)
  expect(new Set(cases.map(({ text }) => text)).size).toBe(cases.length)
})

test.each(cases)('$name', async ({ text, whole }) => {
  const given = { file: 'fluent.conf', text }
  expect(oldAgents.filter(({ recognises }) => recognises(given)).map(({ name }) => name)).toEqual(['fluentd'])
  const { document, gaps } = converted(convertFluentd, [given])
  const missing = gaps.filter(({ isReplaced }) => isReplaced !== true)
  if (whole) expect(missing).toEqual([])
  else expect(missing.length).toBeGreaterThan(0)
  for (const gap of gaps) {
    expect(gap.file).toBe('fluent.conf')
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
    const { document, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
    for (const { line, reason, nearest } of gaps) {
      expect([line > 0, reason === '', nearest === ''], `seed ${seed}`).toEqual([true, false, false])
    }
    expect(await lint(document.toString()), `seed ${seed}`).toEqual([])
  }
})
