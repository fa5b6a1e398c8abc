// `validate_json_schema` with schemas in files: drafts and formats.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { isFailure } from './function.ts'
import { compileProgram } from './program.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-schema-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0

function validated(schema: unknown, text: string, ignoreFormats: boolean): unknown {
  const path = join(folder, `${files++}.json`)
  writeFileSync(path, JSON.stringify(schema))
  const compiled = compileProgram(`validate_json_schema!(.text, ${JSON.stringify(path)}, ${ignoreFormats})`, {
    keepResult: true,
  })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  const given = compiled.program.run({ text }, noMetadata, true)
  return isFailure(given) ? given.message.replace(/^.*?\): /, '') : given
}

const draft2020 = 'https://json-schema.org/draft/2020-12/schema'
const email = { $schema: draft2020, properties: { to: { type: 'string', format: 'email' } } }

test.each([
  ['a draft by its name', email, '{"to": "a@b.example"}', false, true],
  ['a known format', email, '{"to": "nobody"}', true, /failed: \/to must match format "email"/],
  ['a format that is not known', { format: 'own', enum: [{ format: 'x' }] }, '1', false, /format 'own' is not known/],
  ['one that is to be ignored', { format: 'own' }, '"1"', true, true],
  [
    'items of draft 7',
    { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'null' }] },
    '[1]',
    false,
    /failed: \/0/,
  ],
  ['items of the newest draft', { prefixItems: [{ type: 'null' }] }, '[1]', false, /failed: \/0/],
  ['a byte order mark', { type: 'object' }, '\ufeff{}', false, true],
  ['no text', {}, '', false, /Empty JSON value/],
  ['no JSON', {}, '{', false, /Invalid JSON/],
])('%s', (_name, schema, text, ignoreFormats, wanted) => {
  const given = validated(schema, text, ignoreFormats)
  if (wanted instanceof RegExp) expect(given).toMatch(wanted)
  else expect(given).toBe(wanted)
})
