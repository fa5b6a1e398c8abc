// Runs a command that does not end by itself, as a reader would: waits for its first results, and then presses Ctrl-C.
//   node until-seen.ts COMMAND [ARGUMENTS]

import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'

const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['inherit', 'pipe', 'pipe'] })
const isOver = new Promise<number>((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
const isSeen = new Promise<void>((resolve) => {
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const)
    from.on('data', (chunk: Buffer) => {
      to.write(chunk)
      // Earlier messages are on standard error.
      if (to === process.stdout) resolve()
    })
})
await Promise.race([isSeen, isOver])
// Wait for some further output.
await Promise.race([setTimeout(500, undefined, { ref: false }), isOver])
child.kill('SIGINT')
process.exitCode = await isOver
