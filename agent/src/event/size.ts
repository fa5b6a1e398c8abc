// Estimated size of events as JSON, in bytes. The estimate ignores escapes and the width of non-ASCII characters.

import type { MetricEvent, TagValue } from './metric.ts'
import { type Shape, shapeOf } from './shape.ts'
import { sharedObject } from './shared-object.ts'
import { Timestamp } from './timestamp.ts'
import { Bytes, Float, Regex, type Value, type ValueObject } from './value.ts'

export function logSize(fields: ValueObject): number {
  return sizeByShape(fields, shapeOf(fields))
}

export function sizeByShape(fields: ValueObject, shape: Shape | null): number {
  if (shape !== null) {
    shape.size ??= compileSize(shape.names)
    return shape.size(fields)
  }
  let size = 2
  for (const key in fields) {
    const value = fields[key]
    if (value === undefined) continue
    size += key.length + 4 + (typeof value === 'string' ? value.length + 2 : valueSize(value))
  }
  return size
}

/** The size that a member adds to its object. */
export function memberSize(name: string, value: Value): number {
  return name.length + 4 + valueSize(value)
}

/** Generates code that adds up the sizes of a shape's members. */
function compileSize(names: readonly string[]): (fields: ValueObject) => number {
  const terms = names.map(
    (name) => `value = fields[${JSON.stringify(name)}]
if (typeof value === 'string') size += value.length + ${name.length + 6}
else if (typeof value === 'number') size += numberSize(value) + ${name.length + 4}
else if (value !== undefined) size += valueSize(value) + ${name.length + 4}`,
  )
  const body = `return (fields) => { let size = 2, value; ${terms.join('\n')}\nreturn size }`
  return new Function('valueSize', 'numberSize', body)(valueSize, numberSize) as (fields: ValueObject) => number
}

function valueSize(value: Value): number {
  switch (typeof value) {
    case 'string':
      return value.length + 2
    case 'number':
      return numberSize(value)
    case 'bigint':
      return 19
    case 'boolean':
      return value ? 4 : 5
    default:
      if (value === null) return 4
      if (Array.isArray(value)) {
        let size = 2
        for (const item of value) size += 1 + valueSize(item)
        return size
      }
      if (value instanceof Timestamp) return 26
      if (value instanceof Bytes) return value.bytes.length + 2
      if (value instanceof Float) return 6
      if (value instanceof Regex) return value.source.length + 2
      return objectSize(value)
  }
}

function objectSize(value: ValueObject): number {
  const shared = sharedObject(value)
  if (shared === undefined) return logSize(value)
  if (shared.size < 0) shared.size = logSize(value)
  return shared.size
}

function numberSize(value: number): number {
  if ((value | 0) !== value && !Number.isInteger(value)) return 8
  const magnitude = value < 0 ? -value : value
  if (magnitude < 10) return 1
  if (magnitude < 1000) return 3
  if (magnitude < 1e6) return 6
  return 12
}

/** Size of the name, the namespace and the tags, which every series of a metric repeats. */
export function identitySize(metric: MetricEvent): number {
  let size = 80 + metric.name.length + (metric.namespace?.length ?? 0)
  if (metric.tags !== undefined) {
    for (const [name, value] of metric.tags) size += name.length + 6 + tagSize(value)
  }
  return size
}

function tagSize(value: TagValue): number {
  if (typeof value === 'string') return value.length
  if (value === null) return 8
  let size = 8
  for (let index = 0; index < value.length; index++) size += (value[index]?.length ?? 4) + 3
  return size
}

export function metricSize(metric: MetricEvent): number {
  const size = identitySize(metric)
  const value = metric.value
  switch (value.type) {
    case 'set':
      return size + value.values.reduce((sum, member) => sum + member.length + 3, 0)
    case 'distribution':
      return size + value.samples.length * 24
    case 'histogram':
      return size + value.buckets.length * 30
    case 'summary':
      return size + value.quantiles.length * 30
    default:
      return size + 16
  }
}
