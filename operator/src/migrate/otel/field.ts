// Fields of operators of filelog, such as `body.message`, `attributes["log.file.path"]` or `resource.host`.

import { fieldAt, type Key, roots } from './record.ts'

const part = /^(?:\.([^.[\]]+)|\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\d+))\s*\])/

export interface Field {
  readonly root: 'body' | 'attributes' | 'resource'
  /** Names below the root. */
  readonly below: readonly Key[]
  /** In the event. */
  readonly path: readonly Key[]
}

/** Returns undefined if the text is not a field. */
export function fieldOf(text: string): Field | undefined {
  const found = /^\$?(body|attributes|resource)(?=$|[.[])/.exec(text.trim())
  const root = found?.[1] as Field['root'] | undefined
  if (found === null || root === undefined) return undefined
  const below: Key[] = []
  let rest = text.trim().slice(found[0].length)
  while (rest !== '') {
    const next = part.exec(rest)
    if (next === null) return undefined
    below.push(next[4] === undefined ? (next[1] ?? next[2] ?? next[3] ?? '').replace(/\\(.)/g, '$1') : Number(next[4]))
    rest = rest.slice(next[0].length)
  }
  return { root, below, path: [...(roots[root] ?? []), ...below] }
}

/** Reads a field in a way that the compiler forgets its kind, which it may know from an earlier assignment. */
export function openRead(path: readonly Key[], root = '.'): string {
  return `(get(${root}, [${path.map((key) => JSON.stringify(key)).join(', ')}]) ?? null)`
}

/** Statements that store a variable in a field. Members of an object are merged with existing members. */
export function storeLines(field: Field, variable: string): string[] {
  const at = fieldAt(field.path)
  const merged = `${at} = merge(object(${at}) ?? {}, object!(${variable}))`
  if (field.below.length === 0 && field.root !== 'body') return [`if is_object(${variable}) { ${merged} }`]
  return [`if is_object(${variable}) {`, `  ${merged}`, '} else {', `  ${at} = ${variable}`, '}']
}
