// HTTP sink: sends events to any address in the body of a request. The rendered address and headers are the partition key: events
// that differ in one of them never share a request.

import { compileEncoder, compileStreamEncoder, encodingProblems, linesReason } from '../codecs/encoding/encoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSink, type OptionProblem, type SinkContext } from '../component.ts'
import type { AnyEvent } from '../delivery/batcher.ts'
import { compressionProblems } from '../delivery/compression.ts'
import { templateFailed } from '../delivery/failed-events.ts'
import { framed } from '../delivery/request.ts'
import { joinedKey, splitKey } from '../event/joined-key.ts'
import { LogEvent } from '../event/log.ts'
import { authProblems } from '../http/auth.ts'
import { encodeEach, encodeEachLine, httpSink } from '../http/sink.ts'
import {
  batch,
  compression,
  compressionNames,
  type EncodingCodec,
  encoding,
  httpAuth,
  type OutgoingFramingOptions,
  outgoingFraming,
  request,
  tls,
} from '../schema/groups.ts'
import { oneOf, template, text, webPorts } from '../schema/options.ts'
import { compileTemplate, type Template, templateProblem } from '../template.ts'

export const http = defineSink({
  type: 'http',
  summary: 'Delivers log and metric events to an HTTP server.',
  accepts: ['log', 'metric'],
  options: {
    uri: template('Address of the requests.', {
      use: { address: { ports: webPorts } },
      examples: ['https://collector.example/logs/{{ app }}'],
    }),
    method: oneOf(['post', 'put', 'patch', 'delete', 'get', 'head', 'options', 'trace'], 'Method of the requests.', {
      default: 'post',
    }),
    payload_prefix: text('Text before the events in each request.', { default: '' }),
    payload_suffix: text('Text after the events in each request.', { default: '' }),
    compression: compression(compressionNames, 'none'),
    encoding: encoding(),
    framing: outgoingFraming(),
    auth: httpAuth(),
    batch: batch({ max_bytes: 10_000_000, timeout_secs: 1 }),
    request: request(
      {},
      'Headers to add to every request. A value with placeholders such as `{{ tenant }}` is a template: events with different values never share a request, and the sink discards an event without the field.',
    ),
    tls: tls(),
  },

  check(options) {
    const fixed = options.uri.includes('{{') ? undefined : options.uri
    const problems: OptionProblem[] = [
      ...encodingProblems(options.encoding),
      ...framingProblems(options.framing),
      ...compressionProblems(options.compression),
      ...authProblems('auth', fixed, options.auth),
    ]
    for (const [name, value] of Object.entries(options.request.headers)) {
      const message = isTemplate(value) ? templateProblem(value) : undefined
      if (message !== undefined) problems.push({ path: `request.headers.${name}`, message })
    }
    if (!/^https?:\/\//i.test(options.uri) && !options.uri.startsWith('{{')) {
      problems.push({ path: 'uri', message: 'must be a URL with scheme http or https' })
    }
    return problems
  },

  objectsBecause(options) {
    if (options.uri.includes('{{') || !compileTemplate(options.uri).isStatic) return 'its address depends on the event'
    if (Object.values(options.request.headers).some(isTemplate)) return 'its headers depend on the event'
    return linesReason(options.encoding, options.framing)
  },

  build(options, context) {
    const { codec } = options.encoding
    const uri = compileTemplate(options.uri, context.globals.logSchema.timestampKey)
    const { messageKey } = context.globals.logSchema
    // Without framing, JSON is one array; all other codecs give a stream of frames.
    const array = codec === 'json' && options.framing === undefined
    const encoder = array
      ? compileEncoder(options.encoding, messageKey)
      : compileStreamEncoder(options.encoding, options.framing, messageKey)
    const separator = array ? ',' : ''
    const before = options.payload_prefix + (array ? '[' : '')
    const after = (array ? ']' : '') + options.payload_suffix

    const { fixed, rendered } = headersOf(options.request.headers, context)
    const parts = [{ option: 'uri', template: uri }, ...rendered]
    const isSingle = uri.isStatic && rendered.length === 0

    return httpSink(
      context,
      { ...options, request: { ...options.request, headers: fixed } },
      {
        url: isSingle ? (uri.render(new LogEvent({})) ?? '') : (key) => splitKey(key)[0] ?? '',
        method: options.method.toUpperCase(),
        headers: (key) => ({
          'content-type': contentType(codec, options.framing),
          ...(isSingle ? {} : renderedHeaders(rendered, splitKey(key).slice(1))),
        }),
        partition: isSingle ? undefined : (event) => keyOf(parts, event, context),
        begin: (open) => open.body.writeText(before),
        encode: encodeEach(context, encoder, separator),
        encodeLines: encodeEachLine(context, encoder, separator),
        finish(open) {
          open.body.writeText(after)
          return open
        },
        assemble: framed(before, separator, after),
      },
    )
  },
})

const isTemplate = (value: string): boolean => value.includes('{{')

/** A template of an option; for a header, with its name. */
interface Part {
  readonly option: string
  readonly template: Template
}

interface HeaderPart extends Part {
  readonly name: string
}

/** The headers with the same value in all requests, and those with a template. */
function headersOf(
  headers: Readonly<Record<string, string>>,
  context: SinkContext,
): { readonly fixed: Readonly<Record<string, string>>; readonly rendered: readonly HeaderPart[] } {
  const all = Object.entries(headers)
  return {
    fixed: Object.fromEntries(all.filter(([, value]) => !isTemplate(value))),
    rendered: all
      .filter(([, value]) => isTemplate(value))
      .map(([name, value]) => ({
        name: name.toLowerCase(),
        option: `request.headers.${name}`,
        template: compileTemplate(value, context.globals.logSchema.timestampKey),
      })),
  }
}

/** The texts of all templates for an event, joined; undefined if one cannot be rendered, which is counted. */
function keyOf(parts: readonly Part[], event: AnyEvent, context: SinkContext): string | undefined {
  const texts: string[] = []
  for (const { option, template } of parts) {
    const text = template.render(event)
    if (text === undefined) {
      templateFailed(context, option, template, event, true)
      return undefined
    }
    texts.push(text)
  }
  return joinedKey(texts)
}

const renderedHeaders = (parts: readonly HeaderPart[], texts: readonly (string | undefined)[]) =>
  Object.fromEntries(parts.map(({ name }, index) => [name, texts[index] ?? '']))

function contentType(codec: EncodingCodec, frames: OutgoingFramingOptions | undefined): string {
  switch (codec) {
    case 'json':
    case 'native_json':
    case 'gelf':
      return frames?.method === 'newline_delimited' || (frames === undefined && codec === 'native_json')
        ? 'application/x-ndjson'
        : 'application/json'
    case 'native':
    case 'avro':
      return 'application/octet-stream'
    case 'csv':
      return 'text/csv'
    default:
      return 'text/plain'
  }
}
