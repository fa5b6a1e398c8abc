// Static kinds of the results of log line parsers.

import type { Value } from '../event/value.ts'
import { type Kind, kinds } from './kind.ts'

const textOrNull = kinds.string.or(kinds.null)
const textOrMissing = kinds.string.or(kinds.undefined)
const integerOrNull = kinds.integer.or(kinds.null)

/** Structured data has fields that the language does not declare: for the compiler they are undefined. */
export const syslogKind = kinds.objectOf({
  message: kinds.string,
  hostname: textOrNull,
  severity: textOrNull,
  facility: textOrNull,
  appname: textOrNull,
  msgid: textOrNull,
  procid: kinds.string.or(integerOrNull),
  timestamp: kinds.timestamp.or(kinds.null),
  version: integerOrNull,
})

export function commonLogKind(more: Readonly<Record<string, Kind>>): Kind {
  return kinds.objectOf({
    host: textOrNull,
    identity: textOrNull,
    user: textOrNull,
    timestamp: kinds.timestamp.or(kinds.null),
    message: textOrNull,
    method: textOrNull,
    path: textOrNull,
    protocol: textOrNull,
    status: integerOrNull,
    size: integerOrNull,
    ...more,
  })
}

export function nginxLogKind(form: Value | undefined): Kind {
  const text = kinds.string
  const integer = kinds.integer
  const timestamp = kinds.timestamp
  switch (form) {
    case 'error':
      return kinds.objectOf({
        timestamp,
        severity: text,
        pid: integer,
        tid: integer,
        cid: integer,
        message: text,
        excess: kinds.float.or(kinds.null),
        zone: textOrNull,
        client: textOrNull,
        server: textOrNull,
        request: textOrNull,
        upstream: textOrNull,
        host: textOrNull,
        port: textOrNull,
      })
    case 'main':
      return kinds.objectOf({
        remote_addr: textOrMissing,
        remote_user: textOrMissing,
        timestamp,
        request: text,
        status: integer,
        body_bytes_size: integer,
        http_referer: textOrMissing,
        http_user_agent: textOrMissing,
        http_x_forwarded_for: textOrMissing,
      })
    case 'ingress_upstreaminfo':
      return kinds.objectOf({
        remote_addr: textOrMissing,
        remote_user: textOrMissing,
        timestamp,
        request: text,
        status: integer,
        body_bytes_size: integer,
        http_referer: textOrMissing,
        http_user_agent: textOrMissing,
        request_length: integer,
        request_time: kinds.float,
        proxy_upstream_name: text,
        proxy_alternative_upstream_name: textOrMissing,
        upstream_addr: text,
        upstream_response_length: integer,
        upstream_response_time: kinds.float,
        upstream_status: integer,
        req_id: text,
      })
    default:
      return kinds.objectOf({
        client: text,
        user: textOrNull,
        timestamp,
        request: text,
        status: integer,
        size: integer,
        referer: textOrNull,
        agent: textOrNull,
        compression: textOrNull,
      })
  }
}
