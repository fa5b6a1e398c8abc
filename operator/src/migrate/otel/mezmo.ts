// The exporter `mezmo`. The sink `http` sends its requests, because the sink for the service has other places for attributes.

import { literalTemplate } from '../escape.ts'
import { allCompressions, connectionOf, httpItself, httpOptions } from './connection.ts'
import { form } from './forms.ts'
import type { Mapping, SinkPart } from './mapping.ts'

const { endpoint: _, ...options } = httpOptions

/** A line of the service, cut at its limits. Attributes that are not texts are empty. */
const lineForm = form(
  [
    'attributes = object(.attributes) ?? {}',
    'host = get(object(.resource.attributes) ?? {}, ["host.name"]) ?? null',
    'own = { "hostname": to_string(host) ?? "", "trace.id": string(.trace_id) ?? "", "span.id": string(.span_id) ?? "" }',
    'own = filter(own) -> |_key, value| { value != "" }',
    'level = truncate(string(.severity_text) ?? "", 80)',
    'if level == "" { level = "info" }',
    'texts = map_values(attributes) -> |value| { truncate(string(value) ?? "", 32768) }',
    '. = {',
    '  "timestamp": to_unix_timestamp(timestamp(.timestamp) ?? now(), unit: "milliseconds"),',
    '  "line": truncate(string(.message) ?? "", 16384),',
    '  "app": truncate(string(attributes.appname) ?? "", 512),',
    '  "level": level,',
    '  "meta": merge(own, texts),',
    '}',
  ].join('\n'),
  'The line in the form of the exporter `mezmo`.',
)

export const mezmo: Mapping<SinkPart> = {
  name: 'mezmo',
  becomes: '`http` with the lines that the exporter sends',
  options: { ...options, ingest_url: 'the address', ingest_key: 'a header' },
  itself: httpItself,
  build: (part, context) => {
    const connection = connectionOf(part, context, allCompressions)
    const given = connection['request'] as { readonly headers?: object } | undefined
    const address = part.text('ingest_url') ?? 'https://logs.mezmo.com/otel/ingest/rest'
    const config = {
      uri: literalTemplate(`${address}?hostname=otel`),
      encoding: { codec: 'json' },
      payload_prefix: '{"lines":',
      payload_suffix: '}',
      ...connection,
      // Unlike other exporters, this one compresses nothing by default.
      ...(part.has('compression') ? {} : { compression: 'none' }),
      request: { ...given, headers: { ...given?.headers, apikey: part.text('ingest_key') ?? '' } },
    }
    return { component: { type: 'http', config }, steps: lineForm }
  },
}
