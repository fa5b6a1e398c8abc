// The modules that a packed agent loads to read pod logs and deliver them by HTTP: each library and each public module of Node is here
// with its reason. Every other module costs memory in every pod, so load it where it is used, or add it with a reason.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { fakeDestination } from './testing/destination.ts'
import { KubeApi } from './testing/kube-api.ts'
import { pack } from './tools/pack.ts'

const libraries: Readonly<Record<string, string>> = {
  pino: 'the log of the agent; the next eight are parts of it',
  '@pinojs/redact': 'pino',
  'atomic-sleep': 'pino',
  'on-exit-leak-free': 'pino',
  'pino-std-serializers': 'pino',
  'quick-format-unescaped': 'pino',
  'safe-stable-stringify': 'pino',
  'sonic-boom': 'pino',
  'thread-stream': 'pino',
  'smol-toml': 'configurations; they are parsed in one synchronous pass, whatever their form',
  undici: 'requests of sinks, with connections that can be counted and closed',
  yaml: 'configurations, and the kubeconfig',
}

const builtins: Readonly<Record<string, string>> = {
  // Modules that Node loads for its own start, for loading modules, and for those below.
  async_hooks: 'Node',
  buffer: 'Node',
  diagnostics_channel: 'Node',
  events: 'Node',
  fs: 'Node',
  path: 'Node',
  process: 'Node',
  querystring: 'Node',
  stream: 'Node',
  'stream/promises': 'Node',
  string_decoder: 'Node',
  timers: 'Node',
  url: 'Node',
  util: 'Node',
  'util/types': 'Node',
  // Modules that the agent uses in every run.
  assert: 'undici',
  crypto: 'checksums of configurations, and TLS',
  dns: 'net',
  'fs/promises': 'files of the configuration and of secrets',
  module: 'the cache of compiled code, libraries that are loaded late',
  os: 'the name of the host, and pino',
  perf_hooks: 'undici',
  'timers/promises': 'waits that a signal ends',
  v8: 'the collection after the start',
  vm: 'the collection after the start',
  worker_threads: 'pino asks whether it is in the main thread; programs with slow functions',
  // The way of the events and of pod metadata. undici loads http and http2 whatever the server speaks.
  http: 'undici',
  http2: 'the Kubernetes API',
  net: 'connections',
  tls: 'connections',
  zlib: 'compressed files, bodies and answers',
  // Loaded for a function or a source that few use; each costs less than can be measured.
  child_process: 'secrets of a command, AWS profiles; in the same packed file as sources',
  dgram: 'child_process',
}

test('an agent loads only the modules of this list, each with a reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-loaded-'))
  try {
    const packed = pack(folder, 'agent')
    await using api = await KubeApi.start()
    api.set('namespaces', { metadata: { name: 'shop' } })
    api.set('nodes', { metadata: { name: 'node-1' } })
    api.set('pods', { metadata: { name: 'web-1', namespace: 'shop', uid: 'uid-1' }, spec: { nodeName: 'node-1' } })
    await using destination = await fakeDestination(204)
    mkdirSync(join(folder, 'pods/shop_web-1_uid-1/app'), { recursive: true })
    writeFileSync(join(folder, 'pods/shop_web-1_uid-1/app/0.log'), '2026-01-01T00:00:00Z stdout F hello\n')
    writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
    const config = {
      data_dir: folder,
      sources: {
        pods: {
          type: 'orchestrator_logs',
          logs_dir: join(folder, 'pods'),
          kube_config_file: join(folder, 'kubeconfig'),
          self_node_name: 'node-1',
        },
      },
      sinks: {
        out: {
          type: 'http',
          inputs: ['pods'],
          uri: destination.url,
          encoding: { codec: 'json' },
          batch: { timeout_secs: 0.1 },
          healthcheck: false,
        },
      },
    }
    const path = join(folder, 'agent.json')
    writeFileSync(path, JSON.stringify(config))
    const file = join(folder, 'loaded.json')
    const probe = fileURLToPath(new URL('testing/loaded.ts', import.meta.url))
    const agent = spawn(process.execPath, ['--import', probe, join(packed, 'main.js'), '-q', '--config', path], {
      env: { ...process.env, PENSTOCK_LOADED_FILE: file },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const exited = new Promise((resolve) => agent.on('exit', resolve))
    try {
      await expect.poll(() => destination.requests.length).toBeGreaterThan(0)
    } finally {
      agent.kill('SIGTERM')
    }
    expect(await exited).toBe(0)

    const loaded = JSON.parse(readFileSync(file, 'utf8')) as { addresses: string[]; builtins: string[] }
    const found = new Set<string>()
    for (const address of loaded.addresses.filter((each) => each.startsWith('file:'))) {
      const name = fileURLToPath(address)
      const sources = name.startsWith(packed) ? sourcesOf(packed, name) : [name]
      for (const source of sources) {
        const library = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source)?.[1]
        if (library !== undefined) found.add(library)
      }
    }
    expect([...found].toSorted()).toEqual(Object.keys(libraries).toSorted())
    const names = loaded.builtins.filter((name) => builtinModules.includes(name) && !name.startsWith('_'))
    expect(names.toSorted()).toEqual(Object.keys(builtins).toSorted())
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** The sources that are in a packed file. */
function sourcesOf(packed: string, name: string): readonly string[] {
  try {
    const map = readFileSync(join(packed, `${basename(name)}.map`), 'utf8')
    return (JSON.parse(map) as { sources: string[] }).sources
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [] // only imports of others are in it
    throw error
  }
}
