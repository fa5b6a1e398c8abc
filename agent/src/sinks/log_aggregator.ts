// Log aggregator sink: groups events into labelled streams and pushes many of them in one request. Within a stream and a request,
// entries are in timestamp order. An entry is late if it is older than the latest entry that an earlier request pushed for its
// stream; the sink just sorts the entries of one request.

import { compileEncoder, encodingProblems, linesReason } from '../codecs/encoding/encoder.ts'
import { defineSink, type OptionProblem, type SinkContext } from '../component.ts'
import type { AnyEvent } from '../delivery/batcher.ts'
import { asBuffer, compressionProblems, loadSnappy } from '../delivery/compression.ts'
import { templateFailed } from '../delivery/failed-events.ts'
import { LogEvent } from '../event/log.ts'
import { authProblems } from '../http/auth.ts'
import { classifyInHalves } from '../http/classify.ts'
import { httpSink, joinPath, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, encoding, httpAuth, request, tls } from '../schema/groups.ts'
import { bool, map, oneOf, optional, template, text, url } from '../schema/options.ts'
import { compileTemplate, type Template } from '../template.ts'
import { EntryWriter } from './log_aggregator/entries.ts'
import { compileLabels, isLabelName } from './log_aggregator/labels.ts'
import { assembleStreams, finishStreams, jsonFormat, protobufFormat } from './log_aggregator/streams.ts'

/** Maximum length of a label name, or of a template for one, by the destination's defaults. */
const maxNameLength = 1024

/**
 * The destination's messages for entries refused because of their time or length, while it keeps the other entries of the request. It
 * deduplicates entries.
 */
const ofSome = /total ignored|timestamp too (?:old|new)|too far behind|out of order|max entry size/i

export const logAggregator = defineSink({
  type: 'log_aggregator',
  products: ['Grafana Loki'],
  summary: 'Delivers log events to a log aggregation system.',
  description:
    'If the destination refuses some entries of a request because of their time or length, the sink discards only those.',
  aliases: ['loki'],
  accepts: ['log'],
  options: {
    endpoint: url('Base address. The sink appends the path.', { examples: ['http://loki:3100'] }),
    path: text('Path of push requests. Empty if `endpoint` is the whole address.', { default: '/loki/api/v1/push' }),
    labels: map(
      template('Value of the label.'),
      'Labels that choose the stream of an event. Names and values are templates. A name that ends in `*` expands an object into several labels. In names built from fields, characters other than letters, digits and `_` become `_`; if names then coincide, the sink sends one of the labels. A literal name takes precedence. Keep the number of label values small.',
      { names: 'template' },
    ),
    structured_metadata: map(
      template('Value of the entry.'),
      'Metadata of each entry that is not part of its stream. The rules of `labels` apply.',
      { default: {}, names: 'template' },
    ),
    remove_structured_metadata_fields: bool('Whether to remove the fields used in structured metadata from the line.', {
      default: false,
    }),
    remove_label_fields: bool('Whether to remove the fields used in labels from the line.', { default: false }),
    remove_timestamp: bool('Whether to remove the timestamp from the line; the entry still has it.', { default: true }),
    out_of_order_action: oneOf(
      ['accept', 'drop', 'rewrite_timestamp'],
      'Handling of an event that is older than the latest one already pushed for its stream: `accept` sends it unchanged (the destination must be 2.4.0 or newer), `drop` discards it, `rewrite_timestamp` gives it the time of the latest one. The sink sorts the events of a request first, so an event is late only if an earlier request overtook it. Choose `accept` if several pods share a stream.',
      { default: 'drop' },
    ),
    tenant_id: optional(
      template(
        'Tenant sent as the `X-Scope-OrgID` header. The sink discards an event for which it cannot be rendered.',
      ),
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
        const message = `The name \`${name.slice(0, 40)}…\` has ${name.length} characters; the limit is ${maxNameLength}`
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
        message: `\`concurrency\` is always 1 with \`out_of_order_action: ${options.out_of_order_action}\`, because concurrent requests would put entries out of order`,
        help: 'Set `out_of_order_action: accept` if the destination accepts out-of-order entries.',
      })
    }
    if (Object.keys(options.labels).length === 0) {
      problems.push({ path: 'labels', message: '`labels` must include at least one label.' })
    }
    return problems
  },

  objectsBecause: (options) => linesReason(options.encoding),

  build(options, context) {
    const { timestampKey, messageKey } = context.globals.logSchema
    const labels = compileLabels(options.labels, 'labels', timestampKey)
    const metadata = compileLabels(options.structured_metadata, 'structured_metadata', timestampKey)
    const tenant = options.tenant_id === undefined ? undefined : compileTemplate(options.tenant_id, timestampKey)
    const algorithm = typeof options.compression === 'string' ? options.compression : options.compression.algorithm
    const snappy = algorithm === 'snappy' ? loadSnappy() : undefined
    const encoder = compileEncoder(options.encoding, messageKey)
    const format = snappy === undefined ? jsonFormat(encoder) : protobufFormat(encoder)
    const lateAction = options.out_of_order_action
    const entries = new EntryWriter(context, {
      labels,
      metadata: Object.keys(options.structured_metadata).length > 0 ? metadata : undefined,
      format,
      lateAction,
      removed: [
        ...(options.remove_label_fields ? labels.paths : []),
        ...(options.remove_structured_metadata_fields ? metadata.paths : []),
      ].filter((path) => path.root === 'event'),
      removesTimestamp: options.remove_timestamp,
      hasTenants: tenant !== undefined,
      maxWritten: Math.max(4 << 20, 4 * (options.batch.max_bytes ?? 0)),
    })
    const concurrency = lateAction === 'accept' ? options.request.concurrency : 'none'
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
        // A request has one tenant, so events of different tenants never share one.
        partition: tenant === undefined ? undefined : tenantOf(tenant, context),
        encode: (events, from, to, open) => entries.write(events, from, to, open),
        encodeLines: (batch, from, to, open) => entries.writeLines(batch, from, to, open),
        takesBytes: encoder.lineFields !== undefined,
        finish: (open, pool) => finishStreams(open, pool, format),
        assemble: assembleStreams(format),
        classify: (response, sent) => classifyInHalves(response, sent, ofSome),
        ...(snappy === undefined
          ? {}
          : {
              codec: {
                compress: (body: Buffer) => asBuffer(snappy.compress(body)),
                decompress: (payload: Buffer) => asBuffer(snappy.uncompress(payload)),
              },
            }),
        healthcheck: (get) => checkReady(get, options.endpoint, tenant),
      },
    )
  },
})

/** Returns the tenant of an event; undefined if the event is discarded. */
function tenantOf(tenant: Template, context: SinkContext): (event: AnyEvent) => string | undefined {
  return (event) => {
    const id = tenant.render(event)
    if (id === undefined) templateFailed(context, 'tenant_id', tenant, event, true)
    return id
  }
}

async function checkReady(
  get: (address: string, headers: Readonly<Record<string, string>>) => Promise<{ readonly status: number }>,
  endpoint: string,
  tenant: Template | undefined,
): Promise<void> {
  const ready = joinPath(endpoint, '/ready')
  const tenantId = tenant?.isStatic === true ? tenant.render(new LogEvent({})) : undefined
  const headers = tenantId === undefined ? {} : { 'x-scope-orgid': tenantId }
  const { status } = await get(ready, headers)
  if (status === 200) return
  if (status !== 404) throw unhealthy(ready, status)
  // A proxy often does not expose /ready.
  const root = joinPath(endpoint, '/')
  const answer = await get(root, headers)
  if (answer.status !== 200) throw unhealthy(root, answer.status)
}
