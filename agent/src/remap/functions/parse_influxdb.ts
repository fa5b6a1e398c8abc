// Function `parse_influxdb`.

import { Timestamp } from '../../event/timestamp.ts'
import { float, setField, type Value, type ValueObject } from '../../event/value.ts'
import { parseInfluxLines } from '../../formats/influxdb.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseInfluxdb = defineFunction({
  name: 'parse_influxdb',
  category: 'Parse',
  summary: 'Parses lines of the InfluxDB line protocol into an array with one object per field.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The lines.' }],
  returns: kinds.arrayEach(
    kinds.objectOf({
      name: kinds.string,
      tags: kinds.objectEach(kinds.string).or(kinds.null),
      timestamp: kinds.timestamp.or(kinds.null),
      kind: kinds.string,
      gauge: kinds.objectOf({ value: kinds.float }),
    }),
  ),
  fallible: 'always',
  errors: ['A line has another format.', 'A field is text.'],
  pure: true,
  examples: [
    {
      source: 'parse_influxdb!("tank,site=n level=17i")',
      result: '[{ "gauge": { "value": 17 }, "kind": "absolute", "name": "tank_level", "tags": { "site": "n" } }]',
    },
    {
      source: 'parse_influxdb!("tank level=1.5 1590488773254420000")[0].timestamp',
      result: "t'2020-05-26T10:26:13.254420Z'",
    },
    { source: 'parse_influxdb("tank") ?? []', result: '[]' },
  ],
  compile:
    () =>
    (text: string): Result => {
      const lines = parseInfluxLines(text)
      if (typeof lines === 'string') return failure(`unable to parse the line protocol: ${lines}`)
      const metrics: Value[] = []
      for (const line of lines) {
        const tags: ValueObject = {}
        for (const [name, value] of line.tags ?? []) setField(tags, name, value)
        for (const [name, value] of line.fields) {
          if (typeof value === 'string') return failure(`the field ${name} is text, which no metric can be`)
          const metric: ValueObject = {
            name: `${line.measurement}_${name}`,
            kind: 'absolute',
            gauge: { value: float(Number(value)) },
          }
          if (line.tags !== undefined) metric['tags'] = tags
          if (line.timestamp !== undefined) metric['timestamp'] = Timestamp.fromNanoseconds(line.timestamp)
          metrics.push(metric)
        }
      }
      return metrics
    },
})
