// Turns a parsed configuration into a `Config`: checks settings and components, resolves the graph, and collects all problems. Pure:
// it opens nothing and reads no clock, so the agent, the operator and the commands all use this one function.

import type {
  AnyDeclaration,
  Registry,
  SinkDeclaration,
  SinkEnvelope,
  SourceDeclaration,
  TransformDeclaration,
} from '../component.ts'
import type { Tables } from '../enrichment/tables.ts'
import type { Environment } from '../environment.ts'
import type { EventType } from '../event/batch.ts'
import { parsePath } from '../event/path.ts'
import { findZone } from '../formats/timezone.ts'
import { mergeProxy, proxyProblems } from '../net/proxy.ts'
import type { ProgramRules } from '../remap/rules.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { type Options, objectSchema, type Parsed } from '../schema/options.ts'
import { closest, type Problem } from '../schema/problems.ts'
import { parseOptions } from '../schema/validate.ts'
import { fingerprint } from './canonical.ts'
import { type Component, checkComponent, isError } from './component-options.ts'
import type {
  Config,
  ConfigGlobals,
  LoadResult,
  SinkConfig,
  SourceConfig,
  TransformConfig,
  UnitTest,
} from './config.ts'
import { tableSinks } from './enrichment.ts'
import { type GlobalOptions, globalOptions, globalsOf } from './globals.ts'
import { type GraphNode, type Inputs, ownerOf, resolveGraph } from './graph.ts'
import type { Raw } from './merge.ts'
import { otherOption, valueAt } from './other-options.ts'
import { type Located, type ProblemFacts, problemAt } from './place.ts'
import type { Segments } from './syntax.ts'
import { parseTests } from './unit-test-shape.ts'
import { checkValues } from './values.ts'

export interface CheckOptions {
  readonly registry: Registry
  readonly environment: Environment
  /** Whether a configuration without sources or sinks is valid. */
  readonly allowEmpty: boolean
  readonly files: readonly string[]
  /** The enrichment tables, already read. */
  readonly tables?: Tables | undefined
  /** The functions and limits of programs; unlimited by default. */
  readonly programs?: ProgramRules | undefined
  /** Whether some of the configuration could not be read. If so, the connections between components are not checked. */
  readonly partial?: boolean
}

export function check(raw: Raw, root: Located, problems: Problem[], options: CheckOptions): LoadResult {
  const globalSettings = checkGlobals(raw, problems)
  const globals = globalsOf(globalSettings, options.environment, options.tables, options.programs)
  const checks = { registry: options.registry, globals, aliased: new Set<string>(), problems }
  const all = [
    ...[...raw.sources].map(([id, located]) => checkComponent('source', id, located, checks)),
    ...[...raw.transforms].map(([id, located]) => checkComponent('transform', id, located, checks)),
    ...[...raw.sinks].map(([id, located]) => checkComponent('sink', id, located, checks)),
    ...tableSinks(globalSettings.enrichment_tables ?? {}, raw, problems),
  ]
  if (options.partial === true) return { ok: false, problems: distinct(problems) }
  const nodes = all.map(nodeOf)
  const inputs = resolveGraph(nodes, root, graphOptions(globals, globalSettings, options), problems)
  const tests = parseTests(raw.tests, nodes, problems)
  checkAcknowledgements(all, inputs, globals, problems)
  const unique = distinct(problems)
  if (unique.some((problem) => problem.severity === 'error')) return { ok: false, problems: unique }
  return { ok: true, config: assembled(all, inputs, globals, tests, raw, options), warnings: unique }
}

function graphOptions(globals: ConfigGlobals, settings: GlobalOptions, options: CheckOptions) {
  return {
    allowEmpty: options.allowEmpty,
    relaxedWildcards: settings.wildcard_matching === 'relaxed',
    resources: globals.api.enabled ? [['api', `tcp ${globals.api.address}`] as const] : [],
  }
}

function checkGlobals(raw: Raw, problems: Problem[]): GlobalOptions {
  const given = Object.fromEntries([...raw.globals].map(([name, located]) => [name, located.value]))
  const broken = new Set<string>()
  const add = (segments: Segments, finding: ProblemFacts) => {
    const [name, ...below] = segments
    const located = raw.globals.get(String(name))
    if ((finding.severity ?? 'error') === 'error') broken.add(String(name))
    if (located !== undefined) problems.push(problemAt(located, below, finding))
  }
  const parsed = parseOptions(globalOptions, given)
  for (const problem of parsed.ok ? [] : parsed.problems) {
    const other = otherOption('global', undefined, problem.segments, valueAt(given, problem.segments))
    add(problem.segments, { ...problem, help: other?.instead ?? problem.help })
  }
  // After an invalid setting, check the other settings too, and check the components against its default.
  const settings = parsed.ok ? parsed.value : withoutBroken(given, broken)
  for (const finding of checkValues(globalsSchema, settings, given)) add(finding.segments, finding)
  for (const { segments, ...finding } of globalFindings(settings)) add(segments, finding)
  return parsed.ok && broken.size === 0 ? settings : withoutBroken(given, broken)
}

function withoutBroken(given: Readonly<Record<string, unknown>>, broken: ReadonlySet<string>): GlobalOptions {
  const usable = Object.fromEntries(Object.entries(given).filter(([name]) => !broken.has(name)))
  const parsed = parseOptions(globalOptions, usable)
  if (!parsed.ok) throw new Error('The defaults of the global settings do not match their schema.')
  return parsed.value
}

/** Problems with settings that the schema cannot express. */
function globalFindings(settings: GlobalOptions): (ProblemFacts & { readonly segments: Segments })[] {
  const findings: (ProblemFacts & { segments: Segments })[] = []
  for (const { path, message } of proxyProblems(settings.proxy)) {
    const segments = path.split('.')
    findings.push({ segments, message: `\`${segments.at(-1)}\` ${message}` })
  }
  const zone = settings.timezone
  if (findZone(zone) === undefined) {
    findings.push({
      segments: ['timezone'],
      message: `\`timezone\` must be \`local\` or a name from the TZ database, found ${JSON.stringify(zone)}`,
      help: zoneHelp(zone),
    })
  }
  const { address, metric_prefix: prefix } = settings.api
  if (!/^(?:\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/.test(address)) {
    findings.push({
      segments: ['api', 'address'],
      message: `\`address\` must be a host and a port, such as \`127.0.0.1:8686\`, found ${JSON.stringify(address)}`,
    })
  }
  if (!/^(?:[a-zA-Z_:][a-zA-Z0-9_:]*)?$/.test(prefix)) {
    findings.push({
      segments: ['api', 'metric_prefix'],
      message: `\`metric_prefix\` must be a valid beginning of a metric name, such as \`penstock_\`, found ${JSON.stringify(prefix)}`,
      help: 'A metric name consists of letters, digits, `_` and `:`, and does not begin with a digit.',
    })
  }
  for (const [name, path] of Object.entries(settings.log_schema)) {
    const segments = parsePath(path)?.segments
    if (segments === undefined || (segments.length === 1 && typeof segments[0] === 'string')) continue
    findings.push({
      segments: ['log_schema', name],
      message: `\`${name}\` must be a field at the root of an event, found ${JSON.stringify(path)}`,
      help: 'expected a name such as `host`; a `remap` transform can move the field elsewhere',
    })
  }
  return findings
}

const globalsSchema = objectSchema(globalOptions)

function zoneHelp(zone: string): string | undefined {
  const near = closest(zone, Intl.supportedValuesOf('timeZone'))
  return near === undefined ? undefined : `did you mean \`${near}\`?`
}

function nodeOf(component: Component): GraphNode {
  const { id, kind, located, declaration, options, inputs } = component
  let types: readonly EventType[] | undefined
  if (declaration?.kind === 'source') {
    types = (options === undefined ? undefined : declaration.emits?.(options)) ?? declaration.outputs
  } else {
    types = declaration?.accepts
  }
  const ports =
    kind !== 'transform'
      ? []
      : declaration === undefined || options === undefined
        ? undefined
        : ((declaration as TransformDeclaration).ports?.(options) ?? [])
  const resources = declaration === undefined || options === undefined ? [] : (declaration.resources?.(options) ?? [])
  const emits = declaration?.kind === 'transform' ? declaration.outputs : undefined
  return { id, kind, located, inputs, types, emits, ports, resources }
}

// --- Acknowledgements and the finished configuration ---

function acknowledges(component: Component, globals: ConfigGlobals): boolean {
  const setting = (component.options as { acknowledgements?: boolean | { enabled?: boolean } } | undefined)
    ?.acknowledgements
  return (typeof setting === 'object' ? setting.enabled : setting) ?? globals.acknowledgements
}

/** Ids of the components whose events reach an acknowledging sink, directly or through transforms. */
function acknowledged(all: readonly Component[], inputs: Inputs, globals: ConfigGlobals): ReadonlySet<string> {
  const reached = new Set<string>()
  const follow = (id: string): void => {
    for (const input of inputs.get(id) ?? []) {
      const owner = ownerOf(input)
      if (reached.has(owner)) continue
      reached.add(owner)
      follow(owner)
    }
  }
  for (const component of all) if (component.kind === 'sink' && acknowledges(component, globals)) follow(component.id)
  return reached
}

function checkAcknowledgements(
  all: readonly Component[],
  inputs: Inputs,
  globals: ConfigGlobals,
  problems: Problem[],
): void {
  const reached = acknowledged(all, inputs, globals)
  for (const { id, located, declaration } of all) {
    if (declaration?.kind !== 'source' || declaration.acknowledges || !reached.has(id)) continue
    problems.push(
      problemAt(located, [], {
        severity: 'warning',
        atKey: true,
        message:
          'Source has acknowledgements enabled by a sink, but acknowledgements are not supported by this source. Silent data loss could occur.',
      }),
    )
  }
}

function assembled(
  all: readonly Component[],
  inputs: Inputs,
  globals: ConfigGlobals,
  tests: readonly UnitTest[],
  raw: Raw,
  options: CheckOptions,
): Config {
  const waiting = acknowledged(all, inputs, globals)
  const sources = new Map<string, SourceConfig>()
  const transforms = new Map<string, TransformConfig>()
  const sinks = new Map<string, SinkConfig>()
  for (const component of all) {
    const { id, kind, given, located } = component
    const declaration = component.declaration as AnyDeclaration
    const parsed = component.options as Parsed<Options>
    const common = { id, options: parsed, fingerprint: fingerprint(located.value) }
    const proxy = () => mergeProxy((parsed['proxy'] as ProxyOptions | undefined) ?? noProxy, globals.proxy)
    if (kind === 'source') {
      sources.set(id, {
        ...common,
        declaration: declaration as SourceDeclaration,
        proxy: proxy(),
        acknowledgements: waiting.has(id),
      })
    } else if (kind === 'transform') {
      const transform = declaration as TransformDeclaration
      transforms.set(id, {
        ...common,
        declaration: transform,
        inputs: inputs.get(id) ?? [],
        ports: transform.ports?.(parsed) ?? [],
        programs: globals.programs,
      })
    } else {
      sinks.set(id, {
        ...common,
        declaration: declaration as SinkDeclaration,
        inputs: inputs.get(id) ?? [],
        envelope: envelopeOf(parsed),
        proxy: proxy(),
        acknowledgements: acknowledges(component, globals),
        bufferFingerprint: fingerprint(given['buffer'] ?? null),
      })
    }
  }
  const globalFingerprints = new Map([...raw.globals].map(([name, located]) => [name, fingerprint(located.value)]))
  return { globals, sources, transforms, sinks, tests, files: options.files, globalFingerprints }
}

const noProxy: ProxyOptions = { enabled: undefined, http: undefined, https: undefined, no_proxy: undefined }

function envelopeOf(parsed: Parsed<Options>): SinkEnvelope {
  const { acknowledgements, buffer, healthcheck, proxy } = parsed
  return { acknowledgements, buffer, healthcheck, proxy } as SinkEnvelope
}

/** Removes duplicate problems, and sorts the rest: errors first, then in the order of the text. */
function distinct(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>()
  const unique = problems.filter((problem) => {
    const key = JSON.stringify([problem.file, problem.line, problem.column, problem.path, problem.message])
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
  const files = [...new Set(unique.map((problem) => problem.file))]
  const rank = (problem: Problem) => [isError(problem) ? 0 : 1, files.indexOf(problem.file)] as const
  return unique.toSorted((left, right) => {
    const [leftSeverity, leftFile] = rank(left)
    const [rightSeverity, rightFile] = rank(right)
    return (
      leftSeverity - rightSeverity ||
      leftFile - rightFile ||
      (left.line ?? 0) - (right.line ?? 0) ||
      (left.column ?? 0) - (right.column ?? 0)
    )
  })
}

/** The located value of a whole configuration that was never text. */
export function locatedObject(value: unknown): Located {
  return { value, path: [], origins: [] }
}
