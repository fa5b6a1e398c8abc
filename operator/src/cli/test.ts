// `penstock test -f PATH`: runs the `tests` of Pipelines: their transforms alone, on events that the tests give.

import { parseArgs } from 'node:util'
import { loadConfigObject } from '@penstock/agent/config/load'
import { runUnitTests } from '@penstock/agent/config/unit-tests'
import { compileFiles } from '../compile/config.ts'
import { fileOption, resourcePaths } from './arguments.ts'
import { printProblems } from './problems.ts'

export async function run(argv: string[]): Promise<number> {
  const { values } = parseArgs({ args: argv, options: { file: fileOption } })
  const compiled = compileFiles(resourcePaths(values.file), { ownMachine: true })
  if (!printProblems(compiled.problems)) return 78
  const loaded = loadConfigObject(compiled.config)
  if (!loaded.ok) {
    printProblems(loaded.problems)
    return 78
  }
  const { passed, text } = await runUnitTests(loaded.config)
  console.log(text)
  return passed ? 0 : 78
}
