// Writes the derived files of the agent: reference pages and JSON Schema. With `--check` it writes nothing and fails if what is
// there differs in any byte. Nobody edits these files; `npm run generate` makes them.

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describedComponents, referencePages } from '../cli/pages.ts'
import { globalOptions } from '../config/globals.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { configurationSchema } from '../schema/json-schema.ts'
import { indexPage } from '../schema/reference.ts'

const folder = join(import.meta.dirname, '../../reference')

/** Every derived file by its path below the folder. */
export function derivedFiles(): Map<string, string> {
  const pages = referencePages()
  const files = new Map(pages.map((page) => [page.file, page.text]))
  files.set('README.md', indexPage(pages))
  const schema = configurationSchema(describedComponents(), globalOptions, testOptions)
  files.set('schema.json', `${JSON.stringify(schema, undefined, 2)}\n`)
  return files
}

async function existingFiles(): Promise<string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  } catch {
    return [] // the folder does not exist yet
  }
}

async function main(check: boolean): Promise<number> {
  const files = derivedFiles()
  const existing = new Set(await existingFiles())
  const stale = [...existing].filter((file) => !files.has(file))
  const changed: string[] = []
  for (const [file, text] of files) {
    if (!existing.has(file) || (await readFile(join(folder, file), 'utf8')) !== text) changed.push(file)
  }
  if (check) {
    for (const file of changed.toSorted()) {
      console.error(`agent/reference/${file} ${existing.has(file) ? 'differs from its declaration' : 'is missing'}`)
    }
    for (const file of stale.toSorted()) console.error(`agent/reference/${file} belongs to nothing`)
    if (changed.length + stale.length === 0) return 0
    console.error('Run `npm run generate` and commit what it writes.')
    return 1
  }
  for (const file of changed) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), files.get(file) as string)
  }
  for (const file of stale) await rm(join(folder, file))
  console.log(`agent/reference: ${files.size} files, ${changed.length} written, ${stale.length} removed`)
  return 0
}

if (import.meta.main) process.exitCode = await main(process.argv.includes('--check'))
