#!/usr/bin/env -S node --conditions=source

// The process: finds the sub-command, runs it, and exits with its code. Each command is loaded on demand, so a running agent holds
// only the code that it needs.

import { type Command, commands as described } from './cli/commands.ts'
import { keepCompiled } from './cli/compiled.ts'
import { leaveMemoryOutOfDumps } from './cli/core-dump.ts'
import { exitCodeOf, exitCodes } from './command-line/exit-codes.ts'
import { helpText } from './command-line/help.ts'
import { commandNamed, endWithReader, faultText, firstWords, isPathLike } from './command-line/program.ts'
import { PenstockError } from './errors.ts'
import { printable, printOnlyPrintable } from './printable.ts'
import { readColor } from './terminal.ts'
import { version } from './version.ts'

const commands: Readonly<Record<string, Command>> = {
  ...described,
  completion: { load: () => import('./cli/completion.ts'), help: 'Print a completion script for a shell.' },
}

function usage(): string {
  const shown = Object.entries(commands).filter(([, command]) => command.alias === undefined)
  const lines = shown.map(([name, command]) => `  ${name.padEnd(12)}${command.help}`)
  return `penstock-agent ${version}

Usage: penstock-agent [PATH]… [FLAGS]
       penstock-agent COMMAND [ARGUMENTS]

Commands:
${lines.join('\n')}

Run penstock-agent COMMAND --help for details, and penstock-agent run --help for the flags of the agent itself.

Every command also takes:
  --color auto|always|never  Whether to colour. auto: on a terminal, unless NO_COLOR is set or TERM is dumb.
  --debug                    Print the stack of an error.
`
}

/**
 * Commands whose output is not only text for people: unchanged events, logs, and codes that move the cursor of the
 * input line.
 */
const ownStreams: ReadonlySet<string> = new Set(['run', 'remap', 'vrl'])

async function main(argv: readonly string[]): Promise<number> {
  const { asks, words: given } = firstWords(argv)
  const [first] = given
  if (asks === 'version' || (first === 'version' && given.length === 1)) {
    process.stdout.write(`penstock-agent ${version}\n`)
    return exitCodes.ok
  }
  if (asks === 'help' || (first === 'help' && given.length === 1)) {
    process.stdout.write(helpText(usage()))
    return exitCodes.ok
  }
  if (first === 'help') return await main([...given.slice(1), '--help'])
  // A path alone is a configuration to run.
  const isCommand = first !== undefined && !first.startsWith('-') && !isPathLike(first)
  const name = isCommand ? first : 'run'
  const command = commandNamed('penstock-agent', commands, name)
  if (name !== 'run') {
    waitsForReader = true
    endWithReader()
  }
  if (!ownStreams.has(name)) printOnlyPrintable()
  else if (name !== 'run') printOnlyPrintable([process.stderr])
  const { run, flags, flagTable } = await command.load()
  const words = isCommand ? given.slice(1) : given
  const plain = readColor(words)
  return run((flags ?? flagTable)?.['color'] === undefined ? plain : words)
}

/**
 * Whether to wait for the reader of the output. The agent itself does not wait for the reader of its log when it ends.
 */
let waitsForReader = false

/** Waits until pipes have taken all output, because `process.exit` discards the rest. */
async function outputFlushed(): Promise<void> {
  if (!waitsForReader) return
  await flushed(process.stdout)
  await flushed(process.stderr)
}

async function flushed(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0) return
  const { promise, resolve } = Promise.withResolvers<void>()
  stream.write('', () => resolve())
  await promise
}

/** Adds the error code, which has a page in the reference. Usage errors need no such page. */
const codedText = (error: PenstockError): string =>
  error.code === 'PEN_USAGE' ? error.message : `${error.message} (${error.code})`

const argv = process.argv.slice(2)
leaveMemoryOutOfDumps()
keepCompiled()

try {
  const code = await main(argv)
  await outputFlushed()
  process.exit(code)
} catch (error) {
  const fault = !(error instanceof PenstockError)
  const withStack = fault && firstWords(argv).isDebug && error instanceof Error
  const what = fault ? faultText(error) : codedText(error)
  const text = withStack ? (error.stack ?? error.message) : what
  process.stderr.write(`${printable(text)}\n`)
  await outputFlushed()
  process.exit(exitCodeOf(error))
}
