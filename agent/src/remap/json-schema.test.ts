// `validate_json_schema` with schemas in files: drafts and formats.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { fakeDestination } from '../testing/destination.ts'
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
const tree = { properties: { children: { type: 'array', items: { $ref: '#' } } } }
const email = { $schema: draft2020, properties: { to: { type: 'string', format: 'email' } } }

test.each([
  ['a draft by its name', email, '{"to": "a@b.example"}', false, true],
  ['a known format', email, '{"to": "nobody"}', true, /failed: \/to must match format "email"/],
  ['a format that is not known', { format: 'own', enum: [{ format: 'x' }] }, '1', false, /format 'own' is not known/],
  ['an ignored format', { format: 'own' }, '"1"', true, true],
  [
    'items of draft 7',
    { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'null' }] },
    '[1]',
    false,
    /failed: \/0/,
  ],
  ['items of the newest draft', { prefixItems: [{ type: 'null' }] }, '[1]', false, /failed: \/0/],
  ['a byte order mark', { type: 'object' }, '\ufeff{}', false, true],
  ['equal items', { uniqueItems: true }, '[{"a": 1, "b": [2]}, {"b": [2], "a": 1.0}]', false, /duplicate items/],
  ['items of other types', { uniqueItems: true }, '[1, "1", [1], {"1": 1}, null, "null", true]', false, true],
  [
    'a property with the name of a keyword',
    { properties: { const: { $ref: '#/properties/b' }, b: { type: 'null' } } },
    '{"const": 1}',
    false,
    /failed: \/const must be null/,
  ],
  ['a schema that refers to itself', tree, JSON.stringify({ children: [{ children: [] }, {}] }), false, true],
  [
    'the same, not as it should be',
    tree,
    JSON.stringify({ children: [{ children: 1 }] }),
    false,
    /\/children\/0\/children must be array/,
  ],
  ['no text', {}, '', false, /Empty JSON value/],
  ['no JSON', {}, '{', false, /Invalid JSON/],
])('%s', (_name, schema, text, ignoreFormats, wanted) => {
  const given = validated(schema, text, ignoreFormats)
  if (wanted instanceof RegExp) expect(given).toMatch(wanted)
  else expect(given).toBe(wanted)
})

/** Lists nested around a number. */
const nested = (depth: number) => `${'['.repeat(depth)}1${']'.repeat(depth)}`
const both = (name: string) => ({ allOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] })
const doubling = Object.fromEntries(
  Array.from({ length: 40 }, (_, index) => [`d${index}`, index === 39 ? { type: 'number' } : both(`d${index + 1}`)]),
)
const tooMany = /the text needs more than 1000000 references of the schema, or is nested too deep/

// Each of these would take hours, or all memory, or the whole stack.
test.each<[what: string, schema: unknown, text: string, says: RegExp]>([
  ['a reference to itself', { $ref: '#' }, '1', tooMany],
  [
    'two that refer to each other',
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    '1',
    tooMany,
  ],
  ['a dynamic reference to itself', { $dynamicAnchor: 'a', $dynamicRef: '#a' }, '1', tooMany],
  ['references that double', { ...both('d0'), $defs: doubling }, '1', tooMany],
  [
    'references that double with the depth of the text',
    { items: { anyOf: [{ $ref: '#' }, { $ref: '#' }] }, type: 'array' },
    nested(60),
    tooMany,
  ],
  ['a text that is nested deep', { items: { $ref: '#' } }, nested(100_000), /nested too deep|Invalid JSON/],
  [
    'a deep schema',
    JSON.parse(`${'{"not":'.repeat(200)}{}${'}'.repeat(200)}`),
    '1',
    /is not valid: it is nested deeper than 128 levels/,
  ],
  [
    'a schema of many parts',
    { enum: Array.from({ length: 30_000 }, () => []) },
    '1',
    /it has more than 20000 tables and lists/,
  ],
  ['a long schema', { description: 'x'.repeat(1 << 20) }, '1', /it has more than 1048576 bytes/],
  [
    'a reference to an address',
    { $ref: 'http://127.0.0.1:9/schema.json' },
    '1',
    /is not valid: can't resolve reference http:\/\/127/,
  ],
  ['a reference to a file', { $ref: 'file:///etc/hostname' }, '1', /is not valid: can't resolve reference file:/],
  ['a back-reference', { pattern: '^(a+)+\\1$' }, '1', /has back-references: no search for them ends in bounded time/],
])('%s ends with an error', (_what, schema, text, says) => {
  expect(validated(schema, text, false)).toMatch(says)
})

test.each([
  [
    'a pattern that backtracks',
    { pattern: '^(a+)+$' },
    JSON.stringify(`${'a'.repeat(100_000)}!`),
    /must match pattern/,
  ],
  [
    'names by such a pattern',
    { patternProperties: { '^(x*)*y$': false } },
    JSON.stringify({ ['x'.repeat(50_000)]: 1 }),
    true,
  ],
  [
    'many items that must differ',
    { uniqueItems: true },
    JSON.stringify(Array.from({ length: 50_000 }, (_, index) => ({ a: [index] }))),
    true,
  ],
] as const)('%s is validated in linear time', (_what, schema, text, wanted) => {
  const given = validated(schema, text, false)
  if (wanted instanceof RegExp) expect(given).toMatch(wanted)
  else expect(given).toBe(wanted)
})

test('a reference to an address is not followed', async () => {
  await using server = await fakeDestination({ body: '{}' })
  expect(validated({ $ref: `${server.url}/schema.json` }, '1', false)).toMatch(/can't resolve reference/)
  expect(validated({ $schema: `${server.url}/draft`, type: 'number' }, '1', false)).toBe(true)
  expect(server.requests).toEqual([])
})
