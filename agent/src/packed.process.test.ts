// The agent as its image holds it: packed into few files. Code that finds files by its own address, or loads libraries late, must
// find them from there too.

import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { isBuiltin, SourceMap, type SourceMapPayload } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { pack } from './tools/pack.ts'
import { version } from './version.ts'

let folder = ''
let packed = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-packed-'))
  packed = pack(folder, 'agent')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** The output of the packed agent. */
function agent(args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [join(packed, 'main.js'), ...args], (error, out, err) => {
      if (error === null) resolve(out)
      else reject(new Error(`${args.join(' ')}: ${err}${out}`))
    })
    child.stdin?.end(input)
  })
}

test('prints its version, and has every command', async () => {
  expect(await agent(['--version'])).toBe(`penstock-agent ${version}\n`)
  expect(await agent(['completion', 'bash'])).toContain('validate')
  expect(await agent(['explain', 'parse_json'])).toContain('parse_json')
})

test('no part uses an import statement for a module of Node, which would load all of the module', () => {
  for (const file of readdirSync(packed).filter((name) => name.endsWith('.js'))) {
    const code = readFileSync(join(packed, file), 'utf8')
    const from = [...code.matchAll(/(?:^|[;}])import\b[^;()]*?["'`]([^"'`]+)["'`]/gm)].map(([, name = '']) => name)
    expect(from.filter(isBuiltin), file).toEqual([])
  }
})

test('no part contains a letter beyond Latin-1, which would double its memory', () => {
  for (const file of readdirSync(packed).filter((name) => name.endsWith('.js'))) {
    expect(/[^\0-\xff]/.exec(readFileSync(join(packed, file), 'utf8'))?.[0], file).toBeUndefined()
  }
})

test('source maps lead to the sources, also behind escaped letters, and functions keep their names', () => {
  let found = 0
  for (const file of readdirSync(packed).filter((name) => name.endsWith('.js.map'))) {
    const fields = JSON.parse(readFileSync(join(packed, file), 'utf8')) as SourceMapPayload
    const map = new SourceMap(fields)
    const sources = new Map(fields.sources.map((name, index) => [name, fields.sourcesContent[index]?.split('\n')]))
    const code = readFileSync(join(packed, file.slice(0, -'.map'.length)), 'utf8')
    for (const [line, text] of code.split('\n').entries()) {
      for (const match of text.matchAll(/(?<=^|[;}])function (\w{5,})\(/g)) {
        const origin = map.findEntry(line, match.index + 'function '.length)
        if (!('originalSource' in origin) || !origin.originalSource.endsWith('.ts')) continue
        const original = sources.get(origin.originalSource)?.[origin.originalLine]?.slice(origin.originalColumn)
        expect(original, `${file}: ${match[1]}`).toMatch(new RegExp(`^${match[1]}\\b`))
        found++
      }
    }
  }
  expect(found).toBeGreaterThan(1000)
})

test('lazily loaded libraries are found, and letters keep their meaning', async () => {
  const program = String.raw`
    key = "0123456789abcdef0123456789abcdef"
    iv = "0123456789abcdef01234567"
    [
      parse_etld!("www.shop.co.uk").etld,
      parse_user_agent!("Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0").browser.family,
      decode_snappy!(encode_snappy!("brook")),
      validate_json_schema!("{\"mail\": 1}", "PATH", true),
      decrypt!(encrypt!("sluice", "XCHACHA20-POLY1305", key: key, iv: iv), "XCHACHA20-POLY1305", key: key, iv: iv),
      strip_whitespace("　weir "),
    ]
  `.replace('PATH', join(folder, 'schema.json'))
  await writeFile(join(folder, 'schema.json'), '{"type": "object"}')
  const file = join(folder, 'late.vrl')
  await writeFile(file, program)
  expect(JSON.parse(await agent(['remap', '--program', file], '{}\n'))).toEqual([
    'co.uk',
    'Firefox',
    'brook',
    true,
    'sluice',
    'weir',
  ])
})

test('a program that uses the network gets its workers', async () => {
  await using server = createServer((_request, response) => response.end('from the gate'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const path = join(folder, 'network.json')
  const source = `.answer = http_request!("http://127.0.0.1:${port}/")`
  const config = {
    data_dir: folder,
    remap: { network: true },
    sources: { in: { type: 'stdin' } },
    transforms: { ask: { type: 'remap', inputs: ['in'], source } },
    sinks: { out: { type: 'console', inputs: ['ask'], encoding: { codec: 'json' } } },
  }
  await writeFile(path, JSON.stringify(config))
  expect(JSON.parse(await agent(['-q', '--config', path], 'knock\n'))).toMatchObject({
    message: 'knock',
    answer: 'from the gate',
  })
})

test('started like in the image, it returns pages that only the start needed, and continues', async () => {
  const dockerfile = readFileSync(new URL('../Dockerfile', import.meta.url), 'utf8')
  const entry = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[]
  const path = join(folder, 'pages.json')
  const config = {
    data_dir: folder,
    sources: { in: { type: 'stdin' } },
    sinks: { out: { type: 'console', inputs: ['in'], encoding: { codec: 'text' } } },
  }
  await writeFile(path, JSON.stringify(config))
  const flags = [...entry.slice(1, -1), '--trace-gc']
  const child = spawn(process.execPath, [...flags, join(packed, 'main.js'), '--config', path])
  const collection = 'testing; GC in old space requested' // as V8 reports the one that ends the start
  let out = ''
  let log = ''
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (log += text))
  const exited = new Promise((resolve) => child.on('exit', resolve))
  const says = (text: string) => vi.waitFor(() => expect(out).toContain(text), { timeout: 30_000 })
  const fileMb = () =>
    Number(/^RssFile:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
  try {
    let before = 0
    // The pages may go back at once after the start, so they are looked at from the beginning.
    await vi.waitFor(
      () => {
        before = Math.max(before, fileMb() || 0)
        expect(log).toContain('Penstock has started')
      },
      { timeout: 60_000, interval: 20 },
    )
    child.stdin.write('before\n')
    const fewerPages = () =>
      vi.waitFor(
        () => {
          before = Math.max(before, fileMb())
          expect(fileMb()).toBeLessThan(before / 2)
        },
        { timeout: 40_000, interval: 50 },
      )
    await fewerPages()
    await says('before')
    expect(out).not.toContain(collection) // else what the first lines take would come on top of them
    await says(collection)
    await fewerPages()
    child.stdin.end('after\n')
    await says('after')
    expect(await exited).toBe(0)
    expect(log).not.toContain('ExperimentalWarning')
  } finally {
    child.kill('SIGKILL')
  }
})
