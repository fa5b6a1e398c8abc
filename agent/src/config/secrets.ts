// Inserts secrets into a configuration before its options are checked. From then on, a secret is an option value like any other.

import { alternatives } from '../schema/messages.ts'
import { closest, type Problem } from '../schema/problems.ts'
import { parseOptions } from '../schema/validate.ts'
import { type Backend, readSecrets, secretOption } from '../secrets/backends.ts'
import { mapTexts, placeholdersOf, secretStandIn, withSecrets } from '../secrets/placeholders.ts'
import type { Raw } from './merge.ts'
import { type Located, problemAt } from './place.ts'
import type { Segments } from './syntax.ts'

interface Use {
  readonly located: Located
  readonly segments: Segments
  readonly backend: string
  readonly key: string
}

/** A constant, so that its schema compiles only once. */
const members = { secret: secretOption }

/**
 * Replaces the placeholders in all components and settings. Returns the files that the secrets came from, to watch for changes.
 * @param fetch whether to read the secrets; if false, a stand-in replaces them, for checks on another machine
 */
export async function putSecretsIn(raw: Raw, fetch: boolean, problems: Problem[]): Promise<readonly string[]> {
  const setting = raw.globals.get('secret')
  const uses = usesOf(raw)
  if (setting === undefined && uses.length === 0) return []
  const checked = parseOptions(members, { secret: setting?.value })
  // The check of the settings reports problems with the setting itself.
  if (!checked.ok) return []
  const backends = checked.value.secret ?? {}
  const known = uses.filter((use) => isKnown(use, backends, problems))
  const answers = new Map<string, Map<string, string>>()
  for (const [name, own] of Map.groupBy(known, (use) => use.backend)) {
    const keys = [...new Set(own.map((use) => use.key))]
    if (!fetch) {
      answers.set(name, new Map(keys.map((key) => [key, secretStandIn])))
      continue
    }
    const { secrets, problems: failed } = await readSecrets(backends[name] as Backend, keys)
    answers.set(name, new Map(secrets))
    for (const { located, segments, key } of own) {
      const reason = failed.get(key)
      if (reason === undefined) continue
      problems.push(problemAt(located, segments, { message: `secret "${name}.${key}" is not available: ${reason}` }))
    }
  }
  replace(raw, (backend, key) => answers.get(backend)?.get(key))
  return Object.values(backends).flatMap((backend) => (backend.type === 'exec' ? [] : [backend.path]))
}

function isKnown(use: Use, backends: Readonly<Record<string, Backend>>, problems: Problem[]): boolean {
  if (Object.hasOwn(backends, use.backend)) return true
  const names = Object.keys(backends)
  const near = closest(use.backend, names)
  const expected = names.length === 0 ? 'none is declared below `secret`' : `expected ${alternatives(names)}`
  problems.push(
    problemAt(use.located, use.segments, {
      message: `unknown secret backend \`${use.backend}\`, ${expected}`,
      help: near === undefined ? undefined : `did you mean \`${near}\`?`,
    }),
  )
  return false
}

function tables(raw: Raw): readonly Map<string, Located>[] {
  return [raw.globals, raw.sources, raw.transforms, raw.sinks]
}

function usesOf(raw: Raw): Use[] {
  const uses: Use[] = []
  const walk = (located: Located, value: unknown, segments: Segments): void => {
    if (typeof value === 'string') {
      for (const placeholder of placeholdersOf(value)) uses.push({ located, segments, ...placeholder })
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(located, item, [...segments, index])
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) walk(located, member, [...segments, name])
    }
  }
  for (const table of tables(raw)) {
    for (const [name, located] of table) {
      if (table !== raw.globals || name !== 'secret') walk(located, located.value, [])
    }
  }
  return uses
}

function replace(raw: Raw, secret: (backend: string, key: string) => string | undefined): void {
  for (const table of tables(raw)) {
    for (const [name, located] of table) {
      if (table === raw.globals && name === 'secret') continue
      const value = mapTexts(located.value, (text) => withSecrets(text, secret))
      if (value !== located.value) table.set(name, { ...located, value })
    }
  }
}
