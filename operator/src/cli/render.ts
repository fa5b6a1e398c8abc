// `penstock render -f PATH`: prints the agent configuration that the resources compile to.

import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { compileFiles } from '../compile/config.ts'
import { fileOption, resourcePaths } from './arguments.ts'
import { printProblems } from './problems.ts'

export async function run(argv: string[]): Promise<number> {
  const { values } = parseArgs({ args: argv, options: { file: fileOption } })
  const compiled = compileFiles(resourcePaths(values.file), {
    ownMachine: true,
    standalone: true,
  })
  if (!printProblems(compiled.problems)) return 78
  process.stdout.write(stringify(compiled.config, { lineWidth: 0 }).replaceAll('$', '$$$$'))
  return 0
}
