// Programs of namespaced resources reach nothing beyond the event: calls that would do not compile.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { reachingCalls } from './calls.ts'
import { functions } from './functions.ts'
import { compileProgram } from './program.ts'
import { restrictedRules, unopenedRules } from './rules.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-reach-'))
afterAll(() => rmSync(folder, { recursive: true }))

test.each(functions.filter(({ reaches }) => reaches !== undefined))(
  '$name does not compile if programs must not reach beyond the event',
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
])('a call that names a file is refused for any value: %s', (source) => {
  const compiled = compileProgram(source, { rules: restrictedRules })
  expect(compiled.ok).toBe(false)
  expect(reachingCalls(source)).toMatchObject([{ reaches: 'file' }])
})

test('a call that names a file compiles if files are not opened, and fails when it runs', () => {
  const source = 'parse_proto!(.a, "/no/such.desc", "shop.Order")'
  const compiled = compileProgram(source, { rules: unopenedRules, keepResult: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  expect(compiled.program.run({ a: 'x' }, noMetadata, false)).toMatchObject({
    message: expect.stringContaining('a program that is only checked opens no files'),
  })
})

test('a program that is nested too deep has no calls', () => {
  expect(reachingCalls('['.repeat(100_000))).toEqual([])
})

test('the error does not contain the content of an invalid schema file', () => {
  writeFileSync(join(folder, 'token'), 'hunter2')
  const source = `_, err = validate_json_schema("{}", ${JSON.stringify(join(folder, 'token'))})\nerr`
  const compiled = compileProgram(source, { keepResult: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  const error = String(compiled.program.run({}, noMetadata, false))
  expect(error).toContain('it is not valid JSON')
  expect(error).not.toContain('hunter')
})
