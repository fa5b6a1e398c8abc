// Complete configurations modelled on real ones, in `migrate/corpus`, with one file per agent. The line before a case contains its
// description, the name of its file, and the parts without a counterpart.

import { readdirSync, readFileSync } from 'node:fs'
import { agentFor, type FoundAgent } from '../migrate/agents.ts'
import { Draft } from '../migrate/draft.ts'
import { secretsIn } from '../migrate/inner.ts'

export interface CorpusCase {
  readonly agent: string
  readonly about: string
  readonly file: string
  /** Subjects of the expected gaps. */
  readonly expected: readonly string[]
  readonly text: string
}

const folder = new URL('../migrate/corpus/', import.meta.url)

export const corpus: readonly CorpusCase[] = readdirSync(folder).flatMap((name) => {
  const parts = readFileSync(new URL(name, folder), 'utf8').split(/^######## (.*)\n/m)
  return parts.flatMap((head, index) => {
    if (index % 2 === 0) return []
    const [about = '', file = '', gaps = ''] = head.split(' | ').map((part) => part.replace(/ \|$/, '').trim())
    const expected = gaps.split('; ').filter((gap) => gap !== '')
    return [{ agent: name.replace('.txt', ''), about, file, expected, text: parts[index + 1] ?? '' }]
  })
})

/** The draft of a case, and the agent that was recognized from its text. */
export function convertedCase({ file, text }: CorpusCase): {
  readonly draft: Draft
  readonly found: FoundAgent | undefined
} {
  const found = agentFor([{ file, text }])
  const draft = new Draft()
  for (const [name, key] of secretsIn({ file, text })) draft.secrets.set(name, key)
  draft.gaps.push(...(found?.gaps ?? []))
  found?.agent.convert(found.files, () => [], draft)
  return { draft, found }
}
