// Size limits for programs with a budget. Checking a program takes time and memory proportional to the square of its statements, because
// each may add a known field; and every pass recurses as deeply as expressions are nested. The limits depend only on the text, so the
// operator and the agent always agree.

import type { Root } from './ast.ts'

export const programLimits = { characters: 262_144, statements: 2000, depth: 256 } as const

/** The limit that these expressions exceed; undefined if none. */
export function excessOf(program: readonly Root[]): string | undefined {
  let statements = program.length
  let level: readonly unknown[] = program
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > programLimits.depth) return `the program is nested deeper than ${programLimits.depth} levels`
    const next: unknown[] = []
    for (const each of level) statements += addBelow(each as object, next)
    if (statements > programLimits.statements) return `the program has more than ${programLimits.statements} statements`
    level = next
  }
  return undefined
}

/** Adds the direct child expressions of a node; returns how many of them are statements. */
function addBelow(part: object, into: unknown[]): number {
  if ('node' in part && part.node === 'literal') return 0
  let statements = 0
  for (const [name, member] of Object.entries(part)) {
    if (typeof member !== 'object' || member === null) continue
    if (name === 'body' && Array.isArray(member)) statements += member.length
    if ('node' in member) into.push(member)
    else statements += addBelow(member, into)
  }
  return statements
}
