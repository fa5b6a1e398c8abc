import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { isFailure } from '../remap/function.ts'
import { compileProgram } from '../remap/program.ts'
import { valueText } from '../remap/text.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Topology } from '../topology/run.ts'
import { loadConfig, loadConfigObject } from './load.ts'

let dir: string

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'penstock-enrichment-'))
})

afterAll(() => rmSync(dir, { recursive: true }))

function write(name: string, text: string): string {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}

test('a table that cannot be read is reported with its place', async () => {
  const path = write(
    'a.yaml',
    `enrichment_tables:
  codes: {type: file, file: {path: ${dir}/none.csv}}
sources: {in: {type: demo_logs, format: json}}
sinks: {out: {type: blackhole, inputs: [in]}}
`,
  )
  const result = await loadConfig({ paths: [path], env: {} })
  expect(result).toMatchObject({
    ok: false,
    problems: [{ path: 'enrichment_tables.codes', line: 2, message: expect.stringContaining('does not exist') }],
  })
})

test('a table in its own file', async () => {
  mkdirSync(join(dir, 'd', 'enrichment_tables'), { recursive: true })
  write(
    'd/main.yaml',
    'sources: {in: {type: demo_logs, format: json}}\nsinks: {out: {type: blackhole, inputs: [in]}}\n',
  )
  write('d/enrichment_tables/codes.yaml', `type: file\nfile: {path: ${write('codes.csv', 'id,text\n1,one\n')}}\n`)
  const result = await loadConfig({ dirs: [join(dir, 'd')], env: {} })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  const { tables } = result.config.globals
  const compiled = compileProgram('get_enrichment_table_record!("codes", {"id": "1"}).text', {
    keepResult: true,
    table: (name) => tables?.find(name),
  })
  if (!compiled.ok) throw new Error(compiled.rendered)
  const found = compiled.program.run({}, noMetadata, true)
  expect(isFailure(found) ? found.message : valueText(found)).toBe('"one"')
  expect(result.config.files).toContain(join(dir, 'codes.csv'))
})

test('events fill a memory table that programs read', async () => {
  const path = write(
    'memory.yaml',
    `enrichment_tables: {seen: {type: memory, inputs: [keys]}}
sources: {in: {type: file, include: [${write('in.log', 'blue\n')}], read_to_end: true}}
transforms: {keys: {type: remap, inputs: [in], source: '. = {"colour": .message}'}}
sinks: {out: {type: blackhole, inputs: [in]}}
data_dir: ${dir}
`,
  )
  const result = await loadConfig({ paths: [path], env: {} })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  const topology = await Topology.start(result.config, { logger: silentLogger, metrics: new Metrics() })
  await topology.ended
  await topology.stop(undefined)
  expect(result.config.globals.tables?.find('seen')?.find({ key: 'colour' }, ['value'], true, undefined)).toEqual([
    { value: 'blue' },
  ])
})

test('a table cannot have the same name as a component', () => {
  const result = loadConfigObject({
    enrichment_tables: { in: { type: 'memory', inputs: ['in'] } },
    sources: { in: { type: 'demo_logs', format: 'json' } },
    sinks: { out: { type: 'blackhole', inputs: ['in'] } },
  })
  expect(result).toMatchObject({
    ok: false,
    problems: [{ message: 'the table "in" has the same name as a component' }],
  })
})

test.each([
  ['remap', { source: '.x = find_enrichment_table_records("code", {"id": 1})' }],
  ['filter', { condition: 'length(find_enrichment_table_records("code", {"id": 1})) > 0' }],
])('a program that names a missing table does not compile (%s)', (type, options) => {
  const result = loadConfigObject({
    enrichment_tables: { codes: { type: 'memory', inputs: ['in'] } },
    sources: { in: { type: 'demo_logs', format: 'json' } },
    transforms: { t: { type, inputs: ['in'], ...options } },
    sinks: { out: { type: 'blackhole', inputs: ['t'] } },
  })
  const rendered = result.ok ? '' : result.problems.map((problem) => problem.rendered).join('')
  expect(rendered).toContain('there is no enrichment table "code"; did you mean "codes"?')
})
