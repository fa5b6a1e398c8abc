// The programs that tests run as the agent, the operator or the command: those of the image, with its flags. They are packed once for the
// current sources, which takes some seconds, and cached. PENSTOCK_TEST_SOURCES=1 runs the sources instead.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { pack, packedIn } from '@penstock/agent/tools/pack'
import { cacheFolder } from './cache.ts'
import { type CommandOptions, type CommandResult, execute, node, root } from './command.ts'
import { fingerprint } from './fingerprint.ts'
import { type ImageName, inputs } from './image.ts'

export interface Program {
  readonly command: string
  /** Arguments before those of the call. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const programs = new Map<ImageName, Program>()

/** The command line. */
export function programOf(name: ImageName): Program {
  const known = programs.get(name)
  if (known !== undefined) return known
  const made =
    process.env['PENSTOCK_TEST_SOURCES'] === '1'
      ? { command: node, args: ['--conditions=source', resolve(root, name, 'src/main.ts')], env: {} }
      : programIn(packed(name), name)
  programs.set(name, made)
  return made
}

/** Runs the command to its end, with any exit code. */
export function penstock(
  args: readonly string[],
  options: CommandOptions = {},
  program = programOf('operator'),
): Promise<CommandResult> {
  const { command, args: main, env } = program
  return execute(command, [...main, ...args], { ...options, env: { ...env, ...options.env } })
}

/** The program whose packed files are in a folder. */
export function programIn(folder: string, name: ImageName): Program {
  const text = readFileSync(resolve(root, name, 'Dockerfile'), 'utf8')
  const entry = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(text)?.[1] ?? '[]') as readonly string[]
  const env = Object.fromEntries([...text.matchAll(/\b(MALLOC_\w+)=(\S+)/g)].map(([, key, value]) => [key, value]))
  return { command: node, args: [...entry.slice(1, -1), join(folder, 'main.js')], env }
}

/** Age at which unused programs are deleted. Another run may still use an older one. */
const keptMs = 3 * 24 * 3_600_000

function packed(name: ImageName): string {
  const folder = join(cacheFolder, 'packed')
  // Lazily loaded libraries come from this checkout.
  const target = join(folder, `${name}-${fingerprint(['package-lock.json', ...inputs[name]], root)}`)
  const now = new Date()
  if (!existsSync(target)) {
    mkdirSync(folder, { recursive: true })
    for (const old of readdirSync(folder)) {
      const facts = statSync(join(folder, old), { throwIfNoEntry: false })
      if (facts !== undefined && now.getTime() - facts.mtimeMs > keptMs) {
        rmSync(join(folder, old), { recursive: true, force: true })
      }
    }
    const own = mkdtempSync(join(folder, 'new-'))
    try {
      pack(own, name)
      renameSync(own, target)
    } catch (error) {
      rmSync(own, { recursive: true })
      if (!existsSync(target)) throw error // otherwise another run was faster
    }
  }
  utimesSync(target, now, now)
  return packedIn(target, name)
}
