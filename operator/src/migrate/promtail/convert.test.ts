import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertPromtail } from './convert.ts'

const convert = (text: string, namespace?: string) =>
  converted(convertPromtail, [{ file: 'promtail.yaml', text }], namespace)

/** Stages of a job that reads a file. */
const job = (stages: string, client = '') => `clients:
  - url: http://loki:3100/loki/api/v1/push
${client.replace(/^(?=.)/gm, '    ')}
scrape_configs:
  - job_name: app
    static_configs:
      - targets: [localhost]
        labels: { job: app, __path__: /srv/app.log }
    pipeline_stages:
${stages.replace(/^(?=.)/gm, '      ')}
`

interface Entry {
  readonly name: string
  readonly stages: string
  readonly line: string
  /** Promtail's output: labels in addition to those of the file, and the line if it changes. If undefined, Promtail drops the line. */
  readonly labels?: Readonly<Record<string, string>>
  readonly pushed?: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly time?: string
  readonly tenant?: string
  /** The time of the line. */
  readonly at?: string
}

const json = '- json:\n    expressions: { level: , n: data.n, deep: data, first: "list[0]", flag: , gone: nope }\n'
const entries: readonly Entry[] = [
  {
    name: 'json: values as texts',
    stages: `${json}- labels: { level: , n: , deep: , first: , flag: , gone: }`,
    line: '{"level":"warn","data":{"n":7.0,"z":"a"},"list":["x"],"flag":true}',
    labels: { level: 'warn', n: '7', deep: '{"n":7.0,"z":"a"}', first: 'x', flag: 'true' },
  },
  { name: 'json: a line that is not JSON stays', stages: `${json}- labels: { level: }`, line: 'plain', labels: {} },
  { name: 'json: drop_malformed', stages: '- json: { expressions: { a: }, drop_malformed: true }', line: 'plain' },
  {
    name: 'json: of a value',
    stages: '- json: { expressions: { inner: } }\n- json: { source: inner, expressions: { b: } }\n- labels: { b: }',
    line: '{"inner":"{\\"b\\":\\"deep\\"}"}',
    labels: { b: 'deep' },
  },
  {
    name: 'logfmt',
    stages:
      '- logfmt: { mapping: { level: lvl, msg: , none: zz } }\n- labels: { level: , none: }\n- output: { source: msg }',
    line: 'lvl=info msg="two words" n=3',
    labels: { level: 'info' },
    pushed: 'two words',
  },
  {
    name: 'regex: groups, and a group that did not match',
    stages:
      "- regex: { expression: '^(?P<ip>\\S+) (?P<verb>GET|POST)?(?P<rest>.*)$' }\n- labels: { ip: , verb: , rest: }",
    line: '10.0.0.1 PUT /a',
    labels: { ip: '10.0.0.1', rest: 'PUT /a' },
  },
  {
    name: 'regex: only ASCII digits match',
    stages: "- regex: { expression: '(?P<number>\\d+)' }\n- labels: { number: }",
    line: 'at ٣ or 4',
    labels: { number: '4' },
  },
  {
    name: 'replace: groups, while the text between them stays',
    stages: "- replace: { expression: 'user=(\\S+) card=(\\d{4})', replace: '<{{ .Value | ToUpper }}>' }",
    line: 'user=ann card=1234 ok',
    labels: {},
    pushed: 'user=<ANN> card=<1234> ok',
  },
  {
    name: 'replace: an empty text, of a value',
    stages:
      "- regex: { expression: '(?P<msg>.*)' }\n- replace: { source: msg, expression: '(secret )', replace: '' }\n- output: { source: msg }",
    line: 'a secret b secret c',
    labels: {},
    pushed: 'a b c',
  },
  {
    name: 'replace: a hash with salt',
    stages: `- replace: { expression: '(ann)', replace: '{{ .Value | Sha2Hash "salt" }}' }`,
    line: 'user ann',
    labels: {},
    pushed: 'user 43e65e7f7ea7c28977d9a35c20b581e4ef68c04bb062306cce46e9b51a88910a',
  },
  {
    name: 'template: if, else, functions',
    stages: `${json}- template: { source: level, template: '{{ if or (eq .Value "warn") (eq .Value "warning") }}WARN{{ else if .Value }}{{ .Value | ToUpper }}{{ else }}NONE{{ end }}' }\n- labels: { level: }`,
    line: '{"level":"warning"}',
    labels: { level: 'WARN' },
  },
  {
    name: 'template: whole numbers',
    stages: `${json}- template: { source: made, template: '{{ div .level 1000 }} {{ add .level 1 }} {{ sub 1 .level }} {{ mul .level 2 }}' }\n- labels: { made: }`,
    line: '{"level":"2999"}',
    labels: { made: '2 3000 -2998 5998' },
  },
  {
    name: 'template: a default',
    stages: `${json}- template: { source: made, template: '{{ .missing | default "NONE" }} {{ .level | upper | default "X" }}' }\n- labels: { made: }`,
    line: '{"level":"warn"}',
    labels: { made: 'NONE WARN' },
  },
  {
    name: 'template: a missing value',
    stages: "- template: { source: made, template: 'x-{{ .missing }}-{{ .job }}' }\n- labels: { made: }",
    line: 'a',
    labels: { made: 'x-<no value>-app' },
  },
  {
    name: 'template: a function with a missing value does nothing',
    stages: "- template: { source: made, template: '{{ ToLower .missing }}x' }\n- labels: { made: }",
    line: 'a',
    labels: {},
  },
  {
    name: 'template: the line, with replacements in it',
    stages: `- template: { source: out, template: '{{ Replace .Entry "a" "b" 1 }} {{ regexReplaceAllLiteral "(o+)" .Entry "$1" }}' }\n- output: { source: out }`,
    line: 'aa foo',
    labels: {},
    pushed: 'ba foo aa f$1',
  },
  {
    name: 'template: an empty text removes the value',
    stages: "- template: { source: job, template: '' }\n- labels: { again: job }",
    line: 'a',
    labels: {},
  },
  {
    name: 'match: labels and lines select',
    stages: `- match:\n    selector: '{job="app"} |= "err" != "debug" |~ "e.+r"'\n    stages:\n      - static_labels: { hit: "yes" }`,
    line: 'an error',
    labels: { hit: 'yes' },
  },
  {
    name: 'match: a selector that does not match passes',
    stages: `- match:\n    selector: '{job=~"ap"}'\n    stages:\n      - static_labels: { hit: "yes" }`,
    line: 'an error',
    labels: {},
  },
  { name: 'match: drop', stages: `- match: { selector: '{job!="web"} |~ "x$"', action: drop }`, line: 'an x' },
  {
    name: 'match: nested, with labels as values',
    stages: `- static_labels: { team: ops }\n- match:\n    selector: '{job="app"}'\n    stages:\n      - match:\n          selector: '{team="ops"}'\n          stages:\n            - template: { source: who, template: '{{ .team }}!' }\n            - labels: { who: }`,
    line: 'a',
    labels: { team: 'ops', who: 'ops!' },
  },
  {
    name: 'labels: dropped, and only some allowed',
    stages: '- static_labels: { a: "1", b: "2" }\n- labeldrop: [filename]\n- labelallow: [a, job]',
    line: 'x',
    labels: { a: '1', filename: '' },
  },
  {
    name: 'structured metadata',
    stages: `${json}- structured_metadata: { level: , other: n }`,
    line: '{"level":"warn","data":{"n":1}}',
    labels: {},
    metadata: { level: 'warn', other: '1' },
  },
  {
    name: 'timestamp: RFC3339',
    stages: `- json: { expressions: { time: } }\n- timestamp: { source: time, format: RFC3339, action_on_failure: skip }`,
    line: '{"time":"2025-03-01T10:00:00.5+02:00"}',
    labels: {},
    time: '2025-03-01T08:00:00.5Z',
  },
  {
    name: 'timestamp: milliseconds',
    stages: `- json: { expressions: { time: } }\n- timestamp: { source: time, format: UnixMs }`,
    line: '{"time":1740823200123}',
    labels: {},
    time: '2025-03-01T10:00:00.123Z',
  },
  {
    name: 'timestamp: a layout with a zone, and a further format',
    stages: `- regex: { expression: '^(?P<t>\\S+ \\S+)' }\n- timestamp: { source: t, format: RFC3339, fallback_formats: ["2006/01/02 15:04:05,000"], location: Europe/Berlin }`,
    line: '2025/07/01 10:00:00,250 text',
    labels: {},
    time: '2025-07-01T08:00:00.250Z',
  },
  {
    name: 'timestamp: a text that is not a time does not change the time',
    stages: `- regex: { expression: '^(?P<t>.*)' }\n- timestamp: { source: t, format: RFC3339 }`,
    line: 'never',
    labels: {},
  },
  { name: 'drop: by expression', stages: "- drop: { expression: 'health[z]?' }", line: 'GET /healthz' },
  { name: 'drop: by a value', stages: `${json}- drop: { source: level, value: debug }`, line: '{"level":"debug"}' },
  {
    name: 'drop: another value stays',
    stages: `${json}- drop: { source: level, value: debug }`,
    line: '{"level":"info"}',
    labels: {},
  },
  { name: 'drop: a value that exists', stages: `${json}- drop: { source: level }`, line: '{"level":null}' },
  {
    name: 'drop: several values',
    stages: `${json}- drop: { source: "level,n", separator: "-", expression: "^warn-7$" }`,
    line: '{"level":"warn","data":{"n":7}}',
  },
  { name: 'drop: long lines', stages: '- drop: { longer_than: 4b }', line: 'éàü' },
  { name: 'drop: all conditions', stages: '- drop: { longer_than: 1kb, expression: "x" }', line: 'x', labels: {} },
  {
    name: 'drop: old lines',
    stages:
      "- regex: { expression: '^(?P<t>.*)' }\n- timestamp: { source: t, format: RFC3339 }\n- drop: { older_than: 1h30m }",
    line: '2026-01-01T00:00:00Z',
  },
  {
    name: 'drop: new lines stay',
    stages: '- drop: { older_than: 1h }',
    line: 'x',
    labels: {},
    at: new Date().toISOString(),
  },
  { name: 'sampling: none stay', stages: '- sampling: { rate: 0 }', line: 'x' },
  {
    name: 'regex: without a named group',
    stages: "- regex: { expression: '(x)|y' }",
    line: 'x',
    labels: {},
  },
  {
    name: 'static_labels: an empty value does not replace a label',
    stages: '- static_labels: { job: , env: prod }',
    line: 'x',
    labels: { env: 'prod' },
  },
  {
    name: 'timestamp: named layouts ignore the location',
    stages:
      "- regex: { expression: '^(?P<t>.*)' }\n- timestamp: { source: t, format: ANSIC, location: Europe/Berlin, action_on_failure: skip }",
    line: 'Fri Jan  2 03:04:05 2026',
    labels: {},
    time: '2026-01-02T03:04:05Z',
  },
  {
    name: 'pack',
    stages:
      '- static_labels: { pod: p, zone: z }\n- match: { selector: "{job=\\"app\\"}", stages: [ pack: { labels: [pod, job], ingest_timestamp: false } ] }',
    line: 'say "hi"',
    labels: { zone: 'z', job: '' },
    pushed: '{"job":"app","pod":"p","_entry":"say \\"hi\\""}',
  },
  {
    name: 'tenant: from a value, from a label, from nothing',
    stages: `${json}- tenant: { source: level }\n- tenant: { label: nope }`,
    line: '{"level":"t1"}',
    labels: {},
    tenant: 't1',
  },
  {
    name: 'decolorize',
    stages: '- decolorize:',
    line: '\u001b[31mred\u001b[0m text',
    labels: {},
    pushed: 'red text',
  },
  {
    name: 'cri: of a file',
    stages: '- cri: {}',
    line: '2025-01-02T03:04:05.6Z stderr F text of it',
    labels: { stream: 'stderr' },
    pushed: 'text of it',
    time: '2025-01-02T03:04:05.6Z',
  },
  {
    name: 'docker: of a file',
    stages: '- docker: {}',
    line: '{"log":"text\\n","stream":"stdout","time":"2025-01-02T03:04:05Z"}',
    labels: { stream: 'stdout' },
    pushed: 'text\n',
    time: '2025-01-02T03:04:05Z',
  },
]

test.each(entries)(
  'Promtail and the Pipeline push the same: $name',
  async ({ stages, line, labels, pushed, metadata, time, tenant, at = '2026-01-01T00:00:00Z' }) => {
    const { document, resource, gaps } = convert(job(stages))
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    const whole: Record<string, string> = { job: 'app', filename: '/srv/app.log', ...labels }
    const own = Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== ''))
    const expected =
      labels === undefined
        ? undefined
        : {
            labels: own,
            message: pushed ?? line,
            metadata: metadata ?? {},
            tenant: tenant ?? '',
            ...(time === undefined ? {} : { timestamp: time }),
          }
    withTest(document, resource, { message: line, file: '/srv/app.log', timestamp: at }, expected)
    expect(await lint(String(document))).toEqual([])
  },
)

const discovered = (rules: string, more = '') => `clients: [{ url: http://loki:3100/loki/api/v1/push }]
scrape_configs:
  - job_name: pods
    pipeline_stages:
      - cri: {}
      - labeldrop: [filename]
    kubernetes_sd_configs:
      - role: pod
${more.replace(/^(?=.)/gm, '        ')}
    relabel_configs:
${rules.replace(/^(?=.)/gm, '      ')}
      - source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name]
        separator: /
        replacement: /var/log/pods/*$1/*.log
        target_label: __path__
`
const pod = {
  message: 'hello',
  stream: 'stdout',
  file: '/var/log/pods/shop_web-1_u1/app/0.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: {
    pod_name: 'web-7d9c8b5f6d-x1',
    pod_namespace: 'shop',
    pod_uid: 'u1',
    pod_ip: '10.1.2.3',
    pod_node_name: 'n1',
    pod_owner: 'ReplicaSet/web-7d9c8b5f6d',
    container_name: 'app',
    container_id: 'containerd://abc',
    pod_labels: { app: 'web', 'app.kubernetes.io/name': 'shop-web', tier: 'front' },
    pod_annotations: { 'example.com/team': 'ops' },
  },
}

const rules: { name: string; rules: string; labels?: Readonly<Record<string, string>> }[] = [
  {
    name: 'replace',
    rules: '- { source_labels: [__meta_kubernetes_namespace], target_label: namespace }',
    labels: { namespace: 'shop' },
  },
  {
    name: 'a label whose name has other characters',
    rules:
      '- { source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name, __meta_kubernetes_pod_label_app], regex: "^;*([^;]+)(;.*)?$", target_label: app }',
    labels: { app: 'shop-web' },
  },
  {
    name: 'the controller without its hash, and a label built from labels',
    rules:
      '- { source_labels: [__meta_kubernetes_pod_controller_name], regex: "([0-9a-z-.]+?)(-[0-9a-f]{8,10})?", target_label: __tmp }\n- { source_labels: [__meta_kubernetes_namespace, __tmp], separator: /, target_label: job }',
    labels: { job: 'shop/web' },
  },
  {
    name: 'an expression must match the whole value',
    rules: `- { source_labels: [__meta_kubernetes_namespace], regex: sho, replacement: no, target_label: part }\n- { source_labels: [__meta_kubernetes_namespace], regex: "(s)(.*)", replacement: "$2-$\{1}", target_label: turned }`,
    labels: { turned: 'hop-s' },
  },
  {
    name: 'an empty value removes a label',
    rules:
      '- { target_label: a, replacement: x }\n- { source_labels: [__meta_kubernetes_pod_label_none], target_label: a }\n- { target_label: b, replacement: y }',
    labels: { b: 'y' },
  },
  {
    name: 'labelmap',
    rules: '- { action: labelmap, regex: "__meta_kubernetes_pod_label_(.+)" }\n- { action: labeldrop, regex: "ti.*" }',
    labels: { app: 'web', app_kubernetes_io_name: 'shop-web' },
  },
  {
    name: 'labelmap of annotations, with a prefix',
    rules: '- { action: labelmap, regex: "__meta_kubernetes_pod_annotation_(.+)", replacement: "note_$1" }',
    labels: { note_example_com_team: 'ops' },
  },
  {
    name: 'labelkeep',
    rules:
      '- { target_label: a, replacement: x }\n- { target_label: b, replacement: y }\n- { action: labelkeep, regex: "__meta.*|b" }',
    labels: { b: 'y' },
  },
  {
    name: 'lowercase and uppercase',
    rules: '- { action: uppercase, source_labels: [__meta_kubernetes_namespace], target_label: up }',
    labels: { up: 'SHOP' },
  },
  // The last eight bytes of md5("shop"), 0x62c78d58e37e7ae9…, as Prometheus reads them.
  {
    name: 'hashmod',
    rules: '- { action: hashmod, source_labels: [__meta_kubernetes_namespace], modulus: 1000, target_label: shard }',
    labels: { shard: 'HASH' },
  },
  {
    name: 'a target built from groups',
    rules:
      '- { source_labels: [__meta_kubernetes_namespace], regex: "(.+)", target_label: "ns_$1", replacement: here }',
    labels: { ns_shop: 'here' },
  },
  {
    name: 'keep',
    rules: '- { action: keep, source_labels: [__meta_kubernetes_pod_annotation_example_com_team], regex: dev }',
  },
  {
    name: 'keep by presence',
    rules: '- { action: keep, source_labels: [__meta_kubernetes_pod_annotationpresent_example_com_team], regex: true }',
    labels: {},
  },
  { name: 'drop', rules: '- { action: drop, source_labels: [__meta_kubernetes_pod_container_name], regex: "a.*" }' },
  {
    name: 'keepequal',
    rules:
      '- { action: keepequal, source_labels: [__meta_kubernetes_pod_label_app], target_label: __meta_kubernetes_namespace }',
  },
]

test.each(rules)('Promtail and the Pipeline set the same labels for a pod: $name', async ({ rules: text, labels }) => {
  const { document, resource, gaps } = convert(discovered(text))
  expect(gaps).toEqual([])
  const hash = createHash('md5').update('shop').digest()
  const shard = String(hash.readBigUInt64BE(8) % 1000n)
  const all = Object.entries({ stream: 'stdout', ...labels }).map(([name, value]) => [
    name,
    value === 'HASH' ? shard : value,
  ])
  const expected = labels === undefined ? undefined : { labels: Object.fromEntries(all), message: 'hello' }
  withTest(document, resource, pod, expected)
  expect(await lint(String(document))).toEqual([])
})

test('rules that keep or drop pods by one label become selectors of a ClusterPipeline, and statements in a namespace', async () => {
  const text = discovered(
    '- { action: drop, source_labels: [__meta_kubernetes_namespace], regex: kube-system|monitoring }\n- { action: keep, source_labels: [__meta_kubernetes_pod_label_tier], regex: front|back }\n- { action: keep, source_labels: [__meta_kubernetes_pod_node_name], regex: "$'.concat(
      '{HOSTNAME}" }',
    ),
  )
  const cluster = convert(text)
  expect(cluster.gaps).toEqual([])
  expect(cluster.resource.spec.sources[0].config).toEqual({
    extra_field_selector: 'metadata.namespace!=kube-system,metadata.namespace!=monitoring',
    extra_label_selector: 'tier in (front,back)',
  })
  expect(await lint(String(cluster.document))).toEqual([])
  const inNamespace = convert(text, 'shop')
  expect(inNamespace.resource.spec.sources[0].config).toEqual({ extra_label_selector: 'tier in (front,back)' })
  withTest(
    inNamespace.document,
    inNamespace.resource,
    { ...pod, orchestrator: { ...pod.orchestrator, pod_namespace: 'monitoring' } },
    undefined,
  )
  expect(await lint(String(inNamespace.document))).toEqual([])
})

test('a client becomes a sink with all of its options', async () => {
  const text = job('- cri: {}', '').replace(
    /clients:\n[^\n]*\n\n/,
    `clients:
  - url: https://$\{USER}:$\{PASS:-secret}@logs.example.com/prefix/loki/api/v1/push
    tenant_id: shop
    batchwait: 500ms
    batchsize: 102400
    timeout: 5s
    backoff_config: { min_period: 2s, max_period: 1m, max_retries: 8 }
    external_labels: { cluster: prod, job: outer, region: "$\{REGION}" }
    tls_config: { ca_file: /ca.pem, insecure_skip_verify: true, server_name: logs }
    headers: { X-Team: ops }
    proxy_url: http://proxy:3128
  - url: http://other:3100/api/prom/push
    bearer_token_file: /run/secrets/loki-token
`,
  )
  const { document, resource, gaps } = convert(text)
  expect(resource.spec.sinks.map(({ config }: { config: object }) => config)).toEqual([
    {
      endpoint: 'https://logs.example.com/prefix',
      labels: { '*': '{{ labels }}', region: 'SECRET[env.REGION]' },
      structured_metadata: { '*': '{{ metadata }}' },
      tenant_id: '{{ tenant }}',
      out_of_order_action: 'accept',
      encoding: { codec: 'text' },
      auth: { strategy: 'basic', user: 'SECRET[env.USER]', password: 'SECRET[env.PASS]' },
      tls: { ca_file: '/ca.pem', verify_certificate: false, verify_hostname: false, server_name: 'logs' },
      proxy: { http: 'http://proxy:3128', https: 'http://proxy:3128' },
      batch: { max_bytes: 102400, timeout_secs: 0.5 },
      request: {
        timeout_secs: 5,
        retry_initial_backoff_secs: 2,
        retry_max_duration_secs: 60,
        retry_attempts: 7,
        headers: { 'X-Team': 'ops' },
      },
    },
    {
      endpoint: 'http://other:3100',
      path: '/api/prom/push',
      labels: { '*': '{{ labels }}' },
      structured_metadata: { '*': '{{ metadata }}' },
      tenant_id: '{{ tenant }}',
      out_of_order_action: 'accept',
      encoding: { codec: 'text' },
      auth: { strategy: 'bearer', token: 'SECRET[env.LOKI_TOKEN]' },
    },
  ])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(gaps.map(({ reason }) => reason).join('\n')).toContain('PASS is `secret`')
  // Labels of the event override those of the client.
  withTest(
    document,
    resource,
    { message: 'x', file: '/srv/app.log' },
    { labels: { cluster: 'prod', job: 'app', filename: '/srv/app.log' }, tenant: 'shop' },
  )
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['a selector of labels', 'label: "app in (web"', 'extra_label_selector'],
  ['a selector of fields', 'field: "spec.hostIP=10.0.0.1"', 'extra_field_selector'],
])('%s that the source would reject is a gap with its line', async (_name, selector, option) => {
  const text = discovered('', `selectors: [{ role: pod, ${selector} }]`)
  const { document, resource, gaps } = convert(text)
  const place = text.split('\n').findIndex((found) => found.includes(selector)) + 1
  expect(gaps.map(({ line, nearest }) => [line, nearest])).toEqual([[place, expect.stringContaining(option)]])
  expect(resource.spec.sources[0].config).toBeUndefined()
  expect(await lint(String(document))).toEqual([])
})

test('a field selector is a gap in a namespace', async () => {
  const selectors = 'selectors: [{ role: pod, label: "app=web", field: "status.phase=Running" }]'
  const text = discovered('', selectors)
  const cluster = convert(text)
  expect(cluster.gaps).toEqual([])
  expect(cluster.resource.spec.sources[0].config).toEqual({
    extra_label_selector: 'app=web',
    extra_field_selector: 'status.phase=Running',
  })
  const { document, resource, gaps } = convert(text, 'shop')
  expect(gaps.map(({ subject }) => subject)).toEqual(['selector status.phase=Running'])
  expect(resource.spec.sources[0].config).toEqual({ extra_label_selector: 'app=web' })
  expect(await lint(String(document))).toEqual([])
})

test('an unsupported path is a gap, and the other paths are read', async () => {
  const { document, resource, gaps } = convert(
    job('- output: { source: msg }').replace('/srv/app.log }', '"/srv/{a,b.log", __path_exclude__: "/srv/[x.log" }'),
  )
  expect(gaps.map(({ subject }) => subject)).toEqual(['/srv/{a,b.log', '/srv/[x.log'])
  expect(resource.spec.sources[0].config).toEqual({ include: ['/var/empty/app'] })
  expect(await lint(String(document))).toEqual([])
})

test('an external label whose name the destination rejects is a gap', async () => {
  const { document, gaps } = convert(job('- output: { source: msg }', 'external_labels: { "a-b": x, cluster: prod }'))
  expect(gaps.map(({ subject }) => subject)).toEqual(['external label a-b'])
  expect(String(document)).toContain('.labels.cluster')
  expect(await lint(String(document))).toEqual([])
})

test('paths of Windows and compressed files are gaps that no conversion can close', () => {
  const text = job('- drop: { expression: a }', 'oauth2: { client_id: a, token_url: "https://sso/token" }')
    .replace('/srv/app.log', "'C:\\logs\\*.log'")
    .replace('pipeline_stages:', 'decompression: { enabled: true, format: gz }\n    pipeline_stages:')
  const { gaps } = convert(text)
  const absent = gaps.filter(({ isAbsent }) => isAbsent === true).map(({ subject }) => subject)
  expect(absent).toEqual(['job app: decompression', 'C:\\logs\\*.log', 'client: oauth2'])
  expect(gaps.filter(({ isReplaced, isAbsent }) => isReplaced !== true && isAbsent !== true)).toEqual([])
  const { gaps: without } = convert(text.replace('enabled: true', 'enabled: false'))
  expect(without.map(({ subject }) => subject)).not.toContain('job app: decompression')
})

test('entry_parser of old versions is the stage of the runtime', async () => {
  const text = job('- static_labels: { env: prod }').replace(
    '    static_configs',
    '    entry_parser: docker\n    static_configs',
  )
  const { document, resource, gaps } = convert(text)
  expect(gaps).toEqual([])
  const event = { message: '{"log":"hi\\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}', file: '/srv/app.log' }
  withTest(document, resource, event, { message: 'hi\n' })
  expect(await lint(String(document))).toEqual([])
})

test('the own namespace of Promtail is a gap', () => {
  const { gaps } = convert(discovered('', 'namespaces: { own_namespace: true }'))
  expect(gaps).toMatchObject([{ subject: 'namespaces: own_namespace', line: 9 }])
})

test('a selector that Promtail rejects is a gap with the reason', () => {
  const { gaps } = convert(job(`- match: { selector: '{app="x"} | json | level="error"', action: drop }`))
  expect(gaps).toMatchObject([{ subject: 'stage match', reason: expect.stringContaining('rejects') }])
})
