// The common part of every `encoding`: selects the fields of a log event and formats its timestamps.
// Sinks share values, so nothing changes in place. An event that needs no change is passed on as it is.

import { allFields, type FieldSelection } from '../bytes/form.ts'
import { getValue, type Path, parsePath, pathText, removePath, setPath } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { copyObject, float, integer, isObject, setField, type Value, type ValueObject } from '../event/value.ts'
import type { TransformerOptions } from '../schema/groups.ts'

export interface Transformer {
  /** Returns the fields to send: the same object, or a changed copy. */
  apply(fields: ValueObject): ValueObject
}

/** The transformer of an `encoding`; undefined if it would change nothing. */
export function compileTransformer(options: TransformerOptions): Transformer | undefined {
  const only = options.only_fields === undefined ? undefined : eventPaths(options.only_fields)
  const except = eventPaths(options.except_fields ?? [])
  const convert = options.timestamp_format === 'rfc3339' ? undefined : timestampForms[options.timestamp_format]
  if (only === undefined && except.length === 0 && convert === undefined) return undefined
  return {
    apply(fields) {
      let result = fields
      if (only !== undefined) result = kept(result, only)
      if (except.length > 0) {
        if (result === fields) result = copyObject(fields)
        for (let index = 0; index < except.length; index++) removePath(result, (except[index] as Path).segments)
      }
      return convert === undefined ? result : (converted(result, convert) as ValueObject)
    },
  }
}

/** The selection of an `encoding`, if it contains only fields of the root. */
export function compileSelection(options: TransformerOptions): FieldSelection | undefined {
  const only = options.only_fields === undefined ? undefined : rootFields(options.only_fields)
  const except = rootFields(options.except_fields ?? [])
  if (except === undefined || (only === undefined && options.only_fields !== undefined)) return undefined
  const convert = options.timestamp_format === 'rfc3339' ? undefined : timestampForms[options.timestamp_format]
  if (only === undefined && except.length === 0 && convert === undefined) return allFields
  return { only: only && new Set(only), except, converted: convert && ((value) => converted(value, convert)) }
}

/** The names of the fields; undefined if some of them are nested. */
function rootFields(texts: readonly string[]): string[] | undefined {
  const names = eventPaths(texts).map(({ segments: [name, ...below] }) => (below.length === 0 ? name : undefined))
  return names.every((name) => typeof name === 'string') ? names : undefined
}

/** The problem with the two lists of fields; undefined if there is none. */
export function transformerProblem(options: Partial<TransformerOptions>): string | undefined {
  const only = new Set(eventPaths(options.only_fields ?? []).map(pathText))
  const both = eventPaths(options.except_fields ?? []).some((path) => only.has(pathText(path)))
  return both ? '`except_fields` and `only_fields` should be mutually exclusive.' : undefined
}

function eventPaths(texts: readonly string[]): Path[] {
  return texts.flatMap((text) => {
    const path = parsePath(text)
    return path === undefined || path.root === 'metadata' ? [] : [path]
  })
}

function kept(fields: ValueObject, only: readonly Path[]): ValueObject {
  const result: ValueObject = {}
  for (let index = 0; index < only.length; index++) {
    const segments = (only[index] as Path).segments
    if (segments.length === 0) return fields
    const value = getValue(fields, segments)
    if (value !== undefined) setPath(result, segments, value)
  }
  return result
}

type Convert = (instant: Timestamp) => Value

const timestampForms: Record<Exclude<TransformerOptions['timestamp_format'], 'rfc3339'>, Convert> = {
  unix: (instant) => Math.floor(instant.ms / 1000),
  unix_ms: (instant) => instant.ms,
  unix_us: (instant) => instant.ms * 1000 + Math.floor(instant.ns / 1000),
  unix_ns: (instant) => integer(instant.toNanoseconds()),
  unix_float: (instant) => float((instant.ms * 1000 + Math.floor(instant.ns / 1000)) / 1e6),
}

/** Formats a timestamp for an `encoding`. RFC 3339 needs no conversion, because it is the default form of a timestamp. */
export function timestampForm(options: Pick<TransformerOptions, 'timestamp_format'>): (instant: Timestamp) => Value {
  return options.timestamp_format === 'rfc3339' ? (instant) => instant : timestampForms[options.timestamp_format]
}

/** The value with its timestamps converted at every depth; the same value if it contains none. */
function converted(value: Value, convert: Convert): Value {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Timestamp) return convert(value)
  if (Array.isArray(value)) {
    let copy: Value[] | undefined
    for (let index = 0; index < value.length; index++) {
      const item = value[index] as Value
      const other = converted(item, convert)
      if (other === item) continue
      copy ??= value.slice()
      copy[index] = other
    }
    return copy ?? value
  }
  if (!isObject(value)) return value
  let copy: ValueObject | undefined
  for (const key in value) {
    const item = value[key]
    if (item === undefined) continue
    const other = converted(item, convert)
    if (other === item) continue
    copy ??= copyObject(value)
    setField(copy, key, other)
  }
  return copy ?? value
}
