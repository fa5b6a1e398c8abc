// The filter `rewrite_tag`: a record that matches a rule gets another tag and starts again at the first filter. Here it takes another
// branch, with the filters and outputs that match the new tag.

import { type Context, common, matched } from './plugin.ts'
import { entriesOf, isOn, type Section } from './sections.ts'
import { accessor, matches, words } from './text.ts'

export const rewriteTag = {
  name: 'rewrite_tag',
  becomes: 'a filter transform for each rule, from which a branch begins with the filters and outputs of the new tag',
  options: {
    ...common,
    ...matched,
    rule: 'the condition of a branch; of several rules the first that matches counts',
  },
  itself: {
    emitter_name: 'there is no emitter',
    emitter_mem_buf_limit: 'there is no emitter',
    'emitter_storage.type': 'there is no emitter',
  },
} as const

export interface Branch {
  /** An input in place of the emitter: it has the new tag, with `*` for the parts that records decide. */
  readonly input: Section
  /** The condition of its records. */
  readonly condition: string
}

export interface Rewritten {
  readonly branches: readonly Branch[]
  /** The condition of the records that keep their tag; undefined if all keep it. */
  readonly rest: string | undefined
}

/** The effect of a section's rules on records. */
export function rewritten(section: Section, context: Context): Rewritten {
  const branches: Branch[] = []
  const gone: string[] = []
  const before: string[] = []
  for (const entry of entriesOf(section, 'rule')) {
    const [key = '', regex, tag, keep] = words(entry.value)
    const path = accessor(key)
    if (path === undefined || regex === undefined || tag === undefined || keep === undefined) {
      context.gap(
        entry,
        `rewrite_tag: Rule ${entry.value}`,
        'the rule is not a field, an expression, a tag and whether to keep the record',
        'Write the branch as a filter transform, and name it in the inputs of its sinks.',
      )
      continue
    }
    const test = matches(path, regex)
    const first = [...before.map((earlier) => `!${earlier}`), test].join(' && ')
    if (!isOn(keep, false)) gone.push(before.length === 0 ? test : `(${first})`)
    before.push(test)
    const known = tag.replace(/\$(?:TAG(?:\[\d+\])?|\d+|[A-Za-z_]\w*(?:\[[^\]]*\])*)/g, '*')
    const entries = [
      { ...entry, key: 'name', value: 'rewrite_tag' },
      { ...entry, key: 'tag', value: known },
    ]
    branches.push({ input: { ...section, kind: 'input', entries }, condition: first })
  }
  return { branches, rest: gone.length === 0 ? undefined : gone.map((test) => `!${test}`).join(' && ') }
}
