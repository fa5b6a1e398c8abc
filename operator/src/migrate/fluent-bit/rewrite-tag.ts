// The filter `rewrite_tag`: a record that matches a rule gets another tag and starts again at the first filter. In the Pipeline, it goes
// to a separate branch with the filters and outputs that match the new tag.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { type Context, common, matched } from './plugin.ts'
import { partsOf, partText, tagIndex, withGroups } from './record-accessor.ts'
import { entriesOf, isOn, type Section } from './sections.ts'
import type { Tag } from './tags.ts'
import { accessor, matches, words } from './text.ts'

export const rewriteTag = {
  name: 'rewrite_tag',
  becomes: 'a filter transform for each rule, which begins a branch with the filters and outputs of the new tag',
  options: {
    ...common,
    ...matched,
    rule: 'the condition of a branch; the first rule that matches wins',
  },
  itself: {
    emitter_name: 'there is no emitter',
    emitter_mem_buf_limit: 'there is no emitter',
    'emitter_storage.type': 'there is no emitter',
  },
} as const

export interface Branch {
  /** The new tag. Its program runs on records at the point of the rewrite. */
  readonly tag: Tag
  /** The condition that selects its records. */
  readonly condition: string
}

export interface Rewritten {
  readonly branches: readonly Branch[]
  /** The condition of the records that keep their tag; undefined if all keep it. */
  readonly rest: string | undefined
}

/** The effect of a section's rules on the records of a tag. */
export function rewritten(section: Section, context: Context, old: Tag): Rewritten {
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
        'a rule must be a field, an expression, a tag and whether to keep the record',
        'Rewrite the branch as a filter transform, and name it in the inputs of its sinks.',
      )
      continue
    }
    const test = matches(path, regex)
    const first = [...before.map((earlier) => `!${earlier}`), test].join(' && ')
    if (!isOn(keep, false)) gone.push(before.length === 0 ? test : `(${first})`)
    before.push(test)
    const groups = `groups = object(parse_grok(string(${fieldLiteral(path)}) ?? "", ${withGroups(regex)}) ?? null) ?? {}`
    branches.push({ tag: newTag(tag, old, groups), condition: first })
  }
  return { branches, rest: gone.length === 0 ? undefined : gone.map((test) => `!${test}`).join(' && ') }
}

/** Samples for a part of a tag that depends on the record. */
const unknown = ['a-1', 'zz-9']

interface Part {
  readonly sample: (old: string, index: number) => string
  /** An expression; undefined if a program cannot determine the value. */
  readonly text: string | undefined
}

/**
 * A tag with placeholders.
 * @param groups a line that sets the variable `groups` to those of the matching expression
 */
function newTag(text: string, old: Tag, groups: string): Tag {
  const all = partsOf(text)
  const parts = all.map((part) => partOf(part, old))
  const olds = parts.every(({ text }) => text?.startsWith('"') === true) ? old.samples.slice(0, 1) : manyOf(old)
  const samples = olds.map((sample, index) => parts.map((part) => part.sample(sample, index)).join(''))
  const isKnown = parts.every(({ text }) => text !== undefined) && old.program !== undefined
  const before = [...(old.program ?? []), ...(all.some((part) => /^\$\d$/.test(part)) ? [groups] : [])]
  return {
    text,
    samples: new Set(samples).size === 1 ? samples.slice(0, 1) : samples,
    program: isKnown ? [...before, `tag = ${parts.map((part) => part.text).join(' + ')}`] : undefined,
  }
}

const manyOf = ({ samples }: Tag) => (samples.length === 1 ? [...samples, ...samples] : samples)

function partOf(part: string, old: Tag): Part {
  const text = partText(part, 'groups')
  if (part === '$TAG') {
    return { sample: (tag) => tag, text: old.samples.length === 1 ? textLiteral(old.samples[0] ?? '') : text }
  }
  const index = tagIndex(part)
  if (index !== undefined) return { sample: (tag) => tag.split('.')[index] ?? '', text }
  if (!part.startsWith('$')) return { sample: () => part, text }
  return { sample: (_, at) => unknown[at % 2] ?? '', text }
}
