// The part of a bundle for one pipeline, as checked configuration. Pipelines are independent: a problem is reported
// only for its own pipeline.

import { createHash } from 'node:crypto'
import type { Registry } from '../component.ts'
import type { Config, SinkConfig, SourceConfig } from '../config/config.ts'
import { loadConfigObject } from '../config/load.ts'
import type { ChangingHosts, EgressOptions } from '../net/egress.ts'
import { environmentProxy, parseProxy } from '../net/proxy.ts'
import { registry } from '../registry.ts'
import { restrictedBy } from '../remap/rules.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import type { Problem } from '../schema/problems.ts'
import { pathOf } from '../schema/walk.ts'
import type { Secrets } from './folder.ts'
import { type Bundle, type BundlePipeline, type BundleSubscription, pipelineOf } from './format.ts'
import { forbiddenSecrets } from './restricted.ts'
import { secretKeys, withSecrets } from './secret-places.ts'

type Table = Record<string, unknown>

/** A bundle's data for one pipeline. */
export interface PipelinePart {
  readonly id: string
  readonly pipeline: BundlePipeline
  readonly subscriptions: readonly BundleSubscription[]
  readonly sources: Table
  readonly transforms: Table
  readonly sinks: Table
}

/** The pipelines of a bundle. */
export function partsOf(bundle: Bundle): Map<string, PipelinePart> {
  const parts = new Map<string, PipelinePart & { subscriptions: BundleSubscription[] }>()
  for (const [id, pipeline] of Object.entries(bundle.pipelines)) {
    parts.set(id, { id, pipeline, subscriptions: [], sources: {}, transforms: {}, sinks: {} })
  }
  for (const subscription of bundle.hub.subscriptions) {
    parts.get(pipelineOf(subscription.out))?.subscriptions.push(subscription)
  }
  for (const kind of ['sources', 'transforms', 'sinks'] as const) {
    for (const [id, options] of Object.entries(bundle[kind] ?? {})) {
      const part = parts.get(pipelineOf(id))
      if (part !== undefined) part[kind][id] = options
    }
  }
  return parts
}

/** The keys that a pipeline's secret places name, whether or not it lists them. */
export function keysOf({ subscriptions, sources, transforms, sinks }: PipelinePart): Set<string> {
  return secretKeys([subscriptions, sources, transforms, sinks])
}

/** The secrets that a pipeline may read: those that the operator lists for it. All other keys are unknown to it. */
export function secretsOf({ pipeline }: Pick<PipelinePart, 'pipeline'>, all: Secrets): Secrets {
  const listed = new Set((pipeline.secrets ?? []).map(({ key }) => key))
  return {
    value: (key) => (listed.has(key) ? all.value(key) : undefined),
    digest: (key) => (listed.has(key) ? all.digest(key) : undefined),
  }
}

/** Equal as long as nothing about a pipeline has changed, including the values of its secrets. */
export function digestOf(part: PipelinePart, secrets: Secrets): string {
  const hash = createHash('sha256').update(JSON.stringify([part.pipeline, part.subscriptions]))
  hash.update(JSON.stringify([part.sources, part.transforms, part.sinks]))
  for (const key of [...keysOf(part)].sort()) {
    hash.update(`${key} ${secrets.digest(key) ?? ''}\n`)
  }
  return hash.digest('base64url')
}

export type LoadedPart =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/**
 * @param secrets the secrets of the pipeline, by `secretsOf` @param denied further addresses that no component of a
 * restricted pipeline may connect to, besides those of the bundle
 */
export function loadPart(
  part: PipelinePart,
  secrets: Secrets,
  settings: {
    readonly dataDir: string
    readonly denied: readonly string[]
    readonly changing?: ChangingHosts | undefined
    readonly env: NodeJS.ProcessEnv
    /** In a sidecar, the only folder from which files may be read. */
    readonly confinedTo?: string | undefined
    /** The available components; all components of the agent if not given. */
    readonly components?: Registry | undefined
  },
): LoadedPart {
  const { components = registry } = settings
  const restricted = part.pipeline.restricted === true
  const forbidden = restricted ? forbiddenSecrets(part, secrets, components) : []
  if (forbidden.length > 0) return { ok: false, problems: forbidden }
  const sources: Table = { ...part.sources }
  for (const { out, options } of part.subscriptions) sources[out] = { ...options, type: 'orchestrator_logs' }
  const loaded = loadConfigObject(
    {
      data_dir: settings.dataDir,
      sources: resolve(sources, secrets),
      transforms: resolve(part.transforms, secrets),
      sinks: resolve(part.sinks, secrets),
    },
    { components, env: settings.env, ...(restricted ? { programs: restrictedBy(part.pipeline.programBudget) } : {}) },
  )
  if (!loaded.ok) return { ok: false, problems: loaded.problems.map((problem) => unquoted(problem, part, sources)) }
  const subscriptions = new Map(part.subscriptions.map((subscription) => [subscription.out, subscription]))
  const egress = restricted ? egressOf(part.pipeline, settings) : undefined
  const guarded = (id: string, proxy: ProxyOptions) =>
    egress === undefined || part.pipeline.platform?.includes(id) === true ? proxy : { ...proxy, egress }
  const config: Config = {
    ...loaded.config,
    sources: mapped(loaded.config.sources, (source): SourceConfig => {
      const { out: _, options: __, ...subscription } = subscriptions.get(source.id) ?? { out: '', cursor: '' }
      return {
        ...source,
        proxy: guarded(source.id, source.proxy),
        ...(settings.confinedTo === undefined ? {} : { confinedTo: settings.confinedTo }),
        ...(subscription.cursor === '' ? {} : { subscription }),
      }
    }),
    sinks: mapped(loaded.config.sinks, (sink): SinkConfig => ({ ...sink, proxy: guarded(sink.id, sink.proxy) })),
  }
  return { ok: true, config }
}

function egressOf(
  { egress }: BundlePipeline,
  settings: {
    readonly denied: readonly string[]
    readonly changing?: ChangingHosts | undefined
    readonly env: NodeJS.ProcessEnv
  },
): EgressOptions {
  const { http, https } = environmentProxy(settings.env)
  const own = [http, https].flatMap((text) => (text === undefined ? [] : (parseProxy(text) ?? [])))
  return {
    ...egress,
    deny: [...new Set([...(egress?.deny ?? []), ...settings.denied])].sort(),
    ...(settings.changing === undefined ? {} : { changing: settings.changing }),
    ownProxies: own.map(({ host, port }) => ({ host, port })),
  }
}

function mapped<V>(map: ReadonlyMap<string, V>, change: (value: V) => V): Map<string, V> {
  return new Map([...map].map(([key, value]) => [key, change(value)]))
}

/** Removes the quoted value from a problem of an option that is or contains a secret. */
function unquoted(problem: Problem, part: PipelinePart, sources: Table): Problem {
  const at = stepsOf(problem.path)
  if (at.length < 3) return problem // concerns the component as a whole
  let isSecret = false
  withSecrets({ sources, transforms: part.transforms, sinks: part.sinks }, (_, path) => {
    const place = stepsOf(pathOf(path))
    isSecret ||= place.every((step, index) => index >= at.length || step === at[index])
    return undefined
  })
  if (!isSecret) return problem
  const { severity, path } = problem
  return { severity, path, message: 'has an invalid value; it comes from a secret and is not shown' }
}

const stepsOf = (path: string): string[] => path.split(/[.[\]"]+/).filter((step) => step !== '')

/** Replaces secret places with their values, without scanning the surrounding text. */
function resolve(value: unknown, secrets: Secrets): unknown {
  return withSecrets(value, (key) => secrets.value(key)?.toString('utf8'))
}
