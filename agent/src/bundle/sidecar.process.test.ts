// The real process beside an application: one folder is the pod's volume, another the mounted bundle.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bundleFiles, project, type TestBundle } from '../testing/bundle.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-sidecar-'))
  for (const name of ['bundle', 'secrets', 'data', 'logs', 'other']) mkdirSync(join(folder, name))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const read = (name: string) => {
  const path = join(folder, `${name}.out`)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

/** A pipeline that writes its events to a file; `include` may be omitted, as in a resource. */
const reader = (name: string, include?: readonly string[]): TestBundle => ({
  pipelines: { [`shop/${name}`]: { uid: name, generation: 1, hash: `sha256:${name}` } },
  sources: { [`shop/${name}/app`]: { type: 'file', ...(include === undefined ? {} : { include }) } },
  sinks: {
    [`shop/${name}/out`]: {
      type: 'file',
      inputs: [`shop/${name}/app`],
      path: join(folder, `${name}.out`),
      encoding: { codec: 'text' },
    },
  },
})

function start(args: readonly string[], ...bundles: readonly TestBundle[]) {
  const { files } = bundleFiles({
    pipelines: Object.assign({}, ...bundles.map((bundle) => bundle.pipelines)),
    sources: Object.assign({}, ...bundles.map((bundle) => bundle.sources)),
    sinks: Object.assign({}, ...bundles.map((bundle) => bundle.sinks)),
  })
  project(join(folder, 'secrets'), {})
  project(join(folder, 'bundle'), files)
  const child = spawn(
    process.execPath,
    [
      ...['--conditions=source', main, '--bundle', join(folder, 'bundle'), '--secrets', join(folder, 'secrets')],
      ...['--data-dir', join(folder, 'data'), '--api-address', '', '--log-volume', join(folder, 'logs'), ...args],
    ],
    { env: { ...process.env, AGENT_SELF_NODE_NAME: 'node-1', POD_NAME: 'import', POD_NAMESPACE: 'shop' } },
  )
  let output = ''
  child.stderr.on('data', (text) => {
    output += text
  })
  const closed = once(child, 'close')
  return {
    output: () => output,
    async stop() {
      child.kill('SIGTERM')
      const [code] = await closed
      return code
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 50 })

test('delivers everything that is written before the end, also from a file that was not discovered yet', async () => {
  const logs = join(folder, 'logs')
  await using agent = start(['--log-paths', `${logs}/*.log`], reader('files'))
  appendFileSync(join(logs, 'app.log'), 'first\n')
  await eventually(() => expect(read('files')).toEqual(['first']))
  appendFileSync(join(logs, 'app.log'), 'last\n')
  appendFileSync(join(logs, 'new.log'), 'of another file\n')
  expect(await agent.stop()).toBe(0)
  expect(read('files').toSorted()).toEqual(['first', 'last', 'of another file'])
})

test('a pod gets the pipelines that it names', async () => {
  const logs = join(folder, 'logs')
  await using agent = start(['--log-paths', `${logs}/*.log`, '--pipelines', 'one'], reader('one'), reader('two'))
  appendFileSync(join(logs, 'app.log'), 'line\n')
  await eventually(() => expect(read('one')).toEqual(['line']))
  expect(await agent.stop()).toBe(0)
  expect(read('two')).toEqual([])
})

test.each([
  ['outside of the volume', (root: string) => [`${root}/other/*.log`]],
  ['outside by a detour', (root: string) => [`${root}/logs/../other/*.log`]],
])('a source that reads %s is refused, and others run', async (_, include) => {
  const logs = join(folder, 'logs')
  appendFileSync(join(folder, 'other', 'secret.log'), 'secret\n')
  await using agent = start(['--log-paths', `${logs}/*.log`], reader('bad', include(folder)), reader('good'))
  appendFileSync(join(logs, 'app.log'), 'line\n')
  await eventually(() => expect(read('good')).toEqual(['line']))
  expect(agent.output()).toContain('must stay inside')
  expect(await agent.stop()).toBe(0)
  expect(read('bad')).toEqual([])
})

test('a link out of the volume is not followed', async () => {
  const logs = join(folder, 'logs')
  appendFileSync(join(folder, 'other', 'secret.log'), 'secret\n')
  symlinkSync(join(folder, 'other', 'secret.log'), join(logs, 'a.log'))
  await using agent = start(['--log-paths', `${logs}/*.log`], reader('files'))
  appendFileSync(join(logs, 'b.log'), 'line\n')
  await eventually(() => expect(read('files')).toEqual(['line']))
  await eventually(() => expect(agent.output()).toContain('outside_of_volume'))
  expect(await agent.stop()).toBe(0)
  expect(read('files')).toEqual(['line'])
})
