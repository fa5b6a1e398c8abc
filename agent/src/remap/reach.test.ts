// Programs of namespaced resources reach nothing beyond the event. Every function is called with paths in each of its parameters
// while the file system is watched.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { reachingCalls } from './calls.ts'
import type { FunctionDeclaration, Parameter } from './function.ts'
import { functions } from './functions.ts'
import { kinds } from './kind.ts'
import { compileProgram } from './program.ts'
import { type ProgramRules, platformRules, restrictedRules, unopenedRules } from './rules.ts'

/** Paths and descriptors that anything was asked of the file system with. */
const { asked } = vi.hoisted(() => ({ asked: [] as unknown[] }))

/** A module of the file system whose functions note their first argument. */
const watched = vi.hoisted(
  () =>
    (real: Readonly<Record<string, unknown>>): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries(real).map(([name, member]) => [
          name,
          typeof member !== 'function' || /^[A-Z]/.test(name)
            ? member
            : Object.assign((...values: unknown[]) => {
                asked.push(values[0])
                return (member as (...values: unknown[]) => unknown)(...values)
              }, member),
        ]),
      ),
)
vi.mock('node:fs', async (original) => watched(await original()))
vi.mock('node:fs/promises', async (original) => watched(await original()))

const folder = mkdtempSync(join(tmpdir(), 'penstock-reach-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'words')
writeFileSync(file, 'NAME a+')
const fifo = join(folder, 'fifo')
execFileSync('mkfifo', [fifo])

/** Calls of a function with a path in one parameter, as a constant and as a value of the event, and something in the others. */
function callsWith({ name, parameters, closure }: FunctionDeclaration, at: number, path: string): string[] {
  const forms = parameters[at]?.kind.overlaps(kinds.string) ? [JSON.stringify(path), 'string!(.path)'] : []
  if (parameters[at]?.kind.overlaps(kinds.array)) forms.push(`[${JSON.stringify(path)}]`, 'array!(.paths)')
  if (parameters[at]?.kind.overlaps(kinds.object)) forms.push(`{"a": ${JSON.stringify(path)}}`, 'object!(.map)')
  return forms.flatMap((form) => {
    const args = parameters.flatMap((parameter, index) =>
      index === at
        ? [`${parameter.name}: ${form}`]
        : parameter.required === false
          ? []
          : [`${parameter.name}: ${sample(parameter)}`],
    )
    const call = `${name}!(${args.join(', ')})`
    if (closure === undefined) return [call]
    return [`${call} -> |a| { a }`, `${call} -> |a, b| { b }`, `${call} -> |_a, _b| { true }`]
  })
}

function sample({ enum: words, kind, query }: Parameter): string {
  if (query === true) return '.path'
  if (words !== undefined) return JSON.stringify(words[0])
  const samples = [
    [kinds.string, '"a"'],
    [kinds.integer, '1'],
    [kinds.float, '1.5'],
    [kinds.boolean, 'true'],
    [kinds.timestamp, "t'2026-01-01T00:00:00Z'"],
    [kinds.regex, "r'a'"],
    [kinds.array, '["a"]'],
    [kinds.object, '{"a": "a"}'],
  ] as const
  return samples.find(([each]) => kind.overlaps(each))?.[1] ?? 'null'
}

/** Whether anything was asked of the file system about a path while a program was compiled and run. */
function opens(source: string, path: string, rules: ProgramRules): boolean {
  asked.length = 0
  // `!` on what cannot fail is a warning only.
  const compiled = compileProgram(source, { keepResult: true, rules, network: false })
  if (compiled.ok) compiled.program.run({ path, paths: [path], map: { a: path } }, noMetadata, false)
  return asked.some((each) => String(each) === path)
}

const cases = functions.flatMap((declaration) => {
  return declaration.parameters.flatMap((parameter, at) => {
    const calls = [file, fifo, '/dev/zero'].map((path) => ({ path, sources: callsWith(declaration, at, path) }))
    return calls[0]?.sources.length === 0 ? [] : [{ name: `${declaration.name}(${parameter.name})`, parameter, calls }]
  })
})

test.each(cases)(
  '$name opens a file only where the declaration says so and the rules allow it',
  ({ parameter, calls }) => {
    for (const { path, sources } of calls) {
      for (const source of sources) {
        expect(opens(source, path, restrictedRules), source).toBe(false)
        expect(opens(source, path, unopenedRules), source).toBe(false)
      }
      const isOpened = sources.some((source) => opens(source, path, platformRules))
      if (isOpened || path === file) expect(isOpened, path).toBe(parameter.meaning === 'file')
    }
  },
)

test('some parameters name files', () => {
  expect(cases.filter(({ parameter }) => parameter.meaning === 'file').map(({ name }) => name)).toEqual([
    'encode_proto(desc_file)',
    'parse_etld(psl)',
    'parse_groks(alias_sources)',
    'parse_proto(desc_file)',
    'validate_json_schema(schema_definition)',
  ])
})

test.each(functions.filter(({ reaches }) => reaches !== undefined))(
  '$name does not compile where it must not reach anything',
  ({ examples }) => {
    for (const { source } of examples) {
      expect(compileProgram(source, { rules: restrictedRules, network: true })).toMatchObject({
        ok: false,
        diagnostics: [{ code: 710 }],
      })
    }
  },
)

test.each([
  'x = "lo"\nparse_etld(.a, psl: x + "ng") ?? null',
  'parse_groks(.a, ["a"], alias_sources: []) ?? null',
  '_, err = validate_json_schema("{}", .path)',
  'for_each([1]) -> |_i, _v| { if parse_proto(.a, "f", "t") == null { true } }',
  'encode_proto!({}, message_type: "t", desc_file: "f")',
  'parse_proto!(value: .a, "f", "t")',
])('a call that names a file is refused whatever the value is: %s', (source) => {
  const compiled = compileProgram(source, { rules: restrictedRules })
  expect(compiled.ok).toBe(false)
  expect(reachingCalls(source)).toMatchObject([{ reaches: 'file' }])
})

test('a call that names a file compiles where nothing is opened, and fails when it runs', () => {
  const source = 'parse_proto!(.a, "/no/such.desc", "shop.Order")'
  const compiled = compileProgram(source, { rules: unopenedRules, keepResult: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  expect(compiled.program.run({ a: 'x' }, noMetadata, false)).toMatchObject({
    message: expect.stringContaining('files are not opened where a program is only checked'),
  })
})

test('a program that is nested too deep has no calls', () => {
  expect(reachingCalls('['.repeat(100_000))).toEqual([])
})

test('the content of a file that is no schema is not in the error', () => {
  writeFileSync(join(folder, 'token'), 'hunter2')
  const source = `_, err = validate_json_schema("{}", ${JSON.stringify(join(folder, 'token'))})\nerr`
  const compiled = compileProgram(source, { keepResult: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  const error = String(compiled.program.run({}, noMetadata, false))
  expect(error).toContain('it is not valid JSON')
  expect(error).not.toContain('hunter')
})
