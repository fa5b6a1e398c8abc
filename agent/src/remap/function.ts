// The declaration of a function of the language. The compiler checks calls by it, the reference is generated from it, and tests run its
// examples. The contract of its compiled form:
//
// - `compile` runs once for each call in a program. It computes everything that constants decide, and returns the plain
//   function that runs. That function takes the arguments by position, in the order of `parameters`, then the closure if any.
// - An optional argument that is not given arrives as its `default`, or as undefined without one.
// - Every argument has its parameter's kind: the compiler has checked it, or tests it before the call.
//   Strings arrive as JavaScript strings (bytes that are not UTF-8 become U+FFFD). If the parameter says `bytes` or has kind
//   `any`, such strings arrive as `Bytes`. Regexes are `Regex` values; `groupNames` of regex.ts names their groups.
//   Integers arrive as number or bigint, floats as number or Float (use `toNumber`), absent fields of objects are undefined.
// - The result is a Value, or `failure(reason)` for data that the function cannot process. It never throws or changes arguments.
// - The reason of a failure is a bare sentence; the compiler adds `function call error for "f" at (start:end): `.

import type { LoadedTable } from '../enrichment/table.ts'
import type { PathSegment } from '../event/path.ts'
import type { Float, Value } from '../event/value.ts'
import { Fact } from '../telemetry/facts.ts'
import type { Kind } from './kind.ts'
import type { ProgramReach } from './rules.ts'

/** Sorts of errors, and the text that replaces the message of each. */
const errorSorts = {
  failure: 'the call or operation failed on its values',
  mismatch: 'an argument is of the wrong kind',
  assertion: 'an assertion does not hold',
  abort: 'the program was aborted',
  budget: 'the program is over its budget for one event (a TenantPolicy sets another by `spec.programBudget`)',
  exception: 'the program could not go on',
} as const

export type ErrorSort = keyof typeof errorSorts

/** Where something went wrong: the function or operator, and its bytes in the program. */
export interface ErrorPlace {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** An error as text. Where neither the event nor the program may speak, its sort and place are shown alone. */
export function failureFact({ message, sort, place }: Pick<RemapError, 'message' | 'sort' | 'place'>): Fact {
  const shown =
    place === undefined ? errorSorts[sort] : `${errorSorts[sort]}: "${place.name}" at (${place.start}:${place.end})`
  return new Fact(message, shown)
}

/** A failure, as a value. Also how `abort` and `return` leave a closure: a function that runs one passes them on unchanged. */
export class RemapError {
  readonly message: string
  /** `fatal` is an error that nothing catches. */
  readonly outcome: 'error' | 'fatal' | 'abort' | 'return'
  /** The message that the program gave (`abort "…"`, `assert!(…, "…")`), null if none. */
  readonly given: string | null
  /** Of a `return`. */
  readonly value: Value
  /** The sort of the error, shown alone where the message must not be shown. */
  readonly sort: ErrorSort
  /** The call or operator that failed first, where it is known. */
  readonly place: ErrorPlace | undefined
  /** Bytes that the call may have made before it failed. */
  readonly made: number

  constructor(
    message: string,
    outcome: RemapError['outcome'] = 'error',
    given: string | null = null,
    value: Value = null,
    sort: ErrorSort = outcome === 'abort' ? 'abort' : 'failure',
    place: ErrorPlace | undefined = undefined,
    made = 0,
  ) {
    this.message = message
    this.outcome = outcome
    this.given = given
    this.value = value
    this.sort = sort
    this.place = place
    this.made = made
  }
}

export function failure(reason: string): RemapError {
  return new RemapError(reason)
}

export function isFailure(value: unknown): value is RemapError {
  return value instanceof RemapError
}

/** The result of a call: a value or a failure. */
export type Result = Value | RemapError

/** The body of a closure. A failure that it gives (also `abort`) ends the function, which gives it back as it is. */
export type Closure = ((...parameters: Value[]) => Result) & {
  /** The same function in every run, and what it gives depends on its parameters alone. */
  readonly pure?: true
}

/** The compiled form of one call. */
// biome-ignore lint/suspicious/noExplicitAny: arguments have the kinds that the declaration names; each function types its own
export type FunctionCall = (...values: any[]) => Result

export interface Parameter {
  readonly name: string
  readonly description: string
  /** Which kinds are taken. Only basic kinds are looked at. */
  readonly kind: Kind
  /** True if not given. */
  readonly required?: boolean
  readonly default?: Value
  /** The argument must be a compile-time constant, else E610. */
  readonly static?: boolean
  /** The argument must be a constant and one of these, else E610. */
  readonly enum?: readonly string[]
  /** The argument must be a path; `compile` sees it by `call.path(name)`, the function gets undefined. */
  readonly query?: boolean
  /** The argument, or each item of it, names a file that is opened when the program is compiled or runs. */
  readonly meaning?: 'file'
  /** The function works on bytes: it takes `Bytes` beside strings. */
  readonly bytes?: boolean
  /**
   * The function receives values of other kinds and refuses them with its own message (`mod`, the pattern of `parse_regex`). The
   * compiler then still counts the call as fallible (E110), but does not test the value before the call.
   */
  readonly ownCheck?: boolean
}

export interface ClosureDeclaration {
  /** Kinds of the parameters of the block, from the arguments of the call. */
  parameters(call: CallKinds): readonly Kind[]
  /** The kind that the block must return. The compiler compares basic kinds only. */
  readonly result: Kind
}

export interface PathArgument {
  readonly root: 'event' | 'metadata' | 'variable' | 'value'
  readonly segments: readonly PathSegment[]
}

/** The knowledge about a call while it is checked. */
export interface CallKinds {
  /** The static kind of an argument; of its default, or `undefined` kind, if it was not given. */
  kind(name: string): Kind
  given(name: string): boolean
  /** The value of an argument if it is a compile-time constant (a default is one); undefined otherwise. */
  constant(name: string): Value | undefined
  /** Path of a `query` argument. */
  path(name: string): PathArgument
  /** Kind that the closure gives. */
  readonly closureKind: Kind
  /** True if something in the closure may fail and is not handled. */
  readonly closureFallible: boolean
}

/** The environment of a program: options of the component and the current event. */
export interface Runtime {
  /** TZ database name for dates without a zone. */
  readonly timezone: string
  /** How far calls reach beyond the event; the checker sees to it. */
  readonly reach: ProgramReach
  /** No result may be longer, in bytes or items; `tooMuch` of meter.ts is the result then. */
  readonly maxBytes: number
  /** Whether functions may use the network. */
  readonly network: boolean
  /** Set by the compilation of calls that use it. */
  networkUsed?: boolean
  secret(name: string): string | undefined
  /** Undefined removes it. */
  setSecret(name: string, value: string | undefined): void
  /** A line of the function `log`. */
  log(level: 'trace' | 'debug' | 'info' | 'warn' | 'error', text: string): void
  table(name: string): LoadedTable | undefined
  /** Names of the tables that the configuration has; undefined where there is no configuration. */
  readonly tableNames?: readonly string[] | undefined
  /** Metrics of the agent itself, for the functions that look them up; each as an object value. */
  metrics(): readonly Value[]
}

/** A call that is compiled. */
export interface CallSite extends CallKinds {
  readonly runtime: Runtime
  /** Byte offsets of the call in the program. */
  readonly span: readonly [number, number]
  /** Refuses the arguments: the program does not compile (E610 with the reason). */
  reject(reason: string): never
}

export interface FunctionDeclaration {
  readonly name: string
  /** As the reference groups functions: Array, Codec, String, … */
  readonly category: string
  /** First line of its reference page, a full sentence. */
  readonly summary: string
  /** Further text, Markdown. */
  readonly description?: string
  readonly parameters: readonly Parameter[]
  readonly closure?: ClosureDeclaration
  /** Static kind of the result. */
  readonly returns: Kind | ((call: CallKinds) => Kind)
  /** Whether a call with arguments of the right kinds may fail. */
  readonly fallible: 'never' | 'always' | ((call: CallKinds) => boolean)
  /** The call may fail at run time although `fallible` does not say so: the failure ends the program as one of `f!(…)` does. */
  readonly failsUnannounced?: boolean
  /** The value of `ok` in `ok, err = f(…)` if the call fails and its kind is not a single one. */
  readonly valueOfFailure?: Value
  /** Why it may fail, for the reference. */
  readonly errors?: readonly string[]
  /** True if the same arguments give the same result and nothing else happens: calls with constants run at compile time. */
  readonly pure: boolean
  /** The targets that it reaches beyond the event and its arguments. Every function with such a target must declare it. */
  readonly reaches?: 'environment' | 'host' | 'network' | 'agent'
  /**
   * How much larger than its arguments together the result may be. `none`: it is no larger. `product`: as large as their product,
   * or larger, so that `compile` must keep to `runtime.maxBytes`. A few times as large if not given.
   */
  readonly growth?: 'none' | 'product'
  /** Its work does not depend on how large its argument is, and it gives the argument itself or a scalar: it costs no budget. */
  readonly looksAtTypeOnly?: true
  /** It changes secrets of the event, which are outside of its fields. */
  readonly writesMetadata?: true
  /** The program never evaluates its arguments: the compiler's knowledge of them is the result. */
  readonly typeOfArguments?: true
  /** Why, and what to use instead (warning E801). */
  readonly deprecated?: string
  /** Each is run as a test. The result is written as the program writes values; `fails` for those that must fail. */
  readonly examples: readonly { readonly source: string; readonly result: string }[]
  /**
   * Checks constant arguments, refuses calls that can never succeed, and returns the function that runs. The checker also calls it to
   * find refusals, so `compile` must have no side effects.
   */
  compile(call: CallSite): FunctionCall
  /** True if an object that it gives is new, held by nothing else: an event that becomes it needs no copy. */
  readonly fresh?: boolean
  /** Forms that the compiler generates itself, because they work on paths. */
  readonly form?: 'del' | 'exists' | 'unnest'
}

export function defineFunction(declaration: FunctionDeclaration): FunctionDeclaration {
  return declaration
}

/** A float or integer as a plain number. */
export function toNumber(value: number | bigint | Float): number {
  return typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : value.value
}

/** An integer as a bigint. */
export function toBigint(value: number | bigint): bigint {
  return typeof value === 'bigint' ? value : BigInt(value)
}

/** The targets of `reaches` in words. */
export const reachText: Readonly<Record<NonNullable<FunctionDeclaration['reaches']>, string>> = {
  environment: 'the environment of the agent',
  host: 'the host of the agent',
  network: 'the network',
  agent: "the agent's own metrics, which count what other pipelines do",
}
