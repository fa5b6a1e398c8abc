// `penstock lint -f PATH`: checks resources as the operator does: shape, references, tenancy, options and programs.

import { parseArgs } from 'node:util'
import { compileFiles } from '../compile/config.ts'
import { fileOption, resourcePaths } from './arguments.ts'
import { printProblems } from './problems.ts'

export async function run(argv: string[]): Promise<number> {
  const { values } = parseArgs({
    args: argv,
    options: { file: fileOption, 'own-machine': { type: 'boolean', default: false } },
  })
  const paths = resourcePaths(values.file)
  const compiled = compileFiles(paths, { ownMachine: values['own-machine'] })
  if (!printProblems(compiled.problems)) return 78
  console.log(`${compiled.pipelines.length} Pipeline(s) in ${paths.join(', ')}: no problems.`)
  return 0
}
