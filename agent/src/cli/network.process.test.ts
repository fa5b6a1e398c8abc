// Programs that wait for the network, in a real agent: an unresponsive name server or address delays only the events of
// these programs.

import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const waiting = { timeout: 55_000, interval: 20 }

/** An agent with its folder, and the two servers that its programs query. */
class Scene {
  readonly folder: string
  readonly requests: ServerResponse[] = []
  questions = 0
  readonly #web = createServer((_request, response) => void this.requests.push(response))
  readonly #names = createSocket('udp4')
  #agent: ChildProcess | undefined
  #closed: Promise<unknown> | undefined
  err = ''

  private constructor(folder: string) {
    this.folder = folder
    this.#names.on('message', () => {
      this.questions++
    })
  }
  static async open(): Promise<Scene> {
    const scene = new Scene(await mkdtemp(join(tmpdir(), 'penstock-network-')))
    scene.#web.listen(0, '127.0.0.1')
    scene.#names.bind(0, '127.0.0.1')
    await Promise.all([once(scene.#web, 'listening'), once(scene.#names, 'listening')])
    return scene
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#web.address() as AddressInfo).port}/x`
  }
  get nameServer(): string {
    return `127.0.0.1:${this.#names.address().port}`
  }
  async start(transform: object, more: object = {}): Promise<void> {
    const { folder } = this
    const file = (name: string) => ({ type: 'file', include: [join(folder, name)], data_dir: folder })
    const to = (input: string, name: string) => {
      return {
        type: 'file',
        inputs: [input],
        path: join(folder, name),
        encoding: { codec: 'json', only_fields: ['message', 'got'] },
      }
    }
    const config = {
      data_dir: folder,
      remap: { network: true },
      sources: { slow: file('slow.log'), quick: file('quick.log') },
      transforms: { ask: { inputs: ['slow'], ...transform } },
      sinks: { asked: to('ask', 'asked.out'), plain: to('quick', 'plain.out') },
      ...more,
    }
    await writeFile(join(folder, 'agent.json'), JSON.stringify(config))
    for (const name of ['slow.log', 'quick.log']) await writeFile(join(folder, name), '')
    this.#agent = spawn(process.execPath, ['--conditions=source', main, '--config', join(folder, 'agent.json')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#agent.stderr?.on('data', (text) => {
      this.err += text
    })
    this.#closed = once(this.#agent, 'close')
  }
  append(name: string, ...lines: string[]): Promise<void> {
    return appendFile(join(this.folder, name), `${lines.join('\n')}\n`)
  }
  async events(name: string): Promise<{ message: string; got?: string }[]> {
    const text = await readFile(join(this.folder, name), 'utf8').catch(() => '')
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }
  /** Stops the agent gracefully; returns its exit code. */
  async stop(): Promise<number | null> {
    this.#agent?.kill('SIGTERM')
    await this.#closed
    return this.#agent?.exitCode ?? null
  }
  async [Symbol.asyncDispose]() {
    this.#agent?.kill('SIGKILL')
    await this.#closed
    this.#web.closeAllConnections()
    this.#web.close()
    this.#names.close()
    await rm(this.folder, { recursive: true, force: true })
  }
}

test('other components continue while an address does not respond', async () => {
  await using scene = await Scene.open()
  const source = `.got = http_request!("${scene.url}", method: "post", body: string!(.message))`
  await scene.start({ type: 'remap', source })
  await scene.append('slow.log', 'a', 'b')
  await vi.waitFor(() => expect(scene.requests).toHaveLength(1), waiting)

  await scene.append('quick.log', '1', '2', '3')
  await vi.waitFor(async () => expect(await scene.events('plain.out')).toHaveLength(3), waiting)
  expect(await scene.events('asked.out')).toEqual([])

  scene.requests[0]?.end('first')
  await vi.waitFor(() => expect(scene.requests).toHaveLength(2), waiting)
  scene.requests[1]?.end('second')
  await vi.waitFor(async () => {
    expect(await scene.events('asked.out')).toEqual([
      { message: 'a', got: 'first' },
      { message: 'b', got: 'second' },
    ])
  }, waiting)
  expect(await scene.stop()).toBe(0)
})

test('a query to a name server that does not respond ends at its time limit, also in a condition', async () => {
  await using scene = await Scene.open()
  const options = `{"servers": ["${scene.nameServer}"], "timeout": 0.2, "attempts": 2}`
  const condition = `is_string(dns_lookup(string!(.message), options: ${options}) ?? "none")`
  await scene.start({ type: 'filter', condition })
  await scene.append('slow.log', 'host.test', 'host.test')
  await scene.append('quick.log', '1')
  await vi.waitFor(async () => expect(await scene.events('plain.out')).toHaveLength(1), waiting)
  await vi.waitFor(async () => expect(await scene.events('asked.out')).toHaveLength(2), waiting)
  // The second event used the cached failure of the first.
  expect(scene.questions).toBe(2)
  expect(await scene.stop()).toBe(0)
})

test('an agent that stops while a program waits does not lose the event', async () => {
  await using scene = await Scene.open()
  const source = `.got = http_request!("${scene.url}")`
  await scene.start({ type: 'remap', source })
  await scene.append('slow.log', 'a')
  await vi.waitFor(() => expect(scene.requests).toHaveLength(1), waiting)
  const stopped = scene.stop()
  await vi.waitFor(() => expect(scene.err).toContain('Penstock is stopping.'), waiting)
  scene.requests[0]?.end('late')
  expect(await stopped).toBe(0)
  expect(await scene.events('asked.out')).toEqual([{ message: 'a', got: 'late' }])
})

test('programs in the worker use tables, metadata and failures like all others', async () => {
  await using scene = await Scene.open()
  await writeFile(join(scene.folder, 'names.csv'), 'id,name\na,Alpha\n')
  const source = `
    %seen = true
    row, err = get_enrichment_table_record("names", {"id": .message})
    log("looked up", level: "warn")
    if err == null { .got = string(row.name) ?? "none" } else { http_request!("no address") }
    .got = string!(.got) + to_string!(%seen)`
  await scene.start(
    { type: 'remap', source },
    {
      enrichment_tables: {
        names: { type: 'file', file: { path: join(scene.folder, 'names.csv'), encoding: { type: 'csv' } } },
      },
    },
  )
  await scene.append('slow.log', 'a', 'b')
  await vi.waitFor(async () => {
    expect(await scene.events('asked.out')).toEqual([{ message: 'a', got: 'Alphatrue' }, { message: 'b' }])
  }, waiting)
  expect(scene.err).toContain('looked up')
  expect(scene.err).toContain('invalid URL: no address')
  expect(await scene.stop()).toBe(0)
})
