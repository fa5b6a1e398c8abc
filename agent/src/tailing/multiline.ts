// Joins lines that belong together, such as stack traces, by two patterns: one for the first line of a group, one for its continuation.

import type { OptionProblem } from '../component.ts'
import { Bytes, Regex } from '../event/value.ts'
import { compileRegex } from '../remap/regex.ts'
import { group, oneOf, optional, text, uint } from '../schema/options.ts'
import { type MultilineMode, multilineModes } from './multiline-mode.ts'

/** `multiline` of the sources that tail files. */
export const multiline = () =>
  optional(
    group(
      {
        start_pattern: text('Regular expression that the first line of a group matches.', { examples: ['^[^\\s]'] }),
        condition_pattern: text('Regular expression that, together with `mode`, determines the end of a group.', {
          examples: ['^[\\s]+'],
        }),
        mode: oneOf(
          multilineModes,
          'Determines the end of a group. `continue_through`: the group includes all consecutive lines that match the condition. `continue_past`: those lines and the first line that does not match. `halt_before`: the group ends before the first line that matches. `halt_with`: the group ends with that line. `end_with`: the same, but the first line of a group can also be its last one.',
        ),
        flush_pattern: optional(
          text(
            'Regular expression for the last line of a group, whatever the other patterns say. It does not apply to the first line.',
            { examples: ['^END'] },
          ),
        ),
        timeout_ms: uint('Milliseconds after which a group without further lines is complete.', {
          minimum: 1,
        }),
      },
      'Joins several lines into one event.',
    ),
  )

export interface MultilineOptions {
  readonly start_pattern: string
  readonly condition_pattern: string
  readonly mode: MultilineMode
  readonly timeout_ms: number
  readonly flush_pattern?: string | undefined
}

export interface MultilineRule {
  readonly mode: MultilineMode
  readonly timeoutMs: number
  starts(line: string): boolean
  meetsCondition(line: string): boolean
  /** Whether a line is the last of its group; undefined if no pattern decides it. */
  readonly flushes: ((line: string) => boolean) | undefined
}

/**
 * Compiles the patterns; throws a SyntaxError if one is invalid. Matching takes time linear in the length of the line.
 */
export function compileMultiline(options: MultilineOptions): MultilineRule {
  const start = compilePattern(options.start_pattern)
  const condition = compilePattern(options.condition_pattern)
  const flushes = options.flush_pattern === undefined ? undefined : compilePattern(options.flush_pattern)
  return { mode: options.mode, timeoutMs: options.timeout_ms, starts: start, meetsCondition: condition, flushes }
}

/** The problems of the option `multiline`. */
export function multilineProblems(options: MultilineOptions | undefined): readonly OptionProblem[] {
  try {
    if (options !== undefined) compileMultiline(options)
    return []
  } catch (error) {
    return [{ path: 'multiline', message: `A pattern is not valid: ${(error as Error).message}` }]
  }
}

function compilePattern(text: string): (line: string) => boolean {
  const regex = compileRegex(text)
  if (!(regex instanceof Regex)) throw new SyntaxError(regex.reason)
  const { compiled } = regex
  return (line) => compiled.test(line)
}

/** Maximum number of lines in a group, because each line is a separate object, however short it is. */
const maxGroupBytes = 1 << 20
export const maxGroupLines = 16_384

/** Groups the lines of one origin. `Context` is the data kept with the first line of a group. */
export class MultilineAggregator<Context> {
  readonly #rule: MultilineRule
  readonly #emit: (text: string | Bytes, context: Context) => void
  #lines: (string | Bytes)[] = []
  #bytes = 0
  #context: Context | undefined
  #start = 0
  #last = 0

  constructor(rule: MultilineRule, emit: (text: string | Bytes, context: Context) => void) {
    this.#rule = rule
    this.#emit = emit
  }

  /** Position of the first line of the incomplete group; undefined if there is none. */
  get pendingFrom(): number | undefined {
    return this.#lines.length === 0 ? undefined : this.#start
  }

  add(line: string | Bytes, position: number, context: Context, now: number): void {
    const text = typeof line === 'string' ? line : line.toString()
    if (this.#lines.length > 0) {
      if (this.#rule.flushes?.(text) === true) {
        this.#append(line, now)
        this.flush()
        return
      }
      const met = this.#rule.meetsCondition(text)
      const { mode } = this.#rule
      if (mode === 'continue_through' || mode === 'continue_past' ? met : !met) {
        this.#append(line, now)
        return
      }
      if (mode === 'continue_past' || mode === 'halt_with' || mode === 'end_with') {
        this.#append(line, now)
        this.flush()
        return
      }
      this.flush()
    }
    const isWhole = this.#rule.mode === 'end_with' && this.#rule.meetsCondition(text)
    if (isWhole || !this.#rule.starts(text)) {
      this.#emit(line, context)
      return
    }
    this.#context = context
    this.#start = position
    this.#append(line, now)
  }

  #append(line: string | Bytes, now: number): void {
    this.#lines.push(line)
    this.#bytes += typeof line === 'string' ? line.length : line.bytes.length
    this.#last = now
    if (this.#bytes > maxGroupBytes || this.#lines.length === maxGroupLines) this.flush()
  }

  /**
   * Emits a group that has waited too long. If the reader is behind, the next line may already be in the file, so the
   * group stays.
   */
  expire(now: number, isBehind: () => boolean): void {
    if (this.#lines.length === 0 || now - this.#last < this.#rule.timeoutMs) return
    if (isBehind()) this.#last = now
    else this.flush()
  }

  flush(): void {
    if (this.#lines.length === 0) return
    const lines = this.#lines
    this.#lines = []
    this.#bytes = 0
    this.#emit(joined(lines), this.#context as Context)
  }
}

function joined(lines: readonly (string | Bytes)[]): string | Bytes {
  if (lines.every((line) => typeof line === 'string')) return lines.join('\n')
  const parts: Buffer[] = []
  for (const line of lines) {
    if (parts.length > 0) parts.push(Buffer.from('\n'))
    parts.push(typeof line === 'string' ? Buffer.from(line) : line.bytes)
  }
  return new Bytes(Buffer.concat(parts))
}
