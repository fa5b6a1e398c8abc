// Log aggregator sink: groups events into labelled streams and pushes them, many in one request.
// Within a stream and a request, entries leave in timestamp order. An entry is late when it is older than the latest one that an
// earlier request pushed for its stream: what arrives unsorted within one request is only sorted.

import { BoundedMap } from '../bounded-map.ts'
import { compileEncoder, encodingProblems } from '../codecs/encoding/encoder.ts'
import { defineSink, type OptionProblem } from '../component.ts'
import type { Body } from '../event/body.ts'
import { joinedKey } from '../event/joined-key.ts'
import { LogEvent } from '../event/log.ts'
import { type Path, removePath } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, setField, type Value, type ValueObject } from '../event/value.ts'
import { authProblems } from '../http/auth.ts'
import { classifyInHalves } from '../http/classify.ts'
import { asBuffer, compressionProblems, loadSnappy } from '../http/compression.ts'
import { encoderFailed, httpSink, joinPath, templateFailed, tooLongText, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, encoding, httpAuth, request, tls } from '../schema/groups.ts'
import { bool, map, oneOf, optional, template, text, url } from '../schema/options.ts'
import { fact } from '../telemetry/facts.ts'
import { warnedOnce } from '../telemetry/warned-once.ts'
import { compileTemplate, type Template } from '../template.ts'
import { timeField } from '../time-field.ts'
import { compileLabels, isLabelName, type LabelFaults } from './log_aggregator/labels.ts'
import { type Format, finishStreams, jsonFormat, markEntry, protobufFormat, Stream } from './log_aggregator/streams.ts'

/** Streams that are remembered, with the time of their latest entry. */
const keptStreams = { maxEntries: 10_000, maxBytes: 16 << 20, sizeOf: ({ header }: Stream) => 200 + header.length }

/** Characters that the fields in the labels of an event, or in its metadata, may have together; no destination takes as many. */
const maxKeyLength = 131_072
/** Bytes of the labels of a stream. */
const maxHeaderBytes = 1 << 20
/** Longest name of a label or template of one, as the destination has it by default. */
const maxNameLength = 1024

/**
 * What the destination says of entries that it refuses for their time or their length, while it keeps the others of the request.
 * An entry that it has already is not kept twice.
 */
const ofSome = /total ignored|timestamp too (?:old|new)|too far behind|out of order|max entry size/i

/** Milliseconds of the last instant whose nanoseconds fit 64 bits. */
const lastInstantMs = 9_223_372_036_854

export const logAggregator = defineSink({
  type: 'log_aggregator',
  products: ['Grafana Loki'],
  summary: 'Delivers log events to a log aggregation system.',
  description:
    'Where the destination refuses some entries of a request for their time or their length, and keeps the others, those alone are discarded.',
  aliases: ['loki'],
  accepts: ['log'],
  options: {
    endpoint: url('Base address. The path is appended.', { examples: ['http://loki:3100'] }),
    path: text('Path of push requests.', { default: '/loki/api/v1/push' }),
    labels: map(
      template('Value of the label.'),
      'Labels that choose the stream of an event. Names and values are templates. A name that ends in `*` expands an object into several labels. In names made of fields, characters other than letters, digits and `_` become `_`; of labels whose names then coincide, one is sent. A name that is written out wins over them. Keep their number small.',
      { names: 'template' },
    ),
    structured_metadata: map(
      template('Value of the entry.'),
      'Metadata of each entry that is not part of its stream, by the rules of `labels`.',
      { default: {}, names: 'template' },
    ),
    remove_structured_metadata_fields: bool('Remove fields that structured metadata is made of from the line.', {
      default: false,
    }),
    remove_label_fields: bool('Remove fields that labels are made of from the line.', { default: false }),
    remove_timestamp: bool('Remove the timestamp from the line; the entry still carries it.', { default: true }),
    out_of_order_action: oneOf(
      ['accept', 'drop', 'rewrite_timestamp'],
      'Handling of an event that is older than the latest one already pushed for its stream: `accept` sends it unchanged (the destination must be 2.4.0 or newer), `drop` discards it, `rewrite_timestamp` gives it the time of the latest one. Events of one request are sorted first, so only events overtaken by an earlier request are late. Choose `accept` if several pods share a stream.',
      { default: 'drop' },
    ),
    tenant_id: optional(
      template('Tenant sent as the `X-Scope-OrgID` header. An event for which it cannot be rendered is discarded.'),
    ),
    compression: compression(compressionNames, 'none', compressionNames.slice(2)),
    encoding: encoding(['json', 'logfmt', 'text']),
    auth: httpAuth(),
    batch: batch({ max_bytes: 1_000_000, max_events: 100_000, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [
      ...encodingProblems(options.encoding),
      ...compressionProblems(options.compression),
      ...authProblems('auth', options.endpoint, options.auth),
    ]
    for (const option of ['labels', 'structured_metadata'] as const) {
      for (const name of Object.keys(options[option])) {
        if (name.length <= maxNameLength) continue
        const message = `The name \`${name.slice(0, 40)}…\` has ${name.length} characters; the longest that is sent has ${maxNameLength}`
        problems.push({ path: option, message, help: 'Shorten the name.' })
      }
    }
    for (const name of Object.keys(options.labels)) {
      if (!isLabelName(name)) problems.push({ path: 'labels', message: `Invalid label name ${JSON.stringify(name)}` })
    }
    const { concurrency } = options.request
    if (options.out_of_order_action !== 'accept' && concurrency !== 'none' && concurrency !== 1) {
      problems.push({
        path: 'request.concurrency',
        severity: 'warning',
        message: `\`concurrency\` is 1 with \`out_of_order_action: ${options.out_of_order_action}\`, whatever is given: requests at the same time would put entries out of order`,
        help: 'Set `out_of_order_action: accept` if the destination takes entries out of order.',
      })
    }
    if (Object.keys(options.labels).length === 0) {
      problems.push({ path: 'labels', message: '`labels` must include at least one label.' })
    }
    return problems
  },

  build(options, context) {
    const { timestampKey, messageKey } = context.globals.logSchema
    const labels = compileLabels(options.labels, 'labels', timestampKey)
    const metadataOptions = options.structured_metadata
    const hasMetadata = Object.keys(metadataOptions).length > 0
    const metadata = compileLabels(metadataOptions, 'structured_metadata', timestampKey)
    const tenant = options.tenant_id === undefined ? undefined : compileTemplate(options.tenant_id, timestampKey)
    const algorithm = typeof options.compression === 'string' ? options.compression : options.compression.algorithm
    const snappy = algorithm === 'snappy' ? loadSnappy() : undefined
    const encoder = compileEncoder(options.encoding, messageKey)
    const format = snappy === undefined ? jsonFormat(encoder) : protobufFormat(encoder)
    const action = options.out_of_order_action
    const removed: Path[] = [
      ...(options.remove_label_fields ? labels.paths : []),
      ...(options.remove_structured_metadata_fields ? metadata.paths : []),
    ].filter((path) => path.root === 'event')

    const hiddenTimestamp = options.remove_timestamp ? timestampKey : undefined

    const time = timeField([timestampKey], 'log_schema.timestamp_key', context)
    let invalidNames = 0
    let lostLabels = 0
    const faults: LabelFaults = {
      invalid() {
        invalidNames++
      },
      lost(count) {
        lostLabels += count
      },
    }
    const streams = new BoundedMap<Stream>(keptStreams)
    const maxWritten = Math.max(4 << 20, 4 * (options.batch.max_bytes ?? 0))
    /** Undefined if the labels are too long. */
    const streamFor = (key: string, tenantId: string): Stream | undefined => {
      if (key.length > maxKeyLength) return undefined
      const id = tenant === undefined ? key : joinedKey([tenantId, key])
      let stream = streams.get(id)
      if (stream === undefined) {
        let set = labels.fromKey(key, faults)
        if (set.size === 0) {
          set = new Map([['agent', 'penstock']])
          context.events.error({
            type: 'encoder_failed',
            stage: 'processing',
            code: 'unlabeled_event',
            message: 'An event has none of the labels; it is sent with the label `agent`.',
          })
        }
        stream = new Stream(format.header(set))
        if (stream.header.length > maxHeaderBytes) return undefined
        // Forgetting a stream only forgets how late is late.
        streams.set(id, stream)
        context.events.count('streams_total')
      }
      return stream
    }

    let event: LogEvent
    // An optional field that most events lack must not cost a report each: events are counted, and reported once a batch.
    const unrendered = new Map<string, { count: number; readonly missing: readonly string[] }>()
    const missing = (option: string, failed: Template) => {
      const known = unrendered.get(option)
      if (known === undefined) unrendered.set(option, { count: 1, missing: failed.missing(event) })
      else known.count++
    }
    const reportInvalidNames = () => {
      context.events.error({
        type: 'encoder_failed',
        stage: 'processing',
        code: 'invalid_label_name',
        message:
          'Names of labels that are made of fields hold characters that the destination forbids; these are replaced.',
        count: invalidNames,
      })
      invalidNames = 0
    }
    const reportLostLabels = warnedOnce(context.events, {
      type: 'encoder_failed',
      stage: 'processing',
      code: 'label_names_coincide',
      message:
        'Fields give labels whose names are equal once forbidden characters are replaced; one of each such name is sent.',
    })
    const reportMissing = () => {
      for (const [option, { count, missing: names }] of unrendered) {
        context.events.error({
          type: 'template_failed',
          stage: 'processing',
          message: names.length > 0 ? 'A template refers to fields that events do not have.' : `${tooLongText}.`,
          fields: { field: fact(option), missing: names.map(fact) },
          count,
        })
      }
      unrendered.clear()
    }
    let isLateSaid = false
    const discardLate = (events: number) => {
      context.events.discarded(events, true, 'The event is older than the latest one pushed for its stream.')
      if (isLateSaid) return
      isLateSaid = true
      context.logger.warn(
        { count: events },
        'Events are older than the latest one pushed for their stream; `out_of_order_action: drop` discards them. Set it to `accept` if the destination takes entries out of order, or add a label that distinguishes the writers of the stream.',
      )
    }
    let suppliedMs = 0
    let suppliedNs = 0
    /** An instant for an event without one: now, but always later than the one before. */
    const supply = (stream: Stream): Timestamp => {
      const now = Date.now()
      let ms = now
      let ns = 0
      if (ms < suppliedMs || (ms === suppliedMs && ns <= suppliedNs)) {
        ms = suppliedMs
        ns = suppliedNs + 1
      }
      if (action !== 'accept' && (ms < stream.latestMs || (ms === stream.latestMs && ns < stream.latestNs))) {
        ms = stream.latestMs
        ns = stream.latestNs
      }
      if (ns > 999_999) {
        ms++
        ns = 0
      }
      suppliedMs = ms
      suppliedNs = ns
      return new Timestamp(ms, ns)
    }

    const concurrency = action === 'accept' ? options.request.concurrency : 'none'
    return httpSink(
      context,
      { ...options, request: { ...options.request, concurrency } },
      {
        url: joinPath(options.endpoint, options.path),
        headers: {
          'content-type': format.contentType,
          ...(snappy === undefined ? {} : { 'content-encoding': 'snappy' }),
        },
        lastHeaders: (key) => (key === '' ? undefined : { 'x-scope-orgid': key }),
        // A request carries one tenant, so events of different tenants never share one.
        partition:
          tenant === undefined
            ? undefined
            : (candidate) => {
                const id = tenant.render(candidate)
                if (id === undefined) templateFailed(context, 'tenant_id', tenant, candidate, true)
                return id
              },
        encode(events, from, to, open) {
          let last: Stream | undefined
          let lastKey: string | undefined
          let dropped = 0
          let rewritten = 0
          for (let index = from; index < to; index++) {
            event = events[index] as LogEvent
            const key = labels.isStatic ? '' : labels.key(event, missing)
            const stream = last !== undefined && key === lastKey ? last : streamFor(key, open.key)
            if (stream === undefined) {
              encoderFailed(context, 'its labels are too long')
              continue
            }
            last = stream
            lastKey = key
            const own = time.of(event.fields)
            let instant = own ?? supply(stream)
            if (instant.ms > lastInstantMs || instant.ms < -lastInstantMs) {
              context.events.error({
                type: 'encoder_failed',
                stage: 'processing',
                code: 'non-parsable_timestamp',
                message: 'The timestamp of an event is too far away; the event is discarded.',
              })
              context.events.discarded(1, false, 'The timestamp is out of range.')
              continue
            }
            if (instant.ms < stream.latestMs || (instant.ms === stream.latestMs && instant.ns < stream.latestNs)) {
              if (action === 'drop') {
                dropped++
                continue
              }
              if (action === 'rewrite_timestamp') {
                instant = new Timestamp(stream.latestMs, stream.latestNs)
                rewritten++
              }
            }
            let pairs: ReadonlyMap<string, string> | undefined
            if (hasMetadata) {
              const metadataKey = metadata.key(event, missing)
              if (metadataKey.length > maxKeyLength) {
                encoderFailed(context, 'its structured metadata is too long')
                continue
              }
              pairs = metadata.fromKey(metadataKey, faults)
            }
            // What is no time cannot be sent beside the line, so it stays in it.
            const hidden = own === undefined ? undefined : hiddenTimestamp
            const start = writeWithout(event, instant, pairs, format, open.body, hidden, removed)
            if (typeof start === 'string') {
              encoderFailed(context, start)
              continue
            }
            markEntry(open, start, stream, instant)
            // A template may name a field many times, and labels may hold any constant text: what a few bytes of each event become
            // only shows when it is written.
            if (open.body.length + open.bytesToCome > maxWritten) {
              open.stoppedAt = index + 1
              break
            }
          }
          time.report()
          if (unrendered.size > 0) reportMissing()
          if (invalidNames > 0) reportInvalidNames()
          reportLostLabels(lostLabels)
          lostLabels = 0
          if (dropped > 0) discardLate(dropped)
          if (rewritten > 0) context.events.count('rewritten_timestamp_events_total', rewritten)
        },
        finish: (open, pool) => finishStreams(open, pool, format),
        assemble: format.assemble,
        classify: (response, sent) => classifyInHalves(response, sent, ofSome),
        ...(snappy === undefined
          ? {}
          : {
              codec: {
                compress: (body: Buffer) => asBuffer(snappy.compress(body)),
                decompress: (payload: Buffer) => asBuffer(snappy.uncompress(payload)),
              },
            }),
        async healthcheck(get) {
          const ready = joinPath(options.endpoint, '/ready')
          const tenantId = tenant?.isStatic === true ? tenant.render(new LogEvent({})) : undefined
          const headers = tenantId === undefined ? {} : { 'x-scope-orgid': tenantId }
          const { status } = await get(ready, headers)
          if (status === 200) return
          if (status !== 404) throw unhealthy(ready, status)
          // Behind a proxy there is often no /ready.
          const root = joinPath(options.endpoint, '/')
          const answer = await get(root, headers)
          if (answer.status !== 200) throw unhealthy(root, answer.status)
        },
      },
    )
  },
})

/**
 * Writes an entry while some fields of its event are hidden. Other holders of the event never see it: nothing else runs in
 * between, and the values are put back. A copy of every event would cost more than writing it.
 */
function writeWithout(
  event: LogEvent,
  instant: Timestamp,
  metadata: ReadonlyMap<string, string> | undefined,
  format: Format,
  body: Body,
  timestampKey: string | undefined,
  removed: readonly Path[],
): number | string {
  const { fields } = event
  const timestamp = timestampKey === undefined ? undefined : getField(fields, timestampKey)
  if (timestamp !== undefined) setField(fields, timestampKey as string, undefined)
  const saved = removed.length === 0 ? undefined : hide(fields, removed)
  try {
    return format.entry(event, instant, metadata, body)
  } finally {
    if (saved !== undefined) restore(fields, removed, saved)
    if (timestamp !== undefined) setField(fields, timestampKey as string, timestamp)
  }
}

/** Removes what is at the paths; gives the root fields as they were before each. */
function hide(fields: ValueObject, paths: readonly Path[]): (Value | undefined)[] {
  return paths.map(({ segments }) => {
    const root = segments[0]
    if (typeof root !== 'string') return undefined
    const before = getField(fields, root)
    removePath(fields, segments)
    return before
  })
}

function restore(fields: ValueObject, paths: readonly Path[], saved: readonly (Value | undefined)[]): void {
  for (let index = paths.length - 1; index >= 0; index--) {
    const root = (paths[index] as Path).segments[0]
    if (typeof root === 'string' && saved[index] !== undefined) setField(fields, root, saved[index])
  }
}
