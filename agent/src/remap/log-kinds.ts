// Static kinds of the results of log line parsers.

import type { Value } from '../event/value.ts'
import { type Kind, kinds } from './kind.ts'

const textOrNull = kinds.string.or(kinds.null)
const integerOrNull = kinds.integer.or(kinds.null)

export const syslogKind = kinds.objectWith(
  {
    message: kinds.string,
    hostname: textOrNull,
    severity: textOrNull,
    facility: textOrNull,
    appname: textOrNull,
    msgid: textOrNull,
    procid: kinds.string.or(integerOrNull),
    timestamp: kinds.timestamp.or(kinds.null),
    version: integerOrNull,
  },
  kinds.objectEach(kinds.string),
)

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
        cid: integerOrNull,
        message: text,
        excess: kinds.float.or(kinds.null),
        zone: textOrNull,
        client: textOrNull,
        server: textOrNull,
        request: textOrNull,
        upstream: textOrNull,
        host: textOrNull,
        referer: textOrNull,
      })
    case 'main':
      return kinds.objectOf({
        remote_addr: textOrNull,
        remote_user: textOrNull,
        timestamp,
        request: text,
        status: integer,
        body_bytes_size: integer,
        http_referer: textOrNull,
        http_user_agent: textOrNull,
        http_x_forwarded_for: textOrNull,
      })
    case 'ingress_upstreaminfo':
      return kinds.objectOf({
        remote_addr: textOrNull,
        remote_user: textOrNull,
        timestamp,
        request: text,
        status: integer,
        body_bytes_size: integer,
        http_referer: textOrNull,
        http_user_agent: textOrNull,
        request_length: integer,
        request_time: kinds.float,
        proxy_upstream_name: textOrNull,
        proxy_alternative_upstream_name: textOrNull,
        upstream_addr: textOrNull,
        upstream_response_length: integerOrNull,
        upstream_response_time: kinds.float.or(kinds.null),
        upstream_status: integerOrNull,
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
