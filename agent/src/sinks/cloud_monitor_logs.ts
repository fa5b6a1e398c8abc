// Logs of a cloud monitor: events as a JSON array, posted to the data collector of a workspace and signed with its key.

import { createHmac } from 'node:crypto'
import { encodingProblems } from '../codecs/encoding/encoder.ts'
import { compileTransformer } from '../codecs/transformer.ts'
import { defineSink, type OptionProblem } from '../component.ts'
import { framed } from '../delivery/request.ts'
import { PenstockError } from '../errors.ts'
import type { LogEvent } from '../event/log.ts'
import { getValue, type PathSegment, parsePath, setPath } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import type { ValueObject } from '../event/value.ts'
import { writeJsonTo } from '../formats/json.ts'
import { httpSink, joinPath, type Sign } from '../http/sink.ts'
import { batch, request, tls, transformer } from '../schema/groups.ts'
import { address, fieldPath, hostPart, optional, secret, text } from '../schema/options.ts'
import { timeField } from '../time-field.ts'

/** Largest body that the destination accepts. */
const maxBytes = 31_457_280

const resource = '/api/logs'
const contentType = 'application/json'

export const cloudMonitorLogs = defineSink({
  type: 'cloud_monitor_logs',
  products: ['Azure Monitor'],
  summary: 'Delivers log events to the data collector of a cloud monitor.',
  description:
    'The sink sends the timestamp in milliseconds as the field `time_generated_key`. An event without a timestamp gets the current time.',
  aliases: ['azure_monitor_logs'],
  accepts: ['log'],
  options: {
    customer_id: address('Identifier of the workspace.', hostPart),
    shared_key: secret('Key of the workspace, in base64.', { examples: ['c2hhcmVkIGtleQ=='] }),
    log_type: text('Type of the records: letters, digits and underscores, at most 100.', {
      examples: ['MyTableName'],
    }),
    host: address(
      'Host of the destination; a workspace has the host `<customer_id>.<host>`. An address with a scheme, such as that of an emulator, is used unchanged.',
      hostPart,
      { default: 'ods.opinsights.azure.com', examples: ['ods.opinsights.azure.us', 'ods.opinsights.azure.cn'] },
    ),
    azure_resource_id: optional(text('Identifier of the resource that produced the events.')),
    time_generated_key: optional(
      fieldPath('Field for the time of the record. If not given, `log_schema.timestamp_key`.'),
    ),
    encoding: transformer(),
    batch: batch({ max_bytes: 10_000_000, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = encodingProblems(options.encoding)
    if (options.shared_key === '') {
      problems.push({ path: 'shared_key', message: "shared_key can't be an empty string" })
    } else if (!/^[A-Za-z0-9+/]+={0,2}$/.test(options.shared_key)) {
      problems.push({ path: 'shared_key', message: 'must be base64' })
    }
    if (!/^[A-Za-z0-9_]{1,100}$/.test(options.log_type)) {
      problems.push({
        path: 'log_type',
        message: `invalid log_type ${JSON.stringify(options.log_type)}: log type can only contain letters, numbers, and underscore (_), and may not exceed 100 characters`,
      })
    }
    if (options.azure_resource_id === '') {
      problems.push({ path: 'azure_resource_id', message: "azure_resource_id can't be an empty string" })
    }
    if ((options.batch.max_bytes ?? 0) > maxBytes) {
      problems.push({
        path: 'batch.max_bytes',
        message: `provided \`max_bytes\` exceeds the maximum limit of ${maxBytes}`,
      })
    }
    if (URL.parse(baseAddress(options)) === null) {
      problems.push({ path: 'host', message: 'does not form a valid address together with `customer_id`' })
    }
    return problems
  },

  build(options, context) {
    const { timestampKey } = context.globals.logSchema
    const transform = compileTransformer(options.encoding)
    const generated: readonly PathSegment[] =
      options.time_generated_key === undefined
        ? [timestampKey]
        : (parsePath(options.time_generated_key)?.segments ?? [timestampKey])
    const generatedTime = timeField(
      generated,
      options.time_generated_key === undefined ? 'log_schema.timestamp_key' : 'time_generated_key',
      context,
    )
    const eventTime = timeField([timestampKey], 'log_schema.timestamp_key', context)
    const url = `${joinPath(baseAddress(options), resource)}?api-version=2016-04-01`
    const headers = {
      'content-type': contentType,
      'log-type': options.log_type,
      'time-generated-field': (options.time_generated_key ?? timestampKey).replace(/^\./, ''),
      ...(options.azure_resource_id === undefined ? {} : { 'x-ms-azureresourceid': options.azure_resource_id }),
    }

    return httpSink(context, options, {
      url,
      headers,
      begin: (open) => open.body.writeText('['),
      encode(events, from, to, open) {
        const { body } = open
        for (let index = from; index < to; index++) {
          const { fields } = events[index] as LogEvent
          const record: ValueObject = { ...(transform === undefined ? fields : transform.apply(fields)) }
          // A value that is not a time stays unchanged: the service then uses the time of arrival.
          const own = generatedTime.of(fields)
          if (own !== undefined || (getValue(fields, generated) ?? null) === null) {
            setPath(record, generated, isoMilliseconds(own ?? eventTime.of(fields) ?? Timestamp.now()))
          }
          if (open.count > 0) body.writeByte(0x2c)
          const start = body.length
          writeJsonTo(body, record)
          open.mark(start)
        }
        generatedTime.report()
        eventTime.report()
      },
      finish(open) {
        open.body.writeByte(0x5d)
        return open
      },
      assemble: framed('[', ',', ']'),
      maxBodyBytes: maxBytes,
      sign: signer(options.customer_id, options.shared_key),
      async healthcheck(get) {
        const { status } = await get(url, headers, '[]')
        const problem = healthProblem(status)
        if (problem !== undefined) throw new PenstockError('PEN_HEALTHCHECK', problem, { status })
      },
    })
  },
})

function baseAddress(options: { readonly customer_id: string; readonly host: string }): string {
  return options.host.includes('://') ? options.host : `https://${options.customer_id}.${options.host}`
}

/** RFC 3339 with exactly three digits of fraction. */
function isoMilliseconds(instant: Timestamp): string {
  const date = new Date(instant.ms)
  return Number.isNaN(date.getTime()) ? instant.toString() : date.toISOString()
}

/** Signs each attempt separately, because a signature is valid only for its time and length. */
function signer(customerId: string, sharedKey: string): Sign {
  const key = Buffer.from(sharedKey, 'base64')
  return async ({ headers, body }) => {
    const date = new Date().toUTCString()
    const text = stringToSign(body?.length ?? 0, date)
    const signature = createHmac('sha256', key).update(text).digest('base64')
    return { ...headers, 'x-ms-date': date, authorization: `SharedKey ${customerId}:${signature}` }
  }
}

function stringToSign(length: number, date: string): string {
  return `POST\n${length}\n${contentType}\nx-ms-date:${date}\n${resource}`
}

function healthProblem(status: number): string | undefined {
  if (status >= 500) return 'Server returned a server error'
  switch (status) {
    case 400:
      return 'The workspace has been closed or the request was invalid'
    case 401:
    case 403:
      return 'The service failed to authenticate the request. Verify that the workspace ID and connection key are valid'
    case 404:
      return 'Either the URL provided is incorrect, or the request is too large'
    default:
      return undefined
  }
}
