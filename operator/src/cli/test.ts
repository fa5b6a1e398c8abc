// `penstock test -f PATH`: runs the `tests` of Pipelines: only their transforms, on the events of the tests.

import { loadConfigObject, runUnitTests } from '@penstock/agent/config'
import { type Flags, takesColors } from '@penstock/agent/program'
import { compileFiles } from '../compile/config.ts'
import { helpOf, parseFlags, resourceOptions, resourcePaths } from './arguments.ts'
import { printProblems } from './problems.ts'
import { junitOfProblems, junitOfTests } from './reports.ts'

export const options = {
  ...resourceOptions,
  output: {
    type: 'string',
    short: 'o',
    default: 'text',
    oneOf: ['text', 'junit'],
    value: 'FORMAT',
    help: 'Format of the report: text, or junit for test reports (text).',
  },
} as const satisfies Flags

export const usage = `Usage: penstock test [-f] PATH… [FLAGS]

Runs the tests in Pipelines (\`spec.tests\`): their transforms, without sources and sinks, on the events of the tests. Exit code 78 if one fails.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const isText = values.output === 'text'
  const { config, problems } = compileFiles(resourcePaths(values.file, words), {
    ownMachine: true,
    recursive: values.recursive,
  })
  const loaded = loadConfigObject(config)
  const all = loaded.ok ? problems : [...problems, ...loaded.problems]
  // Problems are printed on standard error in both formats; a report must not look as if there were no tests.
  const isFine = printProblems(loaded.ok ? all : problems.length > 0 ? problems : all)
  if (!isFine || !loaded.ok) {
    if (!isText) console.log(junitOfProblems(all, []))
    return 78
  }
  const { passed, text, tests } = await runUnitTests(loaded.config, isText && takesColors(process.stdout))
  console.log(isText ? text : junitOfTests(tests))
  return passed ? 0 : 78
}
