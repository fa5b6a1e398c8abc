// Decodes bytes into events, for all sources. Each stream needs its own decoder.
//
// A frame that cannot be decoded adds a message to `failures`, and the stream continues. Events contain the fields of the codec (json,
// gelf and syslog add a missing time); the source adds the other fields.

import { isUtf8 } from 'node:buffer'
import { type Batch, type EventType, logBatch, metricBatch } from '../../event/batch.ts'
import type { Finalizer } from '../../event/finalizer.ts'
import { LogEvent } from '../../event/log.ts'
import type { MetricEvent } from '../../event/metric.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { getField, isObject, setField, stringFromBytes, type Value, type ValueObject } from '../../event/value.ts'
import { isFailedJson, parseJson } from '../../formats/json.ts'
import { JsonFormReader } from '../../formats/json-forms.ts'
import { MalformedProtobuf } from '../../formats/protobuf.ts'
import { parseSyslog } from '../../formats/syslog.ts'
import { zoneOrUtc } from '../../formats/timezone.ts'
import type { DecodingCodec, DecodingOptions, FramingMethod, FramingOptions } from '../../schema/groups.ts'
import { FrameReader, type Frames } from '../framing/decode.ts'
import { fieldsFromGelf } from './gelf.ts'
import { metricFromJson } from './metric-json.ts'
import { readNative } from './native.ts'

/** The result of decoding some bytes. */
export interface Decoded {
  readonly events: (LogEvent | MetricEvent)[]
  /** A message for each skipped frame, which was too long or could not be decoded. */
  readonly failures: string[]
}

export interface Decoder {
  /** Decodes the next bytes of a stream. */
  push(bytes: Buffer): Decoded
  /** Ends the stream. */
  end(): Decoded
  /** Decodes a whole message, which may contain several frames. */
  message(bytes: Buffer): Decoded
  /**
   * Decodes a whole message step by step. A message of a thousand bytes may contain a thousand empty frames, and a caller that waits
   * between the steps need not have all their events in memory at once.
   */
  parts(bytes: Buffer): Iterable<Decoded>
}

/** How a decoder is used. */
export interface DecoderUse {
  readonly stream: boolean
  /** Maximum length of a stream that is one frame. The origin limits the length of messages. */
  readonly maxLength?: number
  /** Returns the time for events without one; by default the current time. */
  readonly now?: () => Timestamp
}

/** Number of message bytes that are decoded in one step. */
const partBytes = 16_384

/** The global settings that decoding depends on; `Globals` has them. */
export interface DecodingGlobals {
  readonly timezone: string
  readonly logSchema: { readonly messageKey: string; readonly timestampKey: string }
}

export function compileDecoder(
  decoding: DecodingOptions,
  framing: FramingOptions | undefined,
  globals: DecodingGlobals,
  use: DecoderUse,
): Decoder {
  const decode = compileCodec(decoding, globals, use.now ?? Timestamp.now)
  const frames = framing ?? (use.stream ? defaultFraming(decoding.codec) : 'bytes')
  const wholeMessages = (typeof frames === 'string' ? frames : frames.method) === 'bytes'
  const reader = new FrameReader(frames, use.maxLength)

  const decoded = ({ frames, failures }: Frames): Decoded => {
    const events: (LogEvent | MetricEvent)[] = []
    for (let index = 0; index < frames.length; index++) {
      const problem = decode(frames[index] as Buffer, events)
      if (problem !== undefined) failures.push(problem)
    }
    return { events, failures }
  }

  function* parts(bytes: Buffer): Generator<Decoded> {
    if (wholeMessages) {
      yield decoded({ frames: [bytes], failures: [] })
      return
    }
    const own = new FrameReader(frames)
    for (let from = 0; from < bytes.length; from += partBytes) {
      yield decoded(own.push(bytes.subarray(from, from + partBytes)))
    }
    yield decoded(own.end())
  }

  return {
    push: (bytes) => decoded(reader.push(bytes)),
    end: () => decoded(reader.end()),
    parts,
    message(bytes) {
      const whole: Decoded = { events: [], failures: [] }
      for (const { events, failures } of parts(bytes)) {
        for (const event of events) whole.events.push(event)
        for (const failure of failures) whole.failures.push(failure)
      }
      return whole
    },
  }
}

/** The types of a codec's events. */
export function decodedTypes({ codec }: Pick<DecodingOptions, 'codec'>): readonly EventType[] {
  return codec === 'native' || codec === 'native_json' ? ['log', 'metric'] : ['log']
}

/** The default framing of streams. */
export function defaultFraming(codec: DecodingCodec): FramingMethod {
  if (codec === 'native') return 'length_delimited'
  return codec === 'gelf' ? 'character_delimited' : 'newline_delimited'
}

/** The events as batches, in order. The finalizer's existing share is for the first batch; the function retains shares for the others. */
export function eventBatches(events: (LogEvent | MetricEvent)[], finalizer: Finalizer): Batch[] {
  const batches: Batch[] = []
  let from = 0
  while (from < events.length) {
    const isLog = events[from] instanceof LogEvent
    let to = from + 1
    while (to < events.length && events[to] instanceof LogEvent === isLog) to++
    const part = from === 0 && to === events.length ? events : events.slice(from, to)
    batches.push(isLog ? logBatch(part as LogEvent[], finalizer) : metricBatch(part as MetricEvent[], finalizer))
    from = to
  }
  if (batches.length > 1) finalizer.retain(batches.length - 1)
  return batches
}

/** Adds the events of a frame. If the frame cannot be decoded, returns a message and adds no events. */
type Decode = (frame: Buffer, events: (LogEvent | MetricEvent)[]) => string | undefined

function compileCodec(options: DecodingOptions, globals: DecodingGlobals, now: () => Timestamp): Decode {
  const { messageKey, timestampKey } = globals.logSchema
  const codec = options.codec
  switch (codec) {
    case 'bytes':
      return (frame, events) => {
        events.push(new LogEvent({ [messageKey]: stringFromBytes(frame) }))
        return undefined
      }
    case 'native':
      return (frame, events) => {
        try {
          for (const event of readNative(frame, messageKey)) events.push(event)
          return undefined
        } catch (error) {
          if (error instanceof MalformedProtobuf) return error.message
          throw error
        }
      }
    case 'json':
      return fromText(options.json?.lossy, jsonDecoder(timestampKey, now))
    case 'gelf':
      return fromText(options.gelf?.lossy, (text, events) => {
        const value = parseJson(text)
        if (isFailedJson(value)) return `Error parsing JSON: ${value.reason}`
        const fields = fieldsFromGelf(value, messageKey, timestampKey, now)
        if (typeof fields === 'string') return fields
        events.push(new LogEvent(fields))
        return undefined
      })
    case 'native_json':
      return fromText(options.native_json?.lossy, decodeNativeJson)
    case 'syslog':
      return fromText(options.syslog?.lossy, syslogDecoder(globals, now))
  }
}

type DecodeText = (text: string, events: (LogEvent | MetricEvent)[]) => string | undefined

function fromText(lossy = true, decode: DecodeText): Decode {
  return (frame, events) => {
    if (!lossy && !isUtf8(frame)) return 'The frame is not valid UTF-8.'
    return decode(frame.toString('utf8'), events)
  }
}

const blank = /^\s*$/

function jsonDecoder(timestampKey: string, now: () => Timestamp): DecodeText {
  const add = (fields: ValueObject, events: (LogEvent | MetricEvent)[]): void => {
    if (getField(fields, timestampKey) === undefined) setField(fields, timestampKey, now())
    events.push(new LogEvent(fields))
  }
  const reader = new JsonFormReader()
  return (text, events) => {
    if (blank.test(text)) return undefined
    const value = reader.read(text)
    if (isFailedJson(value)) return `Error parsing JSON: ${value.reason}`
    if (isObject(value)) {
      add(value, events)
      return undefined
    }
    const items = Array.isArray(value) ? value : [value]
    for (const item of items) if (!isObject(item)) return 'Error parsing JSON: an event must be an object'
    for (const item of items) add(item as ValueObject, events)
    return undefined
  }
}

function decodeNativeJson(text: string, events: (LogEvent | MetricEvent)[]): string | undefined {
  if (blank.test(text)) return undefined
  const value = parseJson(text)
  if (isFailedJson(value)) return `Error parsing JSON: ${value.reason}`
  const decoded: (LogEvent | MetricEvent)[] = []
  for (const item of Array.isArray(value) ? value : [value]) {
    const event = nativeEvent(item)
    if (typeof event === 'string') return event
    decoded.push(event)
  }
  for (const event of decoded) events.push(event)
  return undefined
}

function nativeEvent(item: Value): LogEvent | MetricEvent | string {
  if (isObject(item)) {
    if (isObject(item['log'])) return new LogEvent(item['log'])
    if (item['metric'] !== undefined) return metricFromJson(item['metric'])
  }
  return 'Error parsing JSON: an event must be an object with `log` or `metric`'
}

function syslogDecoder(globals: DecodingGlobals, now: () => Timestamp): DecodeText {
  const { messageKey, timestampKey } = globals.logSchema
  const zone = zoneOrUtc(globals.timezone)
  return (text, events) => {
    const fields = parseSyslog(text.trim(), zone)
    if (fields === undefined) return 'unable to parse input as valid syslog message'
    rename(fields, 'message', messageKey)
    if (fields['timestamp'] === undefined) setField(fields, timestampKey, now())
    else rename(fields, 'timestamp', timestampKey)
    events.push(new LogEvent(fields))
    return undefined
  }
}

function rename(fields: ValueObject, from: string, to: string): void {
  if (from === to) return
  setField(fields, to, fields[from])
  fields[from] = undefined
}
