// Complete configurations modelled on real ones, in `migrate/corpus`, with one file per agent. The line before a case contains its
// description, the name of its file, and the parts without a counterpart.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compileFiles } from '../compile/config.ts'
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
export function convertedCase(
  { file, text }: Pick<CorpusCase, 'file' | 'text'>,
  namespace?: string,
): {
  readonly draft: Draft
  readonly found: FoundAgent | undefined
} {
  const found = agentFor([{ file, text }])
  const draft = new Draft(namespace)
  for (const [name, key] of secretsIn({ file, text })) draft.secrets.set(name, key)
  draft.gaps.push(...(found?.gaps ?? []))
  found?.agent.convert(found.files, () => [], draft)
  return { draft, found }
}

/** A variable at the beginning of an address contains an address. */
const secretValue = (name: string) => (/(?:URL|ENDPOINT|ADDRESS)$/.test(name) ? '"http://x"' : 'x')

let written = 0
/**
 * Errors of lint about an output of convert, as `path: message`. All keys of Secrets that it refers to exist.
 * @param output a folder for its file
 */
export function lintErrors(text: string, output: string, namespace = 'penstock-system'): string[] {
  const keys = [...new Set([...text.matchAll(/SECRET\[env\.(\w+)\]/g)].map(([, name]) => name))]
  const data = keys.map((key = '') => `${key}: ${secretValue(key)}`).join(', ')
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: converted-environment, namespace: ${namespace} }\nstringData: { ${data} }\n`
  const file = join(output, `${++written}.yaml`)
  writeFileSync(file, `${text}${secret}`)
  const { problems } = compileFiles([file], { ownMachine: false })
  return problems.filter(({ severity }) => severity === 'error').map(({ path, message }) => `${path}: ${message}`)
}
