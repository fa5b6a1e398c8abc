// Files of programs, whose paths are those in the container of the old agent.

import { formatOf } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { tableDocuments } from '../documents.ts'
import type { Included, NamedText } from '../draft.ts'

/** The texts of all ConfigMaps by name. */
function textsIn(files: readonly NamedText[]): ReadonlyMap<string, NamedText> {
  const found = new Map<string, NamedText>()
  for (const { file, text } of files) {
    if (!/\bConfigMap\b/.test(text)) continue
    const reading = { format: formatOf(file), above: 0, gaps: [], maxProblems: 0 }
    for (const { value, inside } of tableDocuments({ file, text }, reading)) {
      if (value['kind'] !== 'ConfigMap' || !isTable(value['data'])) continue
      for (const [name, inner] of Object.entries(value['data']))
        if (typeof inner === 'string') found.set(name, { file, ...inside(['data', name], inner) })
    }
  }
  return found
}

/** Finds such a file by the last names of its path, in the folder of the configuration or above it, or in a ConfigMap of the files. */
export function withPrograms(included: Included, files: readonly NamedText[]): Included {
  const texts = textsIn(files)
  return (path, from) => {
    const names = path.split('/').filter((name) => name !== '' && name !== '.')
    const ends = names.map((_, index) => names.slice(index).join('/'))
    for (const candidate of [path, ...ends.flatMap((end) => [end, `../${end}`])]) {
      const found = included(candidate, from)
      if (found.length > 0) return found
    }
    const text = texts.get(names.at(-1) ?? '')
    return text === undefined ? [] : [text]
  }
}
