// `convert --prove` as users run it: an old configuration, recorded lines, and the old agent's output for them.

import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'

const main = join(import.meta.dirname, '../main.ts')
const folder = mkdtempSync(join(tmpdir(), 'penstock-prove-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

async function convert(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--conditions=source', main, 'convert', ...words],
      { timeout: 120_000 },
    )
    return { code: 0, out: stdout, err: stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, out: stdout, err: stderr }
  }
}

const fluentBit = file(
  'fluent-bit.conf',
  `[INPUT]
    Name tail
    Path /var/log/app.log
    Tag app
[PARSER]
    Name js
    Format json
[FILTER]
    Name parser
    Match app
    Key_Name log
    Parser js
[FILTER]
    Name grep
    Match app
    Exclude level debug
[OUTPUT]
    Name stdout
    Match app
    Format json_lines
`,
)
const vector = file(
  'vector.yaml',
  `sources: { app: { type: file, include: [/var/log/app.log] } }
transforms:
  parse: { type: remap, inputs: [app], source: '. = parse_json!(.message)' }
sinks:
  out: { type: console, inputs: [parse], encoding: { codec: json } }
  all: { type: console, inputs: [app], encoding: { codec: json } }
`,
)
const lines = file('app.log', '{"level":"info","n":1}\n{"level":"debug"}\n{"level":"warn","n":12345678901234567}\n')

test('a Pipeline with equal events passes, and is printed', async () => {
  const old = '{"date":1.5,"level":"info","n":1}\n{"date":1.5,"level":"warn","n":12345678901234567}\n'
  const against = file('same.ndjson', old)
  const { code, out, err } = await convert('-f', fluentBit, '--prove', lines, '--against', against, '--ignore', '.date')
  expect(err).toContain('For the same lines, the old agent produced 2 events and the Pipeline 2 events; 2 are equal.')
  expect(code).toBe(0)
  expect(parse(out)).toMatchObject({ kind: 'ClusterPipeline' })
})

test('names differences by field with the first example, and shows events without a counterpart', async () => {
  const old = '[{"level":"info","n":"1"},{"level":"warn","n":12345678901234568},{"log":"lost"}]'
  const against = file('other.json', old)
  const { code, err } = await convert('-f', fluentBit, '--prove', lines, '--against', against, '--ignore', '.date')
  expect(code).toBe(1)
  expect(err).toContain('  .n: another type, 1 time: "1" -> 1 (first in event 1 of the old agent, 1 of the Pipeline)\n')
  expect(err).toContain('"12345678901234568" -> "12345678901234567"')
  expect(err).toContain('Only the old agent made 1 event:\n  event 3: {"log":"lost"}')
})

test('one of several sinks is compared', async () => {
  const against = file(
    'vector.ndjson',
    '{"level":"info","n":1}\n{"level":"debug"}\n{"level":"warn","n":12345678901234567}\n',
  )
  const words = ['-f', vector, '--cluster', '--prove', lines, '--against', against]
  const none = await convert(...words)
  expect(none.err).toContain('Select the sink to compare with `--sink`: the Pipeline has out, all.')
  expect(none.code).toBe(64)
  const other = await convert(...words, '--sink', 'gone')
  expect(other.err).toContain('The Pipeline has no sink `gone`; its sinks are out, all.')
  const one = await convert(...words, '--sink', 'out')
  expect(one.err).toContain('3 are equal.')
  expect(one.code).toBe(0)
})

test.each([
  ['output is missing', ['--prove', lines], '`--against OUTPUT`, or `--binary PATH`'],
  ['sample is missing', ['--ignore', '.a'], '`--ignore` needs `--prove SAMPLE`.'],
  ['sample does not exist', ['--prove', join(folder, 'gone.log'), '--against', lines], 'gone.log" cannot be read'],
  [
    'output is not JSON',
    ['--prove', lines, '--against', file('bad.ndjson', '{}\n{"a":\n')],
    'bad.ndjson:2 is not JSON',
  ],
  [
    'output is not an event',
    ['--prove', lines, '--against', file('no.ndjson', '{}\n7\n')],
    'no.ndjson:2 contains 7, which is not an event',
  ],
])('an error explains that the %s', async (_, words, message) => {
  const { code, err } = await convert('-f', fluentBit, ...words)
  expect(err).toContain(message)
  expect(code).toBe(64)
})

/** A program that replaces the old agent's; it is started by name in the same way. */
function program(name: string, text: string): string {
  const path = file(name, `#!${process.execPath}\n${text}`)
  chmodSync(path, 0o755)
  return path
}

/** Penstock's own agent reads the Vector configuration. */
const asVector = program(
  'vector',
  `const { spawn } = require('node:child_process')
const agent = spawn(process.execPath, ['--conditions=source', ${JSON.stringify(join(import.meta.dirname, '../../../agent/src/main.ts'))}, ...process.argv.slice(2)], { stdio: 'inherit' })
process.on('SIGTERM', () => {})
agent.on('close', (code) => process.exit(code ?? 1))
`,
)

/** Reads the files of \`tail\`, and applies one filter; it waits for more lines, like Fluent Bit. */
const asFluentBit = program(
  'fluent-bit',
  `const { readFileSync } = require('node:fs')
const config = readFileSync(process.argv[process.argv.indexOf('--config') + 1], 'utf8')
const sections = config.split(/^(?=\\[)/m).map((text) => Object.fromEntries(text.split('\\n').slice(1).map((line) => /^\\s*(\\S+)\\s*(.*)$/.exec(line)?.slice(1) ?? [])))
const find = (name) => sections.find((section) => section.name === name)
const parsers = readFileSync(sections[0].parsers_file, 'utf8')
if (!parsers.includes('name js\\n    format json')) throw new Error('The parser is not defined.')
if (find('stdout').format !== 'json_lines' || find('kubernetes') !== undefined || find('es') !== undefined) throw new Error('It would reach others.')
console.log('Fluent Bit greets.')
for (const line of readFileSync(find('tail').path, 'utf8').trimEnd().split('\\n')) {
  const record = JSON.parse(line.replace(/^\\S+ stdout F /, ''))
  if (record.level !== 'debug') console.log(JSON.stringify({ ...record, n: record.n + 1 }))
}
setInterval(() => {}, 1000)
`,
)

test('the binary of the old agent creates the events of files itself', async () => {
  const words = ['-f', vector, '--cluster', '--prove', lines, '--binary', asVector]
  const { code, err } = await convert(...words, '--sink', 'out')
  expect(err).toContain('For the same lines, the old agent produced 3 events and the Pipeline 3 events; 3 are equal.')
  expect(code).toBe(0)
})

test('the binary gets the events of pods with their metadata, and programs are compared', async () => {
  const config = file(
    'pods.yaml',
    `sources:
  Logs: { type: kubernetes_logs }
  metrics: { type: internal_metrics }
transforms:
  parse:
    type: remap
    inputs: [Logs]
    source: |
      .parsed = parse_json!(.message)
      .app = .kubernetes.pod_labels.app
      .year = format_timestamp!(.timestamp, "%Y")
sinks:
  Loki_1: { type: loki, inputs: [parse], endpoint: "http://loki:3100", labels: { app: "{{ app }}" }, encoding: { codec: json } }
  prom: { type: prometheus_exporter, inputs: [metrics] }
`,
  )
  const times = file('times.log', '2026-01-01T00:00:00.5Z {"level":"info"}\n2026-01-01T00:00:01Z {"level":"warn"}\n')
  const { code, err } = await convert('-f', config, '--prove', times, '--binary', asVector)
  expect(err).toContain('Vector runs without the source metrics of type internal_metrics.')
  expect(err).toContain('For the same lines, the old agent produced 2 events and the Pipeline 2 events; 2 are equal.')
  expect(code).toBe(0)
})

test('shows different output of the binary, and ends the binary when it is idle', async () => {
  const words = ['-f', fluentBit, '--prove', lines, '--binary', asFluentBit]
  const { code, err } = await convert(...words)
  expect(err).toContain('.n: another value, 2 times: 2 -> 1')
  expect(code).toBe(1)
})

test('filters that query other servers are omitted, and pods have lines like those of the runtime', async () => {
  const config = file(
    'pods.conf',
    `[INPUT]
    Name tail
    Path /var/log/containers/*.log
    Parser docker
    Tag kube.*
[PARSER]
    Name js
    Format json
[FILTER]
    Name kubernetes
    Match kube.*
[FILTER]
    Name parser
    Match kube.*
    Key_Name log
    Parser js
[FILTER]
    Name grep
    Match kube.*
    Exclude level debug
[OUTPUT]
    Name es
    Match kube.*
    Host es
`,
  )
  const { err } = await convert('-f', config, '--prove', lines, '--binary', asFluentBit)
  expect(err).toContain(`Fluent Bit runs without the filter kubernetes (${config}:9).`)
  expect(err).toMatch(/the old agent produced 2 events and the Pipeline 2 events/)
  expect(err).toContain('.n: another value, 2 times: 2 -> 1')
})

test.each([
  [
    'does not start',
    ['-f', vector, '--sink', 'out', '--binary', join(folder, 'gone')],
    /gone` does not start: .*ENOENT/,
  ],
  [
    'fails',
    ['-f', vector, '--sink', 'out', '--binary', program('fails', 'console.error("No licence."); process.exit(3)')],
    /fails --quiet --config \S+ exited with code 3\.\nIt printed:\nNo licence\./,
  ],
  [
    'runs forever',
    [
      '-f',
      vector,
      '--sink',
      'out',
      '--for',
      '2s',
      '--binary',
      program('endless', 'process.on("SIGTERM", () => {}); setInterval(() => console.log("{}"), 100)'),
    ],
    /endless still printed events after 2 s\. Use a smaller sample/,
  ],
  [
    'is of an agent that is not run',
    ['-f', file('p.yaml', 'scrape_configs: []\nclients: []\n'), '--from', 'promtail', '--binary', asVector],
    /`--binary` only supports Vector, Fluent Bit\. Record the output of Promtail for the sample/,
  ],
  [
    'is given with a record',
    ['-f', vector, '--binary', asVector, '--against', lines],
    /^Use either `--against OUTPUT` or `--binary PATH`/m,
  ],
])('an error explains that the binary %s', async (_, words, message) => {
  const { code, err } = await convert(...words, '--prove', lines)
  expect(err).toMatch(message)
  expect(code).toBe(64)
})

test('a configuration that becomes two Pipelines is compared as a whole', async () => {
  const both = file(
    'both.yaml',
    `sources:
  app: { type: file, include: [/var/log/app.log] }
  queue: { type: aws_sqs, queue_url: "http://q/1", region: eu-west-1 }
transforms:
  parse: { type: remap, inputs: [app, queue], source: '. = parse_json!(.message)' }
sinks:
  out: { type: console, inputs: [parse], encoding: { codec: json } }
`,
  )
  const each = ['{"level":"info","n":1}', '{"level":"debug"}', '{"level":"warn","n":12345678901234567}']
  const recorded = file('both.ndjson', [...each, ...each].join('\n'))
  const { code, out, err } = await convert(both, '--prove', lines, '--against', recorded)
  expect(out.match(/^kind: ClusterPipeline$/gm)).toHaveLength(2)
  expect(err).toContain('the old agent produced 6 events and the Pipeline 6 events; 6 are equal.')
  expect(code).toBe(0)
}, 120_000)
