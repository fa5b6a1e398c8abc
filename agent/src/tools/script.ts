// Shared by the scripts of this repository that people run. They declare their flags in a table, as the agent's commands do, and `--help`
// prints them. For invalid arguments, a script prints the problem and the usage, and exits with 2.

import { type Flags, flagHelp, type ParsedArgs, parseFlags } from '../command-line/flags.ts'
import { PenstockError } from '../errors.ts'

export interface Script<F extends Flags> {
  /** The command without its flags, such as `npm run bench -- SCENARIO…`. */
  readonly call: string
  /** Its purpose, for the help. */
  readonly about: string
  readonly flags: F
  /** Whether the script accepts positional arguments, which `run` checks. */
  readonly words?: boolean
  /** Returns the exit code. If it throws a `misuse`, that is reported as a problem of the arguments. */
  run(given: ParsedArgs<F>): number | Promise<number>
}

export async function runScript<const F extends Flags>(script: Script<F>): Promise<void> {
  const help = { help: { type: 'boolean', short: 'h', help: 'Print this text.' } } as const satisfies Flags
  const table: F & typeof help = { ...script.flags, ...help }
  const flags = Object.entries(script.flags).map(([name, { type, value = 'VALUE' }]) =>
    type === 'boolean' ? `[--${name}]` : `[--${name} ${value}]`,
  )
  const usage = `Usage: ${[script.call, ...flags].join(' ')}`
  try {
    const given = parseFlags(process.argv.slice(2), table)
    if (given.flags.help) {
      console.log(`${usage}\n\n${script.about}\n\n${flagHelp(table)}`)
      return
    }
    const [word] = given.words
    if (word !== undefined && script.words !== true)
      throw misuse(`Unexpected argument "${word}"; only flags are allowed.`)
    process.exitCode = await script.run(given)
  } catch (error) {
    if (!(error instanceof PenstockError && error.code === 'PEN_USAGE')) throw error
    console.error(`${error.message}\n${usage}`)
    process.exitCode = 2
  }
}

export function misuse(problem: string): PenstockError {
  return new PenstockError('PEN_USAGE', problem)
}
