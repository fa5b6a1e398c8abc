// Runs the commands of the documents as a reader would: all `sh` blocks, in the folder and with the programs of the reader. `npx` and `npm`
// are replaced by local equivalents; everything else is real.

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
  /** The reason why it is not run, from a comment before it in the page: `<!-- not run: needs a registry -->`. */
  readonly notRun: string | undefined
  /** The table between it and the next block: the output of its last command. */
  readonly table: string | undefined
}

/** A block of a page, identified by a part of its text, and the files of the reader. */
export interface Step {
  readonly page: string
  readonly block: string
  readonly files?: Readonly<Record<string, string>>
}

/** Whether a block belongs to this step. */
export const isOf = ({ page, text }: Pick<ShellBlock, 'page' | 'text'>, step: Step): boolean =>
  step.page === page && text.includes(step.block)

/** A file of the repository. */
export const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The anchor for a heading. */
export function anchorOf(title: string): string {
  return title
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}

/** The YAML on a page that contains a text. */
export function yamlOf(page: string, part: string): string {
  const blocks = [...textOf(page).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text)
  const found = blocks.find((text) => text.includes(part))
  if (found === undefined) throw new Error(`${page} shows no YAML with ${JSON.stringify(part)}.`)
  return found
}

/** All `sh` blocks in the pages for people. Other tests compare `console` blocks with real output. */
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

/** Commands that run until Ctrl-C, unless their flags end them. */
const runsForever = `case " $* " in
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

/** A reader, with a copy of the parts of the repository that commands need. */
export class Reader implements AsyncDisposable {
  readonly folder: string
  readonly #bin: string
  /** Environment variables for the cluster and the local equivalents. */
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
    const penstock = `${variables(command)}\n${runsForever}\n[[ -z $forever ]] || exec '${process.execPath}' '${interrupt}' ${quoted(command)} "$@"\nexec ${quoted(command)} "$@"`
    await this.program('penstock', penstock)
    await this.program('kubectl-penstock', penstock)
    await this.program('penstock-agent', `${variables(agent)}\nexec ${quoted(agent)} "$@"`)
    await this.program('npx', 'exec "$@"')
    // Packages are already installed, and this already is the test run.
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
   * Runs a block exactly as printed, up to the first failing command.
   * @param cwd the folder, relative to the reader's folder
   */
  async paste(text: string, cwd = '.'): Promise<{ readonly code: number | null; readonly printed: string }> {
    const { FORCE_COLOR: _, ...environment } = process.env
    const env = { ...environment, PATH: `${this.#bin}:${process.env['PATH']}`, ...this.env }
    const script = [
      // Background processes of a block, such as port forwarding, end with it.
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
