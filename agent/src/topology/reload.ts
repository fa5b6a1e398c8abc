// Loads another configuration without a stop. Unchanged components continue; a changed sink with an unchanged buffer setting
// takes over the buffer with its content. Everything that can fail is built before any running component is touched, except
// sources, which must close files and ports first. If a new source cannot be built, the old one is built again.

import type { Config, SinkConfig, SourceConfig } from '../config/config.ts'
import {
  buildSink,
  buildSource,
  buildTransform,
  diskLimits,
  type SinkNode,
  type SourceNode,
  type TransformNode,
} from './build.ts'
import { type ConfigDiff, diffConfigs } from './diff.ts'
import type { Topology, TopologyEditor } from './run.ts'

/** How long a source may take to stop. */
const sourceLimitMs = 30_000

export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly diff: ConfigDiff }
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'rejected'; readonly reason: 'globals'; readonly changed: readonly string[] }
  | { readonly outcome: 'rejected'; readonly reason: 'stopping' }
  | { readonly outcome: 'rejected'; readonly reason: 'build' | 'unhealthy'; readonly error: unknown }

/** One reload at a time: the caller awaits the outcome before the next. */
export async function reload(topology: Topology, next: Config): Promise<ReloadOutcome> {
  const before = topology.config
  const diff = diffConfigs(before, next)
  if (diff.globals.length > 0) return { outcome: 'rejected', reason: 'globals', changed: diff.globals }
  const { tables } = topology.context.globals
  if (tables !== undefined && next.globals.tables !== undefined) tables.replaceBy(next.globals.tables)
  if (diff.same) return { outcome: 'unchanged' }
  try {
    return await topology.edit((editor) => replace(topology, editor, next, diff))
  } finally {
    topology.endIfDone()
  }
}

/**
 * Starts and stops the components of an isolated part of a configuration, which has no connections to other parts. @param part the
 * components of the part; its other settings are ignored @param owned ids of the part's current components
 */
export async function reloadPart(topology: Topology, part: Config, owned: Iterable<string>): Promise<ReloadOutcome> {
  const before = topology.config
  const old = { ...before, sources: new Map(), transforms: new Map(), sinks: new Map() } as Config
  const next = {
    ...before,
    sources: new Map(before.sources),
    transforms: new Map(before.transforms),
    sinks: new Map(before.sinks),
  }
  for (const id of owned) {
    for (const kind of ['sources', 'transforms', 'sinks'] as const) {
      const component = before[kind].get(id)
      if (component === undefined) continue
      ;(old[kind] as Map<string, unknown>).set(id, component)
      next[kind].delete(id)
    }
  }
  for (const [id, source] of part.sources) next.sources.set(id, source)
  for (const [id, transform] of part.transforms) next.transforms.set(id, transform)
  for (const [id, sink] of part.sinks) next.sinks.set(id, sink)
  const diff = diffConfigs(old, { ...part, globalFingerprints: old.globalFingerprints })
  if (diff.same) return { outcome: 'unchanged' }
  return topology.edit((editor) => replace(topology, editor, next, diff))
}

/**
 * The sink whose buffer a new sink takes over with its content: the one with an equal buffer setting, or with the same disk
 * folder.
 */
async function keptSink(topology: Topology, config: SinkConfig): Promise<SinkNode | undefined> {
  const old = topology.sinks.get(config.id)
  if (old?.config.bufferFingerprint === config.bufferFingerprint) return old
  if (config.envelope.buffer.type !== 'disk') return undefined
  if (old !== undefined) return old.buffer.durable ? old : undefined
  const retiring = topology.retiringSink(config.id)
  if (retiring?.buffer.durable !== true) return undefined
  if (retiring.abandon.signal.aborted || retiring.driver.closesBuffer) {
    // Ends it; its events stay in the files, which are opened again after it has closed them.
    await topology.retired(retiring)
    return undefined
  }
  retiring.driver.release()
  return retiring
}

/** Components of the next configuration, from when they are built until they are active. */
interface Change {
  readonly next: Config
  readonly diff: ConfigDiff
  readonly sinks: Map<string, SinkNode>
  readonly transforms: Map<string, TransformNode>
  readonly sources: Map<string, SourceNode>
}

type Rejection = Extract<ReloadOutcome, { outcome: 'rejected' }>

async function replace(
  topology: Topology,
  editor: TopologyEditor,
  next: Config,
  diff: ConfigDiff,
): Promise<ReloadOutcome> {
  const change: Change = { next, diff, sinks: new Map(), transforms: new Map(), sources: new Map() }
  const rejection =
    (await buildAhead(topology, change)) ??
    (await requireHealthAhead(topology, change)) ??
    (await exchangeSources(topology, editor, change))
  if (rejection !== undefined) return rejection
  putInForce(topology, editor, change)
  return { outcome: 'reloaded', diff }
}

/** Builds sinks and transforms while the old ones run. */
async function buildAhead(topology: Topology, change: Change): Promise<Rejection | undefined> {
  const { next, diff, sinks, transforms } = change
  const { context } = topology
  try {
    for (const id of [...diff.sinks.changed, ...diff.sinks.added]) {
      const config = next.sinks.get(id)
      if (config === undefined) continue
      sinks.set(id, await buildSink(config, context, await keptSink(topology, config)))
    }
    for (const id of [...diff.transforms.changed, ...diff.transforms.added]) {
      const config = next.transforms.get(id)
      if (config !== undefined) transforms.set(id, await buildTransform(config, context))
    }
    return undefined
  } catch (error) {
    await closeAll(topology, sinks)
    return { outcome: 'rejected', reason: 'build', error }
  }
}

async function requireHealthAhead(topology: Topology, { sinks }: Change): Promise<Rejection | undefined> {
  if (!topology.requireHealthy) return undefined
  try {
    await topology.requireHealth([...sinks.values()])
    return undefined
  } catch (error) {
    await closeAll(topology, sinks)
    return { outcome: 'rejected', reason: 'unhealthy', error }
  }
}

/** Stops the old sources and builds the new ones. */
async function exchangeSources(
  topology: Topology,
  editor: TopologyEditor,
  change: Change,
): Promise<Rejection | undefined> {
  const { next, diff, sinks, sources } = change
  const leaving = [...diff.sources.removed, ...diff.sources.changed]
    .map((id) => topology.sources.get(id))
    .filter((node) => node !== undefined)
  await Promise.all(leaving.map((node) => cut(topology, node)))
  try {
    for (const id of [...diff.sources.changed, ...diff.sources.added]) {
      const config = next.sources.get(id)
      if (config !== undefined) sources.set(id, await buildSource(config, topology.context, topology.sources.has(id)))
    }
  } catch (error) {
    await closeAll(topology, sinks)
    await restore(
      topology,
      editor,
      leaving.map((node) => node.config),
    )
    return { outcome: 'rejected', reason: 'build', error }
  }
  if (!topology.stopping) return undefined
  await closeAll(topology, sinks)
  return { outcome: 'rejected', reason: 'stopping' }
}

/** Replaces nodes and connections synchronously, so that no event sees half of the change. */
function putInForce(topology: Topology, editor: TopologyEditor, change: Change): void {
  const { next, diff, sinks, transforms, sources } = change
  const retired: SinkNode[] = []
  for (const id of [...diff.sinks.removed, ...diff.sinks.changed]) {
    const old = editor.sinks.get(id)
    if (old === undefined) continue
    if (sinks.get(id)?.buffer === old.buffer) old.driver.release()
    const successor = sinks.get(id)
    if (successor !== undefined) old.succession.succeededBy(successor.succession)
    retired.push(old)
    editor.sinks.delete(id)
  }
  for (const node of sinks.values()) node.buffer.reconfigure?.(diskLimits(node.config))
  for (const id of [...diff.transforms.removed, ...diff.transforms.changed]) {
    const old = editor.transforms.get(id)
    if (old !== undefined) topology.leave(old)
    editor.transforms.delete(id)
  }
  for (const id of diff.sources.removed) editor.sources.delete(id)
  for (const [id, node] of sinks) editor.sinks.set(id, node)
  for (const [id, node] of transforms) editor.transforms.set(id, node)
  for (const [id, node] of sources) editor.sources.set(id, node)
  editor.adopt(next)
  for (const node of retired) topology.retire(node)
  for (const id of [...diff.transforms.removed, ...diff.sources.removed]) topology.context.metrics.forget(id)
  for (const node of sinks.values()) node.driver.start()
  for (const node of sources.values()) topology.runSource(node)
  if (!topology.requireHealthy) topology.checkInBackground([...sinks.values(), ...sources.values()])
}

/** Stops a source; disconnects it if it does not stop in time. */
async function cut(topology: Topology, node: SourceNode): Promise<void> {
  if (!(await topology.stopSource(node, sourceLimitMs))) topology.cutOff(node)
}

async function restore(topology: Topology, editor: TopologyEditor, configs: readonly SourceConfig[]): Promise<void> {
  for (const config of configs) {
    try {
      const node = await buildSource(config, topology.context, true)
      editor.sources.set(config.id, node)
      topology.wire()
      topology.runSource(node)
    } catch (error) {
      topology.context.metrics.counter('recover_errors_total').add(1)
      topology.fail(error)
      return
    }
  }
}

async function closeAll(topology: Topology, sinks: ReadonlyMap<string, SinkNode>): Promise<void> {
  for (const node of sinks.values()) {
    try {
      await node.sink.close()
      if (!topology.holds(node.buffer)) await node.buffer.close()
    } catch (error) {
      node.logger.warn({ error }, 'Could not close the sink.')
    }
  }
}
