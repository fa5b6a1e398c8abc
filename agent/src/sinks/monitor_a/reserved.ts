// The field names that monitoring service A reserves in every log. Fields are never changed in place: renaming creates a new root
// object.

import { hostname } from 'node:os'
import { valueText } from '../../codecs/value-text.ts'
import { getField, setField, type Value, type ValueObject } from '../../event/value.ts'

interface LogSchema {
  readonly messageKey: string
  readonly timestampKey: string
  readonly hostKey: string
}

interface Renaming {
  readonly from: string
  readonly to: string
  /** New name of a field that already has a reserved name. */
  readonly displaced: string
}

const reservedNames = new Set(['ddsource', 'ddtags', 'hostname', 'message', 'service', 'status', 'timestamp'])

/** Returns the fields under their reserved names. */
export function compileReservedNames(schema: LogSchema): (fields: ValueObject) => ValueObject {
  const renamings: Renaming[] = [
    { from: schema.messageKey, to: 'message', displaced: '_RESERVED_message' },
    { from: schema.timestampKey, to: 'timestamp', displaced: '_RESERVED_timestamp' },
    { from: schema.hostKey, to: 'hostname', displaced: '_RESERVED_host' },
  ].filter(({ from, to }) => from !== to && from !== '')

  const ownHost = hostname()
  return (fields) => {
    const named: ValueObject = { ...fields }
    for (let index = 0; index < renamings.length; index++) {
      const { from, to, displaced } = renamings[index] as Renaming
      const value = getField(named, from)
      if (value === undefined) continue
      const other = getField(named, to)
      if (other !== undefined) {
        // A source filled in the host of the agent, so the event's own field takes precedence.
        if (to === 'hostname' && value === ownHost) continue
        setField(named, displaced, other)
      }
      setField(named, from, undefined)
      setField(named, to, value)
    }
    const tags = named['ddtags']
    if (Array.isArray(tags)) named['ddtags'] = tags.map((tag) => valueText(tag)).join(',')
    return named
  }
}

/** Keeps only reserved names at the root: all other fields, and the message itself, move below `message`. */
export function nestedInMessage(fields: ValueObject): ValueObject {
  const root: ValueObject = {}
  const message: ValueObject = {}
  for (const name of Object.keys(fields)) {
    const value: Value | undefined = fields[name]
    if (value !== undefined) setField(name !== 'message' && reservedNames.has(name) ? root : message, name, value)
  }
  root['message'] = message
  return root
}
