// The connections: the inputs of transforms and sinks as component ids.

import type { CompileReport } from './report.ts'
import type { Scope } from './scope.ts'
import type { Entry, List } from './shape.ts'

/**
 * Inputs as ids. Names refer to entries of this Pipeline; wildcards are expanded here and never reach the agent (T2).
 */
export function inputsOf(
  scope: Scope,
  names: ReadonlyMap<string, List>,
  entry: Entry,
  fallback: readonly string[],
  report: CompileReport,
): string[] {
  const inputs = entry.content['inputs']
  if (!Array.isArray(inputs)) return fallback.map((name) => scope.idOf(name))
  const path = [...entry.path, 'inputs']
  const ids: string[] = []
  const readable = [...names.keys()].filter((name) => name !== entry.name && names.get(name) !== 'sinks')
  for (const [index, input] of inputs.entries()) {
    if (typeof input !== 'string') continue
    const [name, port] = input.split('.', 2) as [string, string | undefined]
    const matching = readable.filter((known) => isMeant(known, name))
    if (matching.length === 0) {
      const help = readable.length === 0 ? undefined : `Known names: ${readable.join(', ')}.`
      const message = `No source or transform of this Pipeline is named "${name}"`
      report.error(scope.pipeline, [...path, index], message, help)
    }
    for (const match of matching) ids.push(`${scope.idOf(match)}${port === undefined ? '' : `.${port}`}`)
  }
  return [...new Set(ids)]
}

/**
 * Whether a pattern matches a name, where `*` matches any characters. Each part is searched once, at the first possible position: a
 * regular expression would try all combinations.
 */
export function isMeant(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return name === pattern
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}
