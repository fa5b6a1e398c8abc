// Functions that generated code calls, other than those of the language.

import { written } from '../../event/path.ts'
import { Bytes, copyObject, Float, getField, isObject, mergeObjects, setField, type Value } from '../../event/value.ts'
import { type Closure, type ErrorPlace, RemapError } from '../function.ts'
import { isOfKind } from '../kind.ts'
import { overLimit, tooMuch } from '../meter.ts'
import { removeFromMetric, writeToMetric } from '../metric-target.ts'
import * as operations from '../operations.ts'
import { ownedObject, removedBelow, unnest } from '../paths.ts'
import { textOfKind } from '../text.ts'

/** A call in the program: the prefix of its failures, and its location. */
export interface CallPlace {
  readonly prefix: string
  readonly place: ErrorPlace
}

export const runtime = {
  E: RemapError,
  Float,
  Bytes,
  copyObject,
  getField,
  setField,
  isObject,
  mergeObjects,
  written,
  ownedObject,
  removedBelow,
  unnest,
  writeToMetric,
  removeFromMetric,
  isOfKind,
  ...operations,
  framed: ({ prefix, place }: CallPlace, error: RemapError): RemapError =>
    new RemapError(prefix + error.message, 'error', error.given, null, error.sort, error.place ?? place),
  mismatch: ({ prefix, place }: CallPlace, expected: string, value: Value): RemapError =>
    new RemapError(`${prefix}expected ${expected}, got ${textOfKind(value)}`, 'error', null, null, 'mismatch', place),
  /** The failure of an operator. */
  placed: (place: ErrorPlace, error: RemapError): RemapError =>
    new RemapError(error.message, 'error', error.given, null, error.sort, error.place ?? place),
  pureClosure: (closure: Closure): Closure => Object.assign(closure, { pure: true as const }),
  aborted: (message: Value): RemapError =>
    message === null ? new RemapError('aborted', 'abort') : new RemapError(String(message), 'abort', String(message)),
  tooMuch,
  placedBudget: overLimit,
  leaving: (error: RemapError): RemapError =>
    error.outcome === 'return' ? new RemapError('return cannot be used inside closures', 'fatal') : error,
}
