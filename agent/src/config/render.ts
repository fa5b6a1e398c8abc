// Problems as people read them: one block for each, with its place, what to do, and the diagnostic of a program below it.

import { printableWithColours } from '../printable.ts'
import { named } from '../remap/diagnostics.ts'
import type { Problem } from '../schema/problems.ts'
import { type Sheet, wrapped } from '../terminal.ts'

/** The sheet for the problems; by default a file without colours. */
type RenderOptions = Partial<Sheet>

/** Characters that people copy without seeing them: spaces other than that of the keyboard, and characters without width. */
const unseen = /[\u00a0\u00ad\u2000-\u200d\u202f\u2060\u3000\ufeff]/g

/** The text with what is not seen as its code, as JSON writes it. */
function visible(text: string): string {
  return text.replace(unseen, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** All problems, a blank line between the blocks. */
export function renderProblems(problems: readonly Problem[], options: RenderOptions = {}): string {
  return problems.map((problem) => renderProblem(problem, options)).join('\n\n')
}

export function renderProblem(problem: Problem, options: RenderOptions = {}): string {
  const paint = (code: number, text: string) => (options.color === true ? `\u001b[${code}m${text}\u001b[0m` : text)
  const label = problem.severity === 'error' ? 'error' : problem.informational === true ? 'info' : 'warning'
  const colour = label === 'error' ? 31 : label === 'warning' ? 33 : 36
  const message = visible(problem.message)
  const lines = [`${paint(colour, label)}: ${message}`]
  const place = visible(placeText(problem))
  if (place !== '') lines.push(`  ${paint(34, '-->')} ${place}`)
  const diagnostic = renderedDiagnostic(problem)
  if (diagnostic !== undefined) {
    for (const line of diagnostic.split('\n')) lines.push(line === '' ? '' : `    ${line}`)
  }
  if (problem.help !== undefined) {
    for (const line of problem.help.split('\n')) lines.push(`  ${paint(34, 'help:')} ${line}`)
  }
  if (message !== problem.message) {
    const [code] = /\\u[0-9a-f]{4}/.exec(message) ?? []
    lines.push(`  ${paint(34, 'help:')} ${code} is a character that is not seen, such as a copied space: type it anew.`)
  }
  const shown = printableWithColours(lines.join('\n'))
  // A line of a program stays whole: marks below point into it.
  const isProgram = /[│┌]/
  return shown
    .split('\n')
    .map((line) => (isProgram.test(line) ? line : wrapped(line, options.columns, line.search(/\S/) + 2)))
    .join('\n')
}

/** The diagnostic of a program, whose place names the option that holds it. */
export function renderedDiagnostic({ rendered, path }: Problem): string | undefined {
  return rendered === undefined ? undefined : named(rendered, visible(path)).trimEnd()
}

function placeText({ file, line, column, path }: Problem): string {
  const where =
    file === undefined ? '' : line === undefined ? file : `${file}:${line}${column === undefined ? '' : `:${column}`}`
  if (path === '') return where
  return where === '' ? path : `${where}  (${path})`
}
