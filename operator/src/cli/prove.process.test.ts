// `convert --prove` as people use it: an old configuration, recorded lines, and what the old agent made of them.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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

test('a Pipeline that makes the same events is proved, and the Pipeline is printed', async () => {
  const old = '{"date":1.5,"level":"info","n":1}\n{"date":1.5,"level":"warn","n":12345678901234567}\n'
  const against = file('same.ndjson', old)
  const { code, out, err } = await convert('-f', fluentBit, '--prove', lines, '--against', against, '--ignore', '.date')
  expect(err).toContain('The old agent made 2 events, the Pipeline 2 events of the same lines; 2 are equal.')
  expect(code).toBe(0)
  expect(parse(out)).toMatchObject({ kind: 'ClusterPipeline' })
})

test('what differs is named by field, with the first example, and events without a counterpart are shown', async () => {
  const old = '[{"level":"info","n":"1"},{"level":"warn","n":12345678901234568},{"log":"lost"}]'
  const against = file('other.json', old)
  const { code, err } = await convert('-f', fluentBit, '--prove', lines, '--against', against, '--ignore', '.date')
  expect(code).toBe(1)
  expect(err).toContain('  .n: another type, 1 time: "1" -> 1 (first in event 1 of the old agent, 1 of the Pipeline)\n')
  expect(err).toContain('"12345678901234568" -> "12345678901234567"')
  expect(err).toContain('Only the old agent made 1 event:\n  event 3: {"log":"lost"}')
})

test('of several sinks one is compared', async () => {
  const against = file(
    'vector.ndjson',
    '{"level":"info","n":1}\n{"level":"debug"}\n{"level":"warn","n":12345678901234567}\n',
  )
  const words = ['-f', vector, '--cluster', '--prove', lines, '--against', against]
  const none = await convert(...words)
  expect(none.err).toContain('Choose the sink to compare by `--sink`: the Pipeline has out, all.')
  expect(none.code).toBe(64)
  const other = await convert(...words, '--sink', 'gone')
  expect(other.err).toContain('The Pipeline has no sink `gone`; its sinks are out, all.')
  const one = await convert(...words, '--sink', 'out')
  expect(one.err).toContain('3 are equal.')
  expect(one.code).toBe(0)
})

test.each([
  ['output is missing', ['--prove', lines], '`--prove` needs `--against OUTPUT`'],
  ['sample is missing', ['--ignore', '.a'], '`--ignore` needs `--prove SAMPLE`.'],
  ['sample does not exist', ['--prove', join(folder, 'gone.log'), '--against', lines], 'gone.log" cannot be read'],
  ['output is no JSON', ['--prove', lines, '--against', file('bad.ndjson', '{}\n{"a":\n')], 'bad.ndjson:2 is not JSON'],
  [
    'output is no event',
    ['--prove', lines, '--against', file('no.ndjson', '{}\n7\n')],
    'no.ndjson:2 holds 7, which is no event',
  ],
])('an error says that the %s', async (_, words, message) => {
  const { code, err } = await convert('-f', fluentBit, ...words)
  expect(err).toContain(message)
  expect(code).toBe(64)
})
