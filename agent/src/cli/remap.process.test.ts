import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Runs `penstock-agent remap` with text on standard input. */
async function remap(
  args: readonly string[],
  input: string,
): Promise<{ code: number | null; out: string; err: string }> {
  const main = join(import.meta.dirname, '..', 'main.ts')
  const child = spawn(process.execPath, ['--conditions=source', main, 'remap', ...args])
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, out, err }
}

const lines = '{"n":"5"}\n{"n":"x"}\n'

test('prints one result per line, and failures on standard error', async () => {
  expect(await remap(['.m = to_int!(.n)'], lines)).toEqual({
    code: 0,
    out: '5\n',
    err: 'event 2: function call error for "to_int" at (5:16): Invalid integer "x": invalid digit found in string (line 1, column 6 of the program)\n',
  })
})

test('a failure has its line and column, counted in characters', async () => {
  const { err } = await remap(['# é\n.a = "é"; .m = to_int!(.n)'], lines)
  expect(err).toMatch(
    /^event 2: function call error for "to_int" at \(\d+:\d+\): .* \(line 2, column 16 of the program\)\n$/,
  )
})

test.each([
  { input: lines, strict: 1 },
  { input: '{"n":"5"}\n', strict: 0 },
])('with --strict the exit code is $strict for $input', async ({ input, strict }) => {
  for (const more of [[], ['--typed']]) {
    expect((await remap(['--strict', ...more, '.m = to_int!(.n)'], input)).code).toBe(strict)
    expect((await remap([...more, '.m = to_int!(.n)'], input)).code).toBe(0)
  }
})

test('typed values in and out', async () => {
  const result = await remap(['--typed', '.m = to_int!(.n) + 0.5'], lines)
  expect(
    result.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { ok: { $float: '5.5' }, event: { n: '5', m: { $float: '5.5' } } },
    {
      runtime_error: 'function call error for "to_int" at (5:16): Invalid integer "x": invalid digit found in string',
    },
  ])
})

test('--json prints each value as JSON for other programs', async () => {
  const program = `.t = t'2024-01-01T00:00:00Z'; .f = 2.0; .p = r'x'; .`
  for (const [flags, expected] of [
    [['-o'], { a: 1, t: '2024-01-01T00:00:00Z', f: 2, p: 'x' }],
    [[], { a: 1, t: '2024-01-01T00:00:00Z', f: 2, p: 'x' }],
  ] as const) {
    const { code, out } = await remap([...flags, '--json', program], '{"a":1}\n{"a":1}\n')
    expect(code).toBe(0)
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([expected, expected])
  }
  expect(await remap(['--json', '--typed', program], '')).toMatchObject({ code: 64, out: '' })
})

test('program and input come from files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'penstock-remap-'))
  try {
    await writeFile(join(directory, 'p.remap'), '.m = "x"\n')
    await writeFile(join(directory, 'in.jsonl'), '{"a":1.0}\n')
    const args = ['--program', join(directory, 'p.remap'), '--input', join(directory, 'in.jsonl'), '-o']
    expect(await remap(args, '')).toEqual({ code: 0, out: '{ "a": 1, "m": "x" }\n', err: '' })
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a program that does not compile ends with 78 and the codes', async () => {
  const result = await remap(['--typed', 'x = to_int("5")'], '')
  expect(result).toMatchObject({ code: 78, out: '{"compile_error":[103]}\n' })
  expect(result.err).toContain('error[E103]: unhandled fallible assignment')
})

test('without a program, it prompts', async () => {
  const result = await remap([], '.a = 1\n.a + 1\n')
  expect(result.out).toContain('$ 1\n')
  expect(result.code).toBe(0)
})

test('--explain prints kinds and the possible ends of the program, and runs nothing', async () => {
  const program = `.m = parse_json!(.message)
x, err = to_int(.n)
.team = downcase("OPS")
if .drop == true { abort "no" }
%seen = x`
  const explained = await remap(['--explain', program], '{"n":"5"}\n')
  expect(explained).toEqual({
    code: 0,
    err: expect.any(String),
    out: `1: .m = parse_json!(.message)
   kind: string, integer, float, boolean, null, array or object
   may end the program: parse_json! at 1:6
2: x, err = to_int(.n)
   kind: string or integer
   cannot fail
3: .team = downcase("OPS")
   kind: string
   cannot fail
4: if .drop == true { abort "no" }
   kind: null
   may end the program: abort at 4:20
5: %seen = x
   kind: integer
   cannot fail

Result: integer
Event after the program: object
  .m: string, integer, float, boolean, null, array or object
  .team: string
Metadata after the program: object
  %seen: integer
The program may end early: yes, by parse_json!, abort
`,
  })
  expect((await remap(['--help'], '')).out).toContain('--explain')
  expect((await remap(['--explain', 'x = to_int(.n)'], '')).code).toBe(78)
  expect((await remap(['--explain'], '')).code).toBe(64)
})
