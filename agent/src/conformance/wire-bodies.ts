// Parses bodies for comparison with recorded cases: an envelope, which identifies requests that belong together, and its items.

import { isObject, type Value, type ValueObject } from '../event/value.ts'
import { floatText, isFailedJson, parseJson } from '../formats/json.ts'
import { ProtobufReader } from '../formats/protobuf.ts'

export interface Items {
  readonly envelope: unknown
  readonly items: readonly unknown[]
}

export interface BodyForm {
  read(body: Buffer): Items
  /** Merges the items of several requests for comparison. */
  join(items: readonly unknown[]): unknown
  readonly anyOrder: boolean
}

/** The comparison rules for bodies of a sink. */
export function bodyForm(type: string): BodyForm {
  switch (type) {
    case 'log_aggregator':
      return { read: listOf('streams'), join: joinedStreams, anyOrder: false }
    case 'logsvc_a':
    case 'logsvc_a_old':
      return inOrder(listOf('lines'))
    case 'siem_unstructured':
      return inOrder(listOf('entries'))
    case 'monitor_a_logs':
      return inOrder((body) => ({ envelope: null, items: arrayItems(body).map(withoutTimestamp) }))
    case 'remote_write_metrics':
      return { read: (body) => protobufItems(body, writeRequest), join: (items) => items, anyOrder: true }
    case 'monitor_a_metrics':
      return { read: (body) => protobufItems(body, seriesPayload), join: (items) => items, anyOrder: true }
    case 'tsdb_metrics':
    case 'monitor_c_metrics':
      return {
        read: (body) => ({ envelope: null, items: influxLines(body.toString()) }),
        join: (items) => items,
        anyOrder: true,
      }
    default:
      return inOrder((body) => ({ envelope: null, items: jsonSequence(body.toString()) }))
  }
}

function inOrder(read: (body: Buffer) => Items): BodyForm {
  return { read, join: (items) => items, anyOrder: false }
}

function parsed(text: string): Value {
  const value = parseJson(text)
  if (isFailedJson(value)) throw new SyntaxError(`not JSON: ${value.reason}`)
  return value
}

/** An object with a list. The list contains the items; the rest is the envelope. */
function listOf(member: string): (body: Buffer) => Items {
  return (body) => {
    const value = parsed(body.toString())
    if (!isObject(value) || !Array.isArray(value[member])) throw new SyntaxError(`not an object with \`${member}\``)
    const { [member]: items, ...envelope } = value
    return { envelope, items: items as Value[] }
  }
}

function arrayItems(body: Buffer): Value[] {
  const value = parsed(body.toString())
  if (!Array.isArray(value)) throw new SyntaxError('not an array')
  return value
}

function withoutTimestamp(item: Value): Value {
  if (!isObject(item)) return item
  const { timestamp: _, ...rest } = item
  return rest
}

/** The entries of each stream, regardless of the request and of the order of streams. An empty third element equals a missing one. */
function joinedStreams(streams: readonly unknown[]): ValueObject {
  const joined: Record<string, Value[]> = {}
  for (const stream of streams as ValueObject[]) {
    const labels = Object.entries(stream['stream'] as ValueObject)
    const key = labels
      .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      .sort()
      .join(' ')
    joined[key] ??= []
    for (const entry of stream['values'] as Value[][]) {
      const extra = entry[2]
      joined[key].push(
        extra !== undefined && isObject(extra) && Object.keys(extra).length === 0 ? entry.slice(0, 2) : entry,
      )
    }
  }
  return joined
}

/** A sequence of JSON values, with or without white space in between. A single array is read as its items. */
function jsonSequence(text: string): Value[] {
  const values: Value[] = []
  let depth = 0
  let start = -1
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (inString) {
      if (character === '\\') at++
      else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{' || character === '[') {
      if (depth++ === 0) start = at
    } else if (character === '}' || character === ']') {
      if (--depth === 0) values.push(parsed(text.slice(start, at + 1)))
    }
  }
  if (depth !== 0) throw new SyntaxError('not JSON: unexpected end')
  return values.length === 1 && Array.isArray(values[0]) ? values[0] : values
}

// ---- Line protocol

function influxLines(text: string): ValueObject[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [series = '', ...rest] = split(line, ' ', false)
      const [measurement = '', ...tags] = split(series, ',', false)
      const [fields = '', timestamp = ''] = split(rest.join(' '), ' ', true)
      return { measurement, tags: pairs(tags), fields: pairs(split(fields, ',', true)), timestamp }
    })
}

function pairs(items: readonly string[]): ValueObject {
  const object: ValueObject = {}
  for (const item of items) {
    const [name = '', ...value] = split(item, '=', false)
    object[name] = value.join('=')
  }
  return object
}

/** Splits at separators that are not escaped and not within quotes, if quotes have a meaning. */
function split(text: string, separator: string, quotes: boolean): string[] {
  const parts: string[] = ['']
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    let character = text[at] as string
    if (character === '\\') character += text[++at] ?? ''
    else if (character === '"' && quotes) quoted = !quoted
    if (character === separator && !quoted) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}

// ---- Protobuf

type Fields = Readonly<Record<number, { readonly name: string; readonly as: 'text' | 'integer' | 'double' | Fields }>>

const label: Fields = { 1: { name: 'name', as: 'text' }, 2: { name: 'value', as: 'text' } }

const writeRequest: Fields = {
  1: {
    name: 'timeseries',
    as: {
      1: { name: 'labels', as: label },
      2: { name: 'samples', as: { 1: { name: 'value', as: 'double' }, 2: { name: 'timestamp', as: 'integer' } } },
    },
  },
  3: {
    name: 'metadata',
    as: {
      1: { name: 'type', as: 'integer' },
      2: { name: 'metric_family_name', as: 'text' },
      4: { name: 'help', as: 'text' },
      5: { name: 'unit', as: 'text' },
    },
  },
}

const seriesPayload: Fields = {
  1: {
    name: 'series',
    as: {
      1: { name: 'resources', as: { 1: { name: 'type', as: 'text' }, 2: { name: 'name', as: 'text' } } },
      2: { name: 'metric', as: 'text' },
      3: { name: 'tags', as: 'text' },
      4: { name: 'points', as: { 1: { name: 'value', as: 'double' }, 2: { name: 'timestamp', as: 'integer' } } },
      5: { name: 'type', as: 'integer' },
      6: { name: 'unit', as: 'text' },
      7: { name: 'source_type_name', as: 'text' },
      8: { name: 'interval', as: 'integer' },
      9: {
        name: 'metadata',
        as: {
          1: {
            name: 'origin',
            as: {
              4: { name: 'origin_product', as: 'integer' },
              5: { name: 'origin_category', as: 'integer' },
              6: { name: 'origin_service', as: 'integer' },
            },
          },
        },
      },
    },
  },
}

function protobufItems(body: Buffer, fields: Fields): Items {
  const message = decoded(new ProtobufReader(body), fields)
  return {
    envelope: null,
    items: Object.entries(message).flatMap(([name, items]) => (items as Value[]).map((item) => ({ [name]: item }))),
  }
}

/** A message as an object of arrays. As on the wire, members with default values equal missing ones. */
function decoded(reader: ProtobufReader, fields: Fields): ValueObject {
  const object: ValueObject = {}
  while (reader.next()) {
    const field = fields[reader.field]
    const name = field?.name ?? `field ${reader.field}`
    let value: Value
    if (field === undefined) {
      value =
        reader.type === 2
          ? reader.bytes().toString('hex')
          : reader.type === 1
            ? floatText(reader.double())
            : `${reader.signed()}`
    } else if (field.as === 'text') value = reader.text()
    else if (field.as === 'integer') value = Number(reader.signed())
    else if (field.as === 'double') value = Object.is(reader.type, 1) ? floatText(reader.double()) : 'not a double'
    else value = decoded(reader.message(), field.as)
    if (value === '' || value === 0 || value === '0') continue
    const known = object[name]
    if (Array.isArray(known)) known.push(value)
    else object[name] = [value]
  }
  return object
}
