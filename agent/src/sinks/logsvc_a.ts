// Log service A: lines of JSON, one request for each host name and set of tags.

import { defineSink } from '../component.ts'
import { batch, request, tls, transformer } from '../schema/groups.ts'
import { address, list, optional, secret, template, text, webPorts } from '../schema/options.ts'
import { ingestProblems, ingestSink } from './logsvc/ingest.ts'

export const logsvcA = defineSink({
  type: 'logsvc_a',
  products: ['Mezmo'],
  summary: 'Delivers log events to log service A.',
  description:
    'The message becomes the `line`. The sink sends `timestamp`, `app`, `env` and `file` as separate members, and all other fields as `meta`.',
  aliases: ['mezmo'],
  accepts: ['log'],
  options: {
    api_key: secret('Ingestion key.'),
    hostname: template('Host name attached to each batch.', { examples: ['{{ host }}'] }),
    endpoint: address(
      'Address of the service: a URL, or a host, which is reached by HTTPS. Without a path, the sink appends `/logs/ingest`.',
      { ports: webPorts, bare: 'https' },
      { default: 'https://logs.mezmo.com', aliases: ['host'] },
    ),
    ip: optional(text('IP address attached to each batch.')),
    mac: optional(text('MAC address attached to each batch.')),
    tags: list(
      template('A tag.'),
      'Tags attached to each batch. In a tag that refers to fields, commas become `_`, because the service separates tags by commas.',
      { default: [] },
    ),
    default_app: text('Value of `app` for events with neither `file` nor `app`.', { default: 'penstock' }),
    default_env: text('Value of `env` for events without one.', { default: 'production' }),
    encoding: transformer(),
    batch: batch({ max_bytes: 10_000_000, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check: ingestProblems,

  build: (options, context) =>
    ingestSink(context, options, { hostname: options.hostname, tags: options.tags, templates: true }),
})
