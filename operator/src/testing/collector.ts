// Helpers for tests of conversions of the collector: convert a receiver of files with processors and an exporter, and pass an event through.

import { stringify } from 'yaml'
import { Draft } from '../migrate/draft.ts'
import { convertOtel } from '../migrate/otel/convert.ts'
import { lint, withClock } from './conversions.ts'

type Options = Readonly<Record<string, unknown>>

export interface Given {
  readonly operators?: readonly object[]
  readonly processors?: Options
  readonly receiver?: Options
  readonly exporter?: readonly [string, unknown]
}

export function converted({ operators = [], processors = {}, receiver = {}, exporter = ['nop', null] }: Given) {
  const draft = new Draft()
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'], operators, ...receiver } },
    processors,
    exporters: { [exporter[0]]: exporter[1] },
    service: {
      pipelines: { logs: { receivers: ['filelog'], processors: Object.keys(processors), exporters: [exporter[0]] } },
    },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  const document = draft.document({ name: 'converted' })
  return { document, gaps: draft.gaps, spec: document.toJSON().spec }
}

/** Problems of the Pipeline, and of an event that passes from the start of a transform to the sink. */
export async function problems(
  given: Given,
  first: number,
  event: object,
  assert: string | undefined,
): Promise<string[]> {
  const { document, gaps, spec } = converted(given)
  const missing = gaps.filter(({ isReplaced }) => isReplaced !== true)
  if (missing.length > 0) return missing.map(({ subject, reason }) => `${subject}: ${reason}`)
  document.addIn(['spec', 'transforms'], {
    name: 'last',
    type: 'filter',
    inputs: spec.sinks[0].inputs,
    config: { condition: 'true' },
  })
  document.setIn(['spec', 'sinks', 0, 'inputs'], ['last'])
  const entry: string = spec.transforms[first]?.name ?? 'last'
  const expected = assert === undefined ? { at: 'last', count: 0 } : { at: 'last', assert }
  const insertAt = withClock(document, entry)
  document.setIn(['spec', 'tests'], [{ name: 'event', insertAt, input: { log: event }, expect: [expected] }])
  return lint(String(document))
}

/** A record of the collector with further parts. */
export const record = (more: object) => ({
  message: 'm',
  attributes: {},
  resource: { attributes: {} },
  timestamp: '2026-01-01T00:00:00Z',
  ...more,
})

export interface Case {
  readonly name: string
  readonly given: Given
  readonly record: object
  /** Undefined if the record is discarded. */
  readonly assert?: string
}
