// HTTP sink: sends events to any address in the body of a request. The rendered address is the partition key: events
// with different addresses never share a request.

import { compileEncoder, compileStreamEncoder, encodingProblems, linesReason } from '../codecs/encoding/encoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSink, type OptionProblem } from '../component.ts'
import { compressionProblems } from '../delivery/compression.ts'
import { templateFailed } from '../delivery/failed-events.ts'
import { framed } from '../delivery/request.ts'
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
import { compileTemplate } from '../template.ts'

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
    request: request(),
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
    if (!/^https?:\/\//i.test(options.uri) && !options.uri.startsWith('{{')) {
      problems.push({ path: 'uri', message: 'must be a URL with scheme http or https' })
    }
    return problems
  },

  objectsBecause(options) {
    if (options.uri.includes('{{') || !compileTemplate(options.uri).isStatic) return 'its address depends on the event'
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

    return httpSink(context, options, {
      url: uri.isStatic ? (uri.render(new LogEvent({})) ?? '') : (key) => key,
      method: options.method.toUpperCase(),
      headers: { 'content-type': contentType(codec, options.framing) },
      partition: uri.isStatic
        ? undefined
        : (event) => {
            const address = uri.render(event)
            if (address === undefined) templateFailed(context, 'uri', uri, event, true)
            return address
          },
      begin: (open) => open.body.writeText(before),
      encode: encodeEach(context, encoder, separator),
      encodeLines: encodeEachLine(context, encoder, separator),
      finish(open) {
        open.body.writeText(after)
        return open
      },
      assemble: framed(before, separator, after),
    })
  },
})

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
