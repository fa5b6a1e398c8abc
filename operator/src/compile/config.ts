// All Pipelines in a set of files as one agent configuration, for commands that work without a cluster. Each is compiled and
// checked alone, with the operator's code.

import { randomUUID } from 'node:crypto'
import type { Problem } from '@penstock/agent/errors'
import { counted } from '@penstock/agent/program'
import { type SecretPart, secretValue } from './artifact.ts'
import { type AgentConfig, agentConfig, laneNotes, problemsOf } from './check.ts'
import type { CompiledPipeline, PipelineCompileOptions, Table } from './compiled.ts'
import { compilePipeline } from './pipeline.ts'
import { compileLimits, specTooLong } from './pool.ts'
import { helpBelow, loadResources, pathsText, type Resource, Resources, standardInput } from './resources.ts'
import { standIn } from './secrets.ts'
import { sharedProblems } from './shape.ts'
import { isShared, problemsOfShared } from './shared.ts'

export interface CompiledResources {
  /** The configuration, as plain data with literal text. */
  readonly config: AgentConfig
  readonly pipelines: readonly Resource[]
  /** Names of the Pipelines that `spec.suspend` disables. */
  readonly suspended: readonly string[]
  readonly problems: readonly Problem[]
}

export interface FilesOptions extends PipelineCompileOptions {
  /** For displayed configurations: `***` replaces the values of Secrets. */
  readonly redacted?: boolean
  /** Whether to read files in sub-folders. */
  readonly recursive?: boolean
  /** Whether to report programs that prevent pod lines from staying bytes. */
  readonly lanes?: boolean
  /** Whether resources may exist without a Pipeline that uses them. */
  readonly sharedAlone?: boolean
}

/** Placeholder for the name of the cluster if no operator provides it. */
const someCluster = 'cluster'

const isOfPlatform = (kind: string) => kind === 'Agent' || kind === 'TenantPolicy'

/** Reads and compiles the resources in files and folders, and checks the result like an agent. */
export function compileFiles(paths: readonly string[], options: FilesOptions): CompiledResources {
  const { resources, problems, foreignKinds } = loadResources(paths, undefined, options.recursive)
  const isWhole = !problems.some(({ severity }) => severity === 'error')
  const compiled = compileResources(resources, options, isWhole, {
    shown: pathsText(paths),
    foreignKinds,
    help: () => {
      if (resources.length === 0 && paths.includes(standardInput))
        return 'Does the command before the `|` print resources?'
      return options.recursive === true ? undefined : helpBelow(paths)
    },
  })
  return { ...compiled, problems: [...problems, ...compiled.problems] }
}

/**
 * @param isWhole false if some resources could not be read, which has been reported: a missing Pipeline is then no
 * problem @param from where the resources were read, and where else Pipelines may be
 */
export function compileResources(
  resources: readonly Resource[],
  options: FilesOptions,
  isWhole = true,
  from: {
    readonly shown: string
    readonly foreignKinds?: readonly string[]
    readonly help?: () => string | undefined
  } = { shown: 'the resources' },
): CompiledResources {
  const all = new Resources(resources)
  const problems: Problem[] = []
  const config = {
    sources: {} as Record<string, Table>,
    transforms: {} as Record<string, Table>,
    sinks: {} as Record<string, Table>,
    tests: [] as Table[],
  }
  const pipelines: Resource[] = []
  const suspended: string[] = []
  const used = new Set<string>()
  for (const resource of resources) {
    if (resource.kind !== 'Pipeline' && resource.kind !== 'ClusterPipeline') continue
    const tooLong = specTooLong(resource.content['spec'], compileLimits)
    if (tooLong !== undefined && options.ownMachine !== true) {
      const message = `\`spec\` is too long: ${tooLong}`
      problems.push({ severity: 'error', path: 'spec', message, ...resource.locate(['spec']) })
    }
    const compiled = compilePipeline(resource, all, { ...options, clusterName: options.clusterName ?? someCluster })
    for (const reference of compiled.references) used.add(reference)
    problems.push(...problemsOf(compiled))
    if (options.lanes === true) problems.push(...laneNotes(compiled))
    if ((resource.content['spec'] as Table | undefined)?.['suspend'] === true) {
      suspended.push(compiled.id)
      continue
    }
    pipelines.push(resource)
    if (options.standalone === true && compiled.podLogs.some((source) => source.limits !== undefined)) {
      problems.push({
        severity: 'warning',
        path: 'spec.limits',
        message: "`spec.limits` only works with the operator's agents; a standalone agent ignores it",
        ...resource.locate(['spec', 'limits']),
      })
    }
    const own = agentConfig(compiled, valuesOf(compiled, all, options.redacted === true))
    Object.assign(config.sources, own.sources)
    Object.assign(config.transforms, own.transforms)
    Object.assign(config.sinks, own.sinks)
    config.tests.push(...own.tests)
  }
  for (const resource of resources) {
    const name = `${resource.kind} ${resource.namespace === '' ? '' : `${resource.namespace}/`}${resource.name}`
    if (isShared(resource.kind) && !used.has(name)) problems.push(...problemsOfShared(resource, options))
    else if (isOfPlatform(resource.kind)) problems.push(...sharedProblems(resource))
  }
  const isEnough = options.sharedAlone === true && resources.some(({ kind }) => isShared(kind) || isOfPlatform(kind))
  if (isWhole && pipelines.length === 0 && suspended.length === 0 && !isEnough) {
    const help = from.help?.() ?? '`penstock init FILE` writes a first Pipeline.'
    problems.push({
      severity: 'error',
      path: '',
      message: `There is no Pipeline in ${from.shown}, ${othersOf(resources, from.foreignKinds)}`,
      help,
    })
  }
  return { config, pipelines, suspended, problems: distinct(problems) }
}

/** The number of resources of each kind, such as `only 2 Sinks, 1 Secret`. */
function othersOf(resources: readonly Resource[], foreignKinds: readonly string[] = []): string {
  const counts = (kinds: readonly string[]) =>
    Object.entries(Object.groupBy(kinds, (kind) => kind)).map(([kind, some = []]) => counted(some.length, kind))
  const own = counts(resources.map(({ kind }) => kind))
  const foreign = foreignKinds.length === 0 ? '' : `; found ${counts(foreignKinds).slice(0, maxFound).join(', ')}`
  return own.length === 0 ? `nor another resource of Penstock${foreign}` : `only ${own.join(', ')}`
}

/** How many kinds of other programs a message names. */
const maxFound = 5

/** Values of secrets that are among the resources; random stand-ins for the others. */
function valuesOf(
  compiled: CompiledPipeline,
  resources: Resources,
  redacted: boolean,
): Parameters<typeof agentConfig>[1] {
  const refs = new Map(compiled.secretRefs.map((ref) => [ref.key, ref]))
  const read = ({ kind, namespace, name, key }: SecretPart): Buffer | undefined => {
    if (redacted && kind === 'Secret') return Buffer.from('***')
    const content = resources.find(kind, namespace, name)?.content as { data?: Table; stringData?: Table } | undefined
    const plain = kind === 'Secret' ? content?.stringData?.[key] : content?.data?.[key]
    if (typeof plain === 'string') return Buffer.from(plain)
    const encoded = kind === 'Secret' ? content?.data?.[key] : undefined
    if (typeof encoded === 'string') return Buffer.from(encoded, 'base64')
    return redacted ? Buffer.from('***') : undefined
  }
  return (key, kind, type, path) => {
    const ref = refs.get(key)
    if (ref === undefined) return ''
    const word = `secret-${randomUUID()}`
    const isThere = ref.parts.every((part) => typeof part === 'string' || read(part) !== undefined)
    // An address or a file needs a valid form, or the agent's library would report it.
    if (!isThere && ref.parts.length === 1) return standIn(kind, type, path, ref, word)
    const found = secretValue(ref, (part) => read(part) ?? Buffer.from(word))
    return found.ok ? found.value.toString('utf8') : ''
  }
}

function distinct(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>()
  return problems.filter((problem) => {
    const key = JSON.stringify([problem.file, problem.line, problem.column, problem.path, problem.message])
    return !seen.has(key) && seen.add(key)
  })
}

/** The configuration as the text of an agent file, where `$` starts a variable reference and must be doubled. */
export function configText(config: object): string {
  return JSON.stringify(config, undefined, 2).replaceAll('$', '$$$$')
}
