// Problems as people read them: one block for each, with its place, what to do, and the diagnostic of a program below it.

import { printableWithColours } from '../printable.ts'
import type { Problem } from '../schema/problems.ts'
import { type Sheet, wrapped } from '../terminal.ts'

/** The sheet for the problems; by default a file without colours. */
type RenderOptions = Partial<Sheet>

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
  const shown = printableWithColours(lines.join('\n'))
  // A line of a program stays whole: marks below point into it.
  const isProgram = /[│┌]/
  return shown
    .split('\n')
    .map((line) => (isProgram.test(line) ? line : wrapped(line, options.columns, line.search(/\S/) + 2)))
    .join('\n')
}

function placeText({ file, line, column, path }: Problem): string {
  const where =
    file === undefined ? '' : line === undefined ? file : `${file}:${line}${column === undefined ? '' : `:${column}`}`
  if (path === '') return where
  return where === '' ? path : `${where}  (${path})`
}
