// Logs of monitoring service A: events as one JSON array, with the field names that the service reserves. The account
// key is part of the partition, because an event may have its own key and a request carries only one.

import { encodingProblems } from '../codecs/encoding/encoder.ts'
import { compileTransformer } from '../codecs/transformer.ts'
import { defineSink, type OptionProblem } from '../component.ts'
import { compressionProblems } from '../delivery/compression.ts'
import { encoderFailed } from '../delivery/failed-events.ts'
import { framed } from '../delivery/request.ts'
import { PenstockError } from '../errors.ts'
import type { LogEvent } from '../event/log.ts'
import { writeJsonTo } from '../formats/json.ts'
import { identityFor } from '../http/identity.ts'
import { httpSink, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, request, tls, transformer } from '../schema/groups.ts'
import { bool, optional, url } from '../schema/options.ts'
import { version } from '../version.ts'
import { classify } from './monitor_a/classify.ts'
import { compileReservedNames, nestedInMessage } from './monitor_a/reserved.ts'
import { accountOf, accountOptions, apiAddress } from './monitor_a/site.ts'

/** Vendor limits: for a batch, and for a body or a single event before compression. */
const maxBytes = 4_250_000
const maxEvents = 1000
const maxBodyBytes = 5_000_000

/** The secret that holds an event's own key. */
const keySecret = 'datadog_api_key'

export const monitorALogs = defineSink({
  type: 'monitor_a_logs',
  products: ['Datadog'],
  summary: 'Delivers log events to the log intake of monitoring service A.',
  description: [
    'The fields for the message, the time and the host get the names that the service reserves (`message`, `timestamp`,',
    '`hostname`). An existing field of that name becomes `_RESERVED_<meaning>`; but an existing `hostname` takes precedence over a host that a source filled in. An array at `ddtags` is joined with',
    'commas. All other fields are sent unchanged.',
    '',
    `An event whose secret \`${keySecret}\` is set is sent with that key.`,
  ].join('\n'),
  aliases: ['datadog_logs'],
  accepts: ['log'],
  options: {
    ...accountOptions,
    endpoint: optional(
      url('Address of the intake, overrides the site. Without a path, the sink appends `/api/v2/logs`.'),
    ),
    conforms_as_agent: bool(
      "Whether to nest fields that are not reserved in `message`, as the service's own agent does. The request header `DD-PROTOCOL: agent-json` has the same meaning.",
      { default: false },
    ),
    compression: compression(compressionNames, 'gzip', compressionNames.slice(2)),
    encoding: transformer(),
    batch: batch({ max_bytes: maxBytes, max_events: maxEvents, timeout_secs: 5 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [
      ...encodingProblems(options.encoding),
      ...compressionProblems(options.compression),
    ]
    if (options.default_api_key === undefined && process.env['DD_API_KEY'] === undefined) {
      problems.push({
        path: 'default_api_key',
        message: '`default_api_key` is required: the environment has no `DD_API_KEY` either.',
      })
    }
    for (const [name, limit] of [
      ['max_bytes', maxBytes],
      ['max_events', maxEvents],
    ] as const) {
      if ((options.batch[name] ?? 0) > limit) {
        problems.push({
          path: `batch.${name}`,
          message: `provided \`${name}\` exceeds the maximum limit of ${limit}`,
        })
      }
    }
    return problems
  },

  build(options, context) {
    const { site, apiKey } = accountOf(options, identityFor(context.proxy))
    const transform = compileTransformer(options.encoding)
    const reserved = compileReservedNames(context.globals.logSchema)
    const asAgent =
      options.conforms_as_agent ||
      Object.entries(options.request.headers).some(
        ([name, value]) => name.toLowerCase() === 'dd-protocol' && value === 'agent-json',
      )
    const intake = intakeAddress(options.endpoint, site)
    const check = apiAddress(options.endpoint, site, '/api/v1/validate')

    return httpSink(context, options, {
      url: intake,
      headers: {
        'content-type': 'application/json',
        'dd-evp-origin': 'penstock',
        'dd-evp-origin-version': version,
        ...(asAgent ? { 'dd-protocol': 'agent-json' } : {}),
      },
      lastHeaders: (key) => ({ 'dd-api-key': key }),
      partition: (event) => event.metadata.secrets[keySecret] ?? apiKey,
      begin: (open) => open.body.writeText('['),
      encode(events, from, to, open) {
        const { body } = open
        for (let index = from; index < to; index++) {
          const { fields } = events[index] as LogEvent
          const named = reserved(transform === undefined ? fields : transform.apply(fields))
          const before = body.length
          if (open.count > 0) body.writeByte(0x2c)
          const start = body.length
          writeJsonTo(body, asAgent ? nestedInMessage(named) : named)
          if (body.length - start >= maxBodyBytes) {
            body.truncate(before)
            encoderFailed(context, 'Event too large to encode.')
          } else {
            open.mark(start)
          }
        }
      },
      finish(open) {
        open.body.writeByte(0x5d)
        return open
      },
      assemble: framed('[', ',', ']'),
      maxBodyBytes,
      secret: apiKey,
      classify,
      async healthcheck(get) {
        const { status } = await get(check, { 'dd-api-key': apiKey })
        if (status === 403)
          throw new PenstockError('PEN_HEALTHCHECK', 'The API key is invalid: status 403 was returned.', { status })
        if (status !== 200) throw unhealthy(check, status)
      },
    })
  },
})

function intakeAddress(endpoint: string | undefined, site: string): string {
  if (endpoint === undefined) return `https://http-intake.logs.${site}/api/v2/logs`
  const address = URL.parse(endpoint)
  if (address === null || address.pathname !== '/') return endpoint
  address.pathname = '/api/v2/logs'
  return address.href
}
