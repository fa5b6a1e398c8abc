// Writes the line protocol of time-series databases: `measurement,tag=value field=value timestamp`, one line per metric. Names
// and tags are escaped, so that no event text can start another line or field.

import { type MetricEvent, singleTagValue } from '../../event/metric.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { compareKeys } from '../../event/value.ts'
import { floatText } from '../../formats/json.ts'

/** A field value in line protocol syntax. */
export type LineFields = ReadonlyMap<string, string>

export function lineOf(
  measurement: string,
  tags: readonly string[],
  fields: LineFields,
  instant: Timestamp | undefined,
): string {
  let line = escaped(measurement)
  for (const tag of tags) line += `,${tag}`
  let separator = ' '
  for (const name of [...fields.keys()].sort(compareKeys)) {
    line += `${separator}${escaped(name)}=${fields.get(name)}`
    separator = ','
  }
  return `${line} ${(instant ?? Timestamp.now()).toNanosecondText()}`
}

/** The tags of an event and additional ones as `key=value`, sorted by key. Additional tags win, and empty ones are omitted. */
export function tagsOf(event: MetricEvent, others: Readonly<Record<string, string>>): string[] {
  const all = new Map<string, string>()
  if (event.tags !== undefined) {
    for (const [key, tag] of event.tags) {
      const value = singleTagValue(tag)
      if (value !== undefined) all.set(key, value)
    }
  }
  for (const key in others) all.set(key, others[key] as string)
  const pairs: string[] = []
  for (const key of [...all.keys()].sort(compareKeys)) {
    const value = all.get(key) as string
    if (key !== '' && value !== '') pairs.push(`${escaped(key)}=${escaped(value)}`)
  }
  return pairs
}

export const floatField = floatText

function escaped(text: string): string {
  // A line break has no escape; other writers replace it with a backslash and a letter.
  return text
    .replace(/[\\, =]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
}
