// A command in a pseudo terminal of a given size, as `script` of util-linux makes it, and what its screen shows then.

import { spawn } from 'node:child_process'
import xterm from '@xterm/headless'

export type Screen = InstanceType<typeof xterm.Terminal>

export interface Recording {
  /** The commands of the shell. */
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  readonly columns: number
  readonly rows: number
  /** Printed before the command, such as a prompt. */
  readonly before?: string
  /** Keys to press, each when the screen shows the text. */
  readonly keys?: readonly { readonly when: string; readonly press: string }[]
  /** Whether the screen is as it should be recorded; left out: it is recorded when the command ends. */
  readonly until?: (screen: Screen) => boolean
  /** Replaces what differs from run to run, in the text with codes of the terminal. */
  readonly steady?: (text: string) => string
}

/** Longer than a command takes on the slowest machine. */
const patienceMs = 180_000

/** Lines of a screen, without blanks at their ends; those that are wrapped as two. */
export function linesOf(screen: Screen): readonly string[] {
  const { active } = screen.buffer
  return Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? '')
}

const write = (screen: Screen, text: string) => new Promise<void>((done) => screen.write(text, done))

/** Begins a line that is drawn again: the text before it is a whole screen. */
const redrawn = '\r\u001b[K'

function piecesOf(text: string): string[] {
  const [first = '', ...others] = text.split(redrawn)
  return [first, ...others.map((other) => redrawn + other)]
}

/** Runs the command until its screen is as wanted, ends it, and returns the screen. */
export async function record(recording: Recording): Promise<Screen> {
  const { command, env, columns, rows, until, steady = (text) => text } = recording
  const screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, convertEol: false })
  await write(screen, recording.before ?? '')
  const sized = `stty cols ${columns} rows ${rows} -echoctl; exec ${command}`
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', sized, '/dev/null'], {
    // Where a service runs tests, it says so, and Node takes no terminal for one with colours then.
    env: { ...process.env, CI: undefined, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((done, failed) => {
    child.on('close', () => done())
    child.on('error', (error) => failed(new Error('`script` of util-linux cannot be started.', { cause: error })))
  })
  const late = setTimeout(() => child.stdout.destroy(new Error(`${command} did not show what it should`)), patienceMs)
  const keys = [...(recording.keys ?? [])]
  let isDone = false
  // The end of what has come, where more may belong to it.
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
    // Ctrl-C, as a person ends it.
    child.stdin.on('error', () => {}).write('\u0003')
    child.stdout.resume()
    await ended
  }
}
