// An agent with a bundle of restricted pipelines: one hostile tenant of each kind, and victims, whose lines must keep arriving. The agent
// generates lines itself (`demo_logs`), so no cluster is needed. Everything stays on loopback.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'
import { bundleFiles, project, type TestBundle } from '@penstock/agent/testing/bundle'
import { freePort } from '@penstock/agent/testing/free-port'
import { until } from '../command.ts'
import { programOf } from '../program.ts'

/** The victims' lines at the destination, and its other requests. */
export class Destination implements AsyncDisposable {
  readonly #server: Server
  readonly #bomb: Buffer
  /** Delays in milliseconds between the time of a victim's line and its arrival. */
  readonly lags: number[] = []
  /** The ids of victims' lines in order of arrival. */
  readonly ids: string[] = []
  /** Number of requests by path. */
  readonly requests = new Map<string, number>()
  readonly authorizations: string[] = []

  private constructor() {
    // 256 MiB of zeros in a few hundred bytes.
    const params = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 }
    this.#bomb = brotliCompressSync(Buffer.alloc(256 * 1024 * 1024), { params })
    this.#server = createServer((request, response) => {
      const path = request.url ?? ''
      this.requests.set(path, (this.requests.get(path) ?? 0) + 1)
      const { authorization } = request.headers
      if (authorization !== undefined) this.authorizations.push(authorization)
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => {
        if (path === '/victim') parts.push(part)
      })
      request.on('end', () => {
        if (path === '/victim') this.#take(Buffer.concat(parts).toString())
        if (path === '/bomb') response.writeHead(400, { 'content-encoding': 'br' }).end(this.#bomb)
        else response.writeHead(200).end()
      })
    })
  }

  static async start(): Promise<Destination> {
    const destination = new Destination()
    destination.#server.listen(0, '127.0.0.1')
    await once(destination.#server, 'listening')
    return destination
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  #take(text: string): void {
    const now = Date.now()
    for (const { timestamp, id } of JSON.parse(text) as { readonly timestamp: string; readonly id: string }[]) {
      this.lags.push(now - Date.parse(timestamp))
      this.ids.push(id)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }
}

interface Tenant {
  /** Interval between lines in seconds. */
  readonly interval: number
  readonly program?: string
  readonly source?: object
  readonly sink: (url: string) => object
}

const json = { encoding: { codec: 'json' } }
const http = (path: string) => (url: string) => ({ type: 'http', uri: `${url}/${path}`, ...json })
const digits = '[0,1,2,3,4,5,6,7,8,9]'
const nested = (levels: number, body: string) =>
  `${Array.from({ length: levels }, (_, index) => `for_each(${digits}) -> |_i${index}, _v${index}| { `).join('')}${body}${' }'.repeat(levels)}`

/** One tenant of each kind, by namespace. */
export const tenants: Readonly<Record<string, Tenant>> = {
  endless: { interval: 1, program: `n = 0\n${nested(12, 'n = n + 1')}\n.n = n`, sink: http('endless') },
  doubling: {
    interval: 1,
    program: `acc = [1]\n${nested(3, 'acc = append(acc, acc)')}\n.n = length(acc)`,
    sink: http('doubling'),
  },
  texts: { interval: 1, program: `s = "0123456789abcdef"\n${nested(3, 's = s + s')}\n.s = s`, sink: http('texts') },
  keys: {
    interval: 0.01,
    program: `k = "${'k'.repeat(30_000)}" + uuid_v4()\n. = set!({}, [k], 1)`,
    sink: http('keys'),
  },
  answers: { interval: 0.1, sink: (url) => ({ ...http('bomb')(url), batch: { max_events: 1 } }) },
  metrics: {
    interval: 0.001,
    source: {
      format: 'shuffle',
      lines: ['{"metric":{"name":"m","kind":"absolute","gauge":{"value":1}}}'],
      decoding: { codec: 'native_json' },
    },
    program: '.name = "m_" + replace(uuid_v4(), "-", "")',
    sink: (url) => ({ type: 'remote_write_metrics', endpoint: `${url}/write` }),
  },
  labels: {
    interval: 0.001,
    program: '.pod = uuid_v4()',
    sink: (url) => ({ type: 'log_aggregator', endpoint: url, labels: { pod: '{{ pod }}' }, ...json }),
  },
  speaking: { interval: 0.1, program: '.n = to_int!("CARD-4111-1111 " + string!(.message))', sink: http('speaking') },
  identity: {
    interval: 0.1,
    sink: (url) => ({
      type: 'search_engine',
      endpoints: [`${url}/identity`],
      auth: { strategy: 'aws' },
      aws: { region: 'eu-west-1' },
    }),
  },
}

/** Interval between a victim's lines in seconds. */
export const victimInterval = 0.05

/** If a number of lines is given, the source of each victim ends after that many. */
export function hostileBundle(
  url: string,
  names: readonly string[] = Object.keys(tenants),
  victimLines?: number,
  victims = 1,
): TestBundle {
  const victim: Tenant = {
    interval: victimInterval,
    source: { format: 'json', ...(victimLines === undefined ? {} : { count: victimLines }) },
    program: '.id = uuid_v4()',
    sink: (to) => ({ ...http('victim')(to), batch: { timeout_secs: 0.1 } }),
  }
  const all = [
    ...names.map((name) => [name, tenants[name] as Tenant] as const),
    ...Array.from({ length: victims }, (_, index) => [index === 0 ? 'victim' : `victim-${index + 1}`, victim] as const),
  ]
  return {
    pipelines: Object.fromEntries(
      all.map(([name]) => [
        `${name}/p`,
        { uid: name, generation: 1, hash: name, restricted: true, egress: { deny: [] }, cpuShare: 100 },
      ]),
    ),
    sources: Object.fromEntries(
      all.map(([name, { interval, source }]) => [
        `${name}/p/in`,
        { type: 'demo_logs', interval, ...(source ?? { format: 'json' }) },
      ]),
    ),
    transforms: Object.fromEntries(
      all.flatMap(([name, { program }]) =>
        program === undefined ? [] : [[`${name}/p/do`, { type: 'remap', inputs: [`${name}/p/in`], source: program }]],
      ),
    ),
    sinks: Object.fromEntries(
      all.map(([name, { program, sink }]) => [
        `${name}/p/out`,
        { ...sink(url), inputs: [`${name}/p/${program === undefined ? 'in' : 'do'}`] },
      ]),
    ),
  }
}

export class HostileAgent implements AsyncDisposable {
  readonly child: ChildProcess
  readonly #folder: string
  readonly #port: number
  readonly #closed: Promise<unknown>
  /** All of its standard output and error. */
  log = ''

  private constructor(folder: string, port: number, child: ChildProcess) {
    this.#folder = folder
    this.#port = port
    this.child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (part: string) => {
        this.log += part
      })
    }
    this.#closed = once(child, 'close')
  }

  static async start(bundle: TestBundle, env: NodeJS.ProcessEnv = {}): Promise<HostileAgent> {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-hostile-agent-'))
    for (const name of ['bundle', 'secrets', 'data', 'logs']) mkdirSync(join(folder, name))
    project(join(folder, 'bundle'), bundleFiles(bundle).files)
    const port = await freePort()
    const { command, args, env: own } = programOf('agent')
    const flags = {
      bundle: join(folder, 'bundle'),
      secrets: join(folder, 'secrets'),
      'data-dir': join(folder, 'data'),
      'logs-dir': join(folder, 'logs'),
      'api-address': `127.0.0.1:${port}`,
    }
    const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
    // The default Agent has a limit of 512 MiB. This limit also counts address space, of which the runtime reserves 512 MiB for code, and
    // each pipeline 24 MiB for buffers, mostly without using it.
    const pipelines = Object.keys(bundle.pipelines).length
    const limited = `ulimit -d ${(768 + 32 * pipelines) * 1024}; exec "$@"`
    const child = spawn('bash', ['-c', limited, 'agent', command, '--max-old-space-size=512', ...args, ...given], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...own, AGENT_SELF_NODE_NAME: 'node-1', ...env },
    })
    return new HostileAgent(folder, port, child)
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  /** The sum of a counter over the series of a pipeline. */
  async counted(metric: string, pipeline: string): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text()
    let sum = 0
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = /^(\w+)\{([^}]*)\} ([\d.e+]+)/.exec(line) ?? []
      if (name === metric && labels.includes(`component_id="${pipeline}/`)) sum += Number(value)
    }
    return sum
  }

  async health(): Promise<number> {
    return (await fetch(`http://127.0.0.1:${this.#port}/health`)).status
  }

  /** Waits until a condition is true; fails when the agent ends. */
  until(what: string, check: () => Promise<boolean> | boolean): Promise<boolean> {
    return until(what, 300_000, async () => {
      if (!this.running) throw new Error(`The agent has ended: ${this.log.slice(-2000)}`)
      return await check()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#closed
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
