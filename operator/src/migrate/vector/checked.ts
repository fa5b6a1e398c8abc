// Checks the options of a counterpart against its declaration. Options of other versions get their form here, and options that do not exist
// are removed and reported.

import {
  bufferFindings,
  compileFieldSelector,
  encodingMessage,
  globalOptions,
  globalsOf,
  optionsOf,
  otherOption,
  otherOptions,
  parseOptions,
  type Segments,
  segmentsOf,
  valueAt,
  valueFindings,
} from '@penstock/agent/config'
import { errorText } from '@penstock/agent/errors'
import { type AnyDeclaration, isTable, pathOf } from '@penstock/agent/schema'
import { secretForms, withoutSample, withValues } from '../sound.ts'
import type { FailedProgram } from './program-gaps.ts'
import { merged, removeAt } from './tables.ts'

/** The context of component checks. A Pipeline has no global settings of an agent. */
const defaults = parseOptions(globalOptions, {})
if (!defaults.ok) throw new TypeError('The defaults of the settings are not valid.')
const globals = globalsOf(defaults.value, {})

type OptionProblem = FailedProgram & {
  readonly path: string
  readonly help?: string | undefined
  readonly severity?: 'error' | 'warning' | undefined
}

/** Receives the findings of a check. */
export interface CheckReport {
  /** A row about an option. @param name the option as text; empty for the component */
  option(segments: Segments, name: string, reason: string, nearest: string, isReplaced?: boolean): void
  /** Rows about a program or a condition that does not compile. */
  program(segments: Segments, text: string, problem: FailedProgram): void
}

/**
 * Removes options that the counterpart does not have, and reports them as gaps. Returns the names of its further outputs; undefined if
 * the options are not valid.
 */
export function checkedOptions(
  declaration: AnyDeclaration,
  config: Record<string, unknown>,
  report: CheckReport,
): readonly string[] | undefined {
  for (let round = 0; round < 100; round++) {
    const { parsed, errors } = attempted(declaration, config)
    const problems = parsed.ok ? limitsOf(declaration, config) : parsed.problems
    if (parsed.ok && problems.length === 0) {
      for (const error of errors) reportError(error, config, report)
      if (errors.length > 0) return undefined
      return declaration.kind === 'transform' ? (declaration.ports?.(parsed.value) ?? []) : []
    }
    if (rewritten(declaration, config, problems, report)) continue
    const [problem] = problems
    if (problem === undefined) return undefined
    const { segments, message, help } = plainProblem(problem)
    const isVariable = /SECRET\[/.test(JSON.stringify(valueAt(config, segments) ?? null))
    const isRemoved = removeAt(config, segments)
    const own = isVariable ? 'Write the value of the variable, and convert again.' : help
    const left = isRemoved ? 'The option is left out.' : 'Set the option, and convert again.'
    const nearest = own === undefined ? left : isRemoved ? `${sentence(own)} ${left}` : own
    report.option(segments, pathOf(segments), withoutSample(message), nearest)
    if (!isRemoved) return undefined
  }
  return undefined
}

interface RejectedOption {
  readonly segments: Segments
  readonly message: string
  readonly help?: string | undefined
}

/** A problem of an encoding has a general message, and its help says what is wrong. */
function plainProblem({ segments, message, help }: RejectedOption): RejectedOption {
  const [first] = help?.split('\n') ?? []
  if (message !== encodingMessage || first === undefined) return { segments, message, help }
  return { segments, message: first.replace(/^`[^`]*`: /, '') }
}

/** The text as a sentence. */
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`

/** Problems of the limits of a buffer, whose options depend on its type. */
const limitsOf = (declaration: AnyDeclaration, { buffer }: Record<string, unknown>) =>
  declaration.kind === 'sink' ? bufferFindings(buffer, declaration.bufferSizeOptional === true) : []

/** The parsed options with a sample value of their Secrets. Some problems depend on it, so the first sample without problems counts. */
function attempted(declaration: AnyDeclaration, config: Record<string, unknown>) {
  const { members, schema } = optionsOf(declaration)
  const attempts = secretForms.map((form) => {
    const parsed = parseOptions(members, withValues(config, form) as object)
    const found = parsed.ok
      ? valueFindings(schema, parsed.value, config).map((finding) => ({ ...finding, path: pathOf(finding.segments) }))
      : []
    const own = parsed.ok ? (declaration.check?.(parsed.value, globals) ?? []) : []
    const problems = [...found, ...own, ...selectorProblems(config)]
    return { parsed, errors: problems.filter(({ severity }) => severity !== 'warning') }
  })
  const valid = attempts.find(({ parsed, errors }) => parsed.ok && errors.length === 0)
  return valid ?? (attempts[0] as (typeof attempts)[number])
}

/** Problems of the selectors of pods: a Pipeline needs their text, and the API refuses some of them. */
function selectorProblems(config: Record<string, unknown>): readonly OptionProblem[] {
  return ['extra_field_selector', 'extra_label_selector', 'extra_namespace_label_selector'].flatMap((path) => {
    const text = config[path]
    if (typeof text !== 'string') return []
    const help = 'Write the value of the variable, and convert again.'
    if (text.includes('SECRET[')) return [{ path, message: 'a selector is literal text, found a variable', help }]
    const message = path === 'extra_field_selector' ? fieldSelectorProblem(text) : undefined
    return message === undefined ? [] : [{ path, message }]
  })
}

function fieldSelectorProblem(text: string): string | undefined {
  try {
    compileFieldSelector(text)
    return undefined
  } catch (error) {
    return errorText(error)
  }
}

function reportError(error: OptionProblem, config: Record<string, unknown>, report: CheckReport): void {
  const { path, message, help } = error
  const segments = segmentsOf(path, config)
  const value = valueAt(config, segments)
  const text = isTable(value) ? value['source'] : value
  if (error.diagnostic !== undefined && typeof text === 'string') {
    report.program(isTable(value) ? [...segments, 'source'] : segments, text, error)
    return
  }
  report.option(segments, path, `its options are not valid: ${message}`, help ?? 'Correct it, and convert again.')
}

/** Renames an option of another version, or removes it and reports the alternative. Returns false if there is none. */
function rewritten(
  declaration: AnyDeclaration,
  config: Record<string, unknown>,
  problems: readonly { readonly segments: Segments }[],
  report: CheckReport,
): boolean {
  const found = problems.flatMap(({ segments }) => {
    const value = valueAt(config, segments)
    const other = value === undefined ? undefined : otherOption(declaration.kind, declaration.type, segments, value)
    return other === undefined ? [] : [{ segments, value, other }]
  })
  // In the order of the table.
  const [first] = found.toSorted((one, next) => otherOptions.indexOf(one.other) - otherOptions.indexOf(next.other))
  if (first === undefined) return false
  const { segments, value, other } = first
  const instead = other.rewrite?.(value)
  const reason = other.differs ?? (instead === undefined ? 'there is no such option' : 'the option is not needed')
  const isSame = instead !== undefined && other.differs === undefined
  const isRenamed = isSame && Object.keys(instead).length > 0
  const explanation = isRenamed ? 'the option has another form here' : reason
  report.option(segments, segments.join('.'), explanation, other.instead, isSame)
  removeAt(config, segments)
  Object.assign(config, merged(instead ?? {}, config))
  return true
}
