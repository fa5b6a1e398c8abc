// All output arrives, however long it is and however slowly a pipe reads it.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-output-'))
afterAll(() => rmSync(folder, { recursive: true }))

function configuration(file: string, condition: string, count = 1500, tested = 0): string {
  const names = Array.from({ length: count }, (_, index) => `transform_number_${index}`)
  const path = join(folder, file)
  const transforms = Object.fromEntries(
    names.map((name, index) => [name, { type: 'filter', inputs: [names[index - 1] ?? 'in'], condition }]),
  )
  const sinks = { out: { type: 'blackhole', inputs: [names.at(-1)] } }
  const tests = names.slice(0, tested).map((name) => ({
    name: `a long name of the test of ${name} ${'x'.repeat(2000)}`,
    inputs: [{ insert_at: name, type: 'log', log_fields: { a: 1 } }],
    outputs: [{ extract_from: name, conditions: [{ type: 'remap', source: '.a == 2' }] }],
  }))
  writeFileSync(path, JSON.stringify({ sources: { in: { type: 'stdin' } }, transforms, sinks, tests }))
  return path
}

const lines = join(folder, 'lines.ndjson')
writeFileSync(lines, '{"a":2}\n'.repeat(60_000))
const fine = configuration('fine.json', '.a == 1')
const tested = configuration('tested.json', '.a == 1', 100, 100)
const wrong = configuration('wrong.json', '.a ==')

test.each([
  { args: ['generate', '--schema'] },
  { args: ['remap', '. = {"a": 1}', '-o', '-i', lines] },
  { args: ['remap', '.b = 1', '--typed', '-i', lines] },
  { args: ['graph', '-c', fine] },
  { args: ['test', tested] },
  { args: ['validate', wrong] },
])('`$args.0 …` prints everything, even to a slow reader', ({ args }) => {
  const quoted = [process.execPath, '--conditions=source', main, ...args].map((word) => `'${word}'`).join(' ')
  const shell = (reader: string) =>
    spawnSync('sh', ['-c', `${quoted} 2>/dev/null ${reader}`], { encoding: 'utf8', maxBuffer: 64 << 20 }).stdout
  const whole = shell(`> ${join(folder, 'whole')}; cat ${join(folder, 'whole')}`)
  expect(whole.length).toBeGreaterThan(128 << 10)
  // One byte at a time: the command has finished writing long before the pipe has read everything.
  expect(shell('| dd bs=1 status=none').length).toBe(whole.length)
})

test('a time zone that does not exist is an error, not UTC', () => {
  const remap = (zone: string) =>
    spawnSync(process.execPath, ['--conditions=source', main, 'remap', '1', '-tz', zone], {
      input: '{}',
      encoding: 'utf8',
    })
  expect(remap('Mars/X')).toMatchObject({ status: 64, stdout: '' })
  expect(remap('Mars/X').stderr).toContain('--timezone is "Mars/X"; it must be a name of the time zone database')
  expect(remap('Europe/Paris')).toMatchObject({ status: 0, stdout: '1\n' })
})

test.each([
  ['validate', wrong],
  ['graph', '-c', wrong],
  ['test', wrong],
])('problems of `%s` have colours on request', (...args) => {
  const outcomeOf = (...flags: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--conditions=source', main, ...args, ...flags], {
      encoding: 'utf8',
      maxBuffer: 64 << 20,
    })
    return { status, isColoured: `${stdout}${stderr}`.includes('\u001b[31m') }
  }
  expect(outcomeOf()).toEqual({ status: 78, isColoured: false })
  expect(outcomeOf('--color', 'never')).toEqual({ status: 78, isColoured: false })
  expect(outcomeOf('--color', 'always')).toEqual({ status: 78, isColoured: true })
  expect(outcomeOf('--color', 'blue')).toEqual({ status: 64, isColoured: false })
})
