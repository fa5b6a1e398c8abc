// Every command as a new user sees it: its help, and its messages for invalid arguments and a missing cluster.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { actingAsText } from '../serving/observe/acting-as.ts'
import { main, commands as table } from './commands.ts'

// The modules that access a cluster are large, and are loaded once.

const folder = mkdtempSync(join(tmpdir(), 'penstock-commands-'))
let port = 0
beforeAll(async () => {
  writeFileSync(
    join(folder, 'a.yaml'),
    `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: a, namespace: shop }
spec:
  sources: [{ name: app, type: orchestrator_logs }]
  sinks: [{ name: out, type: blackhole, config: {} }]
`,
  )
  port = await freePort()
  writeFileSync(
    join(folder, 'kubeconfig'),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'gone',
      contexts: ['me', 'numbered', 'marked'].map((user) => ({
        name: user === 'me' ? 'gone' : user,
        context: { cluster: 'gone', user },
      })),
      clusters: [{ name: 'gone', cluster: { server: `https://127.0.0.1:${port}` } }],
      users: [
        { name: 'me', user: { token: 'the-token-of-me' } },
        { name: 'numbered', user: { token: 't', as: 'alice', 'as-uid': '7' } },
        { name: 'marked', user: { token: 't', as: 'alice', 'as-user-extra': { team: ['blue'] } } },
      ],
    }),
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

async function penstock(args: string, kubeconfig = 'kubeconfig') {
  vi.stubEnv('KUBECONFIG', join(folder, kubeconfig))
  process.stdout.isTTY = false
  const printed = { out: '', err: '' }
  vi.spyOn(console, 'log').mockImplementation((text) => {
    printed.out += `${text}\n`
  })
  vi.spyOn(console, 'error').mockImplementation((text) => {
    printed.err += `${text}\n`
  })
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed.out += text
    return true
  })
  const code = await main(args.split(' ').filter((word) => word !== ''))
  vi.restoreAllMocks()
  return { code, ...printed }
}

/** The commands that the program itself lists. */
const commands = (await penstock('--help')).out.split('\n').flatMap((line) => /^ {2}(\w\S*) +\S/.exec(line)?.[1] ?? [])

test.each([
  {
    what: 'an option beside config',
    sinks: '[{ name: out, type: log_aggregator, endpoint: "http://loki:3100", config: {} }]',
    says: [
      'unknown field `endpoint`',
      'help: Options of the component belong below `config`',
      '(spec.sinks[0].endpoint)',
    ],
  },
  {
    what: 'logs for a sink of metrics',
    sinks: '[{ name: out, type: remote_write_metrics, config: { endpoint: "http://prom:9090/write" } }]',
    says: ['Data type mismatch between app (Log) and out (Metric)', 'help: "out" accepts only metric events;'],
  },
  {
    what: 'a sink that another agent has',
    sinks: '[{ name: out, type: kafka }]',
    says: [
      'unknown sink type `kafka`',
      'help: There is no sink for this queue. Use the sink `message_broker` (Pulsar)',
      '(spec.sinks[0].type)',
    ],
  },
  {
    what: 'a transform that another agent has',
    sinks: '[{ name: out, type: blackhole }]\n  transforms: [{ name: r, type: route }]',
    says: ['unknown transform type `route`', 'help: Use a `filter` for each route, and one for `_unmatched`.'],
  },
  {
    what: 'more than an operator takes',
    sinks: `[{ name: out, type: blackhole }]\n  transforms: [{ name: p, type: filter, config: { condition: '.a == "${'x'.repeat(300_000)}"' } }]`,
    says: ['`spec` is too long: it has 300', 'the limit is 262144; divide it', '(spec)'],
  },
])('lint reports $what, and the fix', async ({ sinks, says }) => {
  const file = join(folder, 'wrong.yaml')
  const head = 'apiVersion: penstock.dev/v1alpha1\nkind: Pipeline\nmetadata: { name: wrong, namespace: shop }\nspec:\n'
  writeFileSync(file, `${head}  sources: [{ name: app, type: orchestrator_logs }]\n  sinks: ${sinks}\n`)
  const { code, err, out } = await penstock(`lint -f ${file}`)
  expect(code).toBe(78)
  for (const text of says) expect(err + out).toContain(text)
  rmSync(file)
})

test.each(['v1alpha1', 'v1beta1'])('lint, test and render read %s as the other version', async (name) => {
  const file = join(folder, 'served.yaml')
  const text = (version: string) => `apiVersion: penstock.dev/${version}
kind: Pipeline
metadata: { name: served, namespace: shop }
spec:
  sources: [{ name: app, ref: { kind: Source, name: app } }]
  transforms: [{ name: known, type: filter, config: { condition: exists(.id) } }]
  sinks: [{ name: out, type: blackhole }]
  tests: [{ name: dropped, insertAt: known, input: { raw: x }, expect: [{ at: known, count: 0 }] }]
---
apiVersion: penstock.dev/v1alpha1
kind: Source
metadata: { name: app, namespace: shop }
spec: { type: orchestrator_logs }
`
  writeFileSync(file, text('v1alpha1'))
  const rendered = await penstock(`render -f ${file}`)
  writeFileSync(file, text(name))
  expect(await penstock(`lint -f ${file}`)).toMatchObject({ code: 0, out: expect.stringContaining('no problems') })
  expect(await penstock(`test -f ${file}`)).toMatchObject({ code: 0, out: expect.stringContaining('... passed') })
  expect(await penstock(`render -f ${file}`)).toEqual(rendered)
  rmSync(file)
})

test('lint names the versions that it accepts', async () => {
  const file = join(folder, 'served.yaml')
  writeFileSync(file, 'apiVersion: penstock.dev/v1\nkind: Sink\nmetadata: { name: a }\nspec: { type: blackhole }\n')
  expect(await penstock(`lint -f ${file}`)).toMatchObject({
    code: 78,
    err: expect.stringContaining(
      '`apiVersion` of a Sink must be `penstock.dev/v1beta1` or `penstock.dev/v1alpha1`; found "penstock.dev/v1"',
    ),
  })
  rmSync(file)
})

test.each([
  { what: 'warns of', minors: 2, warns: true },
  { what: 'accepts', minors: 1, warns: false },
])('top $what an operator $minors minor versions ahead', async ({ minors, warns }) => {
  const [major, minor] = version.split('.').map(Number)
  const other = `${major}.${(minor ?? 0) + minors}.0`
  const server = createHttpServer((_, response) => {
    response.writeHead(200, { 'x-penstock-version': other })
    response.end(`${JSON.stringify({ kind: 'notification', message: 'Nobody has answered.' })}\n`)
  }).listen(0, '127.0.0.1')
  await new Promise((done) => server.once('listening', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, err } = await penstock(`top a --once --operator-url ${url} --token t`)
  server.close()
  expect(code).toBe(0)
  expect(err).toContain('Nobody has answered.')
  const warning = `This command has version ${version} and the operator ${other}: a difference of more than one minor version is not supported.`
  expect(err.includes(warning)).toBe(warns)
})

// An operator that does not know whom a caller acts as answers with the rights of the caller.
for (const command of ['top a --once', 'tap a --for 1s']) {
  test.each([
    { answer: 'no word of it', header: undefined, is: 'refused' },
    { answer: 'another user', header: actingAsText({ username: 'bob', groups: ['us'] }), is: 'refused' },
    { answer: 'fewer groups', header: actingAsText({ username: 'alice', groups: [] }), is: 'refused' },
    { answer: 'that user', header: actingAsText({ username: 'alice', groups: ['us'] }), is: 'taken' },
  ])(`the answer to ${command} --as alice --as-group us with $answer is $is`, async ({ header, is }) => {
    const server = createHttpServer((_, response) => {
      const acted = header === undefined ? {} : { 'x-penstock-acting-as': header }
      response.writeHead(200, { 'x-penstock-version': '0.0.7', ...acted })
      response.end(`${JSON.stringify({ kind: 'notification', message: 'Nobody has answered.' })}\n`)
    }).listen(0, '127.0.0.1')
    await new Promise((done) => server.once('listening', done))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { code, out, err } = await penstock(`${command} --operator-url ${url} --token t --as alice --as-group us`)
    server.closeAllConnections()
    server.close()
    const refusal = 'The operator (0.0.7) cannot act as another user, and answers with your own rights'
    expect({ code, refused: err.includes(refusal), unanswered: err.includes('Nobody has answered.') }).toEqual(
      is === 'refused' ? { code: 69, refused: true, unanswered: false } : { code: 0, refused: false, unanswered: true },
    )
    expect(out).toBe('')
  })
}

const pem = Buffer.from('PEM').toString('base64')
test.each([
  {
    what: 'no credential',
    user: {},
    says: 'Your kubeconfig has no credentials: the user of its context has no token,',
  },
  {
    what: 'a client certificate',
    user: { 'client-certificate-data': pem, 'client-key-data': pem },
    says: 'Your kubeconfig identifies you by a client certificate, which',
  },
  {
    what: 'a password',
    user: { username: 'me', password: 'hush' },
    says: 'Your kubeconfig identifies you by a password, which',
  },
])('tap and top report the missing token of a kubeconfig with $what', async ({ user, says }) => {
  const all = JSON.parse(readFileSync(join(folder, 'kubeconfig'), 'utf8'))
  writeFileSync(join(folder, 'tokenless'), JSON.stringify({ ...all, users: [{ name: 'me', user }] }))
  for (const args of ['tap a', 'top a']) {
    const { code, out, err } = await penstock(args, 'tokenless')
    expect([code, out]).toEqual([64, ''])
    expect(err).toContain(says)
    expect(err).toContain('--token "$(kubectl create token NAME -n NAMESPACE)"')
  }
})

test('tests run without the Secret that contains the address of a source', async () => {
  const file = join(folder, 'queue.yaml')
  const url = '{ valueFrom: { secretKeyRef: { namespace: shop, name: rabbitmq, key: url } } }'
  writeFileSync(
    file,
    `apiVersion: penstock.dev/v1alpha1
kind: ClusterPipeline
metadata: { name: queue }
spec:
  sources: [{ name: queue, type: amqp, config: { connection_string: ${url} } }]
  transforms: [{ name: known, type: filter, config: { condition: exists(.id) } }]
  sinks: [{ name: out, type: blackhole }]
  tests: [{ name: dropped, insertAt: known, input: { raw: x }, expect: [{ at: known, count: 0 }] }]
`,
  )
  expect(await penstock(`test -f ${file}`)).toMatchObject({ code: 0, out: expect.stringContaining('... passed') })
  rmSync(file)
})

test('render shows the given name of the cluster', async () => {
  const file = join(folder, 'named.yaml')
  const cluster = '{ valueFrom: { fieldRef: { fieldPath: clusterName } } }'
  writeFileSync(
    file,
    `apiVersion: penstock.dev/v1alpha1
kind: ClusterPipeline
metadata: { name: named }
spec:
  sources: [{ name: pods, type: orchestrator_logs }]
  sinks:
    - name: out
      type: log_aggregator
      config: { endpoint: "http://loki:3100", labels: { cluster: ${cluster} }, encoding: { codec: json } }
`,
  )
  expect((await penstock(`render ${file} --cluster-name eu-1`)).out).toContain('cluster: eu-1\n')
  rmSync(file)
})

test.each([
  { source: '.level = upcase(string(.level) ?? "")', codec: 'json', note: undefined },
  {
    source: '.a = 1\n          .n = length(.)',
    codec: 'json',
    note: 'line 2 of its program reads the event as a whole',
  },
  { source: '.n = length(.)', codec: 'text', note: undefined }, // the sink needs objects anyway
])(
  'lint names the statement that prevents lines from remaining bytes: $source, $codec',
  async ({ source, codec, note }) => {
    const file = join(folder, 'lanes.yaml')
    writeFileSync(
      file,
      `apiVersion: penstock.dev/v1alpha1
kind: ClusterPipeline
metadata: { name: lanes }
spec:
  sources: [{ name: pods, type: orchestrator_logs }]
  transforms:
    - name: edit
      type: remap
      config:
        source: |
          ${source}
  sinks:
    - name: out
      type: http
      config: { uri: "http://h:1", encoding: { codec: ${codec} } }
`,
    )
    const { code, err, out } = await penstock(`lint ${file}`)
    expect([code, out]).toEqual([0, expect.stringContaining('no problems')])
    if (note === undefined) expect(err).toBe('')
    else expect(err).toMatch(new RegExp(`^info.*${note}`, 's'))
    rmSync(file)
  },
)

test.each([
  { where: 'selector: { matchLabels: { app: web } }', says: '`matchLabels` belongs below `pods` or `namespaces`.' },
  { where: 'selector: { excluded: [web] }', says: undefined },
  { where: 'preset: java', says: '`preset` belongs below `multiline`.' },
  { where: 'optIn: true', says: '`optIn` belongs below `selector`.' },
  {
    where: 'endpoint: "http://h"',
    says: 'Options of the component belong below `config`, indented one level further.',
  },
])('an unknown field that exists further in gets its place: $where', async ({ where, says }) => {
  const file = join(folder, 'place.yaml')
  writeFileSync(
    file,
    `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: a, namespace: shop }
spec:
  sources: [{ name: pods, type: orchestrator_logs, ${where} }]
  sinks: [{ name: out, type: http, config: { uri: "http://h:1", encoding: { codec: json } } }]
`,
  )
  const { code, err } = await penstock(`lint ${file}`)
  expect(code).toBe(78)
  expect(err).toContain(':5:')
  expect(/help: (.*)/.exec(err)?.[1]).toBe(says)
  rmSync(file)
})

test('a List, as kubectl prints several objects, is read like separate documents', async () => {
  const file = join(folder, 'list.yaml')
  const item = (name: string, program: string) => `  - apiVersion: penstock.dev/v1alpha1
    kind: Pipeline
    metadata: { name: ${name}, namespace: shop }
    spec:
      sources: [{ name: pods, type: orchestrator_logs }]
      transforms:
        - name: change
          type: remap
          config:
            source: |
              ${program}
      sinks: [{ name: out, type: http, config: { uri: "http://h:1", encoding: { codec: json } } }]
`
  writeFileSync(file, `apiVersion: v1\nkind: List\nitems:\n${item('a', '.a = 1')}${item('b', '.b = 2')}`)
  expect(await penstock(`lint ${file}`)).toMatchObject({ code: 0, out: expect.stringContaining('2 Pipelines in ') })
  writeFileSync(file, `apiVersion: v1\nkind: List\nitems:\n${item('a', '.a = 1')}${item('b', '.b = to_int(.c)')}`)
  const { code, err } = await penstock(`lint ${file}`)
  expect(code).toBe(78)
  // The line and column of the expression, in the second item.
  expect(err).toContain(`${file}:26:20  (spec.transforms[0].config.source)`)
  rmSync(file)
})

test('resources of the platform are checked without a Pipeline', async () => {
  const file = join(folder, 'policy.yaml')
  const policy = (cpu: string) =>
    `apiVersion: penstock.dev/v1alpha1\nkind: TenantPolicy\nmetadata: { name: p }\nspec: { namespaceSelector: {}, ${cpu} }\n`
  writeFileSync(file, policy('quota: { pipelines: 2 }'))
  expect(await penstock(`lint -f ${file}`)).toMatchObject({ code: 0 })
  writeFileSync(file, policy('quota: { pipelines: two }'))
  const { code, err, out } = await penstock(`lint -f ${file}`)
  expect(code).toBe(78)
  expect(err + out).toContain('must be a whole number; found "two"')
  rmSync(file)
})

test.each([
  { text: '', says: 'mistaken.yaml, nor another resource of Penstock\n' },
  {
    text: 'apiVersion: v1\nkind: Pod\n---\napiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Pod\n',
    says: 'mistaken.yaml, nor another resource of Penstock; found 2 Pods, 1 Deployment\n',
  },
  { text: '- kind: Pipeline\n', says: 'must be a mapping with apiVersion, kind, metadata and spec; found a list\n' },
  { text: 'hello\n', says: 'must be a mapping with apiVersion, kind, metadata and spec; found a string\n' },
  {
    text: 'apiVersion: v1\nkind: List\nitems:\n  - apiVersion: penstock.dev/v1alpha1\n    kind: Pipelin\n',
    says: 'mistaken.yaml:5:5  (kind)\n  help: Did you mean `Pipeline`?',
  },
  {
    text: 'apiVersion: v1\nkind: Secret\nmetadata: { name: a }\n---\napiVersion: v1\nkind: Secret\nmetadata: { name: b }\n',
    says: 'mistaken.yaml, only 2 Secrets',
  },
  {
    text: 'sources: { in: { type: stdin } }\n',
    says: 'A configuration for the agent without an operator: `penstock-agent --config ',
  },
  {
    text: 'apiVersion: penstock.dev/v1alpha1\nkind: Sink\nmetadata: { name: My_Sink }\nspec: { type: blackhole }\n',
    says: 'must be at most 253 lower-case letters, digits, `-` and `.`',
  },
])('lint of $text says $says', async ({ text, says }) => {
  const file = join(folder, 'mistaken.yaml')
  writeFileSync(file, text)
  const { code, err, out } = await penstock(`lint -f ${file}`)
  expect([code, out]).toEqual([78, ''])
  expect(err).toContain(says)
  rmSync(file)
})

test('an unreadable Pipeline is not also reported as missing', async () => {
  const file = join(folder, 'named.yaml')
  writeFileSync(file, 'apiVersion: penstock.dev/v1alpha1\nkind: Pipeline\nmetadata: { name: My.App }\nspec: {}\n')
  const { code, err, out } = await penstock(`lint -f ${file}`)
  expect(code).toBe(78)
  expect(err + out).toContain('`metadata.name` must be at most 63 lower-case letters, digits and `-`')
  expect(err + out).not.toContain('There is no Pipeline')
  rmSync(file)
})

test.each([
  { args: '--version', says: `penstock ${version}\n` },
  { args: 'version', says: `penstock ${version}\n` },
  { args: 'version --help', says: 'Usage: penstock version' },
  { args: '--help', says: '  version        Print the version.' },
  { args: 'help lint', says: 'Usage: penstock lint ' },
  { args: '--color never list sinks', says: 'Sinks:\n' },
  { args: '--color=never explain T9', says: 'T9  (rule' },
  { args: 'help', says: 'Usage: penstock COMMAND' },
  {
    args: 'webhook --help',
    says: 'Usage: penstock webhook [FLAGS]\n\nServes the admission webhooks in a separate process',
  },
  { args: 'explain T7', says: 'Destinations must not be addresses of the node' },
  { args: 'explain nomatchingagent', says: 'No Agent selects the Pipeline.' },
  { args: 'explain pipelines', says: 'Fields:\n  apiVersion' },
  { args: 'explain --schema', says: '"title": "Resources of Penstock"' },
  {
    args: 'explain kafka',
    says: 'kafka  (sink)\n  There is no sink for this queue. Use the sink `message_broker` (Pulsar)',
  },
  { args: 'explain splunk', says: 'splunk_hec_logs  (sink)' },
  { args: 'explain reduce', says: 'Join lines with `multiline` of the source.' },
  { args: 'explain route', says: 'route  (transform)\n  Use a `filter` for each route' },
  { args: 'explain loki', says: '# log_aggregator' },
  { args: 'list', says: 'log_aggregator (Grafana Loki) ' },
  { args: 'explain multiline', says: '\nOption of file (source), orchestrator_logs (source):\n' },
  { args: 'explain multiline.preset', says: '  Pipeline.spec.sources.multiline.preset\n' },
  { args: 'explain buffer', says: 'Option of all sinks:\n' },
  { args: 'list sinks', says: 'Sinks:\n  blackhole ' },
  { args: 'list Sinks loki', says: 'Sinks:\n  log_aggregator (Grafana Loki)  Delivers' },
  {
    args: 'explain fluent-bit',
    says: '`penstock convert -f FILE` converts a configuration of Fluent Bit to a Pipeline.',
  },
  { args: 'explain Vector', says: 'operator/guide/vector.md' },
  { args: 'list -o json', says: '"type": "orchestrator_logs"' },
  { args: 'explain Agent.spec.rollout.canary.bake', says: 'Example: `"60s"`.' },
  { args: 'explain multiline', says: 'Fields named multiline:\n  Pipeline.spec.sources.multiline\n' },
  { args: 'explain Pipeline.spec.sources.multiline', says: 'Rules for the stack traces of a language.' },
])('penstock $args prints the requested text', async ({ args, says }) => {
  const { code, out, err } = await penstock(args)
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain(says)
})

test.each([
  { args: 'statsu', says: 'There is no command `statsu`. Did you mean `status`?\n' },
  { args: 'nonsense', says: 'There is no command `nonsense`. See `penstock --help`.\n' },
  { args: 'lint --flie x', says: 'There is no flag `--flie`. Did you mean `--file`? See `penstock lint --help`.\n' },
  {
    args: 'list sinks kafka',
    says: 'No sink has "kafka" in its type or products. `penstock explain kafka` names a replacement if another agent has one. See `penstock list --help`.\n',
  },
  { args: 'explain T15', says: 'There is no rule T15; the rules are T1 to T14. See `penstock explain --help`.\n' },
  { args: 'cleanup now', says: 'Unexpected argument `now`. See `penstock cleanup --help`.\n' },
])('penstock $args gets one line, with one suggestion', async ({ args, says }) => {
  expect(await penstock(args)).toEqual({ code: 64, out: '', err: says })
})

test.each(['bash', 'zsh', 'fish'])('completion of %s offers every command with its flags', async (shell) => {
  const { code, out } = await penstock(`completion ${shell}`)
  expect(code).toBe(0)
  for (const name of commands) expect(out).toContain(name)
  for (const flag of ['recursive', 'own-machine', 'to-revision', 'kube-qps', 'color']) expect(out).toContain(flag)
  if (shell === 'bash')
    expect(spawnSync('bash', ['-n'], { input: out, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
})

test('there are commands', () => {
  expect(commands).toEqual(expect.arrayContaining(['lint', 'tap', 'top', 'why']))
})

test.each(commands)('%s describes its purpose, and has a sentence for each flag, in 80 columns', async (name) => {
  const { code, out, err } = await penstock(`${name} --help`)
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(new RegExp(`^Usage: penstock ${name}\\b.*\n(?: {7}.*\n)*\n[A-Z][^\n]{30}`))
  expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
  const { options = {} } = (await table[name]?.load()) ?? {}
  const texts = Object.values(options).map(({ help }) => help)
  expect(texts.filter((help) => !/^[A-Z/].*[.)]$/.test(help))).toEqual([])
})

test.each(commands)('%s takes --color', async (name) => {
  expect(await penstock(`${name} --color never --help`)).toMatchObject({ code: 0, err: '' })
  const { code, err } = await penstock(`${name} --color blue`)
  expect(code).toBe(64)
  expect(err).toContain('`--color` takes one of auto, always, never; found `blue`.')
})

test('passed and failed have colours on request', async () => {
  const file = join(folder, 'judged.yaml')
  const asserts = (what: string) =>
    `{ name: 'is ${what}', insertAt: t, input: { raw: x }, expect: [{ at: t, assert: '${what}' }] }`
  writeFileSync(
    file,
    `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: a, namespace: shop }
spec:
  sources: [{ name: app, type: orchestrator_logs }]
  transforms: [{ name: t, type: remap, config: { source: '.a = 1' } }]
  sinks: [{ name: out, type: blackhole, config: {} }]
  tests: [${asserts('true')}, ${asserts('false')}]
`,
  )
  const { code, out, err } = await penstock(`test --color always ${file}`)
  expect([code, err]).toEqual([78, ''])
  expect(out).toContain('is true ... \u001b[32mpassed\u001b[0m\n')
  expect(out).toContain('is false ... \u001b[31mfailed\u001b[0m\n')
  for (const plain of [`test ${file}`, `test --color always -o junit ${file}`])
    expect((await penstock(plain)).out).not.toContain('\u001b')
  rmSync(file)
})

test('problems have colours on request', async () => {
  const file = join(folder, 'coloured.yaml')
  writeFileSync(file, 'apiVersion: penstock.dev/v1alpha1\nkind: Pipeline\nmetadata: { name: a }\nspec: {}\n')
  const red = '\u001b[31m'
  expect((await penstock(`lint --color always ${file}`)).err).toContain(red)
  for (const plain of [`lint --color never ${file}`, `lint ${file}`]) {
    const { code, err } = await penstock(plain)
    expect([code, err.includes(red)]).toEqual([78, false])
  }
  rmSync(file)
})

test.each(commands.filter((name) => name !== 'explain'))('%s refuses an unknown flag', async (name) => {
  const { code, err } = await penstock(`${name} --no-such-flag`)
  expect(code).toBe(64)
  expect(err).toContain('There is no flag `--no-such-flag`.')
  expect(err).toContain(`penstock ${name} --help`)
})

test.each([
  { args: 'taap', says: 'Did you mean `tap`?' },
  { args: '--kubeconfig x taap', says: 'Did you mean `tap`?' },
  { args: '--kubeconfig x tap', says: 'penstock tap PIPELINE' },
  { args: '-n shop --context=one why', says: 'penstock why POD' },
  { args: '--as me --namespace shop status a b', says: 'penstock status [PIPELINE]' },
  { args: '--as me --as-group us why a b', says: 'penstock why POD' },
  { args: 'tap a --as-group us --operator-url https://127.0.0.1:1 --token t', says: '`--as-group` needs `--as USER`.' },
  { args: 'tap a --context numbered', says: 'has `as-uid`, which the operator does not support' },
  { args: 'top a --context marked', says: 'has `as-user-extra`, which the operator does not support' },
  { args: 'status --as-group us', says: '`--as-group` needs `--as USER`.' },
  { args: '--flie x status', says: 'Expected a command; found the flag `--flie`.' },
  { args: '-n shop', says: 'Expected a command; found the flag `-n`.' },
  { args: 'tap', says: 'penstock tap PIPELINE' },
  { args: 'tap a --limit 0', says: '`--limit` takes a whole number from 1 to 1000; found `0`.' },
  { args: 'tap a --for never', says: 'A duration has the form `10s`' },
  { args: 'tap a --format html', says: '`--format` takes one of pretty, json, yaml, logfmt; found `html`.' },
  { args: 'tap a --operator-url here --token t', says: '`--operator-url` takes a URL' },
  { args: 'top a b', says: 'penstock top [PIPELINE]' },
  { args: 'top -A -n shop', says: 'penstock top -A' },
  { args: 'why', says: 'penstock why POD' },
  { args: 'status a b', says: 'penstock status [PIPELINE]' },
  { args: 'rollout stauts node', says: 'There is no action `stauts`. Did you mean `status`?' },
  { args: 'rollout end node', says: 'There is no action `end`. The actions are status, pause, resume, undo, retry.' },
  { args: 'rollout', says: 'Name the action and its object: penstock rollout status|' },
  { args: 'rollout undo', says: 'Name the object: penstock rollout undo AGENT.' },
  { args: 'rollout retry', says: 'Name the object: penstock rollout retry PIPELINE [--cluster].' },
  { args: 'rollout undo node r1', says: 'Unexpected argument `r1`.' },
  { args: 'lint -o', says: '-o needs a value: one of text, sarif, junit. See `penstock lint --help`.' },
  { args: 'rollout status node --to-revision x', says: '`--to-revision` is for `penstock rollout undo`.' },
  { args: 'render -f a.yaml -A', says: 'Use `-f PATH`, or select resources of the cluster' },
  { args: 'lint', says: 'Name the resources with `-f PATH`' },
  { args: 'lint -f', says: '-f needs a value. See `penstock lint --help`.' },
  { args: 'lint -f -R', says: '-f needs a value, but -R looks like a flag.' },
  { args: 'dir/a.yaml', says: '`penstock lint dir/a.yaml` checks it, and `penstock run dir/a.yaml` runs it here.' },
  { args: 'lint -f a.yaml -o html', says: '`--output` takes one of text, sarif, junit; found `html`.' },
  { args: 'test -f a.yaml -o sarif', says: '`--output` takes one of text, junit; found `sarif`.' },
  { args: 'explain', says: 'penstock explain NAME' },
  {
    args: 'explain Pipeline.spec.sorces',
    says: 'There is no field `spec.sorces` of Pipeline. Did you mean `sources`?',
  },
  { args: 'explain parse_jsn', says: 'Did you mean "parse_json"?' },
  { args: 'explain nope', says: 'Nothing is named "nope". `penstock list` prints the components.' },
  { args: 'explain Pipelin', says: 'Nothing is named "Pipelin". Did you mean "Pipeline"?' },
  { args: 'explain NoMatchingAgnt', says: 'Did you mean "NoMatchingAgent"?' },
  { args: 'init --name Bad_Name', says: '`--name` must be at most 63 lower-case letters, digits and `-`' },
  { args: 'init -n a.b', says: '`--namespace` must be at most 63 lower-case letters' },
  { args: 'list kafka', says: 'penstock list' },
  // The command reports this before it ends anything.
  { args: 'cleanup --timeout soon', says: 'A duration has the form `10s`' },
  { args: 'convert', says: 'penstock convert -f CONFIG' },
])('penstock $args says $says', async ({ args, says }) => {
  const { code, out, err } = await penstock(args)
  expect([code, out]).toEqual([64, ''])
  expect(err).toContain(says)
})

test.each([
  ['rbac-scope', 'Cloud', 'takes one of Cluster, Namespaced'],
  ['secrets-mode', 'None', 'takes one of All, Label, Namespaced'],
  ['leader-election', 'maybe', 'takes one of true, false'],
  ['ref-grace-period', 'soon', 'A duration has the form `10s`'],
  ['heartbeat-period', '6m', 'takes a time from 1s to 5m'],
  ['status-period', 'often', 'A duration has the form `10s`'],
  ['http-address', '8080', 'takes HOST:PORT'],
  ['heartbeat-address', '0.0.0.0:99999', 'takes HOST:PORT'],
  ['webhook-address', ':9444', 'takes HOST:PORT'],
  ['heartbeat-url', 'operator:9443', 'takes a URL'],
  ['kube-qps', '0', 'takes a number above zero'],
  ['kube-burst', 'many', 'takes a number above zero'],
  ['log-level', 'loud', 'takes one of silent'],
  ['log-format', 'xml', 'takes one of json, text'],
])('penstock operator checks --%s before it connects to a cluster', async (flag, value, says) => {
  const { code, out, err } = await penstock(`operator --${flag} ${value}`, 'absent')
  expect([code, out]).toEqual([64, ''])
  expect(err).toContain(`\`--${flag}\``)
  expect(err).toContain(says)
  expect(err).toContain(value)
})

test.each([
  'status',
  'why a',
  'top',
  'tap a',
  `diff -f ${folder}/a.yaml`,
  'render -A',
  'rollout undo node',
  'rollout status node',
  'migrate',
  `support-bundle -o ${folder}/bundle.tar.gz`,
  'selftest',
])('without a cluster, penstock %s names the cluster, and the next thing to check', async (args) => {
  const gone = await penstock(args)
  expect([gone.code, gone.out]).toEqual([69, ''])
  const [first = '', ...more] = gone.err.split('\n')
  expect(first).toContain(`The API server https://127.0.0.1:${port}`)
  expect(first).toContain('cannot be reached: connect ECONNREFUSED')
  expect(more.length).toBeLessThanOrEqual(2)
  expect(gone.err).not.toContain('    at ') // a stack is for faults of ours
  expect(gone.err).not.toContain('the-token-of-me')
  const none = await penstock(args, 'absent')
  expect([none.code, none.out]).toEqual([69, ''])
  expect(none.err).toContain(`The kubeconfig ${join(folder, 'absent')} cannot be read`)
  expect(none.err).toContain('--kubeconfig')
})

test.each([
  ...['lint -f', 'test -f', 'run -f', 'render -f', 'diff -f', 'convert -f', 'migrate -f'].map((args) => ({
    args: `${args} ${folder}/gone.yaml`,
    reason: 'no such file or directory',
  })),
  { args: `run -f ${folder}/a.yaml --input ${folder}/gone.yaml`, reason: 'no such file or directory' },
  { args: `run -f ${folder}/a.yaml --input ${folder}`, reason: 'it is a folder' },
  { args: `convert -f ${folder}/a.yaml --prove ${folder}/a.yaml --against ${folder}`, reason: 'it is a folder' },
  { args: `init ${folder}/a.yaml`, reason: 'it exists already' },
  { args: `init ${folder}/gone/a.yaml`, reason: 'there is no folder' },
])('penstock $args names the path and the reason $reason, without the text of the system', async ({ args, reason }) => {
  const { code, out, err } = await penstock(args)
  expect(code).not.toBe(0)
  expect([out, err]).toEqual(['', expect.stringContaining(reason)])
  expect(err).toContain(folder)
  expect(err).not.toMatch(/\bE[A-Z]{4,}\b|syscall|\bstat\b/)
})

test('lint lists its files, and unreadable ones', async () => {
  const file = join(folder, 'a.yaml')
  const fine = { code: 0, out: `1 Pipeline in ${file}: no problems.\n`, err: '' }
  expect(await penstock(`lint -f ${file}`)).toEqual(fine)
  const { code, err } = await penstock(`lint -f ${folder}/gone.yaml`)
  expect(code).toBe(78)
  expect(err).toContain('gone.yaml" cannot be read')
})

test('a document with exploding aliases is a problem with its place', async () => {
  const lists = Array.from({ length: 20 }, (_, index) => {
    const items = Array.from({ length: 10 }, () => (index === 0 ? 'x' : `*a${index - 1}`)).join(', ')
    return `  a${index}: &a${index} [${items}]`
  })
  const path = join(folder, 'aliases.yaml')
  writeFileSync(
    path,
    `apiVersion: penstock.dev/v1alpha1\nkind: Pipeline\nmetadata: { name: b }\nspec:\n${lists.join('\n')}\n`,
  )

  const { err } = await penstock(`lint -f ${path}`)
  rmSync(path)

  expect(err).toContain('this document cannot be read: Excessive alias count')
  expect(err).toContain(`${path}:1:1`)
})

test.each([
  { body: '404 page not found', isKindMissing: true },
  { body: '{"kind":"Status","message":"no such path","reason":"NotFound","details":{}}', isKindMissing: true },
  { body: '{"kind":"Status","message":"gone","reason":"NotFound","details":{"name":"a"}}', isKindMissing: false },
])('an API server that answers 404 $body: Penstock may be missing: $isKindMissing', async ({ body, isKindMissing }) => {
  await using server = createHttpServer((_, response) => response.writeHead(404).end(body)).listen(0, '127.0.0.1')
  await new Promise((done) => server.once('listening', done))
  // The client accepts plain HTTP if it does not verify certificates.
  const cluster = {
    'insecure-skip-tls-verify': true,
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  }
  writeFileSync(
    join(folder, 'found'),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
      clusters: [{ name: 'here', cluster }],
      users: [{ name: 'me', user: { token: 'the-token-of-me' } }],
    }),
  )

  const { code, err } = await penstock('status -A', 'found')

  expect(code).toBe(69)
  expect(err).toContain(': 404 ')
  expect(err.includes('Is Penstock installed in this cluster?')).toBe(isKindMissing)
})
