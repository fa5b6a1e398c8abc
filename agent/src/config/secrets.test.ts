// Secrets from each kind of backend reach the options of a component; unavailable secrets are reported.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { components } from '../testing/components.ts'
import { loadConfig } from './load.ts'

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'penstock-secrets-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const config = (secret: string, apiKey: string, endpoint = 'http://x') => `
secret: ${secret}
sources: {in: {type: log_input}}
sinks:
  out:
    type: log_output
    inputs: [in]
    endpoint: ${endpoint}
    api_key: ${apiKey}
    encoding: {codec: text}
`

async function load(text: string, checkMachine = true) {
  writeFileSync(join(dir, 'config.yaml'), text)
  return loadConfig({ components, paths: [join(dir, 'config.yaml')], env: {}, checkMachine })
}

const sharp = 'p"\'ä\n$A: #?&'

/** A command that returns secrets from a table, and an error for the key `refused`. */
function command(): string {
  const script = join(dir, 'secrets.cjs')
  writeFileSync(
    script,
    `let text = ''
process.stdin.on('data', (part) => (text += part)).on('end', () => {
  const { version, secrets } = JSON.parse(text)
  const known = { a: ${JSON.stringify(sharp)}, version }
  const answer = Object.fromEntries(secrets.map((key) => [key, { value: known[key] ?? null, error: key === 'refused' ? 'not yours' : null }]))
  console.log(JSON.stringify(answer))
})`,
  )
  return `{type: exec, command: [${JSON.stringify(process.execPath)}, ${JSON.stringify(script)}]}`
}

test('a command, a file and a directory can supply secrets', async () => {
  writeFileSync(join(dir, 'secrets.json'), JSON.stringify({ a: sharp, 'b/c.d-e': 'nested' }))
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets', 'a'), `${sharp}\n`)
  const file = `{type: file, path: ${join(dir, 'secrets.json')}}`
  const folder = `{type: directory, path: ${join(dir, 'secrets')}, remove_trailing_whitespace: true}`

  for (const backend of [command(), file, folder]) {
    const result = await load(config(`{store: ${backend}}`, '"x-SECRET[store.a]"', '"http://me:SECRET[store.a|uri]@x"'))
    expect(result.ok && result.config.sinks.get('out')?.options['api_key']).toBe(`x-${sharp}`)
    expect(result.ok && result.config.sinks.get('out')?.options['endpoint']).toBe(
      `http://me:${encodeURIComponent(sharp)}@x`,
    )
  }
  const result = await load(config(`{store: ${file}}`, '"SECRET[store.b/c.d-e]"'))
  expect(result.ok && result.config.sinks.get('out')?.options['api_key']).toBe('nested')
  // A change of the secrets file must cause a reload.
  expect(result.ok && result.config.files).toContain(join(dir, 'secrets.json'))
})

test('a new secret changes the fingerprint of a component', async () => {
  const secrets = join(dir, 'secrets.json')
  const text = config(`{store: {type: file, path: ${secrets}}}`, '"SECRET[store.a]"')
  writeFileSync(secrets, '{"a": "one"}')
  const first = await load(text)
  writeFileSync(secrets, '{"a": "two"}')
  const second = await load(text)

  const print = (result: typeof first) => (result.ok ? result.config.sinks.get('out')?.fingerprint : 'failed')
  expect(print(second)).not.toBe(print(first))
})

test.each([
  { key: 'SECRET[stor.a]', message: 'unknown secret backend `stor`, expected `store`' },
  { key: 'SECRET[store.gone]', message: 'secret "store.gone" is not available: the secret does not exist' },
  { key: 'SECRET[store.refused]', message: 'secret "store.refused" is not available: not yours' },
])('$key: $message', async ({ key, message }) => {
  const result = await load(config(`{store: ${command()}}`, JSON.stringify(key)))

  expect(result.ok ? [] : result.problems).toMatchObject([{ message, line: 9, path: 'sinks.out.api_key' }])
})

test.each([
  { backend: () => `{type: file, path: ${join(dir, 'gone')}}`, reason: /gone" does not exist$/ },
  {
    backend: () => {
      writeFileSync(join(dir, 'broken'), '{"a": "hunter2"')
      return `{type: file, path: ${join(dir, 'broken')}}`
    },
    reason: /broken" is not valid JSON$/,
  },
  { backend: () => `{type: directory, path: ${dir}}`, reason: /a" does not exist$/ },
  {
    backend: () => '{type: exec, command: [/nonexistent/command]}',
    reason: /"\/nonexistent\/command" cannot be run: ENOENT$/,
  },
  { backend: () => '{type: exec, command: ["false"]}', reason: /"false" failed with exit code 1$/ },
  {
    backend: () => '{type: exec, command: [sleep, "60"], timeout: 0.05}',
    reason: /did not finish within 0.05 seconds$/,
  },
])('a backend that fails is reported with its reason: $reason', async ({ backend, reason }) => {
  const result = await load(config(`{store: ${backend()}}`, '"SECRET[store.a]"'))

  expect(result.ok ? [] : result.problems.map((problem) => problem.message)).toEqual([expect.stringMatching(reason)])
  expect(JSON.stringify(result)).not.toContain('hunter2')
})

test('a key cannot lead out of its directory', async () => {
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'other'), 'x')
  const result = await load(
    config(`{store: {type: directory, path: ${join(dir, 'secrets')}}}`, '"SECRET[store.../other]"'),
  )

  expect(result.ok ? [] : result.problems.map((problem) => problem.message)).toEqual([
    'secret "store.../other" is not available: the key points outside the directory',
  ])
})

test('a check without `checkMachine` reads no secrets', async () => {
  const backend = `{store: {type: exec, command: ["false"]}}`
  const result = await load(config(backend, '"SECRET[store.a]"', '"http://me:SECRET[store.a]@x"'), false)

  expect(result.ok).toBe(true)
})
