// A checked configuration: the graph of components with parsed options, and the globals. A `Config` is complete and consistent, so its
// users need no further checks.

import type {
  Globals,
  SinkDeclaration,
  SinkEnvelope,
  SourceDeclaration,
  Subscription,
  TransformDeclaration,
} from '../component.ts'
import type { EgressOptions } from '../net/egress.ts'
import type { ProgramRules } from '../remap/rules.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import type { Options, Parsed } from '../schema/options.ts'
import type { Problem } from '../schema/problems.ts'

/** Top-level settings of a configuration. */
export interface ConfigGlobals extends Globals {
  /** Default of the sinks' `acknowledgements.enabled`. */
  readonly acknowledgements: boolean
  readonly healthchecks: { readonly enabled: boolean; readonly requireHealthy: boolean }
  readonly api: { readonly enabled: boolean; readonly address: string; readonly metric_prefix: string }
  /** Seconds after which the agent removes an idle series of its own metrics; undefined means never. */
  readonly expireMetricsSecs: number | undefined
  /** Whether remap programs may call functions that need the network, and may process text as bytes. */
  readonly remap: { readonly network: boolean; readonly byte_lane: boolean }
}

interface ComponentConfig {
  /** The user's name for the component. */
  readonly id: string
  /** Options in the form that the declaration's `build` expects. */
  readonly options: Parsed<Options>
  /** A digest of the component's configuration: equal if the configurations are equal, and without secrets in it. */
  readonly fingerprint: string
}

export interface SourceConfig extends ComponentConfig {
  readonly declaration: SourceDeclaration
  /** The component's proxies, merged with the global ones and those of the environment. */
  readonly proxy: ProxyOptions
  /** Whether a downstream sink requires the source to acknowledge events at their origin only after delivery. */
  readonly acknowledgements: boolean
  /** In a sidecar, the folder that must contain the files. */
  readonly confinedTo?: string | undefined
  /** In a bundle, the data that the source may read, regardless of its options. */
  readonly subscription?: Subscription | undefined
}

export interface TransformConfig extends ComponentConfig {
  readonly declaration: TransformDeclaration
  /** Ids of the outputs that it reads, `component` or `component.port`, with wildcards resolved and duplicates removed. */
  readonly inputs: readonly string[]
  /** Names of its additional outputs. */
  readonly ports: readonly string[]
  /** The functions and limits of its programs; unlimited by default. */
  readonly programs?: ProgramRules | undefined
}

export interface SinkConfig extends ComponentConfig {
  readonly declaration: SinkDeclaration
  readonly inputs: readonly string[]
  readonly envelope: SinkEnvelope
  /** The component's proxies, merged with the global ones and those of the environment, and the destinations it must not connect to. */
  readonly proxy: ProxyOptions & { readonly egress?: EgressOptions }
  /** Whether sources wait for this sink, by its own setting or else by the global one. */
  readonly acknowledgements: boolean
  /** Digest of `buffer` alone: a changed sink with an unchanged buffer keeps its buffered events. */
  readonly bufferFingerprint: string
}

/** A valid entry of `tests`. */
export interface UnitTest {
  readonly name: string
  readonly inputs: readonly UnitTestInput[]
  readonly outputs: readonly UnitTestOutput[]
  readonly noOutputsFrom: readonly string[]
}

export interface UnitTestInput {
  /** Id of a transform. */
  readonly insertAt: string
  readonly type: 'raw' | 'log' | 'metric' | 'vrl'
  readonly value?: string | undefined
  readonly logFields?: Readonly<Record<string, unknown>> | undefined
  readonly metric?: unknown
  readonly source?: string | undefined
}

export interface UnitTestOutput {
  /** Output ids. */
  readonly extractFrom: readonly string[]
  /** Programs that must all return true for at least one event. */
  readonly conditions: readonly string[]
  readonly expectedEventCount: number | undefined
}

export interface Config {
  readonly globals: ConfigGlobals
  readonly sources: ReadonlyMap<string, SourceConfig>
  readonly transforms: ReadonlyMap<string, TransformConfig>
  readonly sinks: ReadonlyMap<string, SinkConfig>
  readonly tests: readonly UnitTest[]
  /** Files and directories that the configuration was read from, to watch for changes. */
  readonly files: readonly string[]
  /** A digest of each top-level setting in the configuration, by name. If one changes, the agent needs a restart. */
  readonly globalFingerprints: ReadonlyMap<string, string>
}

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] }
