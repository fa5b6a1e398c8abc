import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'

const folder = mkdtempSync(join(tmpdir(), 'penstock-convert-other-'))
afterAll(() => rmSync(folder, { recursive: true }))
const main = join(import.meta.dirname, '../main.ts')

const vector = `data_dir: /vector
sources: { k: { type: kubernetes_logs } }
sinks: { o: { type: kafka, inputs: [k], topic: t } }
`

function convert(words: readonly string[], input = '') {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--conditions=source', main, 'convert', ...words], {
    input,
    encoding: 'utf8',
  })
  return { stdout, stderr, status }
}

test.each([
  ['YAML', vector],
  ['TOML', '[sources.k]\ntype = "kubernetes_logs"\n[sinks.o]\ntype = "kafka"\ninputs = ["k"]\n'],
])('a configuration of Vector in %s comes from standard input', (_, text) => {
  const { stdout, stderr, status } = convert(['-f', '-'], text)
  expect(status).toBe(0)
  expect(stderr).toContain('Reading it as a configuration of Vector')
  expect(parse(stdout)).toMatchObject({ kind: 'ClusterPipeline', spec: { sinks: [{ type: 'blackhole' }] } })
})

test('an empty file is reported as empty', () => {
  const { stderr, status } = convert(['-f', '-'], '# nothing yet\n---\n')
  expect(status).toBe(64)
  expect(stderr).toContain('stdin.yaml: the file is empty, so there is nothing to convert.')
})

test('an error in TOML is named with its line', () => {
  const { stderr, status } = convert(['-f', '-'], "[sources.k]\ntype = \"kubernetes_logs\"\n[sinks.o]\ntype = 'a'b'\n")
  expect(status).toBe(64)
  expect(stderr).toMatch(/^stdin\.toml:4:\d+: this is not valid TOML: (?!not valid)/m)
})

test('the files of a folder are one configuration', () => {
  const all = join(folder, 'vector.d')
  mkdirSync(all)
  writeFileSync(join(all, 'in.yaml'), 'sources: { k: { type: demo_logs, format: json } }\n')
  writeFileSync(join(all, 'out.toml'), '[sinks.o]\ntype = "console"\ninputs = ["add"]\nencoding.codec = "json"\n')
  mkdirSync(join(all, 'transforms'))
  writeFileSync(join(all, 'transforms', 'add.toml'), 'type = "remap"\ninputs = ["k"]\nsource = ".a = 1"\n')
  writeFileSync(join(all, 'README.txt'), 'no configuration')
  const { stdout, stderr, status } = convert([all, '--name', 'both'])
  expect({ stderr, status }).toEqual({
    stderr: 'Reading it as a configuration of Vector; use --from to override.\n',
    status: 0,
  })
  expect(parse(stdout)).toMatchObject({ metadata: { name: 'both' }, spec: { sinks: [{ inputs: ['add'] }] } })
})

test('gaps are printed as a list for programs, or as a table', () => {
  const json = convert(['-f', '-', '--from', 'vector', '--report', 'json'], vector)
  expect(JSON.parse(json.stderr)).toEqual([
    expect.objectContaining({ file: 'stdin.yaml', line: 1, subject: 'data_dir', kind: 'replaced' }),
    expect.objectContaining({
      line: 3,
      subject: 'o: kafka',
      kind: 'gap',
      nearest: expect.stringContaining('message_broker'),
    }),
  ])
  const table = convert(['-f', '-', '--from', 'vector', '--report', 'markdown'], vector).stderr.split('\n')
  expect(table[0]).toBe('| Place | Subject | Kind | Reason | Nearest equivalent |')
  expect(table[3]).toMatch(/^\| stdin\.yaml:3 \| o: kafka \| gap \| there is no sink for this queue \| .* \|$/)
})

test.each([
  {
    what: 'a source without a counterpart',
    text: 'sources: { host: { type: host_metrics } }\nsinks: { o: { type: blackhole, inputs: [host] } }\n',
    says: ['  source `host`: it has no equivalent; a source of an empty file replaces it'],
  },
  {
    what: 'files that are read and written',
    text: `sources: { k: { type: kubernetes_logs }, f: { type: file, include: [/srv/a.log, /srv/b.log] } }
sinks: { o: { type: file, inputs: [k, f], path: /srv/out.log, encoding: { codec: json } } }
`,
    says: ['  source `f`: it reads /srv/a.log, /srv/b.log', '  sink `o`: it writes /srv/out.log'],
  },
])('for a namespace, $what is reported with the remedy', ({ text, says }) => {
  const { stdout, stderr, status } = convert(['-f', '-', '-n', 'shop'], text)
  expect([stdout, status]).toEqual(['', 64])
  expect(stderr).toContain(
    [
      'A Pipeline of a namespace may not read or write files of the node:',
      ...says,
      'Omit `-n` to get a ClusterPipeline. Or remove these parts from the configuration.',
    ].join('\n'),
  )
  expect(convert(['-f', '-'], text).status).toBe(0)
})

test('a configuration of an unknown agent is refused, and the error lists the known agents', () => {
  const { stdout, stderr, status } = convert(['-f', '-'], 'hello: world\n')
  expect([stdout, status]).toEqual(['', 64])
  expect(stderr).toContain('stdin.yaml: could not detect the agent of this configuration.')
  expect(stderr).toMatch(/--from.*vector, fluent-bit, fluentd, filebeat, alloy, promtail, otel/)
})

test.each([
  { from: 'vector', text: '[INPUT]\n    Name tail\n    Path /srv/*.log\n', found: 'Fluent Bit', flag: 'fluent-bit' },
  { from: 'fluentd', text: '[sources.in]\ntype = "file"\ninclude = ["/a"]\n', found: 'Vector', flag: 'vector' },
])('a configuration of $found is refused with --from $from', ({ from, text, found, flag }) => {
  const { stdout, stderr, status } = convert(['-f', '-', '--from', from], text)
  expect([stdout, status]).toEqual(['', 64])
  expect(stderr).toContain(`; found one of ${found}. Omit the flag, or use \`--from ${flag}\`.`)
})

test.each([
  { from: 'alloy', text: 'logging {\n', place: 'stdin.yaml:2:1' },
  { from: 'promtail', text: 'clients: []\nscrape_configs: [\n- a: b\n', place: 'stdin.yaml:' },
  { from: 'otel', text: 'receivers:\n  filelog: { include: [a }\n', place: 'stdin.yaml:2:1' },
  { from: 'fluentd', text: '<source>\n  path "/a.log\n</source>\n', place: 'stdin.yaml:2:1' },
  { from: 'fluent-bit', text: '[INPUT]\n    Name tail\n[OUTPUT\n', place: 'stdin.toml:3:1' },
])('a syntax error in a configuration of $from is an error with exit code 78', ({ from, text, place }) => {
  const { stderr, status } = convert(['-f', '-', '--from', from], text)
  expect(stderr).toMatch(/^error: /m)
  expect(stderr).toContain(`--> ${place}`)
  expect(status).toBe(78)
})

test('a text that is not valid YAML is refused with its first mistake', () => {
  const { stdout, stderr, status } = convert(['-f', '-'], 'exporters:\n  es: { password: {{x} }\nservice: {}\n')
  expect([stdout, status]).toEqual(['', 64])
  expect(stderr).toContain('stdin.yaml:2:7: ')
  expect(stderr.split('\n').length).toBeLessThan(4)
})

test('a Fluent Bit configuration with an included file becomes a ClusterPipeline, and gaps name the file and line', async () => {
  const file = join(folder, 'fluent-bit.conf')
  const more = join(folder, 'outputs.conf')
  writeFileSync(file, '[INPUT]\n    Name tail\n    Path /srv/*.log\n@INCLUDE out*.conf\n')
  writeFileSync(more, '[OUTPUT]\n    Name kafka\n    Match *\n')

  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    '--conditions=source',
    main,
    'convert',
    '-f',
    file,
  ])

  expect(stderr).toContain('Reading it as a configuration of Fluent Bit')
  expect(parse(stdout)).toMatchObject({
    kind: 'ClusterPipeline',
    spec: { sources: [{ type: 'file' }], sinks: [{ type: 'blackhole' }] },
  })
  expect(stdout).toContain('# GAP: the output `kafka`')
  expect(stderr).toContain(`${more}:1`)
  expect(stderr).toContain('there is no sink for the Kafka protocol')
})
