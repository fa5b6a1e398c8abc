// Helpers for tests of conversions: convert a Pipeline, pass an event through its transforms, and run `lint`.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfigObject, runUnitTests, textLiteral } from '@penstock/agent/config'
import { afterAll } from 'vitest'
import type { Document } from 'yaml'
import { compileFiles } from '../compile/config.ts'
import { Draft, type Included, type NamedText } from '../migrate/draft.ts'
import { parsedTime } from '../migrate/fluent-bit/own-time.ts'

let folder: string | undefined
afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true })
})

type Convert = (files: readonly NamedText[], included: Included, draft: Draft) => void

export function converted(convert: Convert, files: readonly NamedText[], namespace?: string) {
  const draft = new Draft(namespace)
  convert(files, () => [], draft)
  const document = draft.document({ name: 'converted', namespace })
  // Each parser of JSON causes the report about fields named `timestamp`, which has tests of its own.
  const gaps = draft.gaps.filter(({ subject }) => subject !== parsedTime)
  return { document, gaps, all: draft.gaps, resource: document.toJSON() }
}

let written = 0
/** Problems and failing unit tests of a resource, with a Secret for its variables. */
export async function lint(text: string): Promise<string[]> {
  folder ??= mkdtempSync(join(tmpdir(), 'penstock-loki-'))
  const file = join(folder, `${++written}.yaml`)
  const keys = new Set([...text.matchAll(/SECRET\[env\.(\w+)\]/g)].map(([, name]) => `  ${name}: x\n`))
  const namespace = /^ {2}namespace: (\S+)$/m.exec(text)?.[1] ?? 'penstock-system'
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: converted-environment, namespace: ${namespace} }\nstringData:\n${[...keys].join('')}`
  writeFileSync(file, keys.size === 0 ? text : `${text}${secret}`)
  const problems = compileFiles([file], { ownMachine: false }).problems.map(
    ({ path, message, help, rendered }) => `${path}: ${message} ${help ?? ''} ${rendered ?? ''}`,
  )
  if (problems.length > 0 || !/^ {2}tests:/m.test(text)) return problems
  const loaded = loadConfigObject(compileFiles([file], { ownMachine: true }).config)
  if (!loaded.ok) return loaded.problems.map(({ path, message }) => `${path}: ${message}`)
  const outcome = await runUnitTests(loaded.config)
  return outcome.passed ? [] : [outcome.text]
}

interface Entries {
  readonly name: string
  readonly inputs: readonly string[]
}

/** A value as a literal of the remap language. */
function literal(value: unknown): string {
  if (typeof value === 'string') return textLiteral(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([name, item]) => `${textLiteral(name)}: ${literal(item)}`)
    .join(', ')} }`
}

/** Adds a transform that makes a time of the text `timestamp` before another one, and returns its name. A test has texts only. */
export function withClock(document: Document, before: string): string {
  const transforms: readonly Entries[] = document.toJSON().spec.transforms
  const entry = transforms.findIndex(({ name }) => name === before)
  if (entry < 0) return before
  document.setIn(['spec', 'transforms', entry, 'inputs'], ['clock'])
  document.addIn(
    ['spec', 'transforms'],
    document.createNode({
      name: 'clock',
      type: 'remap',
      inputs: transforms[entry]?.inputs,
      config: { source: '.timestamp = parse_timestamp(.timestamp, "%+") ?? .timestamp' },
    }),
  )
  return 'clock'
}

/**
 * Adds a unit test: the event enters the first transform after a source, and the transform before the sink must return the expected event.
 * @param expected undefined if no event may come out
 */
export function withTest(
  document: Document,
  resource: { readonly spec: { readonly transforms: readonly Entries[]; readonly sinks: readonly Entries[] } },
  event: object,
  expected: Readonly<Record<string, unknown>> | undefined,
  insertAt = resource.spec.transforms[0]?.name ?? '',
): void {
  const at = resource.spec.sinks[0]?.inputs[0] ?? ''
  const conditions = Object.entries(expected ?? {}).map(([name, value]) =>
    name === 'timestamp' ? `.timestamp == t'${String(value)}'` : `.${name} == ${literal(value)}`,
  )
  const entry = 'timestamp' in event ? withClock(document, insertAt) : insertAt
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'event',
        insertAt: entry,
        input: { log: event },
        expect: [expected === undefined ? { at, count: 0 } : { at, assert: conditions.join(' && ') }],
      },
    ],
  )
}
