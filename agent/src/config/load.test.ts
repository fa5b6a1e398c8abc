// Loads files as users do: to a configuration, or to problems. The expected texts are next to the files in testdata.

import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { components } from '../testing/components.ts'
import type { Config, LoadResult } from './config.ts'
import {
  type LoadObjectOptions,
  type LoadOptions,
  loadConfig as loadFiles,
  loadConfigObject as loadObject,
} from './load.ts'
import { renderProblems } from './render.ts'

const loadConfig = (options: LoadOptions) => loadFiles({ components, ...options })
const loadConfigObject = (object: unknown, options: LoadObjectOptions = {}) =>
  loadObject(object, { components, ...options })

const testdata = join(import.meta.dirname, 'testdata')
const made: string[] = []
let dir = ''

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'penstock-config-'))
  made.push(dir)
})

afterAll(() => {
  for (const each of made) rmSync(each, { recursive: true, force: true })
})

/** Writes files into the test's folder. */
async function files(contents: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(contents)) {
    await mkdir(dirname(join(dir, name)), { recursive: true })
    await writeFile(join(dir, name), text)
  }
}

/** Problems or warnings as printed, with only the last part of file paths. */
function rendered(result: LoadResult): string {
  const problems = result.ok ? result.warnings : result.problems
  return renderProblems(
    problems.map((problem) => (problem.file === undefined ? problem : { ...problem, file: basename(problem.file) })),
  )
}

function good(result: LoadResult): Config {
  if (!result.ok) throw new Error(rendered(result))
  return result.config
}

const source = 'sources: {in: {type: log_input}}'
const sink = 'sinks: {out: {type: log_output, inputs: [in], endpoint: "http://localhost", encoding: {codec: json}}}'

describe('all problems are reported together, each with its file, line and path', () => {
  const environment = { LINES: 'a\nb', LONG: 'log_input' }
  test.each(readdirSync(join(testdata, 'bad')).filter((name) => !name.endsWith('.txt')))('%s', async (name) => {
    const result = await loadConfig({ paths: [join(testdata, 'bad', name)], env: environment, checkMachine: false })

    expect(result.ok).toBe(false)
    await expect(`${rendered(result)}\n`).toMatchFileSnapshot(join(testdata, 'bad', `${name}.txt`))
  })
})

test('the three formats result in the same configuration', async () => {
  const [yaml, json, toml] = await Promise.all(
    ['same.yaml', 'same.json', 'same.toml'].map(async (name) =>
      good(await loadConfig({ paths: [join(testdata, name)], env: { HOST: 'example.org' } })),
    ),
  )

  expect({ ...json, files: [] }).toEqual({ ...yaml, files: [] })
  expect({ ...toml, files: [] }).toEqual({ ...yaml, files: [] })
  expect(yaml?.sinks.get('out')?.options['endpoint']).toBe('http://example.org')
  expect(yaml?.sinks.get('out')?.inputs).toEqual(['a_in', 'b_in', 'change.dropped'])
  expect(yaml?.transforms.get('change')?.ports).toEqual(['dropped'])
  expect(yaml?.globals.logSchema.messageKey).toBe('msg')
})

test('a format flag overrides the extension of a file', async () => {
  await files({ 'config.conf': `${source}\n${sink}` })

  expect((await loadConfig({ paths: [join(dir, 'config.conf')] })).ok).toBe(false) // read as TOML
  expect((await loadConfig({ formats: { yaml: [join(dir, 'config.conf')] } })).ok).toBe(true)
})

test('files, globs and folders of components are merged', async () => {
  await files({
    'main.yaml': 'log_schema: {host_key: node}',
    'parts/one.toml': '[log_schema]\nmessage_key = "msg"',
    'parts/two.yaml': 'healthchecks: {enabled: false}',
    'dir/base.yaml': 'timezone: UTC',
    'dir/README.md': 'not a configuration',
    'dir/.hidden.yaml': 'neither: this',
    'dir/sources/in.yaml': 'type: log_input',
    'dir/transforms/change.json': '{"type": "change", "inputs": ["in"], "source": "."}',
    'dir/sinks/out.toml': 'type = "log_output"\ninputs = ["change"]\nendpoint = "http://x"\nencoding.codec = "text"',
    'dir/tests/keeps.yaml':
      'inputs: [{insert_at: change, value: a}]\noutputs: [{extract_from: change, conditions: ["true"]}]',
  })

  const config = good(
    await loadConfig({ paths: [join(dir, 'main.yaml'), join(dir, 'parts/*')], dirs: [join(dir, 'dir')] }),
  )

  expect([...config.sources.keys(), ...config.transforms.keys(), ...config.sinks.keys()]).toEqual([
    'in',
    'change',
    'out',
  ])
  expect(config.globals.logSchema).toMatchObject({ hostKey: 'node', messageKey: 'msg' })
  expect(config.globals.healthchecks.enabled).toBe(false)
  expect(config.globals.timezone).toBe('UTC')
  expect(config.tests.map((each) => each.name)).toEqual(['keeps'])
  expect(config.files).toContain(join(dir, 'dir/sinks'))
  expect(config.files).toContain(join(dir, 'dir/sinks/out.toml'))
})

test('a contradiction between two files is a problem that names both', async () => {
  await files({
    'a.yaml': `${source}\n${sink}\nlog_schema: {host_key: a, message_key: m}`,
    'b.yaml': 'sources:\n  in: {type: log_input}\nlog_schema:\n  message_key: m\n  host_key: b',
  })

  const result = await loadConfig({ paths: [join(dir, 'a.yaml'), join(dir, 'b.yaml')] })

  expect(rendered(result).replaceAll(dir, '')).toBe(`error: More than one source with name "in".
  --> b.yaml:2:3  (sources.in)
  help: the other one is in /a.yaml

error: conflicting values for \`log_schema.host_key\`
  --> b.yaml:5:13  (log_schema.host_key)
  help: /a.yaml sets another value`)
})

test.each([
  { paths: ['gone.yaml'], message: 'cannot read the file: no such file or directory' },
  { paths: ['*.yaml'], message: 'no file matches this pattern' },
  { paths: ['binary.yaml'], message: 'the file is not UTF-8 text' },
  { paths: ['loop.yaml'], message: 'cannot read the file: its links lead in a circle' },
  { paths: [`${'a'.repeat(300)}.yaml`], message: 'cannot read the file: its name is too long' },
  { paths: ['text.txt/a.yaml'], message: 'cannot read the file: a part of its path is not a folder' },
])('$paths: $message', async ({ paths, message }) => {
  await writeFile(join(dir, 'binary.bin'), new Uint8Array([0xff, 0xfe, 0x00]))
  await files({ 'text.txt': '' })
  if (paths[0] === 'loop.yaml') symlinkSync('loop.yaml', join(dir, 'loop.yaml'))
  if (paths[0] === 'binary.yaml') await writeFile(join(dir, 'binary.yaml'), new Uint8Array([0x61, 0xff, 0xfe]))

  const result = await loadConfig({ paths: paths.map((path) => join(dir, path)) })

  expect(result.ok ? [] : result.problems.map((problem) => problem.message)).toEqual([message])
})

test.each([
  { text: '{"sources": {"in": {},}}', message: 'expected a name in double quotes, found `}`', column: 23 },
  { text: '{"sources" 1}', message: 'expected `:`, found `1`', column: 12 },
  { text: '{"a": [1, 2}', message: 'expected `,` or `]`, found `}`', column: 12 },
  { text: '{"a": tru}', message: 'expected a value, found `t`', column: 7 },
  { text: '{"a": 1} x', message: 'expected the end of the text, found `x`', column: 10 },
])('JSON $text: $message', async ({ text, message, column }) => {
  await files({ 'a.json': text })

  const result = await loadConfig({ paths: [join(dir, 'a.json')] })

  expect(result.ok ? [] : result.problems).toMatchObject([{ message: `not valid JSON: ${message}`, line: 1, column }])
})

test('a file that cannot be parsed does not hide the problems of another', async () => {
  await files({ 'a.yaml': 'sources: {', 'b.yaml': 'sources: {in: {type: log_input, port: x}}\nsinks: {}' })

  const result = await loadConfig({ paths: [join(dir, 'a.yaml'), join(dir, 'b.yaml')] })

  expect(result.ok ? [] : result.problems.map((problem) => `${basename(problem.file ?? '')} ${problem.path}`)).toEqual([
    'a.yaml ',
    'b.yaml sources.in.port',
  ])
})

test('an empty configuration is invalid unless explicitly allowed', async () => {
  await files({ 'empty.yaml': '' })
  const paths = [join(dir, 'empty.yaml')]

  expect(rendered(await loadConfig({ paths }))).toBe(`error: No sources defined in the config.
  --> empty.yaml:1:1

error: No sinks defined in the config.
  --> empty.yaml:1:1`)
  expect((await loadConfig({ paths, allowEmpty: true })).ok).toBe(true)
})

test('a directory without a configuration file is the only problem', async () => {
  await files({ 'notes.md': '# Notes' })

  const result = await loadConfig({ paths: [dir] })
  expect(result.ok ? [] : result.problems.map(({ file, message }) => [file, message])).toEqual([
    [dir, 'this directory contains no .toml, .yaml, .yml or .json file'],
  ])
  expect((await loadConfig({ dirs: [dir], allowEmpty: true })).ok).toBe(true)
})

test('the data directory must exist and be writable if it is set or needed', async () => {
  await files({ 'a.yaml': `data_dir: ${join(dir, 'gone')}\n${source}\n${sink}`, file: '' })

  const gone = await loadConfig({ paths: [join(dir, 'a.yaml')] })
  expect(gone.ok ? [] : gone.problems.map((problem) => problem.message)).toEqual([
    `data_dir "${join(dir, 'gone')}" does not exist`,
  ])
  expect((await loadConfig({ paths: [join(dir, 'a.yaml')], checkMachine: false })).ok).toBe(true)
})

test('disk buffers must fit the file system', async () => {
  const disk = sink.replace('inputs', 'buffer: {type: disk, max_size: 9007199254740991}, inputs')
  await files({ 'a.yaml': `data_dir: ${dir}\n${source}\n${disk}` })

  const result = await loadConfig({ paths: [join(dir, 'a.yaml')] })

  expect(rendered(result)).toContain(
    'error: The disk buffers of "out" may use 9007199254740991 bytes, but the file system',
  )
})

test('secrets and credentials are never shown', async () => {
  const result = loadConfigObject({
    sources: { in: { type: 'log_input', proxy: { http: 'ftp://me:hunter2@proxy' } } },
    sinks: {
      out: {
        type: 'log_output',
        inputs: ['in'],
        endpoint: 'ftp://me:hunter2@host',
        api_key: ['hunter2'],
        encoding: {},
      },
      two: { type: 'log_output', inputs: ['in'], auth: { strategy: 'basic', user: 'x', password: 42_424_242 } },
    },
  })

  expect(result.ok).toBe(false)
  expect(rendered(result)).not.toMatch(/hunter2|42424242/)
})

const wildcards = [
  { inputs: ['*'], found: ['app/one', 'app/two', 'sys', 'change', 'change.dropped'] },
  { inputs: ['app/*', 'sys'], found: ['app/one', 'app/two', 'sys'] },
  { inputs: ['app/???', '*/one'], found: ['app/one', 'app/two'] },
  { inputs: ['[as]*'], found: ['app/one', 'app/two', 'sys'] },
  { inputs: ['[!as]*'], found: ['change', 'change.dropped'] },
  { inputs: ['change*'], found: ['change', 'change.dropped'] },
]

test.each(wildcards)('inputs $inputs are $found', ({ inputs, found }) => {
  const config = good(
    loadConfigObject({
      sources: { 'app/one': { type: 'log_input' }, 'app/two': { type: 'log_input' }, sys: { type: 'log_input' } },
      transforms: { change: { type: 'change', inputs: ['*'], source: '.', reroute_dropped: true } },
      sinks: { out: { type: 'log_output', inputs, endpoint: 'http://x', encoding: { codec: 'text' } } },
    }),
  )

  expect(config.sinks.get('out')?.inputs).toEqual(found)
  // A wildcard never matches the component itself.
  expect(config.transforms.get('change')?.inputs).toEqual(['app/one', 'app/two', 'sys'])
})

const acknowledgementCases = [
  { global: undefined, first: undefined, second: undefined, waits: false },
  { global: true, first: undefined, second: undefined, waits: true },
  { global: { enabled: true }, first: false, second: { enabled: false }, waits: false },
  { global: undefined, first: undefined, second: { enabled: true }, waits: true },
]

test.each(acknowledgementCases)('global $global, sinks $first and $second: the source waits: $waits', (given) => {
  const out = { type: 'log_output', inputs: ['change'], endpoint: 'http://x', encoding: { codec: 'text' } }
  const config = good(
    loadConfigObject({
      ...(given.global === undefined ? {} : { acknowledgements: given.global }),
      sources: { in: { type: 'log_input' } },
      transforms: { change: { type: 'change', inputs: ['in'], source: '.' } },
      sinks: {
        first: { ...out, ...(given.first === undefined ? {} : { acknowledgements: given.first }) },
        second: { ...out, ...(given.second === undefined ? {} : { acknowledgements: given.second }) },
      },
    }),
  )

  expect(config.sources.get('in')?.acknowledgements).toBe(given.waits)
})

test('a configuration with warnings is usable', () => {
  const result = loadConfigObject({
    sources: {
      in: { type: 'old_log_input', old_port: 1, acknowledgements: { enabled: true } },
      also: { type: 'old_log_input' },
      nums: { type: 'metric_input' },
    },
    sinks: {
      out: { type: 'log_output', inputs: ['in'], endpoint: 'http://x', encoding: { codec: 'text' } },
      measured: { type: 'metric_output', inputs: ['nums'], acknowledgements: true },
    },
    transforms: {},
  })

  expect(result.ok).toBe(true)
  expect(rendered(result)).toBe(`info: \`old_log_input\` is read as \`log_input\`
  --> sources.in.type

warning: \`old_port\` is deprecated
  --> sources.in.old_port
  help: Use \`port\`.

warning: \`acknowledgements\` is deprecated
  --> sources.in.acknowledgements
  help: Set \`acknowledgements\` on a sink, or set the global option.

warning: Source "also" has no consumers
  --> sources.also

warning: Source has acknowledgements enabled by a sink, but acknowledgements are not supported by this source. Silent data loss could occur.
  --> sources.nums`)
})

test('proxies of a component override the global ones, which override the environment', () => {
  const config = good(
    loadConfigObject(
      {
        proxy: { https: 'http://global:3128', no_proxy: ['internal'] },
        sources: { in: { type: 'log_input', proxy: { no_proxy: ['here'] } } },
        sinks: {
          out: {
            type: 'log_output',
            inputs: ['in'],
            endpoint: 'http://x',
            encoding: { codec: 'text' },
            proxy: { enabled: false, https: 'http://own:3128' },
          },
        },
      },
      { env: { HTTP_PROXY: 'http://upper:1', http_proxy: 'http://lower:1', NO_PROXY: 'a,b' } },
    ),
  )

  expect(config.globals.proxy).toEqual({
    enabled: true,
    http: 'http://lower:1',
    https: 'http://global:3128',
    no_proxy: ['internal'],
  })
  expect(config.sources.get('in')?.proxy.no_proxy).toEqual(['here'])
  expect(config.sinks.get('out')?.proxy).toMatchObject({
    enabled: false,
    http: 'http://lower:1',
    https: 'http://own:3128',
  })
})

test('a component can revert proxy settings of the agent, also with `enabled: true` and with an empty list', () => {
  const config = good(
    loadConfigObject({
      proxy: { enabled: false, no_proxy: ['internal'] },
      sources: { in: { type: 'log_input', proxy: { enabled: true, no_proxy: [] } } },
      sinks: { out: { type: 'log_output', inputs: ['in'], endpoint: 'http://x', encoding: { codec: 'text' } } },
    }),
  )

  expect(config.sources.get('in')?.proxy).toMatchObject({ enabled: true, no_proxy: [] })
  expect(config.sinks.get('out')?.proxy).toMatchObject({ enabled: false, no_proxy: ['internal'] })
})

test('fingerprints show changes, but not the order of keys', () => {
  const base = { type: 'log_output', inputs: ['in'], endpoint: 'http://x', encoding: { codec: 'text' } }
  const load = (out: object, extra: object = {}) =>
    good(loadConfigObject({ ...extra, sources: { in: { type: 'log_input' } }, sinks: { out } }))
  const before = load(base)
  const reordered = load(Object.fromEntries(Object.entries(base).toReversed()))
  const changed = load({ ...base, endpoint: 'http://y' }, { timezone: 'UTC' })

  expect(reordered.sinks.get('out')?.fingerprint).toBe(before.sinks.get('out')?.fingerprint)
  expect(changed.sinks.get('out')?.fingerprint).not.toBe(before.sinks.get('out')?.fingerprint)
  expect(changed.sinks.get('out')?.bufferFingerprint).toBe(before.sinks.get('out')?.bufferFingerprint)
  expect(changed.sources.get('in')?.fingerprint).toBe(before.sources.get('in')?.fingerprint)
  expect([...changed.globalFingerprints.keys()]).toEqual(['timezone'])
})
