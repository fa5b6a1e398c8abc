// `test`: runs the unit tests of a configuration. Only its transforms run.

import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { runUnitTests } from '../config/unit-tests.ts'
import { takesColors } from '../terminal.ts'
import { loadedConfig } from './loaded-config.ts'
import { configFlags } from './run-flags.ts'

export const flags = {
  ...configFlags,
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(
      helpText(
        `Usage: penstock-agent test [PATH…] [FLAGS]\n\nRuns the unit tests of a configuration (\`tests\`). Exit code 78 if one fails.\n\n${flagHelp(flags)}\n`,
      ),
    )
    return exitCodes.ok
  }
  // Tests need neither sources nor sinks, nor anything from the machine.
  const loaded = await loadedConfig(given, words, { checkMachine: false, allowEmpty: true })
  if (loaded === undefined) return exitCodes.config
  const { passed, text } = await runUnitTests(loaded.config, takesColors(process.stdout))
  process.stdout.write(`${text}\n`)
  return passed ? exitCodes.ok : exitCodes.config
}
