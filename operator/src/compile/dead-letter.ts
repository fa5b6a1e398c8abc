// The dead letter sink: it receives events on which programs fail, and events rejected by other destinations.

import { compileTemplate, templateProblem } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { CompiledPipeline, Table } from './compiled.ts'
import type { CompileReport } from './report.ts'
import type { Scope } from './scope.ts'
import type { List } from './shape.ts'

/**
 * A program's failed events leave through a separate port and go to the dead letter sink. Returns that sink for events that
 * destinations reject.
 */
export function deadLetterOf(
  scope: Scope,
  names: ReadonlyMap<string, List>,
  spec: Table,
  transforms: Record<string, Table>,
  sinks: Record<string, Table>,
  report: CompileReport,
): CompiledPipeline['deadLetter'] {
  const letter = isTable(spec['onError']) ? spec['onError']['deadLetter'] : undefined
  if (!isTable(letter)) return undefined
  const path = ['spec', 'onError', 'deadLetter']
  const id = scope.idOf(String(letter['sink']))
  const sink = sinks[id]
  if (names.get(String(letter['sink'])) !== 'sinks') {
    const known = [...names].filter(([, list]) => list === 'sinks').map(([name]) => name)
    const message = `No sink of this Pipeline is named "${letter['sink']}"`
    report.error(scope.pipeline, [...path, 'sink'], message, `Known names: ${known.join(', ')}.`)
    return undefined
  }
  const dropped: string[] = []
  const programs = Object.entries(transforms).filter(([, { type }]) => type === 'remap')
  // A rejected event no longer exists, and neither do its captured source fields. So a dead letter sink that uses them, or whose owner
  // enforces values by them (T13), does not receive it.
  const takesRejected = sink !== undefined && !readsCaptured(sink)
  const others = takesRejected ? Object.keys(sinks).filter((each) => each !== id).length : 0
  const max = letter['maxEventsPerSecond']
  // Programs and sinks do not coordinate: each gets a fixed share of the limit.
  const part = typeof max === 'number' ? max / (programs.length + others) : undefined
  const limit = part === undefined ? {} : { reroute_dropped_limit: part }
  for (const [program, transform] of programs) {
    transforms[program] = { drop_on_error: true, drop_on_abort: true, ...transform, reroute_dropped: true, ...limit }
    dropped.push(`${program}.dropped`)
  }
  if (sink === undefined) return undefined
  const inputs = sink['inputs'] as readonly string[]
  sinks[id] = { ...sink, inputs: [...new Set([...inputs, ...dropped])] }
  if (others === 0) return undefined
  return { sink: id, ...(part === undefined ? {} : { perSecond: part }) }
}

/** Whether a template in a value or key uses fields that sources capture outside the event. */
function readsCaptured(value: unknown): boolean {
  if (typeof value === 'string') {
    if (templateProblem(value) !== undefined) return false
    return compileTemplate(value).paths.some(({ root, segments }) => root === 'metadata' && segments[0] === 'vector')
  }
  if (Array.isArray(value)) return value.some(readsCaptured)
  return isTable(value) && Object.entries(value).some(([key, item]) => readsCaptured(key) || readsCaptured(item))
}
