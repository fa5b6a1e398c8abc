// The filter `rewrite_tag`: a record that matches a rule gets another tag and starts again at the first filter. In the Pipeline, it goes
// to a separate branch with the filters and outputs that match the new tag.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { type Context, common, matched } from './plugin.ts'
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
    branches.push({ tag: newTag(tag, old), condition: first })
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

/** A tag with the placeholders `$TAG`, `$TAG[1]`, `$1` for groups, and `$key['name']` for fields. */
function newTag(text: string, old: Tag): Tag {
  const parts = text
    .split(/(\$(?:TAG(?:\[\d+\])?|\d+|[A-Za-z_]\w*(?:\[[^\]]*\])*))/)
    .filter((part) => part !== '')
    .map((part) => partOf(part, old))
  const olds = parts.every(({ text }) => text?.startsWith('"') === true) ? old.samples.slice(0, 1) : manyOf(old)
  const samples = olds.map((sample, index) => parts.map((part) => part.sample(sample, index)).join(''))
  const isKnown = parts.every(({ text }) => text !== undefined) && old.program !== undefined
  return {
    text,
    samples: new Set(samples).size === 1 ? samples.slice(0, 1) : samples,
    program: isKnown ? [...(old.program ?? []), `tag = ${parts.map((part) => part.text).join(' + ')}`] : undefined,
  }
}

const manyOf = ({ samples }: Tag) => (samples.length === 1 ? [...samples, ...samples] : samples)

function partOf(part: string, old: Tag): Part {
  if (part === '$TAG') {
    return { sample: (tag) => tag, text: old.samples.length === 1 ? textLiteral(old.samples[0] ?? '') : 'tag' }
  }
  const index = /^\$TAG\[(\d+)\]$/.exec(part)?.[1]
  if (index !== undefined) {
    const sample = (tag: string) => tag.split('.')[Number(index)] ?? ''
    return { sample, text: `(string(get(split(tag, "."), [${index}]) ?? null) ?? "")` }
  }
  if (!part.startsWith('$')) return { sample: () => part, text: textLiteral(part) }
  const path = /^\$\d/.test(part) ? undefined : accessor(part)
  const sample = (_: string, at: number) => unknown[at % 2] ?? ''
  return { sample, text: path === undefined ? undefined : `(to_string(${fieldLiteral(path)}) ?? "")` }
}
