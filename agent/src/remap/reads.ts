// The parts of an event that determine the result of a read-only program.

import type { Program } from './program.ts'
import type { Obstacle } from './statement-effects.ts'
import { visit } from './typed.ts'

/** Root fields that, with the metadata, determine the result; or the reason why they are unknown. */
export type Reads =
  | { readonly ok: true; readonly fields: readonly string[] }
  | { readonly ok: false; readonly obstacle: Obstacle }

export function readsOf({
  statements,
  isMetered,
  usesNetwork,
}: Pick<Program, 'statements' | 'isMetered' | 'usesNetwork'>): Reads {
  const fields = new Set<string>()
  let obstacle: Obstacle | undefined
  if (usesNetwork) obstacle = { at: 0, text: 'uses the network' }
  else if (isMetered) obstacle = { at: 0, text: 'may need more than the budget of a program' }
  for (const statement of statements) {
    visit(statement, (typed) => {
      if (typed.op === 'read' && typed.place.root === 'event') {
        const [first] = typed.place.segments
        if (typeof first === 'string') fields.add(first)
        else obstacle ??= { at: typed.span[0], text: 'reads the event as a whole' }
      } else if (typed.op === 'call' && !typed.declaration.pure) {
        const name = typed.declaration.name
        obstacle ??= { at: typed.span[0], text: `calls \`${name}\`, which does not depend on its arguments alone` }
      }
    })
  }
  return obstacle === undefined ? { ok: true, fields: [...fields] } : { ok: false, obstacle }
}
