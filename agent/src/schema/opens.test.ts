// Verifies options that are declared as plain text. For each text option of each sink, the test builds the sink with a file name in that
// option, and observes everything that opens, lists or watches files. It fails if an option opens a file.

import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { components } from '../registry.ts'
import { startSink } from '../testing/harness.ts'
import { optionLeaves } from '../testing/option-places.ts'
import { meaningOf } from './meaning.ts'
import { skeleton } from './skeleton.ts'

const sentinel = '/penstock-sentinel/name'
/** Options without which a sink is rejected before it opens files. */
const further: Readonly<Record<string, object>> = {
  monitor_a_logs: { default_api_key: 'k' },
  monitor_a_metrics: { default_api_key: 'k' },
  search_engine: { endpoints: ['http://127.0.0.1:9'] },
}
let opened: string[] = []
const restore: (() => void)[] = []

beforeAll(() => {
  for (const module of [fs, fs.promises] as unknown as Record<string, unknown>[]) {
    for (const [name, original] of Object.entries(module)) {
      if (typeof original !== 'function' || /^[A-Z_]/.test(name)) continue
      module[name] = Object.assign(function (this: unknown, ...args: unknown[]) {
        const [path] = args
        if (String(path).includes(sentinel)) opened.push(name)
        return (original as (...args: unknown[]) => unknown).apply(this, args)
      }, original)
      restore.push(() => {
        module[name] = original
      })
    }
  }
  syncBuiltinESMExports()
})

afterAll(() => {
  for (const undo of restore) undo()
  syncBuiltinESMExports()
})

// A table also gets its required members.
const leaves = components
  .filter(({ kind }) => kind === 'sink')
  .flatMap((sink) => optionLeaves(sink, { siblings: (members) => skeleton(members as never) }))

/** Whether the sink could be built. `opened` lists the files that it opened. */
async function builds(type: string, options: unknown): Promise<boolean> {
  opened = []
  try {
    await using _ = await startSink(type, { ...further[type], ...(options as object) })
    return true
  } catch {
    return false // a sink may reject this text; files that it opened before still count
  }
}

test('no text option of a sink opens a file', async () => {
  const texts = leaves.filter(({ schema }) => meaningOf(schema).text === true)
  expect(texts.length).toBeGreaterThan(100)
  const found: string[] = []
  let built = 0
  for (const leaf of texts) {
    if (await builds(leaf.component.type, leaf.with(sentinel))) built++
    if (opened.length > 0) found.push(`${leaf.name} by ${opened[0]}`)
  }
  expect(found).toEqual([])
  expect(built).toBeGreaterThan(50)
})

test('the test detects options that open files', async () => {
  const files = leaves.filter(({ name }) =>
    /\.(ca_file|crt_file)$|^sink siem_unstructured\.credentials_path$/.test(name),
  )
  expect(files.length).toBeGreaterThan(20)
  const unseen: string[] = []
  for (const leaf of files) {
    await builds(leaf.component.type, leaf.with(sentinel))
    if (opened.length === 0) unseen.push(leaf.name)
  }
  expect(unseen).toEqual([])
})
