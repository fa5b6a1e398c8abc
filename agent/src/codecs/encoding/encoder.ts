// Encodes events into bytes, for all sinks.
//
// `encode` writes the bytes of an event directly into the body. If there is a problem, it returns a message and leaves the body
// unchanged. Only `compile…` throws (PenstockError).

import type { FieldSelection } from '../../bytes/form.ts'
import type { Body } from '../../event/body.ts'
import { DeferredEvent } from '../../event/deferred.ts'
import { LogEvent } from '../../event/log.ts'
import type { MetricEvent } from '../../event/metric.ts'
import { Bytes, getField, type ValueObject } from '../../event/value.ts'
import { writeJson, writeJsonTo, writePrettyJson } from '../../formats/json.ts'
import { writeLogfmt } from '../../formats/logfmt.ts'
import { prettyLog, type Screen } from '../../formats/pretty.ts'
import type { EncodingCodec, EncodingOptions, OutgoingFramingOptions, TransformerOptions } from '../../schema/groups.ts'
import { compileFraming, type FrameEncoder } from '../framing/encode.ts'
import { compileSelection, compileTransformer, transformerProblem } from '../transformer.ts'
import { valueText } from '../value-text.ts'
import { compileAvro } from './avro.ts'
import { compileCsv } from './csv.ts'
import { gelfFields } from './gelf.ts'
import { metricJson, metricPretty, metricText } from './metric.ts'
import { writeNative } from './native.ts'

export interface Encoder {
  readonly codec: EncodingCodec
  /** Whether the output for a log event is exactly its JSON on one line. */
  readonly isPlainJson: boolean
  /** The fields to write as single-line JSON; undefined if the output has another form, or the selection contains nested fields. */
  readonly lineFields: FieldSelection | undefined
  /** Writes the event into the body. Returns a message if the event cannot be encoded. */
  encode(event: LogEvent | MetricEvent, body: Body): string | undefined
}

/** The reason why lines cannot be encoded without converting them to objects, as a clause; undefined if they can. */
export function linesReason(
  options: EncodingOptions | TransformerOptions,
  framing?: OutgoingFramingOptions,
): string | undefined {
  const encoder = compileEncoder(options)
  if (encoder.codec !== 'json') return `its codec is \`${encoder.codec}\``
  if (encoder.lineFields === undefined)
    return 'its `encoding` selects nested fields, or writes an event on several lines'
  if (framing === undefined) return undefined
  const { delimiter } = compileFraming(encoder.codec, framing)
  const isByte = delimiter !== undefined && delimiter.length < 2 && delimiter[0] !== 0
  return isByte ? undefined : `its framing is \`${framing.method}\``
}

export interface StreamEncoder extends Encoder {
  readonly framing: FrameEncoder
}

/** The output form of codec `pretty` without a known terminal. */
const plainScreen: Screen = { color: false }

/** @param messageKey the field that contains the message of a log event (`log_schema.message_key`) */
export function compileEncoder(
  options: EncodingOptions | TransformerOptions,
  messageKey = 'message',
  screen: Screen = plainScreen,
): Encoder {
  const codec = 'codec' in options ? options.codec : 'json'
  const transformer = compileTransformer(options)
  const write = compileCodec(options, codec, messageKey, screen)
  const isJsonLine = codec === 'json' && !('json' in options && options.json?.pretty)
  const isPlainJson = isJsonLine && transformer === undefined
  const lineFields = isJsonLine ? compileSelection(options) : undefined
  return {
    codec,
    isPlainJson,
    lineFields,
    encode(event, body) {
      if (lineFields !== undefined && event instanceof DeferredEvent) {
        if (isPlainJson ? event.writeJson(body) : event.writeChosen(body, lineFields, false)) return undefined
      }
      const start = body.length
      let fields: ValueObject | undefined
      if (event instanceof LogEvent) {
        fields = event instanceof DeferredEvent ? event.shown : event.fields
        if (transformer !== undefined) fields = transformer.apply(fields)
      }
      const problem = write(event, fields, body)
      if (problem !== undefined) body.truncate(start)
      return problem
    },
  }
}

/**
 * An encoder for files, sockets, consoles and HTTP bodies, which also closes the frame of each event. @param framing undefined means the
 * default framing of the codec
 */
export function compileStreamEncoder(
  options: EncodingOptions | TransformerOptions,
  framing?: OutgoingFramingOptions,
  messageKey = 'message',
  screen: Screen = plainScreen,
): StreamEncoder {
  const encoder = compileEncoder(options, messageKey, screen)
  const frames = compileFraming(encoder.codec, framing)
  return {
    codec: encoder.codec,
    isPlainJson: encoder.isPlainJson,
    lineFields: encoder.lineFields,
    framing: frames,
    encode(event, body) {
      const start = body.length
      const problem = encoder.encode(event, body)
      if (problem === undefined) frames.close(body, start)
      return problem
    },
  }
}

/** Problems with an `encoding` option, with their paths. */
export function encodingProblems(options: EncodingOptions | TransformerOptions): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = []
  const transformer = transformerProblem(options)
  if (transformer !== undefined) problems.push({ path: 'encoding', message: transformer })
  if (!('codec' in options)) return problems
  if (options.codec === 'csv' && (options.csv?.fields ?? []).length === 0) {
    problems.push({ path: 'encoding.csv.fields', message: 'At least one CSV field must be specified' })
  }
  if (options.codec === 'csv' && options.csv !== undefined) {
    for (const name of ['delimiter', 'escape', 'quote'] as const) {
      if (Buffer.byteLength(options.csv[name]) !== 1) {
        problems.push({
          path: `encoding.csv.${name}`,
          message: `\`${name}\` must be a single byte, not ${JSON.stringify(options.csv[name])}`,
        })
      }
    }
  }
  if (options.codec === 'avro') {
    if (options.avro === undefined) {
      problems.push({ path: 'encoding.avro.schema', message: '`avro.schema` is required with codec `avro`' })
    } else {
      try {
        compileAvro(options.avro.schema)
      } catch (error) {
        problems.push({ path: 'encoding.avro.schema', message: (error as Error).message })
      }
    }
  }
  return problems
}

/** Writes an event. `fields` are the fields of a log event after the transformer; undefined for a metric. */
type Write = (event: LogEvent | MetricEvent, fields: ValueObject | undefined, body: Body) => string | undefined

// One case for each codec.
function compileCodec(
  options: EncodingOptions | TransformerOptions,
  codec: EncodingCodec,
  messageKey: string,
  screen: Screen,
): Write {
  const choice = 'codec' in options ? options : undefined
  const tags = choice?.metric_tag_values ?? 'single'
  switch (codec) {
    case 'json':
      return compileJson(choice?.json?.pretty === true, tags)
    case 'native_json':
      return (event, fields, body) => {
        body.writeText(
          fields === undefined
            ? `{"metric":${metricJson(event as MetricEvent, 'native')}}`
            : `{"log":${writeJson(fields)}}`,
        )
        return undefined
      }
    case 'native':
      return (event, fields, body) => {
        writeNative(event, fields, body)
        return undefined
      }
    case 'text':
      return (event, fields, body) => {
        if (fields === undefined) body.writeText(metricText(event as MetricEvent, tags))
        else writeMessage(fields, messageKey, body)
        return undefined
      }
    case 'raw_message':
      return logsOnly(codec, (fields, body) => {
        writeMessage(fields, messageKey, body)
        return undefined
      })
    case 'logfmt':
      return logsOnly(codec, (fields, body) => {
        body.writeText(writeLogfmt(fields))
        return undefined
      })
    case 'pretty':
      return (event, fields, body) => {
        body.writeText(
          fields === undefined
            ? metricPretty(event as MetricEvent, tags, screen)
            : prettyLog(fields, screen, messageKey),
        )
        return undefined
      }
    case 'csv': {
      const csv = compileCsv(choice?.csv ?? defaultCsv)
      return logsOnly(codec, (fields, body) => {
        body.writeText(csv(fields))
        return undefined
      })
    }
    case 'gelf':
      return logsOnly(codec, (fields, body) => {
        const message = gelfFields(fields, messageKey)
        if (typeof message === 'string') return message
        writeJsonTo(body, message)
        return undefined
      })
    case 'avro': {
      const avro = compileAvro(choice?.avro?.schema ?? '')
      return logsOnly(codec, (fields, body) => avro.write(fields, body))
    }
  }
}

const defaultCsv = {
  fields: [],
  delimiter: ',',
  double_quote: true,
  escape: '"',
  quote: '"',
  quote_style: 'necessary',
  capacity: 8192,
} as const

function compileJson(pretty: boolean, tags: EncodingOptions['metric_tag_values']): Write {
  return (event, fields, body) => {
    if (fields === undefined) body.writeText(metricJson(event as MetricEvent, tags))
    else if (pretty) body.writeText(writePrettyJson(fields))
    else {
      const log = event as LogEvent
      writeJsonTo(body, fields, fields === log.fields ? log.shape : undefined)
    }
    return undefined
  }
}

function logsOnly(codec: EncodingCodec, write: (fields: ValueObject, body: Body) => string | undefined): Write {
  return (_event, fields, body) =>
    fields === undefined ? `The codec \`${codec}\` cannot encode a metric event.` : write(fields, body)
}

function writeMessage(fields: ValueObject, messageKey: string, body: Body): void {
  const message = getField(fields, messageKey)
  if (message === undefined) return
  if (typeof message === 'string') body.writeText(message)
  else if (message instanceof Bytes) body.writeBytes(message.bytes)
  else body.writeText(valueText(message))
}
