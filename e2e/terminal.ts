// Runs a command in a pseudo terminal (with `script` of util-linux), with access to the visible screen and to keys.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import xterm from '@xterm/headless'
import { restAfter } from './command.ts'

/** Whether this machine supports pseudo terminals. */
export const hasTerminals = spawnSync('script', ['--version']).status === 0

export const keys = {
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  enter: '\r',
  escape: '\u001b',
  ctrlC: '\u0003',
} as const

export interface TerminalOptions {
  readonly env: NodeJS.ProcessEnv
  readonly columns: number
  readonly rows: number
}

export class Terminal implements AsyncDisposable {
  readonly #screen: InstanceType<typeof xterm.Terminal>
  readonly #child: ChildProcess
  /** The exit code of the command. */
  readonly ended: Promise<number | null>

  /** @param words command and arguments */
  constructor(words: readonly string[], { env, columns, rows }: TerminalOptions) {
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
    const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const sized = `stty cols ${columns} rows ${rows}; exec ${quoted}`
    this.#child = spawn('script', ['--quiet', '--return', '--flush', '--command', sized, '/dev/null'], {
      // CI services set variables that make Node treat all terminals as colourless.
      env: { ...process.env, CI: undefined, NO_COLOR: undefined, TERM: 'xterm-256color', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child.stdout?.on('data', (part: Buffer) => this.#screen.write(part))
    this.ended = new Promise((done) => this.#child.on('close', done))
  }

  /** The lines of the screen without trailing spaces. */
  get text(): string {
    const { active } = this.#screen.buffer
    const lines = Array.from({ length: this.#screen.rows }, (_, at) => active.getLine(active.baseY + at))
    return lines.map((line) => line?.translateToString(true) ?? '').join('\n')
  }

  /** Whether the command uses the alternate screen, which it leaves at its end. */
  get isTaken(): boolean {
    return this.#screen.buffer.active.type === 'alternate'
  }

  press(...pressed: readonly string[]): void {
    for (const key of pressed) this.#child.stdin?.write(key)
  }

  /** Waits until the screen matches, and returns its text. */
  async shows(expected: RegExp, limitMs = 120_000): Promise<string> {
    const end = Date.now() + limitMs
    for (;;) {
      const startedAt = performance.now()
      const { text } = this
      if (expected.test(text)) return text
      if (Date.now() > end) throw new Error(`The screen does not show ${expected}:\n${text.trimEnd()}`)
      await restAfter(startedAt)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
    this.#screen.dispose()
  }
}
