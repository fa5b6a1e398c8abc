// Checks whether an agent could run a compiled Pipeline, and whether its tests pass, with the agent's own library. Each Pipeline is
// checked alone, with placeholders for secrets. Problems are reported at their location in the resource.

import { withSecrets } from '@penstock/agent/bundle'
import {
  compileTemplate,
  findComponent,
  lanesOf,
  loadConfigObject,
  type PodField,
  runUnitTests,
  templateProblem,
} from '@penstock/agent/config'
import type { Problem } from '@penstock/agent/errors'
import { type ComponentKind, isTable } from '@penstock/agent/schema'
import type { Reason } from '../api/conditions.ts'
import { labelOf } from '../api/shape.ts'
import type { CompiledPipeline, CompileProblem, Origin, PodLogs, Table } from './compiled.ts'
import type { PathKey } from './resources.ts'
import { standIn } from './secrets.ts'

export interface AgentConfig {
  readonly sources: Readonly<Record<string, Table>>
  readonly transforms: Readonly<Record<string, Table>>
  readonly sinks: Readonly<Record<string, Table>>
  readonly tests: readonly Table[]
}

/** The configuration of an agent that runs only this Pipeline; `fill` returns the value of each secret. */
export function agentConfig(
  compiled: CompiledPipeline,
  fill: (key: string, kind: ComponentKind, type: string, path: readonly PathKey[]) => string | undefined,
): AgentConfig {
  const filled = (kind: ComponentKind, table: Readonly<Record<string, Table>>) =>
    Object.fromEntries(
      Object.entries(table).map(([id, options]) => {
        const type = String(options['type'])
        return [id, withSecrets(options, (key, path) => fill(key, kind, type, path)) as Table]
      }),
    )
  const podLogs = Object.fromEntries(compiled.podLogs.map((source) => [source.id, podLogOptions(source)]))
  return {
    sources: filled('source', { ...podLogs, ...mapped(compiled.sources, withLogPaths(compiled)) }),
    transforms: filled('transform', compiled.transforms),
    sinks: filled('sink', compiled.sinks),
    tests: compiled.tests,
  }
}

/** In a sidecar, a file source may take its files from the pod's annotation: this is a path in the form that admission writes. */
const withLogPaths =
  (compiled: CompiledPipeline) =>
  (options: Table): Table =>
    compiled.mode === 'Sidecar' && options['type'] === 'file' && options['include'] === undefined
      ? { ...options, include: ['/penstock.dev/log-paths/*'] }
      : options

const mapped = (table: Readonly<Record<string, Table>>, change: (options: Table) => Table) =>
  Object.fromEntries(Object.entries(table).map(([id, options]) => [id, change(options)]))

/** A pod log source for an agent without the operator: the selection as selectors and globs. */
function podLogOptions(source: PodLogs): Table {
  const { options, namespaces, namespaceSelector, podSelector, fieldSelector, excludeContainers, optIn } = source
  const fields = [fieldSelector, ...(namespaces ?? []).map((name) => `metadata.namespace=${name}`)]
  const field = fields.filter((text) => text !== '').join(',')
  const labels = [podSelector, ...(optIn ? ['penstock.dev/collect=true'] : [])].filter((text) => text !== '').join(',')
  // The defaults of the option, which a value would replace.
  const globs = (options['exclude_paths_glob_patterns'] ?? ['**/*.gz', '**/*.tmp']) as string[]
  return {
    type: 'orchestrator_logs',
    ...options,
    ...(field === '' ? {} : { extra_field_selector: field }),
    ...(labels === '' ? {} : { extra_label_selector: labels }),
    ...(namespaceSelector === '' ? {} : { extra_namespace_label_selector: namespaceSelector }),
    ...(excludeContainers.length === 0
      ? {}
      : { exclude_paths_glob_patterns: [...globs, ...excludeContainers.map((container) => `**/${container}/**`)] }),
  }
}

/** All problems and warnings of a Pipeline, from all stages. */
export function problemsOf(compiled: CompiledPipeline): readonly CompileProblem[] {
  return [...compiled.problems, ...checkPipeline(compiled)]
}

/** The problems and warnings that the agent's library finds in a Pipeline, without consequences of earlier findings. */
function checkPipeline(compiled: CompiledPipeline): CompileProblem[] {
  const loaded = loadedConfig(compiled)
  const problems = loaded.ok ? loaded.warnings : loaded.problems
  const found = problems.filter((problem) => !followsFromGaps(problem, compiled)).map((one) => located(one, compiled))
  const errors = compiled.problems.filter(({ severity }) => severity === 'error')
  const notAbout = found.filter((problem) => !errors.some((earlier) => isAbout(problem, earlier)))
  return [...notAbout, ...deadEnds(compiled), ...sharedStreams(compiled)]
}

/** The configuration of a Pipeline, as the agent's library reads it. */
function loadedConfig(compiled: CompiledPipeline): ReturnType<typeof loadConfigObject> {
  const refs = new Map(compiled.secretRefs.map((ref) => [ref.key, ref]))
  const config = agentConfig(compiled, (key, kind, type, path) => {
    const ref = refs.get(key)
    if (ref === undefined) throw new TypeError(`Secret place ${key} has no reference.`)
    return standIn(kind, type, path, ref)
  })
  return loadConfigObject(withStandIns(config, compiled), { programs: compiled.programs })
}

/** Programs and conditions that are the only reason why pod lines do not stay bytes. */
export function laneNotes(compiled: CompiledPipeline): CompileProblem[] {
  const loaded = compiled.podLogs.length === 0 ? undefined : loadedConfig(compiled)
  if (loaded?.ok !== true) return []
  const { config } = loaded
  const own = [...lanesOf(config)].filter(([, { isOwn }]) => isOwn === true)
  // If another component needs objects anyway, a change would not help.
  if (own.some(([id]) => !config.transforms.has(id))) return []
  return own.map(([id, { reason }]) => {
    const message = `Lines of pods become objects here, which takes several times the CPU: ${reason}`
    const help = 'For alternatives, run `penstock explain lanes`.'
    const problem = { severity: 'warning', informational: true, path: `transforms.${id}`, message, help } as const
    return located(problem, compiled)
  })
}

/** The metadata that identifies a single pod. */
const ownOfPod: ReadonlySet<unknown> = new Set<PodField>(['pod_name', 'pod_uid', 'pod_ip', 'pod_ips', 'container_id'])

/**
 * Sinks that put lines of several pods in one stream, and discard late lines. Reported only if certain: the labels are constant,
 * or come from pod data that several pods share.
 */
function sharedStreams({ podLogs, sinks, origins }: CompiledPipeline): CompileProblem[] {
  if (podLogs.length === 0) return []
  return Object.entries(sinks).flatMap(
    ([id, { type, labels, out_of_order_action: action = 'drop' }]): CompileProblem[] => {
      if (findComponent('sink', String(type))?.type !== 'log_aggregator' || action !== 'drop' || !isTable(labels))
        return []
      const texts = Object.entries(labels).flat()
      // The option check reports invalid templates.
      if (!texts.every((text) => typeof text === 'string' && templateProblem(text) === undefined)) return []
      const paths = (texts as string[]).flatMap((text) => compileTemplate(text).paths)
      const isCertain = paths.every(({ segments }) => segments[0] === 'orchestrator' && !ownOfPod.has(segments[1]))
      const origin = origins.get(`sinks.${id}`)
      if (!isCertain || origin === undefined) return []
      const message =
        'No label distinguishes pods, so lines of one pod that are older than those of another are discarded'
      const help = "Set `out_of_order_action: accept`, or add a label such as `pod: '{{ orchestrator.pod_name }}'`."
      const path = [...origin.path, 'labels']
      const place = { path: labelOf(path), ...origin.resource.locate(path) }
      return [{ severity: 'warning', reason: 'InvalidConfig', message, help, ...place }]
    },
  )
}

/** Components with readers whose events reach no sink. The agent's library reports components without readers. */
function deadEnds({
  id,
  podLogs,
  sources,
  transforms,
  sinks,
  unresolved,
  origins,
}: CompiledPipeline): CompileProblem[] {
  const inputs = new Map<string, readonly string[]>(unresolved.map((entry) => [entry.id, entry.inputs]))
  for (const table of [transforms, sinks]) {
    for (const [own, options] of Object.entries(table)) inputs.set(own, options['inputs'] as readonly string[])
  }
  // A transform's port belongs to the transform: names contain no dots.
  const read = new Map([...inputs].map(([own, from]) => [own, from.map((input) => input.split('.')[0] as string)]))
  const reached = new Set<string>()
  const open = [...Object.keys(sinks), ...unresolved.filter(({ list }) => list === 'sinks').map((entry) => entry.id)]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const from of read.get(next) ?? []) {
      if (reached.has(from)) continue
      reached.add(from)
      open.push(from)
    }
  }
  const consumed = new Set([...read.values()].flat())
  const all = {
    sources: [...podLogs.map((source) => source.id), ...Object.keys(sources)],
    transforms: Object.keys(transforms),
  }
  return Object.entries(all).flatMap(([list, ids]) =>
    ids
      .filter((own) => consumed.has(own) && !reached.has(own))
      .map((own): CompileProblem => {
        const origin = origins.get(`${list}.${own}`)
        const place = origin === undefined ? {} : { ...origin.resource.locate(origin.path.slice(0, -1)) }
        const path = origin === undefined ? 'spec' : labelOf(origin.path.slice(0, -1))
        const message = `The output of ${list.slice(0, -1)} "${own.slice(id.length + 1)}" reaches no sink`
        return { severity: 'warning', reason: 'InvalidConfig', path, message, ...place }
      }),
  )
}

/** An unknown component is replaced by one that accepts and emits everything, so that the rest can be checked. */
function withStandIns(config: AgentConfig, { unresolved }: CompiledPipeline): AgentConfig {
  const sources: Record<string, Table> = { ...config.sources }
  const transforms: Record<string, Table> = { ...config.transforms }
  const sinks: Record<string, Table> = { ...config.sinks }
  for (const { list, id, inputs } of unresolved) {
    if (list === 'sources') sources[id] = { type: 'demo_logs', format: 'json' }
    else if (list === 'transforms') transforms[id] = { type: 'remap', inputs, source: '.' }
    else sinks[id] = { type: 'blackhole', inputs }
  }
  return { ...config, sources, transforms, sinks }
}

/** Whether an input leads nowhere, or a list or entry has an invalid structure: the connections are then unknown. */
const isUnwired = ({ problems }: Pick<CompiledPipeline, 'problems'>): boolean =>
  problems.some(({ path, severity }) => severity === 'error' && wires.test(path))

const wires = /\.inputs(?:\[\d+\])?$|^spec(?:\.(?:sources|transforms|sinks)(?:\[\d+\](?:\.name)?)?)?$/

/** True if the problem may only be a consequence of missing parts: the output of a placeholder is unknown. */
function followsFromGaps({ path, code }: Problem, { unresolved, problems, origins }: CompiledPipeline): boolean {
  const isBroken = problems.some(({ severity }) => severity === 'error')
  const unwired = isUnwired({ problems })
  if ((unresolved.length > 0 || unwired) && /(?:^|\.)inputs(?:$|[.[])/.test(path)) return true
  if (unwired && code === 'NO_CONSUMERS') return true
  return isBroken && originOf(path, origins) === undefined
}

/** Whether the problem concerns an option that already has one: the same option, or one that contains it. */
function isAbout(problem: CompileProblem, earlier: CompileProblem): boolean {
  if (problem.file !== earlier.file) return false
  const within = (inner: string, outer: string) =>
    inner === outer || inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`)
  if (within(problem.path, earlier.path)) return !/^spec(?:\.\w+(?:\[\d+\](?:\.config)?)?)?$/.test(earlier.path)
  return within(earlier.path, problem.path) && /\.config\./.test(problem.path)
}

/** Maps a problem of the compiled configuration to the resource of the component. */
function located(problem: Problem, compiled: CompiledPipeline): CompileProblem {
  const origin = originOf(problem.path, compiled.origins)
  const reason: Reason = problem.diagnostic !== undefined ? 'CompileFailed' : 'InvalidConfig'
  const { file: _, line: __, column: ___, ...kept } = problem
  const named = {
    ...kept,
    reason,
    message: shortIds(problem.message, compiled.id),
    help: problem.help === undefined ? undefined : shortIds(problem.help, compiled.id),
    diagnostic:
      problem.diagnostic === undefined
        ? undefined
        : { ...problem.diagnostic, message: shortIds(problem.diagnostic.message, compiled.id) },
  }
  if (origin === undefined) return { ...named, path: problem.path }
  const { resource, path } = origin
  const others = named.diagnostic?.others?.map((each) => ({ ...each, place: resource.locate(path, each.position) }))
  const place = { path: labelOf(path), ...resource.locate(path, named.diagnostic?.position) }
  return { ...named, ...place, ...(others === undefined ? {} : { others }) }
}

/** Components by the names that the author gave them. */
function shortIds(text: string, id: string): string {
  return text.replaceAll(`${id}/`, '')
}

function originOf(path: string, origins: ReadonlyMap<string, Origin>): Origin | undefined {
  const [kind, id, ...rest] = path.split('.')
  const origin = origins.get(`${kind}.${id}`)
  if (origin === undefined) return undefined
  const below = rest
    .join('.')
    .split(/[.[\]]+/)
    .filter((key) => key !== '')
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key))
  // These options are next to `config`, not inside it.
  const isOutsideConfig = below[0] === 'type' || below[0] === 'inputs'
  return { resource: origin.resource, path: [...(isOutsideConfig ? origin.path.slice(0, -1) : origin.path), ...below] }
}

export interface TestOutcome {
  readonly passed: number
  readonly failed: number
  /** The report of the agent's library. */
  readonly text: string
  readonly problems: readonly CompileProblem[]
}

/** Runs the tests of a valid Pipeline: only its transforms; no source or sink is created. */
export async function testPipeline(compiled: CompiledPipeline): Promise<TestOutcome> {
  const total = compiled.tests.length
  if (total === 0) return { passed: 0, failed: 0, text: '', problems: [] }
  const secrets = agentConfig(compiled, () => 'secret')
  const sources = Object.fromEntries(
    Object.keys(secrets.sources).map((id) => [id, { type: 'demo_logs', format: 'json' }]),
  )
  const inputs = [...Object.keys(sources), ...Object.keys(secrets.transforms)]
  const loaded = loadConfigObject(
    {
      sources,
      transforms: secrets.transforms,
      sinks: { [`${compiled.id}/nowhere`]: { type: 'blackhole', inputs } },
      tests: secrets.tests,
    },
    { programs: compiled.programs },
  )
  if (!loaded.ok) {
    return {
      passed: 0,
      failed: total,
      text: '',
      problems: loaded.problems.map((problem) => located(problem, compiled)),
    }
  }
  const { passed, text, tests } = await runUnitTests(loaded.config)
  if (passed) return { passed: total, failed: 0, text, problems: [] }
  const names = tests
    .filter(({ failures }) => failures.length > 0)
    .map(({ name }) => name.replace(`${compiled.id}: `, ''))
  const failed = names.length
  const shown = names
    .slice(0, 3)
    .map((name) => `"${name}"`)
    .join(', ')
  const message = `${failed} of ${total} tests failed: ${shown}${names.length > 3 ? ', ...' : ''}`
  const problem: CompileProblem = {
    severity: 'error',
    reason: 'TestsFailed',
    path: 'spec.tests',
    message,
    help: '`penstock test -f FILE` shows the actual results.',
  }
  return { passed: total - failed, failed, text, problems: [problem] }
}

/** Maximum number of reasons for one program in a status. */
const maxDiagnostics = 5

/** A sentence about a problem, with component and position, for a status: `transforms[parse] line 3 col 12: E103 ...`. */
export function sentence(problem: CompileProblem, spec: unknown): string {
  const where = componentOf(problem.path, spec)
  if (problem.diagnostic !== undefined) {
    const { others = [], ...first } = problem.diagnostic
    const texts = [first, ...others].slice(0, maxDiagnostics).map(({ code, message, position }) => {
      const at = position === undefined ? '' : ` line ${position.line} col ${position.column}`
      return `${at}: ${code} ${message}`
    })
    const left = others.length + 1 - texts.length
    return `${where}${texts.join(';')}${left === 0 ? '' : ` (and ${left} more)`}`
  }
  const message = problem.message.replace(/\.$/, '')
  return where === '' ? message : `${where}: ${message}`
}

/** The sentence, with a suggestion if there is one. */
export function advice(problem: CompileProblem, spec: unknown): string {
  const help = problem.help === undefined ? '' : ` (${problem.help.replace(/\.$/, '')})`
  return `${sentence(problem, spec)}${help}`
}

/** `spec.transforms[0].config.source` as `transforms[parse].config.source`, using the entry's name. */
function componentOf(path: string, spec: unknown): string {
  const match = /^spec\.(sources|transforms|sinks)\[(\d+)\](.*)$/.exec(path)
  if (match === null) return path
  const [, list, index, rest] = match as unknown as [string, string, string, string]
  const entries = (spec as Readonly<Record<string, readonly { readonly name?: unknown }[] | undefined>> | undefined)?.[
    list
  ]
  const name = entries?.[Number(index)]?.name
  // For a program, the position makes the name of the option redundant.
  return `${list}[${typeof name === 'string' ? name : index}]${rest.replace(/^\.config\.(source|condition)$/, '').replace(/^\.config\b/, '')}`
}
