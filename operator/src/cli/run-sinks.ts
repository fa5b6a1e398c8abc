// The sinks of `penstock run`. Sinks that print use one format. Sinks with a destination that is unreachable from this machine are
// replaced by the screen, so that a Pipeline for a cluster shows the events it would deliver.

import { connect } from 'node:net'
import { consoleSink, transformer } from '@penstock/agent/config'
import { isTable, membersOf, type Schema } from '@penstock/agent/schema'
import type { Table } from '../compile/compiled.ts'
import { authoritiesIn } from '../compile/egress-ports.ts'

/** Timeout for connecting to a destination. */
const connectLimitMs = 1500

/** Unreachable destinations with the reason, by sink id. A sink without a host in its options is not checked. */
export async function unreachable(sinks: Readonly<Record<string, Table>>): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  await Promise.all(
    Object.entries(sinks).map(async ([id, sink]) => {
      const problems = await Promise.all(
        authoritiesIn('sink', sink).map(async ({ host, port = 443 }) => {
          const problem = await connectProblem(host, port)
          return problem === undefined ? undefined : `${host}:${port}: ${problem}`
        }),
      )
      const [first] = problems
      if (first !== undefined && problems.every((problem) => problem !== undefined)) found.set(id, first)
    }),
  )
  return found
}

function connectProblem(host: string, port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const socket = connect({ host, port })
  const limit = setTimeout(() => resolve('no answer'), connectLimitMs)
  socket.on('connect', () => resolve(undefined))
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  return promise.finally(() => {
    clearTimeout(limit)
    socket.destroy()
  })
}

export function isScreen(sink: Table): boolean {
  return sink['type'] === consoleSink.type
}

/** The sinks as the agent runs them. @param isReplaced whether the screen replaces the sink with an id */
export function shownSinks(
  sinks: Readonly<Record<string, Table>>,
  codec: 'json' | 'native_json',
  isReplaced: (id: string) => boolean,
): Record<string, Table> {
  return Object.fromEntries(
    Object.entries(sinks).map(([id, sink]) => {
      if (!isScreen(sink) && !isReplaced(id)) return [id, sink]
      const encoding = { ...transformerOf(sink['encoding']), codec }
      return [id, { type: consoleSink.type, inputs: sink['inputs'], encoding }]
    }),
  )
}

/** The options of an `encoding` that apply to every codec: which fields are sent, and how. */
function transformerOf(encoding: unknown): Table {
  const members = membersOf(transformer() as Schema)
  if (!isTable(encoding)) return {}
  return Object.fromEntries(Object.entries(encoding).filter(([name]) => Object.hasOwn(members, name)))
}
