// Prints problems on standard error, one block each, with the agent's renderer.

import { renderProblems } from '@penstock/agent/config'
import type { Problem } from '@penstock/agent/errors'
import { sheetOf } from '@penstock/agent/program'

/** Prints problems; true if none is an error. */
export function printProblems(problems: readonly Problem[]): boolean {
  if (problems.length > 0) console.error(renderProblems(problems, sheetOf(process.stderr)))
  return problems.every((problem) => problem.severity !== 'error')
}
