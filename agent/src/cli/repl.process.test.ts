// The prompt of `penstock-agent remap`, with piped input and, for keys, on a terminal created by `script`.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

const main = join(import.meta.dirname, '..', 'main.ts')
const noTerminals = spawnSync('script', ['--version']).status !== 0
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-repl-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** The prompt's output for lines on standard input, without the prompt itself. */
async function piped(input: string, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, ['--conditions=source', main, 'remap', ...args])
  let out = ''
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stdin.end(input)
  const code = await new Promise((resolve) => child.on('close', resolve))
  expect(code).toBe(0)
  return out.replaceAll(/[$…] /g, '')
}

test('events keep their changes, and variables live on with the kinds of their values', async () => {
  expect(await piped('.a = 1\n.a + 1\nx = .a\n.\n')).toContain('1\n2\n1\n{ "a": 1 }\n')
  expect(await piped('foo = {"b": [1, 2]}\nfoo.b[1]\nfoo.b[0] + 1\n.x = foo\nfoo.b = 7\n.\nfoo\n')).toBe(
    '{ "b": [1, 2] }\n2\n2\n{ "b": [1, 2] }\n7\n{ "x": { "b": [1, 2] } }\n{ "b": 7 }\n',
  )
  // An input that fails or returns early leaves variables unchanged.
  expect(await piped('x = "a"\nx = 1; parse_json!("{")\nx\nreturn x; x = 2\nupcase(x)\n')).toMatch(
    /^"a"\n[\s\S]*error: [\s\S]*"a"\n[\s\S]*"A"\n$/,
  )
  expect(await piped('if true { y = 1 }\ny\n')).toContain('error[E701]')
  expect(await piped('n = 1\nmap_values({ "a": 2 }) -> |n| { n + 1 }\nn\n')).toContain('{ "a": 3 }\n1\n')
})

test('headings and markers of diagnostics have colours if colours are enabled', async () => {
  const plain = await piped('upcas("a")\n')
  expect(plain).not.toContain('\u001b')
  const colored = await piped('upcas("a")\n', '--color', 'always')
  expect(colored).toContain('\u001b[31merror[E105]\u001b[0m:')
  expect(colored).toContain('\u001b[31m^^^^^\u001b[0m')
})

test('an incomplete input continues on the next line', async () => {
  expect(await piped('if true {\n  "yes"\n} else {\n  "no"\n}\n')).toBe('"yes"\n')
  expect(await piped('upcase(\n"a"\n)\n1 +\n2\n')).toBe('"A"\n3\n')
  expect(await piped('x = "one\ntwo"\n')).toBe('"one\\ntwo"\n')
  expect(await piped('match("a", r\'(b\')\n')).toContain('error[E101]')
})

test('an empty line or the end of the input ends an incomplete input', async () => {
  expect(await piped('[1,\n\n2\n')).toMatch(/error\[E20[34]\][\s\S]*\n2\n$/)
  expect(await piped('upcase("a"')).toMatch(/error\[E20[34]\]/)
})

test('help on the prompt, on functions and on codes', async () => {
  expect(await piped('help\n')).toContain('help FUNCTION')
  expect(await piped('help parse_json\n')).toContain('# parse_json')
  expect(await piped('help E103\n')).toContain('# E103')
  expect(await piped('help functions\n')).toMatch(/^String: .*upcase/m)
  expect(await piped('help parse_jsno\n')).toBe('Nothing is named "parse_jsno". Did you mean "parse_json"?\n')
})

test('the events of a file, one after the other', async () => {
  const file = join(folder, 'in.jsonl')
  await writeFile(file, '{"n":1}\n{"n":2}\n')
  expect(await piped('.n\nnext\n.n\nnext\nprev\n', '--input', file)).toBe(
    '1\n{ "n": 2 }\n2\nThere is no next event.\n{ "n": 1 }\n',
  )
})

/** The prompt on a terminal. */
class Terminal {
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>
  out = ''

  constructor(data: string, ...args: string[]) {
    const command = [process.execPath, '--conditions=source', main, 'remap', ...args].join(' ')
    this.#child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...process.env, XDG_DATA_HOME: data, TERM: 'xterm', PENSTOCK_REMAP_NO_HISTORY: '' },
    })
    this.#child.stdout?.on('data', (chunk) => {
      this.out += chunk
    })
    this.#closed = new Promise((resolve) => this.#child.on('close', resolve))
  }
  type(keys: string): void {
    this.#child.stdin?.write(keys)
  }
  async shows(text: string): Promise<void> {
    await vi.waitFor(() => expect(this.out).toContain(text), { timeout: 30_000, interval: 20 })
    this.out = ''
  }
  async end(): Promise<void> {
    this.type('\u0004')
    await this.#closed
  }
  async [Symbol.asyncDispose]() {
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}

test.skipIf(noTerminals)('keys complete functions, parameters and fields, and the history is kept', async () => {
  const data = join(folder, 'data')
  const file = join(folder, 'event.jsonl')
  await writeFile(file, '{"kubernetes":{"pod name":"web","node":"n1"}}\n')
  {
    await using terminal = new Terminal(data, '--input', file)
    await terminal.shows('exit')
    terminal.type('parse_js\t')
    await terminal.shows('parse_json(')
    terminal.type('"[[1]]", max\t')
    await terminal.shows('max_depth: ')
    terminal.type('1) ?? 0\r')
    await terminal.shows('["[1]"]')
    terminal.type('.kube\t')
    await terminal.shows('.kubernetes')
    terminal.type('.no\t')
    await terminal.shows('.node')
    terminal.type('\r')
    await terminal.shows('"n1"')
    terminal.type('.kubernetes."po\t')
    await terminal.shows('."pod name"')
    terminal.type('\r')
    await terminal.shows('"web"')
    terminal.type(' mypod = .kubernetes\r')
    await terminal.shows('"pod name": "web" }')
    terminal.type(' mypo\t')
    await terminal.shows('mypod')
    terminal.type('.nod\t')
    await terminal.shows('.node')
    terminal.type('\r')
    await terminal.shows('"n1"')
    terminal.type(' .secret = 1\r')
    await terminal.shows('1\r\n')
    terminal.type('[1,\r')
    await terminal.shows('…')
    terminal.type('\u0003')
    await terminal.shows('$ ')
    await terminal.end()
  }
  const history = join(data, 'penstock', 'remap_history')
  expect(await readFile(history, 'utf8')).toBe(
    'parse_json("[[1]]", max_depth: 1) ?? 0\n.kubernetes.node\n.kubernetes."pod name"\n[1,\n',
  )
  expect((await stat(history)).mode & 0o777).toBe(0o600)
  {
    await using terminal = new Terminal(data)
    await terminal.shows('exit')
    terminal.type('\u001b[A\u001b[A\u001b[A\u001b[A')
    await terminal.shows('max_depth: 1) ?? 0')
    terminal.type('\r')
    await terminal.shows('["[1]"]')
    await terminal.end()
  }
})

test.skipIf(noTerminals)('no history is kept if the user disables it', async () => {
  const data = join(folder, 'none')
  await using terminal = new Terminal(data, '--no-history')
  await terminal.shows('exit')
  terminal.type('1 + 1\r')
  await terminal.shows('2\r\n')
  await terminal.end()
  await expect(stat(join(data, 'penstock'))).rejects.toThrow('ENOENT')
})

test.skipIf(noTerminals)('a program without an input asks for events on a terminal', async () => {
  await using terminal = new Terminal(join(folder, 'unused'), "'.a = 2'")
  await terminal.shows('Type events, one JSON object per line. Ctrl-D ends them')
  terminal.type('{"a":1}\n')
  await terminal.shows('2\r\n')
  await terminal.end()
})
