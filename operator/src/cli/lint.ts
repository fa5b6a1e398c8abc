// `penstock lint -f PATH`: checks resources like the operator: structure, references, tenancy, options and programs.

import { counted, type Flags } from '@penstock/agent/program'
import { compileFiles } from '../compile/config.ts'
import { pathsText } from '../compile/resources.ts'
import { helpOf, parseFlags, resourceOptions, resourcePaths } from './arguments.ts'
import { printProblems } from './problems.ts'
import { junitOfProblems, sarifOf } from './reports.ts'

export const options = {
  ...resourceOptions,
  output: {
    type: 'string',
    short: 'o',
    default: 'text',
    oneOf: ['text', 'sarif', 'junit'],
    value: 'FORMAT',
    help: 'Format of the report: text, sarif for code scanning, junit for test reports (text).',
  },
  'own-machine': { type: 'boolean', help: 'Check for `penstock run`, without the rules for namespaces.' },
} as const satisfies Flags

export const usage = `Usage: penstock lint [-f] PATH… [FLAGS]

Checks resources as the operator does, without a cluster: fields, references among the files, rules for namespaces, options, programs. Exit code 78 if there is an error.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const { output } = values
  const paths = resourcePaths(values.file, words)
  const { problems, pipelines, suspended } = compileFiles(paths, {
    ownMachine: values['own-machine'],
    sharedAlone: true,
    lanes: true,
    recursive: values.recursive,
  })
  if (output === 'text') {
    if (!printProblems(problems)) return 78
    const warnings = problems.filter(({ informational }) => informational !== true).length
    const found = warnings === 0 ? 'no problems' : `no errors, ${counted(warnings, 'warning')}`
    console.log(`${counted(pipelines.length + suspended.length, 'Pipeline')} in ${pathsText(paths)}: ${found}.`)
    return 0
  }
  const files = pipelines.flatMap((pipeline) => pipeline.locate([]).file ?? [])
  console.log(output === 'sarif' ? sarifOf(problems) : junitOfProblems(problems, files))
  return problems.some(({ severity }) => severity === 'error') ? 78 : 0
}
