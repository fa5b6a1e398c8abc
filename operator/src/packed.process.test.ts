// The operator and the command as in their image: packed into few files. Modules that are loaded late, or started as a thread or a
// process, must be found from there too, and excluded modules must not be needed.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { isBuiltin } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pack } from '@penstock/agent/tools/pack'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Pipeline } from './api/pipeline.ts'
import { CompilePool } from './compile/pool.ts'

const quickstart = resolve(import.meta.dirname, '../../examples/quickstart')
let folder = ''
let packed = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-packed-'))
  packed = pack(folder, 'operator')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

const node = (...args: readonly string[]): Promise<Outcome> =>
  new Promise((done) => {
    execFile(process.execPath, args, { cwd: folder }, (error, out, err) =>
      done({ code: error === null ? 0 : Number(error.code), out, err }),
    )
  })

const penstock = (...args: readonly string[]) => node(join(packed, 'main.js'), ...args)

const scripts = () => readdirSync(packed).filter((name) => name.endsWith('.js'))

/** A kubeconfig for a server that speaks plain HTTP. */
async function kubeconfigFor(
  server: ReturnType<typeof createServer>,
  user: object = { token: 'secret' },
): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const file = join(folder, 'kubeconfig')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    clusters: [{ name: 'one', cluster: { server: address, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'one', user }],
  }
  await writeFile(file, JSON.stringify(config))
  return file
}

test('every command exists', async () => {
  const names = (await penstock('--help')).out
    .split('\n')
    .flatMap((line) => /^ {2}([a-z]\S*) +\S/.exec(line)?.[1] ?? [])
  expect(names).toEqual(expect.arrayContaining(['operator', 'webhook', 'cleanup', 'lint', 'run']))
  for (const name of names) {
    const { code, out, err } = await penstock(name, '--help')
    expect({ name, code, err }).toEqual({ name, code: 0, err: '' })
    expect(out).toMatch(new RegExp(`^Usage: penstock (?:${name}|operator)\\b`))
  }
})

test('no part uses an import statement for a module of Node, which would load all of the module', () => {
  for (const file of scripts()) {
    const code = readFileSync(join(packed, file), 'utf8')
    const from = [...code.matchAll(/(?:^|[;}])import\b[^;()]*?["'`]([^"'`]+)["'`]/gm)].map(([, name = '']) => name)
    expect(from.filter(isBuiltin), file).toEqual([])
  }
})

test('no part contains a letter beyond Latin-1, which would double its memory', () => {
  for (const file of scripts()) {
    expect(/[^\0-\xff]/.exec(readFileSync(join(packed, file), 'utf8'))?.[0], file).toBeUndefined()
  }
})

/** Files that are started as a process or a thread. */
const entries = ['main.js', 'agent.js', 'worker.js', 'leader-worker.js', 'remote-worker.js', 'network-worker.js']

test('contains the files that its parts start', () => {
  const beside = /\(["`]([\w-]+)["`],\s*import\.meta\.url\)/g // the call is minified
  const started = scripts().flatMap((file) =>
    [...readFileSync(join(packed, file), 'utf8').matchAll(beside)].map(([, name]) => `${name}.js`),
  )
  expect(started.toSorted()).toEqual(entries.filter((name) => name !== 'main.js').toSorted())
  expect(scripts()).toEqual(expect.arrayContaining(entries))
})

test('loads all parts without libraries and without the client behind `WebSocket`', async () => {
  // Three parts are not loaded here. Only few commands need the client of HTTP sinks and the library for kubeconfigs that start a
  // program. The agent of `penstock run` would run as soon as it is loaded.
  const few = scripts().filter((name) => /^(?:kubeconfig-library|undici|main)-/.test(name))
  const parts = scripts().filter((name) => !entries.includes(name) && !few.includes(name))
  expect(parts.length).toBe(scripts().length - entries.length - few.length)
  const program = join(folder, 'load.mjs')
  await writeFile(
    program,
    `import { isBuiltin, registerHooks } from 'node:module'
    const foreign = []
    registerHooks({
      resolve(name, context, next) {
        if (!isBuiltin(name) && !/^[./]|^file:/.test(name)) foreign.push(name)
        return next(name, context)
      },
    })
    for (const part of ${JSON.stringify(parts)}) await import(${JSON.stringify(packed)} + '/' + part)
    const late = process.moduleLoadList.filter((name) => name.includes('undici'))
    console.log(JSON.stringify({ foreign, late }))
    process.exit()`,
  )
  const { out, err } = await node(program)
  expect(err).toBe('')
  expect(JSON.parse(out)).toEqual({ foreign: [], late: [] })
})

test('resources are compiled, tested and explained; libraries that functions load late are found', async () => {
  expect(await penstock('lint', '--own-machine', '-f', quickstart)).toMatchObject({ code: 0, err: '' })
  expect((await penstock('explain', 'parse_json')).out).toContain('parse_json')
  const program = `
    key = "0123456789abcdef0123456789abcdef"
    iv = "0123456789abcdef01234567"
    .found = [
      parse_etld!("www.shop.co.uk").etld,
      parse_user_agent!("Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0").browser.family,
      decode_snappy!(encode_snappy!("brook")),
      decrypt!(encrypt!("sluice", "XCHACHA20-POLY1305", key: key, iv: iv), "XCHACHA20-POLY1305", key: key, iv: iv),
      strip_whitespace("　weir "),
    ]`
  const pipeline = {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name: 'late', namespace: 'shop' },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs' }],
      transforms: [{ name: 'find', type: 'remap', config: { source: program } }],
      sinks: [{ name: 'out', type: 'blackhole' }],
      tests: [
        {
          name: 'all are found',
          insertAt: 'find',
          input: { log: { message: 'x' } },
          expect: [{ at: 'find', assert: '.found == ["co.uk", "Firefox", "brook", "sluice", "weir"]' }],
        },
      ],
    },
  }
  const file = join(folder, 'late.yaml')
  await writeFile(file, JSON.stringify(pipeline))
  expect(await penstock('test', '-f', file)).toMatchObject({ code: 0, err: '' })
})

test('`penstock run` starts the agent that is packed with it', async () => {
  const { code, out } = await penstock('run', '-f', quickstart, '--for', '2s', '-o', 'json')
  expect(code).toBe(0)
  expect(out).toContain('"app":"')
})

const credential =
  '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"secret"}}'
const exec = {
  apiVersion: 'client.authentication.k8s.io/v1',
  command: process.execPath,
  args: ['-e', `console.log(${JSON.stringify(credential)})`],
  interactiveMode: 'Never',
}

test.each([{ token: 'secret' }, { exec }])('a kubeconfig with %j is read, and the cluster is queried', async (user) => {
  const asked: (string | undefined)[] = []
  await using server = createServer((request, response) => {
    asked.push(request.headers.authorization)
    response.writeHead(404, { 'content-type': 'application/json' })
    response.end('{"kind":"Status","message":"the server could not find the requested resource"}')
  })
  const { code, err } = await penstock('status', '-A', '--kubeconfig', await kubeconfigFor(server, user))
  expect(code).toBe(69)
  expect(err).toContain('Is Penstock installed in this cluster?')
  expect(asked[0]).toBe('Bearer secret')
})

test('contains the helpers of the operator: a thread for the Lease and a process that compiles', async () => {
  const lease = Promise.withResolvers<string>()
  await using server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const created = request.method === 'POST' && request.url?.endsWith('/leases') === true
    if (created) lease.resolve(JSON.parse(body).spec.holderIdentity)
    response.writeHead(created ? 201 : 404, { 'content-type': 'application/json' })
    response.end(created ? body : '{"kind":"Status","message":"not found"}')
  })
  const args = ['operator', '--kubeconfig', await kubeconfigFor(server), '--http-address', '127.0.0.1:0']
  const operator: ChildProcess = spawn(process.execPath, [join(packed, 'main.js'), ...args], { stdio: 'ignore' })
  const ended = once(operator, 'exit').then(([code]) => `it ended with ${code}`)
  try {
    expect(await Promise.race([lease.promise, ended])).not.toMatch(/^it ended/)
    // The operator knows values of Secrets, so a core dump must not contain its memory.
    if (process.platform === 'linux')
      expect(Number.parseInt(readFileSync(`/proc/${operator.pid}/coredump_filter`, 'utf8'), 16)).toBe(0)
  } finally {
    operator.kill('SIGKILL')
    await ended
  }

  const source = '. = parse_json!(string!(.message))'
  const spec = {
    sources: [{ name: 'app', type: 'orchestrator_logs' }],
    transforms: [{ name: 'parse', type: 'remap', config: { source } }],
    sinks: [{ name: 'out', type: 'blackhole' }],
    tests: [
      { name: 'one', insertAt: 'parse', input: { raw: '{"a":1}' }, expect: [{ at: 'parse', assert: '.a == 1' }] },
    ],
  }
  const metadata = { name: 'checkout', namespace: 'shop', uid: 'u' }
  const pipeline = { apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline', metadata, spec } as Pipeline
  await using compiler = new CompilePool({ file: pathToFileURL(join(packed, 'worker.js')) })
  const facts = { resources: [], policy: undefined, keys: {}, apiHosts: [], clusterName: '' }
  const { accepted, tests } = await compiler.compile({ pipeline, ...facts })
  expect([accepted.status, accepted.message, tests]).toEqual(['True', '', { passed: 1, failed: 0 }])
})
