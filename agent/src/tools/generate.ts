// Writes the derived files of the agent: reference pages and JSON Schema. With `--check`, it writes nothing and fails if a file differs.
// `npm run generate` runs it; never edit these files by hand.

import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describedComponents, referencePages } from '../cli/pages.ts'
import { globalOptions } from '../config/globals.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { textMateGrammar } from '../remap/textmate.ts'
import { configurationSchema } from '../schema/json-schema.ts'
import { indexPage } from '../schema/reference.ts'
import { roomsPage } from '../testing/agent-rooms.ts'
import { withDerived } from '../testing/rooms.ts'
import { adaptivePlots } from './adaptive-plot.ts'
import { kernelModule } from './kernel.ts'

const folder = join(import.meta.dirname, '../../reference')

/** All derived files by path below the folder. */
async function derivedFiles(): Promise<Map<string, string>> {
  const plots = await adaptivePlots()
  const pages = [...referencePages(), plots.page]
  const files = new Map(pages.map((page) => [page.file, page.text]))
  files.set('README.md', indexPage(pages))
  for (const [file, text] of plots.files) files.set(file, text)
  const schema = configurationSchema(describedComponents(), globalOptions, testOptions)
  files.set('remap.tmLanguage.json', `${JSON.stringify(textMateGrammar(), undefined, 2)}\n`)
  files.set('schema.json', `${JSON.stringify(schema, undefined, 2)}\n`)
  return files
}

/** A folder with derived files. */
export interface DerivedFolder {
  /** The name of the folder in messages. */
  readonly name: string
  readonly path: string
  /** File contents by path below the folder. */
  readonly files: ReadonlyMap<string, string>
  /** Whether the folder also contains files that are not derived. Otherwise other files are reported as stale. */
  readonly shared?: true
}

/** Writes folders, or only lists the differences. Returns the exit code. */
export async function deriveFolders(
  folders: readonly DerivedFolder[],
  check: boolean,
  command = 'npm run generate',
): Promise<number> {
  let differing = 0
  for (const derived of folders) differing += check ? await differences(derived) : await write(derived)
  if (differing === 0) return 0
  console.error(`Run \`${command}\` and commit the result.`)
  return 1
}

async function existingFiles(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
  } catch {
    return [] // The folder does not exist yet.
  }
}

async function compare({ path, files, shared }: DerivedFolder) {
  const existing = new Set(
    shared ? [...files.keys()].filter((file) => existsSync(join(path, file))) : await existingFiles(path),
  )
  const stale = [...existing].filter((file) => !files.has(file))
  const changed: string[] = []
  for (const [file, text] of files) {
    if (!existing.has(file) || (await readFile(join(path, file), 'utf8')) !== text) changed.push(file)
  }
  return { existing, stale, changed }
}

async function differences(derived: DerivedFolder): Promise<number> {
  const { existing, stale, changed } = await compare(derived)
  for (const file of changed.toSorted()) {
    console.error(`${derived.name}/${file} ${existing.has(file) ? 'differs from its declaration' : 'is missing'}`)
  }
  for (const file of stale.toSorted()) console.error(`${derived.name}/${file} has no declaration`)
  return changed.length + stale.length
}

async function write(derived: DerivedFolder): Promise<0> {
  const { stale, changed } = await compare(derived)
  for (const file of changed) {
    await mkdir(dirname(join(derived.path, file)), { recursive: true })
    await writeFile(join(derived.path, file), derived.files.get(file) as string)
  }
  for (const file of stale) await rm(join(derived.path, file))
  console.log(`${derived.name}: ${derived.files.size} files, ${changed.length} written, ${stale.length} removed`)
  return 0
}

/** agent/ARCHITECTURE.md, in which only the list of rooms is derived. */
function architecture(): DerivedFolder {
  const path = join(import.meta.dirname, '../..')
  const page = readFileSync(join(path, 'ARCHITECTURE.md'), 'utf8')
  return {
    name: 'agent',
    path,
    files: new Map([['ARCHITECTURE.md', withDerived(page, 'rooms', roomsPage())]]),
    shared: true,
  }
}

/** Compiled kernels, next to the folders of their sources. */
async function kernels(): Promise<DerivedFolder> {
  const path = join(import.meta.dirname, '..')
  const bytes = { folder: join(path, 'bytes/kernel'), pages: 148, name: 'kernelCode' }
  const deflate = { folder: join(path, 'formats/deflate'), pages: 6, name: 'deflateCode' }
  const files = new Map([
    ['bytes/kernel-code.ts', await kernelModule(bytes)],
    ['formats/deflate-code.ts', await kernelModule(deflate)],
  ])
  return { name: 'agent/src', path, files, shared: true }
}

if (import.meta.main) {
  const reference = { name: 'agent/reference', path: folder, files: await derivedFiles() }
  process.exitCode = await deriveFolders([reference, architecture(), await kernels()], process.argv.includes('--check'))
}
