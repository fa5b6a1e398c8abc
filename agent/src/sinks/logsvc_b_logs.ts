// Log service B: events in the envelopes of an HTTP event collector, concatenated without separators.

import { randomUUID } from 'node:crypto'
import { compileEncoder, type Encoder, encodingProblems } from '../codecs/encoding/encoder.ts'
import { valueText } from '../codecs/value-text.ts'
import { defineSink, type OptionProblem, type SinkContext } from '../component.ts'
import type { AnyEvent } from '../delivery/batcher.ts'
import { compressionProblems } from '../delivery/compression.ts'
import { encoderFailed, templateFailed } from '../delivery/failed-events.ts'
import { framed, type OpenRequest } from '../delivery/request.ts'
import { PenstockError } from '../errors.ts'
import { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import { getValue, type Path, type PathSegment, parsePath, removePath, setPath } from '../event/path.ts'
import type { Timestamp } from '../event/timestamp.ts'
import { float, setField, type Value, type ValueObject } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { httpSink, joinPath, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, encoding, request, textCodecs, tls } from '../schema/groups.ts'
import { fieldPath, list, optional, secret, template, text, url } from '../schema/options.ts'
import { compileTemplate, type Template } from '../template.ts'
import { type TimeField, timeField } from '../time-field.ts'

const defaultNanosKey = '@timestamp.nanos'

/** Codecs whose output is a JSON object that becomes part of the envelope; other output becomes a string. */
const jsonCodecs = new Set(['json', 'native_json', 'gelf'])

export const logsvcBLogs = defineSink({
  type: 'logsvc_b_logs',
  products: ['Humio', 'LogScale'],
  summary: 'Delivers log events to log service B.',
  description:
    'The sink removes the timestamp from the event: its milliseconds become the time of the envelope, and the remaining nanoseconds a field of the event.',
  aliases: ['humio_logs'],
  accepts: ['log'],
  options: {
    token: secret('Ingest token.'),
    endpoint: url('Base address, without a path.', { default: 'https://cloud.humio.com', aliases: ['host'] }),
    event_type: optional(template('Parser that the destination applies. None if it cannot be rendered.')),
    source: optional(template('Origin of the event, such as a file.')),
    index: optional(
      template('Repository of the event. Public destinations require the repository of the token, if one is given.'),
    ),
    host_key: optional(fieldPath('Field with the name of the host. If not given, `log_schema.host_key`.')),
    timestamp_key: optional(fieldPath('Field with the time. If not given, `log_schema.timestamp_key`.')),
    timestamp_nanos_key: text(
      `Field for the nanoseconds below the millisecond. The default is one field whose name contains the dot.`,
      { default: defaultNanosKey },
    ),
    indexed_fields: list(
      text('A field.'),
      'Fields to send as additional indexed fields. Names that begin with `#` tag events.',
      { default: [] },
    ),
    compression: compression(compressionNames, 'none'),
    encoding: encoding(textCodecs),
    batch: batch({ max_bytes: 1_000_000, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [
      ...encodingProblems(options.encoding),
      ...compressionProblems(options.compression),
    ]
    const address = URL.parse(options.endpoint)
    if (address !== null && (address.pathname !== '/' || address.search !== '')) {
      problems.push({ path: 'endpoint', message: 'must not have a path, because the sink appends its own' })
    }
    if (options.timestamp_nanos_key !== '' && fieldSegments(options.timestamp_nanos_key) === undefined) {
      problems.push({ path: 'timestamp_nanos_key', message: 'must be a path to a field' })
    }
    for (const name of options.indexed_fields) {
      if (fieldSegments(name) === undefined) {
        problems.push({ path: 'indexed_fields', message: `${JSON.stringify(name)} is not a path to a field` })
      }
    }
    return problems
  },

  build(options, context) {
    const envelopes = new EnvelopeWriter(context, options)
    const headers = {
      'content-type': 'application/json',
      authorization: `Splunk ${options.token}`,
      'x-splunk-request-channel': randomUUID(),
    }
    const health = joinPath(options.endpoint, '/services/collector/health/1.0')
    return httpSink(context, options, {
      url: joinPath(options.endpoint, '/services/collector/event'),
      headers,
      encode: (events, from, to, open) => envelopes.write(events, from, to, open),
      assemble: framed('', '', ''),
      secret: options.token,
      async healthcheck(get) {
        const { status } = await get(health, { authorization: headers.authorization })
        if (status === 200) return
        if (status === 400 || status === 401)
          throw new PenstockError('PEN_HEALTHCHECK', 'Invalid HEC token', { status })
        if (status === 503) throw new PenstockError('PEN_HEALTHCHECK', 'Queues are full', { status })
        throw unhealthy(health, status)
      },
    })
  },
})

interface EnvelopeOptions {
  readonly host_key?: string | undefined
  readonly timestamp_key?: string | undefined
  readonly timestamp_nanos_key: string
  readonly indexed_fields: readonly string[]
  readonly event_type?: string | undefined
  readonly source?: string | undefined
  readonly index?: string | undefined
  readonly encoding: Parameters<typeof compileEncoder>[0]
}

/** Writes events in their envelopes. */
class EnvelopeWriter {
  readonly #context: SinkContext
  readonly #host: readonly PathSegment[]
  readonly #time: readonly PathSegment[]
  readonly #nanos: readonly PathSegment[] | undefined
  readonly #indexed: readonly { readonly name: string; readonly segments: readonly PathSegment[] }[]
  readonly #templates: readonly { readonly option: string; readonly member: string; readonly template: Template }[]
  readonly #times: TimeField
  readonly #encoder: Encoder
  readonly #isJson: boolean
  readonly #scratch = new Body(1024)

  constructor(context: SinkContext, options: EnvelopeOptions) {
    const { hostKey, timestampKey, messageKey } = context.globals.logSchema
    this.#context = context
    this.#host = pathOf(options.host_key, hostKey)
    this.#time = pathOf(options.timestamp_key, timestampKey)
    this.#nanos = fieldSegments(options.timestamp_nanos_key)
    this.#indexed = options.indexed_fields.flatMap((text) => {
      const segments = fieldSegments(text)
      return segments === undefined ? [] : [{ name: text.replace(/^\./, ''), segments }]
    })
    this.#templates = (['event_type', 'source', 'index'] as const).flatMap((option) => {
      const text = options[option]
      const member = option === 'event_type' ? 'sourcetype' : option
      return text === undefined ? [] : [{ option, member, template: compileTemplate(text, timestampKey) }]
    })
    const timeOption = options.timestamp_key === undefined ? 'log_schema.timestamp_key' : 'timestamp_key'
    this.#times = timeField(this.#time, timeOption, context)
    this.#encoder = compileEncoder(options.encoding, messageKey)
    this.#isJson = jsonCodecs.has(this.#encoder.codec)
  }

  /** Writes the events `[from, to)` into a request. */
  write(events: readonly AnyEvent[], from: number, to: number, open: OpenRequest): void {
    const { body } = open
    for (let index = from; index < to; index++) {
      const event = events[index] as LogEvent
      const instant = this.#time.length === 0 ? undefined : this.#times.of(event.fields)
      const start = body.length
      body.writeText('{"event":')
      const problem = this.#writeEvent(this.#untimed(event, instant), body)
      if (problem !== undefined) {
        body.truncate(start)
        encoderFailed(this.#context, problem)
        continue
      }
      // The members follow the already written members of the envelope: `{…}` without its first brace.
      body.writeText(`,${writeJson(this.#envelope(event, instant)).slice(1)}`)
      open.mark(start)
    }
    this.#times.report()
  }

  /** Returns the encoder's problem, if any. */
  #writeEvent(event: LogEvent, body: Body): string | undefined {
    if (this.#isJson) return this.#encoder.encode(event, body)
    const scratch = this.#scratch
    scratch.truncate(0)
    const problem = this.#encoder.encode(event, scratch)
    if (problem === undefined) body.writeText(JSON.stringify(scratch.view().toString('utf8')))
    return problem
  }

  /** The event without its timestamp; the same event if it has none. */
  #untimed(event: LogEvent, instant: Timestamp | undefined): LogEvent {
    if (instant === undefined) return event
    const changed = event.copy()
    removePath(changed.fields, this.#time)
    if (this.#nanos !== undefined) setPath(changed.fields, this.#nanos, instant.ns)
    return changed
  }

  /** Members of the envelope other than the event. */
  #envelope(event: LogEvent, instant: Timestamp | undefined): ValueObject {
    const fields: ValueObject = {}
    for (const { name, segments } of this.#indexed) {
      const value = getValue(event.fields, segments)
      if (value !== undefined) setField(fields, name, value)
    }
    const members: ValueObject = { fields }
    if (instant !== undefined) members['time'] = float(instant.ms / 1000)
    const name: Value | undefined = this.#host.length === 0 ? undefined : getValue(event.fields, this.#host)
    if (name !== undefined) members['host'] = valueText(name)
    for (const { option, member, template } of this.#templates) {
      const text = template.render(event)
      if (text === undefined) templateFailed(this.#context, option, template, event, false)
      else members[member] = text
    }
    return members
  }
}

/** The path segments of a field; a name that begins with `#`, and the default name with its dot, is a single field. */
function fieldSegments(text: string): readonly PathSegment[] | undefined {
  if (text.startsWith('#') || text === defaultNanosKey) return [text]
  const path: Path | undefined = parsePath(text)
  return path === undefined || path.root === 'metadata' || path.segments.length === 0 ? undefined : path.segments
}

function pathOf(text: string | undefined, key: string): readonly PathSegment[] {
  if (text === undefined) return key === '' ? [] : [key]
  return fieldSegments(text) ?? []
}
