// Renders problems for people: one block per problem, with its place, the diagnostic of a program, and advice.

import { printableWithColours } from '../printable.ts'
import { named } from '../remap/diagnostics.ts'
import type { Problem } from '../schema/problems.ts'
import { type Sheet, wrapped } from '../terminal.ts'

/** Where the problems are printed; by default a file without colours. */
type RenderOptions = Partial<Sheet>

/** Invisible characters that people copy by accident: unusual spaces, and characters without width. */
const invisible = /[\u00a0\u00ad\u2000-\u200d\u202f\u2060\u3000\ufeff]/g

/** Replaces invisible characters by their JSON escapes. */
function visible(text: string): string {
  return text.replace(invisible, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** All problems, with a blank line between the blocks. */
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
    lines.push(
      `  ${paint(34, 'help:')} ${code} is an invisible character, such as a copied space; delete it and type it again.`,
    )
  }
  const shown = printableWithColours(lines.join('\n'))
  // Do not wrap a line of a program, because marks below point into it.
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
