// The declaration of a function of the language. The compiler uses it to check calls, the reference is generated from it, and tests run
// its examples. The contract of its compiled form:
// - `compile` runs once for each call in a program. It precomputes everything that depends only on constants, and returns
//   the function to run. That function takes the arguments by position, in the order of `parameters`, then the closure if any.
// - A missing optional argument has its `default`, or is undefined without one.
// - Every argument has its parameter's kind: the compiler has checked it, or tests it before the call.
//   Strings are JavaScript strings (bytes that are not UTF-8 become U+FFFD). If the parameter says `bytes` or has kind
//   `any`, such strings are `Bytes`. Regexes are `Regex` values; `groupNames` of regex.ts names their groups.
//   Integers are number or bigint, floats are number or Float (use `toNumber`), absent fields of objects are undefined.
// - The result is a Value, or `failure(reason)` for data that the function cannot process. It never throws or changes arguments.
// - The reason of a failure is only a sentence; the compiler adds `function call error for "f" at (start:end): `.

import type { LoadedTable } from '../enrichment/table.ts'
import type { PathSegment } from '../event/path.ts'
import type { Float, Value } from '../event/value.ts'
import { Fact } from '../telemetry/facts.ts'
import type { Kind } from './kind.ts'
import type { ProgramReach } from './rules.ts'

/** Error categories, and the text that replaces the message of each. */
const errorSorts = {
  failure: 'the call or operation failed for its values',
  mismatch: 'an argument has the wrong kind',
  assertion: 'an assertion is false',
  abort: 'the program was aborted',
  budget: 'the program exceeded its budget for one event (`spec.programBudget` of a TenantPolicy changes the budget)',
  exception: 'the program could not continue',
} as const

export type ErrorSort = keyof typeof errorSorts

/** Location of an error: the function or operator, and its bytes in the program. */
export interface ErrorPlace {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** An error as text. If neither event nor program content may be shown, only its category and location are included. */
export function failureFact({ message, sort, place }: Pick<RemapError, 'message' | 'sort' | 'place'>): Fact {
  const shown =
    place === undefined ? errorSorts[sort] : `${errorSorts[sort]}: "${place.name}" at (${place.start}:${place.end})`
  return new Fact(message, shown)
}

/**
 * A failure as a value. Also how `abort` and `return` leave a closure: a function that runs a closure returns them unchanged.
 */
export class RemapError {
  readonly message: string
  /** `fatal` is an error that the program cannot catch. */
  readonly outcome: 'error' | 'fatal' | 'abort' | 'return'
  /** The message given by the program (`abort "…"`, `assert!(…, "…")`), or null. */
  readonly given: string | null
  /** The value of a `return`. */
  readonly value: Value
  /** The error's category, shown alone if the message must be hidden. */
  readonly sort: ErrorSort
  /** The call or operator that first failed, if known. */
  readonly place: ErrorPlace | undefined
  /** Bytes that the call may have produced before it failed. */
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

/** The body of a closure. Its failure (including `abort`) ends the function, which returns it unchanged. */
export type Closure = ((...parameters: Value[]) => Result) & {
  /** Whether it is the same function in every run, with a result that depends only on its parameters. */
  readonly pure?: true
}

/** The compiled form of one call. */
// biome-ignore lint/suspicious/noExplicitAny: arguments have the declared kinds; each function types its own
export type FunctionCall = (...values: any[]) => Result

export interface Parameter {
  readonly name: string
  readonly description: string
  /** The accepted kinds. Only basic kinds are compared. */
  readonly kind: Kind
  /** True if not given. */
  readonly required?: boolean
  readonly default?: Value
  /** The argument must be a compile-time constant, else E610. */
  readonly static?: boolean
  /** The argument must be one of these constants, else E610. */
  readonly enum?: readonly string[]
  /** The argument must be a path; `compile` gets it from `call.path(name)`, and the function gets undefined. */
  readonly query?: boolean
  /** The argument, or each of its items, names a file that is opened at compile time or at run time. */
  readonly meaning?: 'file'
  /** Whether the function works on bytes: it accepts `Bytes` and strings. */
  readonly bytes?: boolean
  /**
   * The function receives values of other kinds too, and rejects them with its own message (`mod`, the pattern of
   * `parse_regex`). The compiler still treats the call as fallible (E110), but does not test the value before the call.
   */
  readonly ownCheck?: boolean
}

export interface ClosureDeclaration {
  /** Kinds of the block's parameters, by the arguments of the call. */
  parameters(call: CallKinds): readonly Kind[]
  /** The required kind of the block's result. The compiler compares basic kinds only. */
  readonly result: Kind
}

export interface PathArgument {
  readonly root: 'event' | 'metadata' | 'variable' | 'value'
  readonly segments: readonly PathSegment[]
}

/** The facts about a call known during checking. */
export interface CallKinds {
  /** The static kind of an argument; if it is not given, that of its default, or `undefined`. */
  kind(name: string): Kind
  given(name: string): boolean
  /** The value of an argument if it is a compile-time constant (as every default is); otherwise undefined. */
  constant(name: string): Value | undefined
  /** Path of a `query` argument. */
  path(name: string): PathArgument
  /** Kind of the closure's result. */
  readonly closureKind: Kind
  /** Whether an unhandled failure in the closure is possible. */
  readonly closureFallible: boolean
}

/** The environment of a program: options of the component and the current event. */
export interface Runtime {
  /** TZ database name for dates without a zone. */
  readonly timezone: string
  /** Which resources calls may access; the checker enforces this. */
  readonly reach: ProgramReach
  /** Maximum length of any result in bytes or items; beyond it the result is `tooMuch` of meter.ts. */
  readonly maxBytes: number
  /** Whether functions may use the network. */
  readonly network: boolean
  /** Set when a call that uses the network is compiled. */
  networkUsed?: boolean
  secret(name: string): string | undefined
  /** Sets a secret; undefined removes it. */
  setSecret(name: string, value: string | undefined): void
  /** Writes a line for the function `log`. */
  log(level: 'trace' | 'debug' | 'info' | 'warn' | 'error', text: string): void
  table(name: string): LoadedTable | undefined
  /** Names of the tables that the configuration has; undefined where there is no configuration. */
  readonly tableNames?: readonly string[] | undefined
  /** The agent's own metrics, for the functions that look them up; each as an object value. */
  metrics(): readonly Value[]
}

/** A call being compiled. */
export interface CallSite extends CallKinds {
  readonly runtime: Runtime
  /** Byte offsets of the call in the program. */
  readonly span: readonly [number, number]
  /** Rejects the arguments: the program does not compile (E610 with the reason). */
  reject(reason: string): never
}

export interface FunctionDeclaration {
  readonly name: string
  /** Category in the reference: Array, Codec, String, … */
  readonly category: string
  /** First line of its reference page, a full sentence. */
  readonly summary: string
  /** Additional text in Markdown. */
  readonly description?: string
  readonly parameters: readonly Parameter[]
  readonly closure?: ClosureDeclaration
  /** Static kind of the result. */
  readonly returns: Kind | ((call: CallKinds) => Kind)
  /** Whether a call may fail even if its arguments have the right kinds. */
  readonly fallible: 'never' | 'always' | ((call: CallKinds) => boolean)
  /**
   * Whether the call may fail at run time even if `fallible` does not say so: such a failure ends the program like one of
   * `f!(…)`.
   */
  readonly failsUnannounced?: boolean
  /**
   * Whether values may be of another kind than `returns`, because the language defines the kind that way. Programs with such a call test
   * kinds at run time.
   */
  readonly nominal?: true | ((call: CallKinds) => boolean)
  /** The value of `ok` in `ok, err = f(…)` if the call fails. If undefined: the empty value of a single kind, else null. */
  readonly valueOfFailure?: (kind: Kind) => Value | undefined
  /** Possible failures, for the reference. */
  readonly errors?: readonly string[]
  /** Whether equal arguments give equal results without other effects: calls with constants then run at compile time. */
  readonly pure: boolean
  /** Whether a call with constants is a constant for the operators around it. Of other calls, only their kinds are known. */
  readonly isConstant?: true
  /** Resources other than the event and the arguments that it accesses. Every such function must declare them. */
  readonly reaches?: 'environment' | 'host' | 'network' | 'agent'
  /**
   * Maximum size of the result relative to all arguments. `none`: no larger. `product`: as large as their product or larger, so
   * that `compile` must enforce `runtime.maxBytes`. A few times as large if not given.
   */
  readonly growth?: 'none' | 'product'
  /**
   * Whether its work does not depend on its argument's size, and it returns the argument itself or a scalar: it is not charged
   * to the budget.
   */
  readonly looksAtTypeOnly?: true
  /** Whether it changes the event's secrets, which are not fields. */
  readonly writesMetadata?: true
  /** Whether the arguments are never evaluated, because the result is the compiler's knowledge of them. */
  readonly typeOfArguments?: true
  /** Why it is deprecated, and the replacement (warning E801). */
  readonly deprecated?: string
  /** Each runs as a test. The result is in program syntax; `fails` marks examples that must fail. */
  readonly examples: readonly { readonly source: string; readonly result: string }[]
  /**
   * Checks constant arguments, rejects calls that can never succeed, and returns the function to run. The checker also calls it to
   * find rejections, so `compile` must have no side effects.
   */
  compile(call: CallSite): FunctionCall
  /** Whether each object that it returns is new: an event that becomes it needs no copy. */
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

/** The values of `reaches` in words. */
export const reachText: Readonly<Record<NonNullable<FunctionDeclaration['reaches']>, string>> = {
  environment: 'the environment of the agent',
  host: 'the host of the agent',
  network: 'the network',
  agent: "the agent's own metrics, which count the activity of other pipelines",
}
