// Merges several configuration texts: collects their components and tests, and combines their global settings.
// If two texts contradict each other, a problem names both. No value silently overrides another.

import { isDeepStrictEqual } from 'node:util'
import { unknownField } from '../schema/messages.ts'
import type { Problem } from '../schema/problems.ts'
import { isTable } from '../schema/walk.ts'
import { globalOptions } from './globals.ts'
import { otherOption } from './other-options.ts'
import { type Located, member, problemAt } from './place.ts'

/** The merged configuration before any checks. */
export interface Raw {
  /** Top-level settings, by name. */
  readonly globals: Map<string, Located>
  readonly sources: Map<string, Located>
  readonly transforms: Map<string, Located>
  readonly sinks: Map<string, Located>
  readonly tests: Located[]
}

/** The content of one text: a whole configuration, or a single component or test in its own file. */
export interface ConfigPart {
  readonly located: Located
  readonly holds: 'all' | { readonly kind: 'sources' | 'transforms' | 'sinks' | 'tests'; readonly id: string }
}

const topLevelTables = ['sources', 'transforms', 'sinks'] as const

export function merge(parts: readonly ConfigPart[], problems: Problem[]): Raw {
  const raw: Raw = { globals: new Map(), sources: new Map(), transforms: new Map(), sinks: new Map(), tests: [] }
  for (const { located, holds } of parts) {
    if (holds !== 'all') {
      if (holds.kind === 'tests') raw.tests.push(named(located, holds.id))
      else addComponent(raw, holds.kind, holds.id, located, problems)
      continue
    }
    if (located.value === undefined) continue
    if (!isTable(located.value)) {
      problems.push(problemAt(located, [], { message: 'the configuration must be a table of settings and components' }))
      continue
    }
    for (const key of Object.keys(located.value)) addTopLevel(raw, key, member(located, key), problems)
  }
  return raw
}

function addTopLevel(raw: Raw, key: string, value: Located, problems: Problem[]): void {
  if (key === 'tests') {
    if (value.value === null) return
    if (!Array.isArray(value.value)) problems.push(problemAt(value, [], { message: '`tests` must be a list' }))
    else for (const index of value.value.keys()) raw.tests.push(member(value, index))
    return
  }
  if ((topLevelTables as readonly string[]).includes(key)) {
    if (value.value === null) return
    if (!isTable(value.value)) {
      problems.push(problemAt(value, [], { message: `\`${key}\` must be a table of components by their id` }))
      return
    }
    const kind = key as (typeof topLevelTables)[number]
    for (const id of Object.keys(value.value)) addComponent(raw, kind, id, member(value, id), problems)
    return
  }
  if (!Object.hasOwn(globalOptions, key)) {
    const known = [...Object.keys(globalOptions), ...topLevelTables, 'tests']
    const { message, help } = unknownField(key, known)
    const other = otherOption('global', undefined, [key], value.value)
    problems.push(problemAt(value, [], { atKey: true, message, help: other?.instead ?? help }))
    return
  }
  if (value.value === null) return
  const earlier = raw.globals.get(key)
  raw.globals.set(key, earlier === undefined ? value : together(earlier, value, problems))
}

function addComponent(
  raw: Raw,
  kind: 'sources' | 'transforms' | 'sinks',
  id: string,
  value: Located,
  problems: Problem[],
): void {
  const earlier = raw[kind].get(id)
  if (earlier === undefined) {
    raw[kind].set(id, value)
    return
  }
  problems.push(
    problemAt(value, [], {
      atKey: true,
      message: `More than one ${kind.slice(0, -1)} with name "${id}".`,
      help: `the other one is in ${fileOf(earlier)}`,
    }),
  )
}

/** Combines two values of one setting, which must be equal or be tables without contradictions. */
function together(first: Located, second: Located, problems: Problem[]): Located {
  if (isTable(first.value) && isTable(second.value)) {
    const value: Record<string, unknown> = { ...first.value }
    for (const key of Object.keys(second.value)) {
      value[key] = Object.hasOwn(first.value, key)
        ? together(member(first, key), member(second, key), problems).value
        : second.value[key]
    }
    return { value, path: first.path, origins: [...first.origins, ...second.origins] }
  }
  if (!isDeepStrictEqual(first.value, second.value)) {
    problems.push(
      problemAt(second, [], {
        message: `conflicting values for \`${first.path.join('.')}\``,
        help: `${fileOf(first)} sets another value`,
      }),
    )
  }
  return first
}

function named(located: Located, name: string): Located {
  if (!isTable(located.value) || located.value['name'] !== undefined) return located
  return { ...located, value: { name, ...located.value } }
}

function fileOf(located: Located): string {
  return located.origins[0]?.text.file ?? 'the configuration'
}
