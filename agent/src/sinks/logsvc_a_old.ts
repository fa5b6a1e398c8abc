// Log service A under its older name. It sends the same requests, but host name and tags are constant.

import { defineSink } from '../component.ts'
import { batch, request, tls, transformer } from '../schema/groups.ts'
import { address, list, optional, secret, text, webPorts } from '../schema/options.ts'
import { ingestProblems, ingestSink } from './logsvc/ingest.ts'

export const logsvcAOld = defineSink({
  type: 'logsvc_a_old',
  products: ['LogDNA'],
  summary: 'Delivers log events to log service A under its older name.',
  description:
    'Kept for configurations that use the older name; use `logsvc_a` for new ones. A disk buffer does not need `max_size` here: the default is the minimum, 268435488 bytes.',
  deprecated: 'Use the type `logsvc_a`. It takes the same options; `hostname` and `tags` are templates there.',
  aliases: ['logdna'],
  accepts: ['log'],
  bufferSizeOptional: true,
  options: {
    api_key: secret('Ingestion key.'),
    hostname: text('Host name attached to each batch.'),
    endpoint: address(
      'Address of the service: a URL, or a host, which is reached by HTTPS. Without a path, the sink appends `/logs/ingest`.',
      { ports: webPorts, bare: 'https' },
      { default: 'https://logs.logdna.com/logs/ingest', aliases: ['host'] },
    ),
    ip: optional(text('IP address attached to each batch.')),
    mac: optional(text('MAC address attached to each batch.')),
    tags: list(text('A tag.'), 'Tags attached to each batch.', { default: [] }),
    default_app: text('Value of `app` for events with neither `file` nor `app`.', { default: 'penstock' }),
    default_env: text('Value of `env` for events without one.', { default: 'production' }),
    encoding: transformer(),
    batch: batch({ max_bytes: 10_485_760, timeout_secs: 1, wholeSeconds: true }),
    request: request({ retry_attempts: 1.8446744073709552e19, ewma_alpha: 0.7, rtt_deviation_scale: 2 }),
    tls: tls(),
  },

  check: ingestProblems,

  build: (options, context) =>
    ingestSink(context, options, { hostname: options.hostname, tags: options.tags, templates: false }),
})
