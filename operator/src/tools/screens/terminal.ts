// Runs a command in a pseudo terminal of a given size (with `script` of util-linux), and captures its screen.

import { spawn } from 'node:child_process'
import xterm from '@xterm/headless'

export type Screen = InstanceType<typeof xterm.Terminal>

export interface Recording {
  /** Shell commands. */
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  readonly columns: number
  readonly rows: number
  /** Text printed before the command, such as a prompt. */
  readonly before?: string
  /** Keys to press when the screen shows a text. */
  readonly keys?: readonly { readonly when: string; readonly press: string }[]
  /** Whether the screen is ready to be captured. By default, it is captured when the command ends. */
  readonly until?: (screen: Screen) => boolean
  /** Replaces text that differs between runs. The text contains terminal codes. */
  readonly steady?: (text: string) => string
}

/** Longer than any command takes on the slowest machine. */
const patienceMs = 180_000

/** Lines of a screen without trailing blanks. A wrapped line counts as two. */
export function linesOf(screen: Screen): readonly string[] {
  const { active } = screen.buffer
  return Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? '')
}

const write = (screen: Screen, text: string) => new Promise<void>((done) => screen.write(text, done))

/** The code that begins to redraw the screen, which ends the previous screen. */
const redrawn = '\r\u001b[K'

function piecesOf(text: string): string[] {
  const [first = '', ...others] = text.split(redrawn)
  return [first, ...others.map((other) => redrawn + other)]
}

/** Runs the command until its screen is ready, ends it, and returns the screen. */
export async function record(recording: Recording): Promise<Screen> {
  const { command, env, columns, rows, until, steady = (text) => text } = recording
  const screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, convertEol: false })
  await write(screen, recording.before ?? '')
  const sized = `stty cols ${columns} rows ${rows} -echoctl; exec ${command}`
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', sized, '/dev/null'], {
    // CI services set variables that make Node treat all terminals as colourless.
    env: { ...process.env, CI: undefined, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((done, failed) => {
    child.on('close', () => done())
    child.on('error', (error) => failed(new Error('`script` of util-linux cannot be started.', { cause: error })))
  })
  const late = setTimeout(
    () => child.stdout.destroy(new Error(`${command} did not show the expected screen in time`)),
    patienceMs,
  )
  const keys = [...(recording.keys ?? [])]
  let isDone = false
  // Keep an incomplete sequence at the end for the next chunk.
  let rest = ''
  try {
    child.stdout.setEncoding('utf8')
    for await (const chunk of child.stdout) {
      const pieces = piecesOf(`${rest}${chunk}`)
      const last = pieces.at(-1) ?? ''
      rest = redrawn.startsWith(last.slice(last.lastIndexOf('\r'))) ? (pieces.pop() ?? '') : ''
      for (const piece of pieces) {
        await write(screen, steady(piece))
        isDone = until?.(screen) === true
        if (isDone) break
      }
      if (isDone) break
      const text = linesOf(screen).join('\n')
      if (keys[0] !== undefined && text.includes(keys[0].when))
        child.stdin.write((keys.shift() as { press: string }).press)
    }
    if (!isDone) await write(screen, steady(rest))
    if (until !== undefined && !isDone)
      throw new Error(`\`${command}\` ended before its screen was complete:\n${linesOf(screen).join('\n').trimEnd()}`)
    return screen
  } finally {
    clearTimeout(late)
    // Ctrl-C, as a person would press.
    child.stdin.on('error', () => {}).write('\u0003')
    child.stdout.resume()
    await ended
  }
}
