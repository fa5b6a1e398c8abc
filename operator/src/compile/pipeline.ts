// Compiles one Pipeline and its references to components with concrete inputs, or to problems with locations. Pure: the same
// resources give the same result in every program. The agent's own library checks the options (check.ts); the stages here only
// know resources: references, grants, secrets, names, and the rules for tenants. Each stage takes the results of earlier ones
// and reports its problems.

import { isTable, type ProgramRules, platformRules, restrictedBy, unopenedRules } from '@penstock/agent/schema'
import type { CompiledPipeline, Origin, PipelineCompileOptions, PodLogs, Table, Unresolved } from './compiled.ts'
import { deadLetterOf } from './dead-letter.ts'
import { type Captured, checkCaptured } from './enforced.ts'
import { inputsOf } from './inputs.ts'
import { modeOf } from './mode.ts'
import { checkBuffers, componentOf, isOfPlatform, type OptionsContext } from './options.ts'
import { podLogsOf, refuseSelectors } from './pod-logs.ts'
import { type Resolution, type Resolved, resolveReferences } from './references.ts'
import { CompileReport } from './report.ts'
import { type Resource, Resources } from './resources.ts'
import { type Scope, scopeOf } from './scope.ts'
import { canonicalType, type Entries, type Entry, entriesOf, type List, sharedProblems, specOf } from './shape.ts'
import { aliasesIn, Substitution } from './substitution.ts'
import { programBudgetOf } from './tenancy.ts'
import { testsOf } from './tests.ts'

export function compilePipeline(
  pipeline: Resource,
  resources: readonly Resource[] | Resources,
  options: PipelineCompileOptions,
): CompiledPipeline {
  const scope = scopeOf(pipeline, resources instanceof Resources ? resources : new Resources(resources), options)
  const report = new CompileReport()
  report.add(...sharedProblems(pipeline))
  const given = specOf(pipeline)
  const spec: Table = isTable(given) ? given : {}
  const aliases = aliasesIn(scope, spec, report)
  const entries = entriesOf(scope, spec, report)
  const { resolved, references } = resolveReferences(scope, entries, report)
  const sourceTypes = entries.sources.flatMap(
    (entry) => canonicalType('source', resolved.get(entry)?.spec['type']) ?? [],
  )
  const mode = modeOf(scope, spec, sourceTypes, report)
  const substitution = new Substitution(scope, aliases, report)
  const parts = componentsOf({ scope, mode, substitution, report }, spec, entries, resolved)
  const { podLogs, sources, transforms, sinks } = parts
  checkCaptured(parts.captured, sources, report)
  checkBuffers(scope, sinks, report)
  const deadLetter = deadLetterOf(scope, entries.names, spec, transforms, sinks, report)
  const tests = testsOf(scope, spec, report)
  return {
    id: scope.id,
    mode,
    podLogs,
    sources,
    transforms,
    sinks,
    programs: programRulesOf(scope),
    tests,
    secretRefs: [...substitution.refs.values()].toSorted((left, right) => (left.key < right.key ? -1 : 1)),
    lent: [...substitution.lent].toSorted(),
    withheld: [...parts.withheld].toSorted(),
    sourceTypes: [...new Set(sourceTypes)].toSorted(),
    references: [...references].toSorted(),
    platform: [...parts.platform].toSorted(),
    deadLetter,
    origins: parts.origins,
    unresolved: parts.unresolved,
    problems: report.problems,
  }
}

/** The limits of a Pipeline's programs, and the resources they may access. */
function programRulesOf({ isCluster, options }: Scope): ProgramRules {
  if (options.ownMachine) return platformRules
  return isCluster ? unopenedRules : restrictedBy(programBudgetOf(options.policy))
}

/** The components of a Pipeline by id, and the facts found about them. */
interface Components {
  readonly podLogs: PodLogs[]
  readonly sources: Record<string, Table>
  readonly transforms: Record<string, Table>
  readonly sinks: Record<string, Table>
  readonly unresolved: Unresolved[]
  readonly origins: Map<string, Origin>
  readonly captured: Captured[]
  readonly withheld: Set<string>
  readonly platform: Set<string>
}

/** Creates components from the entries, in order. An entry without inputs reads from the previous one. */
function componentsOf(
  context: OptionsContext,
  spec: Table,
  { sources, transforms, sinks, names }: Entries,
  resolved: Resolution['resolved'],
): Components {
  const { scope, report } = context
  const parts: Components = {
    podLogs: [],
    sources: {},
    transforms: {},
    sinks: {},
    unresolved: [],
    origins: new Map(),
    captured: [],
    withheld: new Set(),
    platform: new Set(),
  }
  for (const entry of sources) {
    const found = resolved.get(entry)
    if (found === undefined) parts.unresolved.push({ list: 'sources', id: scope.idOf(entry.name), inputs: [] })
    else addSource(context, spec, entry, found, parts)
  }
  let previous = sources.map((entry) => entry.name)
  for (const entry of transforms) {
    const id = scope.idOf(entry.name)
    const inputs = inputsOf(scope, names, entry, previous, report)
    previous = [entry.name]
    const found = resolved.get(entry)
    if (found === undefined) parts.unresolved.push({ list: 'transforms', id, inputs })
    else parts.transforms[id] = { ...optionsIn(context, entry, found, 'transforms', parts), inputs }
  }
  for (const entry of sinks) {
    const id = scope.idOf(entry.name)
    const inputs = inputsOf(scope, names, entry, previous, report)
    const found = resolved.get(entry)
    if (found === undefined) {
      parts.unresolved.push({ list: 'sinks', id, inputs })
      continue
    }
    parts.sinks[id] = { ...optionsIn(context, entry, found, 'sinks', parts), inputs }
    if (isOfPlatform(scope, entry, found)) parts.platform.add(id)
  }
  return parts
}

function addSource(context: OptionsContext, spec: Table, entry: Entry, found: Resolved, parts: Components): void {
  const { scope, report } = context
  const { type, ...options } = optionsIn(context, entry, found, 'sources', parts)
  const name = canonicalType('source', type)
  if (name === 'orchestrator_logs') {
    parts.podLogs.push(podLogsOf(scope, entry, found, options, spec, report))
    return
  }
  refuseSelectors(scope, entry, found, report)
  // Even with another author's options, a namespaced Pipeline reads no other namespace (T3).
  const isBound = name === 'orchestrator_events' && !scope.isCluster
  const bound = isBound ? { namespaces: [scope.pipeline.namespace] } : {}
  const id = scope.idOf(entry.name)
  parts.sources[id] = { type, ...options, ...bound }
  if (isOfPlatform(scope, entry, found)) parts.platform.add(id)
}

/** The type and options of an entry; stores findings about them with the components. */
function optionsIn(context: OptionsContext, entry: Entry, found: Resolved, list: List, parts: Components): Table {
  const { options, origin, captured, isWithheld } = componentOf(context, entry, found, list)
  parts.origins.set(`${list}.${context.scope.idOf(entry.name)}`, origin)
  parts.captured.push(...captured)
  if (isWithheld) parts.withheld.add(`${found.resource.kind} ${found.resource.name}`)
  return options
}
