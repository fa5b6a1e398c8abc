// The differences between two configurations, component by component. Pure.

import { canonicalJson } from '../config/canonical.ts'
import type { Config, SinkConfig, SourceConfig, TransformConfig } from '../config/config.ts'

export interface KindDiff {
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  readonly added: readonly string[]
}

export interface ConfigDiff {
  readonly sources: KindDiff
  readonly transforms: KindDiff
  readonly sinks: KindDiff
  /** Unchanged components with different inputs. */
  readonly rewired: readonly string[]
  /** Names of changed top-level settings, which cannot change at run time. */
  readonly globals: readonly string[]
  /** True if there are no differences. */
  readonly same: boolean
}

export function diffConfigs(before: Config, after: Config): ConfigDiff {
  const sources = diffKind(before.sources, after.sources, sourceMark)
  const transforms = diffKind(before.transforms, after.transforms, transformMark)
  const sinks = diffKind(before.sinks, after.sinks, sinkMark)
  const rewired: string[] = []
  for (const kind of ['transforms', 'sinks'] as const) {
    for (const [id, component] of after[kind]) {
      const old = before[kind].get(id)
      if (old !== undefined && JSON.stringify(old.inputs) !== JSON.stringify(component.inputs)) rewired.push(id)
    }
  }
  const globals = new Set([...before.globalFingerprints.keys(), ...after.globalFingerprints.keys()])
  for (const name of globals) {
    if (before.globalFingerprints.get(name) === after.globalFingerprints.get(name)) globals.delete(name)
  }
  const counts = [sources, transforms, sinks].map(
    (kind) => kind.removed.length + kind.changed.length + kind.added.length,
  )
  const same = globals.size === 0 && rewired.length === 0 && counts.every((count) => count === 0)
  return { sources, transforms, sinks, rewired, globals: [...globals], same }
}

function diffKind<C>(before: ReadonlyMap<string, C>, after: ReadonlyMap<string, C>, mark: (component: C) => string) {
  const removed = [...before.keys()].filter((id) => !after.has(id))
  const changed: string[] = []
  const added: string[] = []
  for (const [id, component] of after) {
    const old = before.get(id)
    if (old === undefined) added.push(id)
    else if (mark(old) !== mark(component)) changed.push(id)
  }
  return { removed, changed, added }
}

// Everything that affects how a component is built: its options without inputs, and the relevant settings of the
// configuration.
const optionsMark = ({ declaration, options }: SourceConfig | TransformConfig | SinkConfig) =>
  `${declaration.type} ${canonicalJson({ ...options, type: undefined, inputs: undefined })}`
const sourceMark = (source: SourceConfig) =>
  `${optionsMark(source)} ${source.acknowledgements} ${canonicalJson(source.proxy)} ${canonicalJson(source.subscription ?? null)}`
const transformMark = (transform: TransformConfig) =>
  `${optionsMark(transform)} ${canonicalJson(transform.ports)} ${canonicalJson(transform.programs ?? null)}`
const sinkMark = (sink: SinkConfig) => `${optionsMark(sink)} ${sink.bufferFingerprint} ${canonicalJson(sink.proxy)}`
