// Decoder for the codec `gelf`: converts a GELF 1.1 message to the fields of a log event.

import { Timestamp } from '../../event/timestamp.ts'
import { Float, float, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'

const validName = /^[\p{L}\p{M}\p{N}\p{Pc}.-]*$/u
const textFields = new Set(['host', 'full_message', 'facility', 'file', 'version'])

/** The fields, or a message about the problem. */
export function fieldsFromGelf(
  message: Value,
  messageKey: string,
  timestampKey: string,
  now: () => Timestamp,
): ValueObject | string {
  if (!isObject(message)) return 'a GELF message must be a JSON object'
  if (message['version'] !== '1.1') return 'version does not match GELF spec version (1.1)'
  if (typeof message['host'] !== 'string') return "'host' field is required and must be a string"
  if (typeof message['short_message'] !== 'string') return "'short_message' field is required and must be a string"
  const fields: ValueObject = {}
  for (const name in message) {
    const value = message[name]
    if (value === undefined || value === null || name === '_id') continue
    if (name === 'short_message') setField(fields, messageKey, value)
    else if (textFields.has(name)) {
      if (typeof value !== 'string') return `'${name}' field must be a string`
      fields[name] = value
    } else if (name === 'timestamp') {
      const seconds = number(value)
      if (seconds === undefined) return "'timestamp' field must be a number"
      setField(fields, timestampKey, instant(seconds))
    } else if (name === 'level') {
      if (typeof value !== 'number' || !Number.isInteger(value)) return "'level' field must be an integer"
      fields['level'] = value
    } else if (name === 'line') {
      const line = number(value)
      if (line === undefined) return "'line' field must be a number"
      fields['line'] = float(line)
    } else {
      if (!name.startsWith('_')) {
        return `'${name}' field is invalid. Additional field names must be prefixed with an underscore.`
      }
      if (!validName.test(name)) {
        return `'${name}' field contains invalid characters. Field names may contain only letters, numbers, underscores, dashes and dots.`
      }
      if (typeof value !== 'string' && typeof value !== 'bigint' && number(value) === undefined) {
        return `'${name}' field must be a string or a number`
      }
      setField(fields, name, value)
    }
  }
  if (message['timestamp'] === undefined || message['timestamp'] === null) {
    setField(fields, timestampKey, now())
  }
  return fields
}

function number(value: Value): number | undefined {
  if (value instanceof Float) return value.value
  return typeof value === 'number' ? value : undefined
}

/** Converts seconds to an instant in microseconds, because a double of this size has no higher precision. */
function instant(seconds: number): Timestamp {
  const micros = Math.round(seconds * 1e6)
  const ms = Math.floor(micros / 1000)
  return new Timestamp(ms, (micros - ms * 1000) * 1000)
}
