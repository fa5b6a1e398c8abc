// Log service B: events in the envelopes of an HTTP event collector, one after the other without anything between them.

import { randomUUID } from 'node:crypto'
import { compileEncoder, encodingProblems } from '../codecs/encoding/encoder.ts'
import { valueText } from '../codecs/value-text.ts'
import { defineSink, type OptionProblem } from '../component.ts'
import { framed } from '../delivery/request.ts'
import { PenstockError } from '../errors.ts'
import { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import { getValue, type Path, type PathSegment, parsePath, removePath, setPath } from '../event/path.ts'
import type { Timestamp } from '../event/timestamp.ts'
import { float, setField, type Value, type ValueObject } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { compressionProblems } from '../http/compression.ts'
import { encoderFailed, httpSink, joinPath, templateFailed, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, encoding, request, textCodecs, tls } from '../schema/groups.ts'
import { fieldPath, list, optional, secret, template, text, url } from '../schema/options.ts'
import { compileTemplate } from '../template.ts'
import { timeField } from '../time-field.ts'

const defaultNanosKey = '@timestamp.nanos'

/** Codecs whose output is a JSON object and stands in the envelope as it is; the output of others is a string there. */
const jsonCodecs = new Set(['json', 'native_json', 'gelf'])

export const logsvcBLogs = defineSink({
  type: 'logsvc_b_logs',
  products: ['Humio', 'LogScale'],
  summary: 'Delivers log events to log service B.',
  description:
    'The timestamp leaves the event: its milliseconds are the time of the envelope, the nanoseconds below them a field of the event.',
  aliases: ['humio_logs'],
  accepts: ['log'],
  options: {
    token: secret('Ingest token.'),
    endpoint: url('Base address, without a path.', { default: 'https://cloud.humio.com', aliases: ['host'] }),
    event_type: optional(template('Parser that the destination applies; if it cannot be rendered, none.')),
    source: optional(template('Where the event comes from, such as a file.')),
    index: optional(
      template(
        'Repository of the event. At public destinations it must be the one of the token, if it is given at all.',
      ),
    ),
    host_key: optional(fieldPath('Field with the name of the host. Left out: `log_schema.host_key`.')),
    timestamp_key: optional(fieldPath('Field with the time. Left out: `log_schema.timestamp_key`.')),
    timestamp_nanos_key: text(
      `Field for the nanoseconds below the millisecond. The default is one field of that name, dot and all.`,
      { default: defaultNanosKey },
    ),
    indexed_fields: list(
      text('A field.'),
      'Fields that are sent as extra fields too. Names that begin with `#` tag events.',
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
      problems.push({ path: 'endpoint', message: 'must not have a path: the sink appends its own' })
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
    const { hostKey, timestampKey, messageKey } = context.globals.logSchema
    const host = pathOf(options.host_key, hostKey)
    const time = pathOf(options.timestamp_key, timestampKey)
    const nanos = fieldSegments(options.timestamp_nanos_key)
    const indexed = options.indexed_fields.flatMap((text) => {
      const segments = fieldSegments(text)
      return segments === undefined ? [] : [{ name: text.replace(/^\./, ''), segments }]
    })
    const templates = (['event_type', 'source', 'index'] as const).flatMap((option) => {
      const text = options[option]
      const member = option === 'event_type' ? 'sourcetype' : option
      return text === undefined ? [] : [{ option, member, template: compileTemplate(text, timestampKey) }]
    })
    const times = timeField(
      time,
      options.timestamp_key === undefined ? 'log_schema.timestamp_key' : 'timestamp_key',
      context,
    )
    const encoder = compileEncoder(options.encoding, messageKey)
    const isJson = jsonCodecs.has(encoder.codec)
    const scratch = new Body(1024)

    /** The event without its timestamp; the same event if it has none. */
    const untimed = (event: LogEvent, instant: Timestamp | undefined): LogEvent => {
      if (instant === undefined) return event
      const changed = event.copy()
      removePath(changed.fields, time)
      if (nanos !== undefined) setPath(changed.fields, nanos, instant.ns)
      return changed
    }

    /** What stands beside the event in its envelope. */
    const envelope = (event: LogEvent, instant: Timestamp | undefined): ValueObject => {
      const fields: ValueObject = {}
      for (let index = 0; index < indexed.length; index++) {
        const { name, segments } = indexed[index] as (typeof indexed)[number]
        const value = getValue(event.fields, segments)
        if (value !== undefined) setField(fields, name, value)
      }
      const members: ValueObject = { fields }
      if (instant !== undefined) members['time'] = float(instant.ms / 1000)
      const name: Value | undefined = host.length === 0 ? undefined : getValue(event.fields, host)
      if (name !== undefined) members['host'] = valueText(name)
      for (let index = 0; index < templates.length; index++) {
        const { option, member, template: compiled } = templates[index] as (typeof templates)[number]
        const text = compiled.render(event)
        if (text === undefined) templateFailed(context, option, compiled, event, false)
        else members[member] = text
      }
      return members
    }

    const headers = {
      'content-type': 'application/json',
      authorization: `Splunk ${options.token}`,
      'x-splunk-request-channel': randomUUID(),
    }
    const health = joinPath(options.endpoint, '/services/collector/health/1.0')
    return httpSink(context, options, {
      url: joinPath(options.endpoint, '/services/collector/event'),
      headers,
      encode(events, from, to, open) {
        const { body } = open
        for (let index = from; index < to; index++) {
          const event = events[index] as LogEvent
          const instant = time.length === 0 ? undefined : times.of(event.fields)
          const sent = untimed(event, instant)
          const start = body.length
          body.writeText('{"event":')
          let problem: string | undefined
          if (isJson) {
            problem = encoder.encode(sent, body)
          } else {
            scratch.truncate(0)
            problem = encoder.encode(sent, scratch)
            if (problem === undefined) body.writeText(JSON.stringify(scratch.view().toString('utf8')))
          }
          if (problem !== undefined) {
            body.truncate(start)
            encoderFailed(context, problem)
            continue
          }
          // The members follow those of the envelope that are written: `{…}` without its first brace.
          body.writeText(`,${writeJson(envelope(event, instant)).slice(1)}`)
          open.mark(start)
        }
        times.report()
      },
      assemble: framed('', '', ''),
      secret: options.token,
      async healthcheck(get) {
        const { status } = await get(health, { authorization: headers.authorization })
        if (status === 200) return
        if (status === 400 || status === 401) throw new PenstockError('PEN_HEALTHCHECK', 'Invalid HEC token')
        if (status === 503) throw new PenstockError('PEN_HEALTHCHECK', 'Queues are full')
        throw unhealthy(health, status)
      },
    })
  },
})

/** The segments of a path below the event; a name that begins with `#`, and the usual one with a dot in it, is one field. */
function fieldSegments(text: string): readonly PathSegment[] | undefined {
  if (text.startsWith('#') || text === defaultNanosKey) return [text]
  const path: Path | undefined = parsePath(text)
  return path === undefined || path.root === 'metadata' || path.segments.length === 0 ? undefined : path.segments
}

function pathOf(text: string | undefined, key: string): readonly PathSegment[] {
  if (text === undefined) return key === '' ? [] : [key]
  return fieldSegments(text) ?? []
}
