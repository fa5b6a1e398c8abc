// `penstock run --watch`: each file change starts a new run, errors wait for a correction, and a signal ends it.

import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-watch-'))
afterAll(() => rmSync(folder, { recursive: true }))

const resources = join(folder, 'resources')
const input = join(folder, 'input.log')

function writePipeline(program: string): void {
  const text = `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: watched, namespace: shop }
spec:
  sources: [{ name: pods, type: orchestrator_logs, config: { metadata: lean } }]
  transforms: [{ name: change, type: remap, config: { source: '${program}' } }]
  sinks: [{ name: out, type: console, config: { encoding: { codec: text } } }]
`
  writeFileSync(`${resources}.yaml`, text)
}

test('a run follows the changes of its files', async () => {
  writePipeline('.message = "one"')
  writeFileSync(input, '2026-11-23T09:00:00Z x\n')
  const args = ['run', `${resources}.yaml`, '--input', input, '--watch']
  const command = spawn(process.execPath, ['--conditions=source', main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  const { promise: ended, resolve: end } = Promise.withResolvers<number | null>()
  command.on('close', end)
  let heard = () => {}
  for (const stream of [command.stdout, command.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      printed += text
      heard()
    })
  }
  /** The output until a text appears and the run waits for the next change. */
  const until = async (text: string): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    void ended.then((code) => reject(new Error(`ended with ${code}:\n${printed}`)))
    heard = () => {
      const at = printed.indexOf(text)
      if (at >= 0 && printed.includes('Waiting for a change', at)) resolve()
    }
    heard()
    await promise
    const before = printed
    printed = ''
    return before
  }
  try {
    expect(await until(' one\n')).toContain('delivered 1 (')

    writePipeline('.message = two')
    expect(await until('call to undefined variable')).toContain('The files have changed.')

    writePipeline('.message = "three"')
    await until(' three\n')

    writeFileSync(input, '2026-11-23T09:00:00Z x\n2026-11-23T09:00:01Z y\n')
    expect(await until(' three\n')).toContain('delivered 2 (')

    command.kill('SIGTERM')
    expect(await ended).toBe(0)
  } finally {
    command.kill('SIGKILL')
  }
})

test('a change ends a run that continues', async () => {
  writePipeline('.message = "one"')
  const args = ['run', `${resources}.yaml`, '--watch', '-o', 'json']
  const command = spawn(process.execPath, ['--conditions=source', main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const { promise: ended, resolve: end } = Promise.withResolvers<number | null>()
  command.on('close', end)
  let printed = ''
  command.stderr.setEncoding('utf8').on('data', (text) => {
    printed += text
  })
  try {
    let isChanged = false
    for await (const text of command.stdout.setEncoding('utf8')) {
      if (!isChanged && text.includes('one')) writePipeline('.message = "two"')
      if (text.includes('one')) isChanged = true
      if (text.includes('two')) command.kill('SIGTERM')
    }
    expect([isChanged, await ended]).toEqual([true, 0])
    expect(printed).toContain('Then change the files: it restarts automatically.')
    expect(printed).not.toContain('and start again')
  } finally {
    command.kill('SIGKILL')
  }
})

test.each([
  ['-', '--watch'],
  [`${resources}.yaml`, '--input', '-', '--watch'],
])('standard input is not watched: %s %s', (...args) => {
  const { status, stderr } = spawnSync(process.execPath, ['--conditions=source', main, 'run', ...args], {
    encoding: 'utf8',
    input: '',
  })
  expect(status).toBe(64)
  expect(stderr).toContain('`--watch` needs files')
})

test.each([
  { ends: 'has read its input', more: ['--input', input] },
  { ends: 'continues', more: [] },
])('--for ends the watch, whether the run $ends', ({ more }) => {
  writePipeline('.message = "one"')
  writeFileSync(input, '2026-11-23T09:00:00Z x\n')
  const args = [
    '--conditions=source',
    main,
    'run',
    `${resources}.yaml`,
    ...more,
    '--watch',
    '--for',
    '4s',
    '-o',
    'json',
  ]
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, expect.stringMatching(/^In \d/m)])
})
