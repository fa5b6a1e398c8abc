// A configuration that was read and checked: the graph of components with parsed options, and the globals. A `Config` is complete and
// consistent; its users check nothing again.

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
  /** Seconds after which an idle series of the agent's own metrics is forgotten; undefined: never. */
  readonly expireMetricsSecs: number | undefined
  /** Whether remap programs may call functions that need the network, and may leave texts as bytes. */
  readonly remap: { readonly network: boolean; readonly byte_lane: boolean }
}

interface ComponentConfig {
  /** The user's name for the component. */
  readonly id: string
  /** Options in the form that the declaration's `build` expects. */
  readonly options: Parsed<Options>
  /** Equal for equal configurations of the component; a digest, so it reveals no secrets. */
  readonly fingerprint: string
}

export interface SourceConfig extends ComponentConfig {
  readonly declaration: SourceDeclaration
  /** Proxies of the component, merged with the global ones and the environment. */
  readonly proxy: ProxyOptions
  /** Whether a sink downstream requires that the origin is acknowledged only after delivery. */
  readonly acknowledgements: boolean
  /** In a sidecar: the folder that files must be in. */
  readonly confinedTo?: string | undefined
  /** In a bundle: what the source may read, regardless of its options. */
  readonly subscription?: Subscription | undefined
}

export interface TransformConfig extends ComponentConfig {
  readonly declaration: TransformDeclaration
  /** Ids of the outputs it reads: `component` or `component.port`. Wildcards are resolved, doubles removed. */
  readonly inputs: readonly string[]
  /** Names of its further outputs. */
  readonly ports: readonly string[]
  /** The limits and reach of its programs: unlimited if not given. */
  readonly programs?: ProgramRules | undefined
}

export interface SinkConfig extends ComponentConfig {
  readonly declaration: SinkDeclaration
  readonly inputs: readonly string[]
  readonly envelope: SinkEnvelope
  /** Proxies of the component, merged with the global ones and the environment, and where it may not connect to. */
  readonly proxy: ProxyOptions & { readonly egress?: EgressOptions }
  /** Whether sources wait for this sink: its own setting, else the global one. */
  readonly acknowledgements: boolean
  /** Digest of `buffer` alone: a changed sink with an unchanged buffer keeps what is in it. */
  readonly bufferFingerprint: string
}

/** An entry of `tests`, its shape checked. */
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
  /** Programs that must all be true for one event. */
  readonly conditions: readonly string[]
  readonly expectedEventCount: number | undefined
}

export interface Config {
  readonly globals: ConfigGlobals
  readonly sources: ReadonlyMap<string, SourceConfig>
  readonly transforms: ReadonlyMap<string, TransformConfig>
  readonly sinks: ReadonlyMap<string, SinkConfig>
  readonly tests: readonly UnitTest[]
  /** Files and directories that the configuration was read from, to be watched. */
  readonly files: readonly string[]
  /** A digest for each top-level setting that was given, by name: a changed one needs a restart. */
  readonly globalFingerprints: ReadonlyMap<string, string>
}

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] }
