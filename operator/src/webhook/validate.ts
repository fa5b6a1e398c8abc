// The admission response for Penstock's resources, with all findings of a reconcile at once. Admission helps authors but is never
// required, because the reconcile reports the same problems. Therefore, admission allows requests if refusing them could lock a
// user out.

import { sameJson } from '@penstock/agent/bundle'
import type { Reason } from '../api/conditions.ts'
import { isTooDeep, maxDepth } from '../api/depth.ts'
import type { ResourceKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import { advice } from '../compile/check.ts'
import type { CompileProblem } from '../compile/compiled.ts'

/** Everything that a reconcile would find in an object, including warnings. */
export type Judge = (kind: ResourceKind, object: KubeObject) => Promise<readonly CompileProblem[]>

export interface AdmissionVerdict {
  readonly allowed: boolean
  /** All errors, one on each line; empty if the object is allowed. */
  readonly message: string
  readonly warnings: readonly string[]
}

/** Reasons that another object can fix: the referenced object may be applied a moment later. */
const fixable: ReadonlySet<Reason> = new Set([
  'SourceNotFound',
  'SinkNotFound',
  'SecretNotFound',
  'SecretKeyNotFound',
  'NoMatchingAgent',
])
/** The API server handles warnings of up to 120 characters well, and truncates all of them together at 4,096 bytes. */
const maxWarningLength = 256
const maxWarnings = 12

export async function validate(
  kind: ResourceKind,
  object: KubeObject,
  previous: KubeObject | undefined,
  judge: Judge,
): Promise<AdmissionVerdict> {
  const passes: AdmissionVerdict = { allowed: true, message: '', warnings: [] }
  if (object.metadata.deletionTimestamp !== undefined) return passes
  // No other check follows, because the code below reads trees recursively.
  if (isTooDeep(specOf(object))) {
    const message = `${kind.kind} "${object.metadata.name ?? ''}": \`spec\` is nested deeper than ${maxDepth} levels`
    return { allowed: false, message, warnings: [] }
  }
  const hasShape = previous !== undefined && !isTooDeep(specOf(previous))
  if (hasShape && sameJson(specOf(object), specOf(previous))) return passes

  const problems = await judge(kind, object)
  const errors = problems.filter((problem) => problem.severity === 'error' && !fixable.has(problem.reason))
  const notes = problems.filter((problem) => !errors.includes(problem))
  const spec = specOf(object)
  const text = (problem: CompileProblem) => advice(problem, spec)
  if (errors.length === 0) return { allowed: true, message: '', warnings: warningsOf(notes.map(text)) }

  // An invalid object may be changed if the change adds no new problem. Otherwise, a release with stricter checks would
  // lock its users out.
  if (previous !== undefined) {
    const before = new Set((await judge(kind, previous)).filter(isError).map((problem) => problem.reason))
    if (errors.every((problem) => before.has(problem.reason))) {
      const still = errors.map((problem) => `still wrong: ${text(problem)}`)
      return { allowed: true, message: '', warnings: warningsOf([...still, ...notes.map(text)]) }
    }
  }
  const lines = errors.map((problem) => `${problem.reason}: ${text(problem)}`)
  const head = `${kind.kind} "${object.metadata.name ?? ''}" has ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}`
  const message =
    lines.length === 1 ? `${head}: ${lines[0]}` : `${head}:\n${lines.map((line) => `- ${line}`).join('\n')}`
  return { allowed: false, message, warnings: warningsOf(notes.map(text)) }
}

const isError = (problem: CompileProblem) => problem.severity === 'error'
const specOf = (object: KubeObject) => (object as { spec?: unknown }).spec ?? null

function warningsOf(lines: readonly string[]): string[] {
  const shown = [...new Set(lines)]
    .slice(0, maxWarnings)
    .map((line) => (line.length > maxWarningLength ? `${line.slice(0, maxWarningLength - 3)}...` : line))
  const rest = new Set(lines).size - shown.length
  return rest > 0 ? [...shown, `and ${rest} more`] : shown
}
