// Problems as people read them: one block for each, with its place, what to do, and the diagnostic of a program below it.

import { printableWithColours } from '../printable.ts'
import type { Problem } from '../schema/problems.ts'

export interface RenderOptions {
  /** Whether to colour; the default is not to. */
  readonly color?: boolean
}

/** All problems, a blank line between the blocks. */
export function renderProblems(problems: readonly Problem[], options: RenderOptions = {}): string {
  return problems.map((problem) => renderProblem(problem, options)).join('\n\n')
}

export function renderProblem(problem: Problem, options: RenderOptions = {}): string {
  const paint = (code: number, text: string) => (options.color === true ? `\u001b[${code}m${text}\u001b[0m` : text)
  const label = problem.severity === 'error' ? 'error' : problem.informational === true ? 'info' : 'warning'
  const colour = label === 'error' ? 31 : label === 'warning' ? 33 : 36
  const lines = [`${paint(colour, label)}: ${problem.message}`]
  const place = placeText(problem)
  if (place !== '') lines.push(`  ${paint(34, '-->')} ${place}`)
  if (problem.rendered !== undefined) {
    for (const line of problem.rendered.trimEnd().split('\n')) lines.push(line === '' ? '' : `    ${line}`)
  }
  if (problem.help !== undefined) {
    for (const line of problem.help.split('\n')) lines.push(`  ${paint(34, 'help:')} ${line}`)
  }
  return printableWithColours(lines.join('\n'))
}

function placeText({ file, line, column, path }: Problem): string {
  const where =
    file === undefined ? '' : line === undefined ? file : `${file}:${line}${column === undefined ? '' : `:${column}`}`
  if (path === '') return where
  return where === '' ? path : `${where}  (${path})`
}
