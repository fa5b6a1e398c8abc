// `penstock convert -f CONFIG`: an agent configuration as a Pipeline. Everything that has no place in a resource is
// reported: settings of the whole agent, and variables of its environment, which become references to a Secret.
// With `--from` the configuration is that of another agent, which the room `migrate` reads.

import { positionAt } from '@penstock/agent/config/place'
import { formatOf, parseText } from '@penstock/agent/config/syntax'
import { PenstockError } from '@penstock/agent/errors'
import { findComponent } from '@penstock/agent/registry'
import type { Problem } from '@penstock/agent/schema/problems'
import { isTable } from '@penstock/agent/schema/walk'
import { stringify } from 'yaml'
import { ClusterPipelineModel, PipelineModel } from '../api/models.ts'
import { namePattern, type PipelineSpec } from '../api/pipeline.ts'
import { oldAgents } from '../migrate/agents.ts'
import { type CommandOptions, fileOption, oneOf, parseFlags } from './arguments.ts'
import { convertFile, readText } from './convert-other.ts'
import { printProblems } from './problems.ts'
import { proofHelp, proofIn, prove } from './prove.ts'

type Table = Record<string, unknown>

const agentNames = ['vector', ...oldAgents.map(({ name }) => name)]

export const usage = `Usage: penstock convert -f CONFIG [FLAGS]

Converts an agent configuration in TOML, YAML or JSON to a Pipeline, and reports what has no place in one.

  -f, --file CONFIG          the configuration
  --from AGENT               whose it is: ${agentNames.join(', ')}; without it the text decides
  --name NAME                of the Pipeline (converted)
  -n, --namespace NS         of the Pipeline (default)
  --cluster                  a ClusterPipeline instead
${proofHelp}
`

export const options = {
  file: fileOption,
  name: { type: 'string', default: 'converted' },
  namespace: { type: 'string', short: 'n' },
  cluster: { type: 'boolean', default: false },
  from: { type: 'string' },
  prove: { type: 'string' },
  against: { type: 'string' },
  sink: { type: 'string' },
  ignore: { type: 'string', multiple: true },
} as const satisfies CommandOptions

export async function run(argv: string[]): Promise<number> {
  const { values, positionals } = parseFlags(argv, options, 'words')
  const [file, ...more] = [...(values.file ?? []), ...positionals]
  if (file === undefined || more.length > 0) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one agent configuration: penstock convert -f CONFIG [--name NAME] [-n NAMESPACE | --cluster].',
    )
  }
  if (values.cluster && values.namespace !== undefined) {
    throw new PenstockError('PEN_USAGE', 'A ClusterPipeline has no namespace: give `--cluster` or `-n`, not both.')
  }
  if (!new RegExp(namePattern).test(values.name)) {
    throw new PenstockError('PEN_USAGE', `\`--name\` must match ${namePattern}; found \`${values.name}\`.`)
  }
  const proof = proofIn(values)
  const text = readText(file)
  const from = values.from === undefined ? undefined : oneOf('from', values.from, agentNames)
  const agent = oldAgents.find(({ name, recognises }) =>
    from === undefined ? recognises({ file, text }) : name === from,
  )
  if (agent !== undefined) {
    if (from === undefined) console.error(`Read as a configuration of ${agent.title}; --from says otherwise.`)
    const pipeline = convertFile(agent, file, values.name, values.namespace)
    return proof === undefined ? 0 : prove(pipeline.toJS(), proof)
  }
  const { resource, problems } = convert(parse(text, file), {
    file,
    name: values.name,
    ...(values.cluster ? {} : { namespace: values.namespace ?? 'default' }),
  })
  const fine = printProblems(problems)
  if (resource !== undefined) process.stdout.write(stringify(resource, { lineWidth: 0 }))
  if (!fine || resource === undefined) return 78
  return proof === undefined ? 0 : prove(resource as Parameters<typeof prove>[0], proof)
}

function parse(text: string, file: string): Table {
  const parsed = parseText(text, formatOf(file))
  if (!parsed.ok) {
    const reasons = parsed.problems.map((problem) => {
      const { line, column } = positionAt(text, problem.offset)
      return `${file}:${line}:${column}: ${problem.message}`
    })
    throw new PenstockError('PEN_USAGE', reasons.join('\n'))
  }
  const { value } = parsed.document
  if (!isTable(value))
    throw new PenstockError('PEN_USAGE', `"${file}" is not an agent configuration: it holds no table.`)
  return value
}

export interface ConvertOptions {
  readonly file: string
  readonly name: string
  /** Of the Pipeline; without it a ClusterPipeline is made. */
  readonly namespace?: string
}

export interface Converted {
  readonly resource: object | undefined
  readonly problems: readonly Problem[]
}

/** Keys of the top level that have a place in a Pipeline. */
const converted = ['sources', 'transforms', 'sinks', 'tests']

/** Where what is set for a whole agent belongs in a cluster. */
const elsewhere: Readonly<Record<string, string>> = {
  data_dir: 'The Agent sets it: `spec.node.dataDir`.',
  api: 'The Agent sets it: its agents answer on /health, /ready and /metrics.',
  secret: 'Put the values into a Secret and write SECRET[alias.key], with the alias in `spec.secrets`.',
  enrichment_tables: 'Tables are files of an agent; they have no resource.',
}

export function convert(config: Table, options: ConvertOptions): Converted {
  const problems: Problem[] = []
  const report = (severity: Problem['severity'], path: string, message: string, help?: string): void => {
    problems.push({ severity, path, message, help, file: options.file })
  }
  for (const key of Object.keys(config)) {
    if (converted.includes(key)) continue
    report('warning', key, `\`${key}\` is a setting of a whole agent and is left out`, elsewhere[key])
  }
  const ids = ['sources', 'transforms', 'sinks'].flatMap((list) => Object.keys(table(config[list])))
  const names = namesOf(ids, report)
  const variables = new Set<string>()
  const text = new Texts(variables)

  const entries = (kind: 'source' | 'transform' | 'sink'): Table[] =>
    Object.entries(table(config[`${kind}s`])).map(([id, given]) => {
      const { type, inputs, ...rest } = table(given)
      const declaration = typeof type === 'string' ? findComponent(kind, type) : undefined
      if (declaration === undefined) {
        const found = type === undefined ? 'none' : JSON.stringify(type)
        report(
          'error',
          `${kind}s.${id}.type`,
          `\`type\` must be that of a ${kind}; found ${found}`,
          `penstock-agent list prints them.`,
        )
      }
      const entry: Table = { name: names.get(id), type: declaration?.type ?? type }
      if (inputs !== undefined) entry['inputs'] = list(inputs).map((input) => renamed(String(input), names))
      if (Object.keys(rest).length > 0) entry['config'] = text.convert(rest)
      return entry
    })
  const spec: Table = { sources: entries('source'), transforms: entries('transform'), sinks: entries('sink') }
  for (const part of ['sources', 'sinks']) {
    if ((spec[part] as Table[]).length > 0) continue
    report('error', part, `A Pipeline needs at least one of \`${part}\`; the configuration has none`)
  }
  if ((spec['transforms'] as Table[]).length === 0) delete spec['transforms']
  const tests = list(config['tests']).flatMap((test, index) => convertTest(table(test), index, names, text, report))
  if (tests.length > 0) spec['tests'] = tests
  if (variables.size > 0) {
    const secretName = `${options.name}-environment`
    const alias = {
      alias: 'env',
      secretName,
      ...(options.namespace === undefined ? { namespace: 'penstock-system' } : {}),
    }
    spec['secrets'] = [alias]
    report(
      'warning',
      'spec.secrets',
      `Variables of the environment became SECRET[env.NAME]: a resource is literal text`,
      `Create the Secret: kubectl create secret generic ${secretName}${options.namespace === undefined ? ' -n penstock-system' : ` -n ${options.namespace}`} ${[...variables].map((name) => `--from-literal=${name}=VALUE`).join(' ')}`,
    )
  }
  if (problems.some((problem) => problem.severity === 'error')) return { resource: undefined, problems }
  const metadata = { name: options.name, ...(options.namespace === undefined ? {} : { namespace: options.namespace }) }
  const Model = options.namespace === undefined ? ClusterPipelineModel : PipelineModel
  return { resource: new Model({ metadata, spec: spec as unknown as PipelineSpec }), problems }
}

type Report = (severity: Problem['severity'], path: string, message: string, help?: string) => void

/** Names within the Pipeline: ids of an agent may have capitals and underscores. */
function namesOf(ids: readonly string[], report: Report): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const id of ids) {
    const letters = id
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/-+$/, '')
      .replace(/^[^a-z]+/, '')
    const base = letters === '' ? 'component' : letters.slice(0, 60).replace(/-+$/, '')
    let name = base
    for (let number = 2; [...names.values()].includes(name); number++) name = `${base}-${number}`
    names.set(id, name)
    if (name !== id) report('warning', id, `Component \`${id}\` is called \`${name}\` in the Pipeline`)
  }
  return names
}

/** An input: an id, `id.port`, or a pattern. */
function renamed(input: string, names: ReadonlyMap<string, string>): string {
  const exact = names.get(input)
  if (exact !== undefined) return exact
  const dot = input.lastIndexOf('.')
  const base = dot > 0 ? names.get(input.slice(0, dot)) : undefined
  if (base !== undefined) return base + input.slice(dot)
  // Patterns go by the letters that names keep.
  return input.includes('*') ? input.toLowerCase().replace(/[^a-z0-9*.]+/g, '-') : input
}

const placeholder = /\$\$|\$([A-Za-z0-9_.]+)|\$\{([A-Za-z0-9_.]+)(?:(?::?-|:?\?)[^}]*)?\}/g
/** `.kubernetes.` in programs and templates, as a path of its own. */
const kubernetesPath = /(^|[^A-Za-z0-9_."\])])\.kubernetes(?![A-Za-z0-9_])/g
const kubernetesTemplate = /(\{\{\s*\.?)kubernetes(?=[.\s}])/g

class Texts {
  readonly #variables: Set<string>

  constructor(variables: Set<string>) {
    this.#variables = variables
  }

  convert(value: unknown): unknown {
    if (typeof value === 'string') return this.#text(value)
    if (Array.isArray(value)) return value.map((item) => this.convert(item))
    if (!isTable(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, below]) => [key, this.convert(below)]))
  }

  #text(text: string): string {
    return text
      .replace(placeholder, (whole, plain?: string, braced?: string) => {
        const name = plain ?? braced
        if (name === undefined) return '$'
        // `$1` in the replacement of a regular expression is no variable: their names do not begin with a digit.
        if (/^\d/.test(name)) return whole
        this.#variables.add(name)
        return `SECRET[env.${name}]`
      })
      .replace(kubernetesPath, '$1.orchestrator')
      .replace(kubernetesTemplate, '$1orchestrator')
  }
}

function convertTest(
  test: Table,
  index: number,
  names: ReadonlyMap<string, string>,
  text: Texts,
  report: Report,
): Table[] {
  const path = `tests[${index}]`
  const inputs = test['input'] === undefined ? list(test['inputs']) : [test['input']]
  const [input, ...others] = inputs.map(table)
  const outputs = list(test['outputs']).map(table)
  const absent = list(test['no_outputs_from']).map(String)
  const type = input?.['type'] ?? 'raw'
  const isLog = type === 'log' && input?.['log_fields'] !== undefined
  if (input === undefined || others.length > 0 || (type !== 'raw' && !isLog)) {
    report(
      'warning',
      path,
      'The test is left out: a test of a Pipeline has one input, a line or the fields of a log event',
    )
    return []
  }
  const expect: Table[] = absent.map((at) => ({ at: renamed(at, names), count: 0 }))
  for (const output of outputs) {
    const conditions = list(output['conditions'])
    const count = output['expected_event_count']
    for (const from of list(output['extract_from'])) {
      const at = renamed(String(from), names)
      if (typeof count === 'number' || conditions.length === 0) expect.push({ at, count: count ?? 1 })
      for (const condition of conditions) {
        const source = typeof condition === 'string' ? condition : table(condition)['source']
        if (typeof source === 'string') expect.push({ at, assert: text.convert(source) })
        else report('warning', path, 'A condition that is no program is left out')
      }
    }
  }
  if (expect.length === 0) return []
  return [
    {
      name: String(test['name'] ?? `test ${index + 1}`),
      insertAt: renamed(String(input['insert_at']), names),
      input: isLog ? { log: text.convert(input['log_fields']) } : { raw: String(input['value'] ?? '') },
      expect,
    },
  ]
}

function table(value: unknown): Table {
  return isTable(value) ? value : {}
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value]
}
