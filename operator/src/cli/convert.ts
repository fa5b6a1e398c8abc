// `penstock convert -f CONFIG`: prints another agent's configuration as a Pipeline with comments on standard output. Standard error gets
// a row for each gap: the setting, why it has no equivalent, and the replacement.

import { globSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseText, positionAt, readYamlDocuments } from '@penstock/agent/config'
import { exitCodes, fileReason, PenstockError } from '@penstock/agent/errors'
import type { Flags } from '@penstock/agent/program'
import { namePattern, nameWords } from '../api/pipeline.ts'
import { agentFor, agentsOf, type FoundAgent, type OldAgent, oldAgents } from '../migrate/agents.ts'
import { Draft, type NamedText } from '../migrate/draft.ts'
import { isBlank, isYamlLike, secretsIn } from '../migrate/inner.ts'
import { fitNamespace } from '../migrate/namespaced.ts'
import { componentFolders } from '../migrate/vector/read.ts'
import { helpOf, parseFlags } from './arguments.ts'
import { gapReport, reportFormats } from './gap-report.ts'
import { proofIn, proofOptions, prove } from './prove.ts'

const agentNames = oldAgents.map(({ name }) => name)

export const options = {
  file: {
    type: 'string',
    short: 'f',
    multiple: true,
    value: 'PATH',
    help: 'File, folder with the files of one configuration, or - for standard input. May be repeated.',
  },
  from: {
    type: 'string',
    oneOf: agentNames,
    value: 'AGENT',
    help: `Agent of the configuration: ${agentNames.join(', ')} (detected from its content).`,
  },
  name: { type: 'string', default: 'converted', value: 'NAME', help: 'Name of the Pipeline (converted).' },
  namespace: {
    type: 'string',
    short: 'n',
    value: 'NS',
    help: 'Print a Pipeline of this namespace, which only reads pods in it.',
  },
  cluster: { type: 'boolean', help: 'Print a ClusterPipeline (the default without -n).' },
  report: {
    type: 'string',
    default: 'text',
    oneOf: reportFormats,
    value: 'FORMAT',
    help: 'Format of the list of gaps: text, json or markdown (text).',
  },
  ...proofOptions,
} as const satisfies Flags

export const usage = `Usage: penstock convert [-f] PATH… [FLAGS]

Converts the configuration of another agent to a ClusterPipeline, and reports what has no counterpart. Exit code 78 if a part of the configuration cannot be parsed, so that the Pipeline may lack it.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const paths = [...values.file, ...words]
  if (paths.length === 0) {
    throw new PenstockError('PEN_USAGE', 'Name the configuration of the other agent: penstock convert -f CONFIG.')
  }
  if (values.cluster && values.namespace !== undefined) {
    throw new PenstockError('PEN_USAGE', 'A ClusterPipeline has no namespace: give `--cluster` or `-n`, not both.')
  }
  if (!new RegExp(namePattern).test(values.name)) {
    throw new PenstockError('PEN_USAGE', `\`--name\` must be ${nameWords}; found \`${values.name}\`.`)
  }
  const format = values.report
  const proof = proofIn(values)
  const given = paths.flatMap(filesOf)
  const { agent, files, gaps } = agentOf(given, values.from)

  const draft = new Draft(values.namespace)
  for (const file of given) for (const [variable, key] of secretsIn(file)) draft.secrets.set(variable, key)
  draft.gaps.push(...gaps)
  agent.convert(files, included, draft)
  if (values.namespace !== undefined) refuseForbidden(draft, { name: values.name, namespace: values.namespace }, given)
  const pipelines = draft.documents({ name: values.name, namespace: values.namespace })
  const report = gapReport(draft.gaps, format)
  if (report !== '') console.error(report)
  if (values.namespace !== undefined && format === 'text') {
    console.error(
      `The Pipeline only reads the pods of namespace ${values.namespace}; the old agent read all pods of a node.`,
    )
  }
  if (pipelines.length > 1 && format === 'text') {
    const names = pipelines.map((each) => String(each.getIn(['metadata', 'name'])))
    console.error(
      `The configuration becomes ${names.length} Pipelines, which replace it together: ${names.join(', ')}.`,
    )
  }
  const agents = draft.agents({ name: values.name, namespace: values.namespace })
  const documents = [...agents, ...pipelines].map((each) => each.toString({ lineWidth: 0, blockQuote: 'literal' }))
  process.stdout.write(documents.join('---\n'))
  if (draft.gaps.some(({ isUnreadable }) => isUnreadable === true)) {
    if (format === 'text')
      console.error('A part of the configuration cannot be parsed, so the Pipeline may not be complete.')
    return exitCodes.config
  }
  return proof === undefined
    ? 0
    : prove(
        pipelines.map((each) => each.toJS()),
        proof,
        { agent, files, included },
      )
}

/**
 * The rules for namespaces reject file sources and sinks, which also replace sources without an equivalent, and other parts that reach the node
 * or other tenants.
 */
function refuseForbidden(
  draft: Draft,
  identity: { name: string; namespace: string },
  given: readonly NamedText[],
): void {
  const forbidden = fitNamespace(draft, identity, given[0]?.file ?? '')
  const refused = draft.ofFiles()
  if (refused.length + forbidden.length === 0) return
  const lines = refused.map(({ kind, name, paths, isMissing }) => {
    if (isMissing) return `  source \`${name}\`: it has no equivalent; a source of an empty file replaces it`
    return `  ${kind === 'sources' ? 'source' : 'sink'} \`${name}\`: it ${kind === 'sources' ? 'reads' : 'writes'} ${paths.join(', ')}`
  })
  throw new PenstockError(
    'PEN_USAGE',
    [
      ...(lines.length === 0 ? [] : ['A Pipeline of a namespace may not read or write files of the node:', ...lines]),
      ...(forbidden.length === 0 ? [] : ['The rules for namespaces forbid these parts:', ...forbidden]),
      'Omit `-n` to get a ClusterPipeline. Or remove these parts from the configuration.',
    ].join('\n'),
  )
}

/** The agent in the flag, or the agent whose format matches a file. */
function agentOf(files: readonly NamedText[], name: OldAgent['name'] | undefined): FoundAgent {
  const found = agentFor(files, name)
  if (found !== undefined) {
    if (name !== undefined) refuseOther(files, found.agent)
    if (name === undefined)
      console.error(`Reading it as a configuration of ${found.agent.title}; use --from to override.`)
    return found
  }
  for (const file of files) {
    refuseInvalidYaml(file)
    refuseInvalidToml(file)
  }
  const names = files.map(({ file }) => file).join(', ')
  if (files.every(({ text }) => isBlank(text))) {
    const isOne = files.length === 1
    throw new PenstockError(
      'PEN_USAGE',
      `${names}: the ${isOne ? 'file is' : 'files are'} empty, so there is nothing to convert. Name the file with the configuration.`,
    )
  }
  throw new PenstockError(
    'PEN_USAGE',
    `${names}: could not detect the agent of this configuration. Set it with \`--from\`: ${agentNames.join(', ')}.`,
  )
}

/** Refuses files of another agent than the one in the flag, from which nothing could be converted. */
function refuseOther(files: readonly NamedText[], wanted: OldAgent): void {
  const agents = agentsOf(files)
  const [other] = agents
  if (other === undefined || agents.includes(wanted)) return
  const names = files.map(({ file }) => file).join(', ')
  throw new PenstockError(
    'PEN_USAGE',
    `${names}: expected a configuration of ${wanted.title} because of \`--from ${wanted.name}\`; found one of ${other.title}. Omit the flag, or use \`--from ${other.name}\`.`,
  )
}

/** Reports the first error of a file that is not valid YAML, because no format would match it. */
function refuseInvalidYaml({ file, text }: NamedText): void {
  if (!/\.ya?ml$/i.test(file)) return
  const { documents, lines, problem } = readYamlDocuments(text)
  const first = problem ?? documents.flatMap(({ problems }) => problems)[0]
  if (first === undefined) return
  const { line, col } = lines.linePos(first.offset)
  throw new PenstockError('PEN_USAGE', `${file}:${line}:${col}: this is not valid YAML: ${first.message}.`)
}

/** The reader begins most of its messages with the first words. */
const tomlProblem = (message: string) => `this is not valid TOML: ${message.replace(/^not valid TOML: /, '')}`

/** The same for a file in TOML. */
function refuseInvalidToml({ file, text }: NamedText): void {
  const parsed = /\.toml$/i.test(file) ? parseText(text, 'toml') : undefined
  if (parsed === undefined || parsed.ok) return
  const [problem] = parsed.problems
  if (problem === undefined) return
  const { line, column } = positionAt(text, problem.offset)
  throw new PenstockError('PEN_USAGE', `${file}:${line}:${column}: ${tomlProblem(problem.message)}.`)
}

const maxFiles = 200

/** The names of the files with a configuration in a folder, and in those of its folders in which a file is a component of Vector. */
function filesIn(path: string): string[] {
  const entries = readdirSync(path, { withFileTypes: true })
  const own = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  const parts = entries
    .filter((entry) => entry.isDirectory() && (componentFolders as readonly string[]).includes(entry.name))
    .flatMap(({ name }) => readdirSync(join(path, name)).map((file) => join(name, file)))
  return [...own, ...parts].filter((name) => /\.(?:ya?ml|toml|json|conf|config|alloy|river)$/i.test(name)).sort()
}

/** The files of a path; for a folder, the files directly in it, and the components in its folders. */
function filesOf(path: string): NamedText[] {
  if (path === '-') {
    const text = withoutMark(readFileSync(0, 'utf8'))
    // Text with sections in brackets is TOML, or the classic syntax of Fluent Bit; other unnamed text is YAML, which
    // includes JSON.
    const isSections = /^\s*\[+[\w."-]+\]+\s*$/m.test(text) && !isYamlLike(text)
    return [{ file: isSections ? 'stdin.toml' : 'stdin.yaml', text }]
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [{ file: path, text: readText(path) }]
  const names = filesIn(path)
  if (names.length === 0) throw new PenstockError('PEN_USAGE', `"${path}" holds no configuration.`)
  if (names.length > maxFiles) throw new PenstockError('PEN_USAGE', `"${path}" contains more than ${maxFiles} files.`)
  return names.map((name) => ({ file: join(path, name), text: readText(join(path, name)) }))
}

function readText(file: string): string {
  try {
    return withoutMark(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new PenstockError('PEN_USAGE', `"${file}" cannot be read: ${fileReason(error)}.`, { cause: error })
  }
}

/** Windows editors may begin a file with a byte order mark. */
function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, '')
}

/** The files of an include, which may be a pattern. A relative path starts at the folder of the including file. */
function included(path: string, from: string): readonly NamedText[] {
  const folder = resolve(dirname(from))
  return globSync(path, { cwd: folder })
    .sort()
    .map((found) => resolve(folder, found))
    .map((file) => ({ file, text: readText(file) }))
}
