// The components of a configuration: reading them, and their order.

import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Kind } from '../draft.ts'
import type { Root } from './read.ts'
import { listOf } from './tables.ts'

export interface Old {
  readonly root: Root
  readonly kind: Kind
  readonly id: string
  readonly type: string
  readonly options: Table
  readonly inputs: readonly string[]
}

export function oldsIn(root: Root, kind: Kind): Old[] {
  const table = root.config[kind]
  return Object.entries(isTable(table) ? table : {}).map(([id, given]) => {
    const { type, inputs, ...options } = isTable(given) ? given : {}
    return { root, kind, id, type: currentType(kind, String(type ?? '')), options, inputs: listOf(inputs).map(String) }
  })
}

/** Types with another name in newer versions, so that the same rules apply to both names. */
const renamed: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  sources: { generator: 'demo_logs', docker: 'docker_logs', logplex: 'heroku_logs', prometheus: 'prometheus_scrape' },
  transforms: {},
  sinks: { gcp_stackdriver_logging: 'gcp_stackdriver_logs', prometheus: 'prometheus_exporter' },
}

const currentType = (kind: Kind, type: string) =>
  Object.hasOwn(renamed[kind], type) ? (renamed[kind][type] ?? type) : type

/** All outputs that a component may have: its own, and those of the parts that it divides events into. */
export function outputsOf({ id, kind, type, options }: Old): readonly string[] {
  if (kind !== 'transforms') return [id]
  const { routes, reroute_dropped: reroutes } = options
  const named = ['route', 'lanes'].flatMap((list) => Object.keys(isTable(options[list]) ? options[list] : {}))
  const listed = listOf(routes).flatMap((each) => (isTable(each) ? [String(each['name'])] : []))
  const rest = /route$/.test(type) ? ['_unmatched'] : []
  const ports = [...named, ...listed, ...rest, ...(reroutes === true ? ['dropped'] : [])]
  return [id, ...ports.map((port) => `${id}.${port}`)]
}

/** The component of `id.port`. */
export const ownerOf = (output: string) => output.replace(/\..*$/s, '')

/**
 * Sorts transforms so that each one comes after those it reads from.
 * @param matching the outputs that an input matches
 */
export function inOrder(transforms: readonly Old[], matching: (input: string) => readonly string[]): readonly Old[] {
  const done = new Set<Old>()
  const ordered: Old[] = []
  const visit = (old: Old): void => {
    if (done.has(old)) return
    done.add(old)
    for (const input of old.inputs) {
      for (const output of matching(input)) {
        const before = transforms.find(({ id }) => id === ownerOf(output) || id === output)
        if (before !== undefined && before !== old) visit(before)
      }
    }
    ordered.push(old)
  }
  for (const old of transforms) visit(old)
  return ordered
}
