// Finds components whose options the agent would reject, because mistakes of the old configuration carry over to the new one. A component
// that reads nothing or discards its events replaces them, and the reason becomes a gap.

import { findComponent, globalOptions, globalsOf, optionsOf, parseOptions } from '@penstock/agent/config'
import { readsNothing } from './complete.ts'
import type { Component, Gap, Origin } from './draft.ts'

const defaults = parseOptions(globalOptions, {})
if (!defaults.ok) throw new TypeError('The defaults of the settings are not valid.')
const globals = globalsOf(defaults.value, {})

/** The component itself if its options are valid; otherwise its replacement. */
export function soundComponent(kind: 'source' | 'sink', component: Component, origin: Origin, gaps: Gap[]): Component {
  const problem = problemOf(kind, component)
  if (problem === undefined) return component
  gaps.push({
    ...origin,
    reason: `its options are not valid: ${problem.message}`,
    nearest: problem.help ?? 'Correct it, and convert again.',
  })
  const isSource = kind === 'source'
  const comments = [
    ...(component.comments ?? []),
    `GAP: \`${origin.subject}\` (${origin.file}:${origin.line}) gave options that are not valid. This ${isSource ? 'source reads nothing' : 'sink discards its events'}.`,
  ]
  return isSource ? { ...readsNothing(), comments } : { type: 'blackhole', comments }
}

/** The problem of a component. A Secret may contain an address or a base64 key. */
function problemOf(kind: 'source' | 'sink', component: Component) {
  const [first, second] = secretForms.map((whole) => problemWith(whole, kind, component))
  return second === undefined ? undefined : first
}

function problemWith(whole: string, kind: 'source' | 'sink', { type, config = {} }: Component) {
  const declaration = findComponent(kind, type)
  if (declaration === undefined) return { message: `there is no ${kind} ${type}`, help: undefined }
  const parsed = parseOptions(optionsOf(declaration).members, withValues(config, whole) as object)
  if (!parsed.ok) return parsed.problems[0] ?? { message: 'its options are not valid', help: undefined }
  return (declaration.check?.(parsed.value, globals) ?? []).find(({ severity }) => severity !== 'warning')
}

/** Possible values of a Secret: an address, or a base64 key. */
export const secretForms = ['http://secret', 'c2VjcmV0'] as const

/** A message about an option, which names no sample value that the configuration does not contain. */
export const withoutSample = (message: string): string =>
  message.replace(`found "${secretForms[0]}"`, 'found a variable').replace(` \`${secretForms[0]}\``, ', a variable,')

/**
 * Replaces references to Secrets with sample values, because their values are unknown until the Pipeline runs: an address if the reference
 * is the whole text or comes before a path, a number for a port, and otherwise any text.
 */
export function withValues(value: unknown, whole: string): unknown {
  if (typeof value === 'string') {
    return value
      .replace(/^SECRET\[[^\]]*\](?=$|[/?]|:\d)/, whole)
      .replace(/(?<=:\/\/[^/?#@]+:)SECRET\[[^\]]*\](?![^/?#]*@)/, '80')
      .replace(/SECRET\[[^\]]*\]/g, 'secret')
  }
  if (Array.isArray(value)) return value.map((item) => withValues(item, whole))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withValues(item, whole)]))
}
