// All Pipelines of a set of resources as one agent configuration. Each is compiled alone; what the agent's library finds wrong
// with the result is told at the place in the resource where it was written.

import { loadConfigObject } from '@penstock/agent/config/load'
import type { Problem } from '@penstock/agent/schema/problems'
import { type CompileOptions, compilePipeline, type Origin } from './pipeline.ts'
import { loadResources, type PathKey, pathLabel, type Resource } from './resources.ts'

type Table = Record<string, unknown>

export interface CompiledResources {
  /** The configuration, as plain data with literal text. */
  readonly config: {
    readonly sources: Table
    readonly transforms: Table
    readonly sinks: Table
    readonly tests: readonly Table[]
  }
  readonly pipelines: readonly Resource[]
  /** Names of the Pipelines that `spec.suspend` keeps from running. */
  readonly suspended: readonly string[]
  readonly problems: readonly Problem[]
}

/** Reads and compiles the resources of files and folders, and checks the result as an agent would. */
export function compileFiles(paths: readonly string[], options: CompileOptions): CompiledResources {
  const { resources, problems } = loadResources(paths)
  const compiled = compileResources(resources, options)
  return { ...compiled, problems: [...problems, ...compiled.problems] }
}

export function compileResources(resources: readonly Resource[], options: CompileOptions): CompiledResources {
  const problems: Problem[] = []
  const origins = new Map<string, Origin>()
  const config = { sources: {} as Table, transforms: {} as Table, sinks: {} as Table, tests: [] as Table[] }
  const pipelines: Resource[] = []
  const suspended: string[] = []
  for (const resource of resources) {
    if (resource.kind !== 'Pipeline') continue
    const compiled = compilePipeline(resource, resources, options)
    problems.push(...compiled.problems)
    if ((resource.content['spec'] as Table | undefined)?.['suspend'] === true) {
      suspended.push(`${resource.namespace}/${resource.name}`)
      continue
    }
    pipelines.push(resource)
    Object.assign(config.sources, compiled.config.sources)
    Object.assign(config.transforms, compiled.config.transforms)
    Object.assign(config.sinks, compiled.config.sinks)
    config.tests.push(...compiled.config.tests)
    for (const [component, origin] of compiled.origins) origins.set(component, origin)
  }
  if (pipelines.length === 0 && suspended.length === 0) {
    problems.push({ severity: 'error', path: '', message: 'There is no Pipeline among the resources' })
  }
  // What is wrong in a resource shows again in what it compiles to: told once, at the resource.
  if (problems.length === 0 && pipelines.length > 0) {
    const loaded = loadConfigObject(config)
    for (const problem of loaded.ok ? loaded.warnings : loaded.problems) problems.push(relocated(problem, origins))
  }
  return { config, pipelines, suspended, problems }
}

/** A problem of the compiled configuration as one of the resource that the component came from. */
function relocated(problem: Problem, origins: ReadonlyMap<string, Origin>): Problem {
  const [kind, id, ...rest] = problem.path.split('.')
  const origin = origins.get(`${kind}.${id}`)
  if (origin === undefined) return problem
  const below = rest
    .join('.')
    .split(/[.[\]]+/)
    .filter((key) => key !== '')
  const path: PathKey[] = [...origin.path, ...below.map((key) => (/^\d+$/.test(key) ? Number(key) : key))]
  const { file: _, line: __, column: ___, ...kept } = problem
  return { ...kept, path: pathLabel(path), ...origin.resource.locate(path) }
}

/** The configuration as the text of an agent file, where `$` begins a reference to the environment and must be doubled. */
export function configText(config: object): string {
  return JSON.stringify(config, undefined, 2).replaceAll('$', '$$$$')
}
