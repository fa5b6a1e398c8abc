import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { customResourceDefinitions } from './crds.ts'
import { kinds } from './kinds.ts'
import { fieldText, kindNamed, kindPage, resourcesOf, resourcesSchema } from './reference.ts'

const root = join(import.meta.dirname, '../../..')

test('a kind is found by all names that kubectl accepts', () => {
  for (const { metadata, spec } of customResourceDefinitions()) {
    const { names } = spec as { names: { kind: string; plural: string; singular: string; shortNames: string[] } }
    for (const name of [names.kind, names.plural, names.singular, ...names.shortNames])
      expect(kindNamed(name)?.kind, metadata.name).toBe(names.kind)
  }
  expect(kindNamed('Deployment')).toBeUndefined()
})

test('the page of a kind explains every field', () => {
  for (const kind of kinds) {
    const fields = [...kindPage(kind).matchAll(/^- `([^`]+)` \((.+)\): (.+)$/gm)]
    expect(fields.length, kind.kind).toBeGreaterThan(5)
    for (const [, path = '', type = '', meaning = ''] of fields) {
      const found = fieldText(kind, path)
      expect(found).toMatchObject({ ok: true })
      if (found.ok) expect(found.text).toContain(`(${type})\n\n${meaning}`)
    }
  }
})

test('every field of a spec has an example', () => {
  for (const kind of kinds) {
    const fields = [...kindPage(kind).matchAll(/^- `(spec\.[^`]+)` \((.+)\): (.+)$/gm)]
    const names = fields.map(([, path = '']) => path)
    for (const [, path = '', , meaning = ''] of fields) {
      const isLeaf = !names.some((name) => name.startsWith(`${path}.`) || name.startsWith(`${path}[].`))
      // Only cluster-wide kinds select namespaces.
      const isUnused = kind.namespaced && path.includes('.selector.namespaces')
      expect(meaning.includes(' Example: `'), `${kind.kind} ${path}`).toBe(
        isLeaf && (!isUnused || kind.kind === 'Agent'),
      )
    }
  }
})

test('the default of a field is on its page, in its text and in the schema, and not in the CRD', () => {
  const pages = kinds.map((kind) => kindPage(kind)).join('')
  for (const line of [
    '- `spec.drainSeconds` (integer, default `60`, at least 0): ',
    '- `spec.rollout.canary.bake` (string, default `"60s"`): ',
    '- `spec.limits.perContainer.onLimit` (one of `Drop`, `Lag`, default `"Lag"`): ',
    '- `spec.limits.bufferBytes` (integer or string, default `"10Gi"`, at least 0): ',
  ])
    expect(pages).toContain(line)
  const agent = kindNamed('agent')
  if (agent === undefined) throw new Error('There is no Agent.')
  expect(fieldText(agent, 'spec.drainSeconds')).toMatchObject({
    text: expect.stringContaining('Agent.spec.drainSeconds  (integer, default `60`, at least 0)'),
  })
  expect(JSON.stringify(resourcesSchema())).toContain('"default":60')
  // The API server would write a default into the spec of every object.
  expect(JSON.stringify(customResourceDefinitions())).not.toMatch(/"(?:x-)?default":/)
})

test('the examples are valid resources', () => {
  const validate = new Ajv({ strict: false }).compile(resourcesSchema())
  const resources = kinds.flatMap((kind) => resourcesOf(kind) as { kind: string; metadata: { name: string } }[])
  for (const resource of resources) {
    expect(validate(resource), `${resource.kind} ${JSON.stringify(validate.errors?.slice(0, 3))}`).toBe(true)
  }
  expect(new Set(resources.map(({ kind }) => kind))).toEqual(new Set(kinds.map(({ kind }) => kind)))
})

test('a field is explained with the fields below it, wherever it is in a list', () => {
  const pipeline = kindNamed('pipeline')
  if (pipeline === undefined) throw new Error('There is no Pipeline.')
  const text = fieldText(pipeline, 'spec.sources.multiline')
  expect(text).toEqual(fieldText(pipeline, 'spec.sources[0].multiline'))
  expect(text).toMatchObject({
    ok: true,
    text: expect.stringContaining('preset  (one of `java`, `python`, `go`, `ruby`)'),
  })
  expect(fieldText(pipeline, 'spec.sorces')).toMatchObject({ ok: false, known: expect.arrayContaining(['sources']) })
})

test('the schema for editors accepts the examples, and rejects mistakes', () => {
  const validate = new Ajv({ strict: false }).compile(resourcesSchema())
  const files = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' }).map((file) =>
    join(root, 'examples', file),
  )
  let checked = 0
  for (const file of files.filter((each) => each.endsWith('.yaml'))) {
    const text = readFileSync(file, 'utf8')
    const [, path] = /^# yaml-language-server: \$schema=(.+)$/m.exec(text) ?? []
    if (path === undefined) continue
    expect(resolve(dirname(file), path), file).toBe(join(root, 'operator/reference/schema.json'))
    for (const document of parseAllDocuments(text)) {
      expect(validate(document.toJS()), `${file} ${JSON.stringify(validate.errors?.slice(0, 3))}`).toBe(true)
      checked++
    }
  }
  expect(checked).toBeGreaterThan(4)

  const head = 'apiVersion: penstock.dev/v1alpha1\nkind: Pipeline\nmetadata: { name: a }\n'
  expect(validate(parse(`${head}spec: { sources: [{ name: a, type: x, multilin: {} }] }`))).toBe(false)
  expect(validate(parse(`${head}spec: { mode: Everywhere }`))).toBe(false)
})
