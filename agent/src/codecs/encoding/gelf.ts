// Codec `gelf`: writes a log event as a GELF 1.1 message. Names of additional fields get the underscore that the format requires.

import { Timestamp } from '../../event/timestamp.ts'
import {
  Bytes,
  float,
  getField,
  isFloat,
  isInteger,
  isObject,
  setField,
  type Value,
  type ValueObject,
} from '../../event/value.ts'

const ownNames = new Set([
  'version',
  'host',
  'short_message',
  'full_message',
  'timestamp',
  'level',
  'facility',
  'line',
  'file',
])
const validName = /^[\p{L}\p{M}\p{N}\p{Pc}.-]*$/u

/** The message as an object, or a text about the problem. */
export function gelfFields(fields: ValueObject, messageKey: string): ValueObject | string {
  const message: ValueObject = { version: '1.1' }
  const short = getField(fields, 'short_message')
  const fromMessage = short === undefined ? getField(fields, messageKey) : undefined
  if (getField(fields, 'host') === undefined) return 'LogEvent does not contain required field: "host"'
  if (short === undefined && fromMessage === undefined) {
    return 'LogEvent does not contain required field: "short_message"'
  }
  if (fromMessage !== undefined) {
    if (!isText(fromMessage)) return wrongType('short_message', fromMessage, 'UTF-8 string')
    message['short_message'] = fromMessage
  }
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined || (fromMessage !== undefined && name === messageKey)) continue
    if (!ownNames.has(name)) {
      if (!validName.test(name)) return `LogEvent contains an invalid field name: "${name}"`
      if (!isText(value) && !isNumber(value)) return wrongType(name, value, 'string or number')
      setField(message, name.startsWith('_') ? name : `_${name}`, value)
    } else if (name === 'timestamp') {
      const seconds = value instanceof Timestamp ? secondsOf(value) : value
      if (!isNumber(seconds)) return wrongType(name, value, 'timestamp or integer')
      message['timestamp'] = seconds
    } else if (name === 'level') {
      if (!isNumber(value)) return wrongType(name, value, 'integer')
      message['level'] = value
    } else if (name === 'line') {
      if (!isNumber(value)) return wrongType(name, value, 'number')
      message['line'] = value
    } else {
      if (!isText(value)) return wrongType(name, value, 'UTF-8 string')
      message[name] = value
    }
  }
  return message
}

function secondsOf(instant: Timestamp): Value {
  return instant.ms % 1000 === 0 ? instant.ms / 1000 : float(instant.ms / 1000)
}

function isText(value: Value): boolean {
  return typeof value === 'string' || value instanceof Bytes
}

function isNumber(value: Value): boolean {
  return isInteger(value) || isFloat(value)
}

function wrongType(field: string, value: Value, expected: string): string {
  return `LogEvent contains a value with an invalid type. field = "${field}" type = "${kindName(value)}" expected type = "${expected}"`
}

function kindName(value: Value): string {
  if (value === null) return 'null'
  if (isText(value)) return 'string'
  if (typeof value === 'boolean') return 'boolean'
  if (isInteger(value)) return 'integer'
  if (isFloat(value)) return 'float'
  if (Array.isArray(value)) return 'array'
  if (isObject(value)) return 'object'
  return value instanceof Timestamp ? 'timestamp' : 'regex'
}
