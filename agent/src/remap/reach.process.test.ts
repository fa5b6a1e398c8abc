// No function opens a file that its declaration does not name. Every function is called with paths in each of its parameters, in a process
// in which Node reports every path that the file system is asked about.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OpeningProgram } from '../testing/opened-paths.ts'
import type { FunctionDeclaration, Parameter } from './function.ts'
import { functions } from './functions.ts'
import { kinds } from './kind.ts'
import { platformRules, restrictedRules, unopenedRules } from './rules.ts'

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

const cases = functions.flatMap((declaration) => {
  return declaration.parameters.flatMap((parameter, at) => {
    const calls = [file, fifo, '/dev/zero'].map((path) => ({ path, sources: callsWith(declaration, at, path) }))
    return calls[0]?.sources.length === 0 ? [] : [{ name: `${declaration.name}(${parameter.name})`, parameter, calls }]
  })
})

const rulesOf = { restricted: restrictedRules, unopened: unopenedRules, platform: platformRules }

/** Every call under all rules, and whether it has asked the file system about its path. */
const asked = new Map<string, boolean>()
const keyOf = ({ source, path, rules }: OpeningProgram) => JSON.stringify([source, path, rules.reach])

beforeAll(() => {
  const programs = cases.flatMap(({ calls }) =>
    calls.flatMap(({ path, sources }) =>
      sources.flatMap((source) => Object.values(rulesOf).map((rules) => ({ source, path, rules }))),
    ),
  )
  const script = join(import.meta.dirname, '../testing/opened-paths.ts')
  const output = execFileSync(process.execPath, ['--conditions=source', '--permission-audit', script], {
    input: JSON.stringify(programs),
    maxBuffer: Number.POSITIVE_INFINITY,
  })
  const answers = JSON.parse(String(output)) as boolean[]
  for (const [index, program] of programs.entries()) asked.set(keyOf(program), answers[index] === true)
})

function opens(source: string, path: string, rules: keyof typeof rulesOf): boolean {
  const answer = asked.get(keyOf({ source, path, rules: rulesOf[rules] }))
  if (answer === undefined) throw new TypeError(`No answer about ${source}.`)
  return answer
}

test.each(cases)('$name opens a file only as declared and allowed by the rules', ({ parameter, calls }) => {
  for (const { path, sources } of calls) {
    for (const source of sources) {
      expect(opens(source, path, 'restricted'), source).toBe(false)
      expect(opens(source, path, 'unopened'), source).toBe(false)
    }
    const isOpened = sources.some((source) => opens(source, path, 'platform'))
    if (isOpened || path === file) expect(isOpened, path).toBe(parameter.meaning === 'file')
  }
})

test('some parameters name files', () => {
  expect(cases.filter(({ parameter }) => parameter.meaning === 'file').map(({ name }) => name)).toEqual([
    'encode_proto(desc_file)',
    'parse_etld(psl)',
    'parse_groks(alias_sources)',
    'parse_proto(desc_file)',
    'validate_json_schema(schema_definition)',
  ])
})
