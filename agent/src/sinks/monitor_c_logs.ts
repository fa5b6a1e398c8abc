// Logs of monitoring service C: bulk requests in the format of search engine version 6, with the token as the index.

import { encodingProblems } from '../codecs/encoding/encoder.ts'
import { compileTransformer } from '../codecs/transformer.ts'
import { defineSink } from '../component.ts'
import type { Attempt, Failure } from '../delivery/delivery.ts'
import { framed } from '../delivery/request.ts'
import type { LogEvent } from '../event/log.ts'
import { getField, setField, type ValueObject } from '../event/value.ts'
import { writeJsonTo } from '../formats/json.ts'
import { actionLine, classifyBulk } from '../http/bulk.ts'
import { httpSink, joinPath, maxListBytes, unhealthy } from '../http/sink.ts'
import { withoutSecret } from '../net/redact.ts'
import { batch, request, tls, transformer } from '../schema/groups.ts'
import { oneOf, optional, secret, url } from '../schema/options.ts'

const receivers = {
  us: 'https://logsene-receiver.sematext.com',
  eu: 'https://logsene-receiver.eu.sematext.com',
} as const

export const monitorCLogs = defineSink({
  type: 'monitor_c_logs',
  products: ['Sematext'],
  summary: 'Delivers log events to the log receiver of monitoring service C.',
  description: 'The sink sends the timestamp as `@timestamp`, the host as `os.host`, and all other fields unchanged.',
  aliases: ['sematext_logs'],
  accepts: ['log'],
  options: {
    token: secret('Token of the app that receives the events.'),
    region: oneOf(['us', 'eu'], 'Region of the account, ignored if `endpoint` is set.', { default: 'us' }),
    endpoint: optional(url('Address in place of the regional one.', { aliases: ['host'] })),
    encoding: transformer(),
    batch: batch({ max_bytes: 10_000_000, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check: (options) => encodingProblems(options.encoding),

  build(options, context) {
    const { timestampKey, hostKey } = context.globals.logSchema
    const base = options.endpoint ?? receivers[options.region]
    const transform = compileTransformer(options.encoding)
    const line = actionLine({
      action: 'index',
      index: options.token,
      type: 'logs',
      id: undefined,
      version: undefined,
      versionType: undefined,
    })

    const classify = classifyBulk(false)
    const bulk = joinPath(base, '/_bulk')
    const health = joinPath(base, '/_cluster/health')
    return httpSink(context, options, {
      url: `${bulk}${bulk.includes('?') ? '&' : '?'}timeout=${options.request.timeout_secs}s`,
      headers: { 'content-type': 'application/x-ndjson' },
      encode(events, from, to, open) {
        const { body } = open
        for (let index = from; index < to; index++) {
          const { fields } = events[index] as LogEvent
          const document: ValueObject = { ...(transform === undefined ? fields : transform.apply(fields)) }
          rename(document, timestampKey, '@timestamp')
          rename(document, hostKey, 'os.host')
          const start = body.length
          body.writeText(line)
          writeJsonTo(body, document)
          body.writeByte(0x0a)
          open.mark(start)
        }
      },
      assemble: framed('', '', ''),
      classify: (answer, sent) => withoutToken(classify(answer, sent), options.token),
      secret: options.token,
      keepOfAnswer: maxListBytes,
      async healthcheck(get) {
        const { status } = await get(health)
        if (status !== 200) throw unhealthy(health, status)
      },
    })
  },
})

/** The token is the index, and the destination's error messages contain the index. */
function withoutToken(attempt: Attempt, token: string): Attempt {
  if (attempt.outcome === 'delivered') return attempt
  const failure = hidden(attempt.failure, token)
  if (attempt.outcome !== 'partial' || attempt.rejection === undefined) return { ...attempt, failure }
  return { ...attempt, failure, rejection: hidden(attempt.rejection, token) }
}

function hidden(failure: Failure, token: string): Failure {
  if (failure.fields === undefined) return failure
  const fields = Object.entries(failure.fields).map(([name, value]) => [
    name,
    typeof value === 'string' ? withoutSecret(value, token) : value,
  ])
  return { ...failure, fields: Object.fromEntries(fields) as Readonly<Record<string, unknown>> }
}

function rename(fields: ValueObject, from: string, to: string): void {
  const value = getField(fields, from)
  if (value === undefined) return
  setField(fields, from, undefined)
  setField(fields, to, value)
}
