// Problems on standard error, one block each; the renderer is the agent's own.

import { renderProblems } from '@penstock/agent/config'
import type { Problem } from '@penstock/agent/errors'
import { sheetOf } from '@penstock/agent/program'

/** Prints problems; true if there is no error among them. */
export function printProblems(problems: readonly Problem[]): boolean {
  if (problems.length > 0) console.error(renderProblems(problems, sheetOf(process.stderr)))
  return problems.every((problem) => problem.severity !== 'error')
}
