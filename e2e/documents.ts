// The commands of the documents, as a reader pastes them: every block of `sh`, the folder that the reader works in, and the programs
// that the reader has. `npx` and `npm` stand for what this machine does in their place; everything else is real.

import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './command.ts'
import { helmCommand } from './helm.ts'
import { type Program, programOf } from './program.ts'

export interface ShellBlock {
  readonly page: string
  readonly text: string
  /** Why it is not run, as the page itself says in a comment before it: `<!-- not run: needs a registry -->`. */
  readonly notRun: string | undefined
  /** The table that the page shows after it, before the next block: what its last command prints. */
  readonly table: string | undefined
}

/** A block of a page that has this text, and the files that the reader has. */
export interface Step {
  readonly page: string
  readonly block: string
  readonly files?: Readonly<Record<string, string>>
}

/** Whether it is the block of this step. */
export const isOf = ({ page, text }: Pick<ShellBlock, 'page' | 'text'>, step: Step): boolean =>
  step.page === page && text.includes(step.block)

/** A file of the repository. */
export const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The anchor that is usually made of a heading. */
export function anchorOf(title: string): string {
  return title
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}

/** The YAML on a page that has a text in it. */
export function yamlOf(page: string, part: string): string {
  const blocks = [...textOf(page).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text)
  const found = blocks.find((text) => text.includes(part))
  if (found === undefined) throw new Error(`${page} shows no YAML with ${JSON.stringify(part)}.`)
  return found
}

/** Every block of `sh` in the pages that people read; blocks of `console` are compared with what they show elsewhere. */
export async function shellBlocks(): Promise<readonly ShellBlock[]> {
  const files = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).split('\n')
  const pages = files.filter((path) => path !== '' && !/\/src\/|\/reference\/|^e2e\/conformance\//.test(path))
  const blocks = await Promise.all(
    pages.map(async (page) => {
      const text = await readFile(join(root, page), 'utf8')
      return [...text.matchAll(/^(?:<!-- not run: ([^>]+) -->\n)?```sh\n(.*?)^```$/gms)].map((found) => {
        const [all, notRun, block = ''] = found
        const rest = text.slice(found.index + all.length)
        const [, language, shown] = /^```(\w*)\n(.*?)^```$/ms.exec(rest) ?? []
        return { page, text: block, notRun, table: language === '' && shown?.includes('NAME ') ? shown : undefined }
      })
    }),
  )
  return blocks.flat()
}

/** Commands that go on until Ctrl-C, unless their flags say otherwise. */
const goesOn = `case " $* " in
  *" --watch "*|*" -w "*) forever=1 ;;
  *" run "*) case " $* " in *" --input "*) ;; *) forever=1 ;; esac ;;
  *" tap "*) forever=1 ;;
  *" top "*) case " $* " in *" --once "*) ;; *) forever=1 ;; esac ;;
esac`

const quoted = ({ command, args }: Program) => [command, ...args].map((word) => `'${word}'`).join(' ')
const variables = ({ env }: Program) =>
  Object.entries(env)
    .map(([name, value]) => `export ${name}='${value}'`)
    .join('\n')

/** A reader, with a copy of what commands name of the repository. */
export class Reader implements AsyncDisposable {
  readonly folder: string
  readonly #bin: string
  /** Of the cluster, and of this machine's stand-ins. */
  readonly env: Record<string, string> = {}

  private constructor(folder: string) {
    this.folder = folder
    this.#bin = join(folder, 'node_modules/.bin')
  }

  static async arrive(): Promise<Reader> {
    const reader = new Reader(await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'reader-')))
    await mkdir(reader.#bin, { recursive: true })
    for (const path of ['charts', 'crds', 'examples', 'operator/install.yaml', 'kind-config.yaml', 'package.json'])
      await cp(join(root, path), join(reader.folder, path), { recursive: true })
    for (const path of ['agent/Dockerfile', 'operator/Dockerfile'])
      await cp(join(root, path), join(reader.folder, path), { recursive: true })
    await reader.#programs()
    return reader
  }

  async program(name: string, text: string): Promise<void> {
    await writeFile(join(this.#bin, name), `#!/usr/bin/env bash\n${text}\n`)
    await chmod(join(this.#bin, name), 0o755)
  }

  async link(name: string, path: string): Promise<void> {
    await symlink(path, join(this.#bin, name))
  }

  async #programs(): Promise<void> {
    const command = programOf('operator')
    const agent = programOf('agent')
    const interrupt = join(import.meta.dirname, 'documents/until-seen.ts')
    const penstock = `${variables(command)}\n${goesOn}\n[[ -z $forever ]] || exec '${process.execPath}' '${interrupt}' ${quoted(command)} "$@"\nexec ${quoted(command)} "$@"`
    await this.program('penstock', penstock)
    await this.program('kubectl-penstock', penstock)
    await this.program('penstock-agent', `${variables(agent)}\nexec ${quoted(agent)} "$@"`)
    await this.program('npx', 'exec "$@"')
    // The packages are there, and the run of all tests is this one.
    const { start } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')).scripts as { start: string }
    await this.program(
      'npm',
      `case $1 in ci|test) ;; start) exec penstock ${start.split('main.ts ')[1]} ;; *) exit 64 ;; esac`,
    )
    await this.link('helm', helmCommand)
    await this.link('node', process.execPath)
  }

  async write(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.folder, path)), { recursive: true })
    await writeFile(join(this.folder, path), text)
  }

  /**
   * Runs a block as it is printed, up to the first command that fails.
   * @param cwd the folder below the reader's
   */
  async paste(text: string, cwd = '.'): Promise<{ readonly code: number | null; readonly printed: string }> {
    const { FORCE_COLOR: _, ...environment } = process.env
    const env = { ...environment, PATH: `${this.#bin}:${process.env['PATH']}`, ...this.env }
    const script = [
      // A process that a block leaves in the background, such as a forwarded port, ends with it.
      `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT`,
      `trap 'echo "ended with $?: $BASH_COMMAND" >&2' ERR`,
      'set -eE -o pipefail',
      text,
    ].join('\n')
    const at = { cwd: join(this.folder, cwd), env, timeout: 540_000 }
    const shell = spawn('bash', ['-c', script], { ...at, stdio: ['ignore', 'pipe', 'pipe'] })
    let printed = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        printed += chunk
      })
    const { promise, resolve } = Promise.withResolvers<number | null>()
    shell.on('exit', resolve)
    return { code: await promise, printed }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}
