// Resources of the fluent-operator: sections in the order of names, options with Fluent Bit's names, Secrets, scripts, and gaps.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit, isFluentBit } from './convert.ts'
import { sectionsOf } from './resources.ts'

const head = (kind: string, name: string) =>
  `apiVersion: fluentbit.fluent.io/v1alpha2\nkind: ${kind}\nmetadata: { name: ${name}, namespace: shop }\n`
const resource = (kind: string, name: string, spec: string) =>
  `${head(kind, name)}spec:\n${spec.replace(/^(?=.)/gm, '  ')}\n`
const input = resource(
  'ClusterInput',
  'pods',
  'tail: { tag: kube.*, path: /var/log/containers/*.log, parser: cri, dbSync: Normal }',
)
const filter = (name: string, spec: string) => resource('ClusterFilter', name, `match: kube.*\nfilters:\n${spec}`)
const output = resource(
  'ClusterOutput',
  'out',
  'match: "*"\nloki: { host: loki, labels: [a=b, "c=$stream"], removeKeys: [x, y] }',
)
const convert = (...parts: readonly string[]) =>
  converted(convertFluentBit, [{ file: 'f.yaml', text: parts.join('---\n') }])
const entries = (text: string) =>
  sectionsOf([{ file: 'f.yaml', text }], []).sections.map(({ kind, entries: all }) => [
    kind,
    ...all.map(({ key, value }) => `${key} ${value}`),
  ])

test('options get the names of Fluent Bit', () => {
  expect(
    entries(
      resource(
        'ClusterInput',
        'pods',
        'tail: { refreshIntervalSeconds: 10, memBufLimit: 5MB, db: /x.db, dbSync: Full, multilineParser: "docker, cri", disableInotifyWatcher: true, parserN: [a, b], storageType: memory }',
      ),
    ),
  ).toEqual([
    [
      'input',
      'name tail',
      'alias pods',
      'refresh_interval 10',
      'mem_buf_limit 5MB',
      'db /x.db',
      'db.sync Full',
      'multiline.parser docker, cri',
      'inotify_watcher off',
      'parser_1 a',
      'parser_2 b',
      'storage.type memory',
    ],
  ])
  expect(
    entries(
      resource(
        'ClusterOutput',
        'o',
        'matchRegex: x\nretry_limit: "3"\nhttp: { uri: /a, headers: { X-A: "1" }, httpPassword: { valueFrom: { secretKeyRef: { name: s, key: k } } }, tls: { verify: false, caFile: /ca }, networking: { connectTimeout: 3, DNSMode: TCP } }',
      ),
    )[0],
  ).toEqual([
    'output',
    'name http',
    'alias o',
    'match_regex x',
    'retry_limit 3',
    'uri /a',
    'header X-A 1',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Fluent Bit is meant
    'http_passwd ${SECRET_S_K}',
    'tls on',
    'tls.verify false',
    'tls.ca_file /ca',
    'net.connect_timeout 3',
    'net.dns.mode TCP',
  ])
  expect(
    entries(
      filter(
        'f',
        '- kubernetes: { kubeURL: u, kubeCAFile: f, mergeLog: true, k8sLoggingParser: false, kubeMetaCacheTTL: 1 }\n- recordModifier: { records: [a b, c d], removeKeys: [e] }\n- nest: { operation: nest, wildcard: [a*, b*], nestUnder: n }\n- customPlugin: { config: "Name throttle\\nRate 5\\n" }',
      ),
    ).map((all) => all.slice(1).filter((each) => !each.startsWith('match'))),
  ).toEqual([
    [
      'name kubernetes',
      'kube_url u',
      'kube_ca_file f',
      'merge_log true',
      'k8s-logging.parser false',
      'kube_meta_cache_ttl 1',
    ],
    ['name record_modifier', 'record a b', 'record c d', 'remove_key e'],
    ['name nest', 'operation nest', 'wildcard a*', 'wildcard b*', 'nest_under n'],
    ['name throttle', 'rate 5'],
  ])
  expect(
    entries(
      resource(
        'ClusterMultilineParser',
        'm',
        'type: regex\nflushTimeout: 1000\nrules: [ { start: start_state, regex: "/^a/", next: cont } ]',
      ),
    ),
  ).toEqual([['multiline_parser', 'name m', 'type regex', 'flush_timeout 1000', 'rule "start_state" "/^a/" "cont"']])
})

test('an event passes the filters in the order of their names', async () => {
  const {
    document,
    resource: made,
    gaps,
  } = convert(
    filter(
      'b',
      '- modify: { conditions: [ { keyExists: two } ], rules: [ { set: { three: "3" } }, { rename: { two: zwei } } ] }',
    ),
    filter('a', '- modify: { rules: [ { add: { two: "2" } } ] }\n- grep: { regex: "message ^keep" }'),
    output,
    input,
  )
  const event = {
    message: 'keep this',
    stream: 'stdout',
    timestamp: '2026-11-24T10:11:12.5Z',
    orchestrator: { pod_name: 'p' },
  }
  withTest(document, made, event, { message: 'keep this', zwei: '2', three: '3' })
  expect(gaps).toEqual([])
  expect(made.spec.sinks[0]).toMatchObject({ name: 'out', config: { labels: { a: 'b', c: '{{ stream }}' } } })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the comment contains a script from a ConfigMap', () => {
  const { document } = convert(
    input,
    output,
    filter('l', '- lua: { script: { name: scripts, key: a.lua }, call: cb }'),
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: scripts }\ndata:\n  a.lua: |\n    function cb(tag, ts, record)\n    end\n',
  )
  expect(document.toString()).toContain('# Its program:\n    # function cb(tag, ts, record)')
})

test.each([
  { kind: 'FluentBit', spec: 'image: x', subject: 'FluentBit x', isReplaced: true },
  { kind: 'ClusterFluentBitConfig', spec: 'filterSelector: {}', subject: 'ClusterFluentBitConfig x', isReplaced: true },
])('$kind is reported', async ({ kind, spec, subject, isReplaced }) => {
  const text = resource(kind, 'x', spec)
  expect(isFluentBit({ file: 'f.yaml', text })).toBe(true)
  const { document, gaps } = convert(text, input, output)
  expect(gaps.find((gap) => gap.subject === subject)).toMatchObject({ line: 1, file: 'f.yaml' })
  expect(gaps.find((gap) => gap.subject === subject)?.isReplaced).toBe(isReplaced)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a Filter and an Output in a namespace apply only to logs of its pods', async () => {
  const own = (kind: string, spec: string) =>
    resource(kind, 'own', spec).replace(/namespace: [\w-]+/, 'namespace: shop')
  const {
    document,
    resource: made,
    gaps,
  } = convert(
    input,
    output,
    own(
      'Filter',
      'match: kube.*\nfilters:\n- grep: { exclude: message debug }\n- modify: { rules: [{ set: { team: shop } }] }',
    ),
    own('Output', 'match: kube.*\nstdout: { format: json_lines }'),
  )
  expect(gaps).toEqual([])
  const texts = (made.spec.transforms as { config: { source?: string; condition?: string } }[]).map(
    ({ config }) => config.source ?? config.condition ?? '',
  )
  const test = '%orchestrator.pod_namespace == "shop"'
  expect(texts.filter((text) => text.startsWith(`if ${test} {\n`))).toHaveLength(2)
  expect(texts.find((text) => text.includes('debug'))).toMatch(/\} else \{ true \}$/)
  expect(texts).toContain(test)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { match: 'match: "*"', gaps: 0, isRead: true },
  { match: 'match: kube.*', gaps: 0, isRead: true },
  { match: 'match: kube.var.log.containers.*', gaps: 0, isRead: true },
  { match: 'matchRegex: "(?:kube|service)\\\\.(.*)"', gaps: 0, isRead: true },
  { match: 'match: "kube.*_shop_*"', gaps: 0, isRead: true },
  { match: 'matchRegex: "kube\\\\..*_shop_.*"', gaps: 0, isRead: true },
  { match: 'match: host.*', gaps: 1, isRead: false },
])('an output with $match is converted with its pattern, or is a gap', ({ match, gaps: count, isRead }) => {
  const other = resource('ClusterOutput', 'z', `${match}\nstdout: { format: json_lines }`)
  const { resource: made, gaps } = convert(input, output, other)
  expect(gaps.map(({ reason }) => reason)).toHaveLength(count)
  expect(made.spec.sinks.some(({ name }: { name: string }) => name === 'z')).toBe(isRead)
})

const labelled = (kind: string, name: string, labels: string, spec: string) =>
  resource(kind, name, spec).replace('namespace: shop }', `namespace: shop, labels: { ${labels} } }`)
const config = (kind: string, spec: string) => resource(kind, 'config', spec)
const stage = (name: string, labels: string) =>
  labelled('ClusterFilter', name, labels, `match: kube.*\nfilters:\n  - modify: { rules: [{ set: { ${name}: yes } }] }`)

test.each([
  ['', ['one', 'two'], ['ClusterFilter off']],
  [config('ClusterFluentBitConfig', 'filterSelector: { matchLabels: { a: x } }'), ['one'], ['two', 'off']],
  [config('ClusterFluentBitConfig', 'filterSelector: {}'), ['off', 'one', 'two'], []],
  [
    config(
      'ClusterFluentBitConfig',
      'filterSelector:\n  matchExpressions:\n    - { key: a, operator: In, values: [x, y] }\n    - { key: b, operator: DoesNotExist }',
    ),
    ['one'],
    ['two', 'off'],
  ],
  [
    config(
      'ClusterFluentBitConfig',
      'filterSelector:\n  matchExpressions:\n    - { key: a, operator: NotIn, values: [x] }\n    - { key: b, operator: Exists }',
    ),
    ['two'],
    ['one', 'off'],
  ],
  // The configuration of a namespace selects only resources of that namespace.
  [config('FluentBitConfig', 'filterSelector: { matchLabels: { a: x } }'), ['one', 'two'], ['off']],
])('the configuration selects resources by labels: %j', (selecting, names, left) => {
  const parts = [
    stage('one', 'a: x'),
    stage('two', 'a: y, b: z'),
    stage('off', 'fluentbit.fluent.io/enabled: "false"'),
    ...(selecting === '' ? [] : [selecting]),
  ]
  const { resource: made, all } = convert(input, output, ...parts)
  const programs = made.spec.transforms.map(({ config: { source = '' } }: { config: { source?: string } }) => source)
  const found = programs.flatMap((source: string) => /^\.(one|two|off) = "yes"$/.exec(source)?.[1] ?? [])
  expect(found).toEqual(names)
  const leftOut = all.filter(({ reason }) => reason.includes('does not select')).map(({ subject }) => subject)
  expect(leftOut.map((subject) => subject.split(' ').at(-1))).toEqual(
    left.map((each) => each.split(' ').at(-1)).toSorted(),
  )
})

test('resources of a namespace alone read the logs of its pods', async () => {
  const parts = [
    resource('Filter', 'f', 'match: kube.*\nfilters:\n  - grep: { regex: "log ^E" }'),
    resource('Output', 'o', 'match: kube.*\nhttp: { host: h, format: json }'),
  ]
  const { document, resource: made, gaps } = convert(...parts)
  expect(made.spec.sources).toMatchObject([{ type: 'orchestrator_logs' }])
  expect(made.spec.sinks).toMatchObject([{ type: 'http' }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toMatchObject([{ subject: 'inputs', line: 7 }])
  expect(await lint(String(document))).toEqual([])
})

test('structured metadata of Loki', () => {
  const { resource: made, gaps } = convert(
    input,
    resource('ClusterOutput', 'o', 'match: "*"\nloki: { host: l, structuredMetadata: { s: $stream, fixed: x } }'),
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(made.spec.sinks).toMatchObject([{ config: { structured_metadata: { s: '{{ stream }}', fixed: 'x' } } }])
})

test('a condition of a processor, and fields of Splunk', () => {
  const condition = '{ op: and, rules: [ { field: "$log", op: eq, value: x } ] }'
  const processor = `{ name: content_modifier, action: upsert, key: a, value: b, condition: ${condition} }`
  const { resource: made, gaps } = convert(
    input,
    resource(
      'ClusterOutput',
      'o',
      `match: "*"\nprocessors: { logs: [ ${processor} ] }\nstdout: { format: json_lines }`,
    ),
    resource(
      'ClusterOutput',
      's',
      'match: "*"\nsplunk: { host: s, splunkToken: { value: t }, eventFields: [ "n $n" ] }',
    ),
    resource('ClusterOutput', 'l', 'match: "*"\nloki: { host: l, structuredMetadataKeys: [ $a, $b ] }'),
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const texts = made.spec.transforms.map(({ config }: { config: { source: string } }) => config.source)
  expect(texts).toContainEqual(expect.stringMatching(/^if \(.*"x".*\) \{\n {2}\.a = "b"\n\}$/))
  expect(texts).toContainEqual(expect.stringContaining('"n": .n'))
  expect(texts).toContainEqual(expect.stringContaining('%metadata_maps = merge(object(.a) ?? {}'))
})
