// The major version of the engine, which decides whether documents carry a type. OpenSearch counts from 1 again; it behaves as
// version 7 and later.

import { isRecord } from '../../http/bulk.ts'
import type { HttpResponse } from '../../http/client.ts'

/** The major version in the answer to `GET /`; undefined if the answer does not say. */
export function majorVersion(response: HttpResponse): number | undefined {
  if (response.status < 200 || response.status >= 300) return undefined
  let answer: unknown
  try {
    answer = JSON.parse(response.body.toString('utf8'))
  } catch {
    return undefined // not JSON
  }
  const version = isRecord(answer) ? answer['version'] : undefined
  if (!isRecord(version) || typeof version['number'] !== 'string') return undefined
  const major = Number.parseInt(version['number'], 10)
  if (Number.isNaN(major)) return undefined
  return version['distribution'] === 'opensearch' ? Math.max(7, major) : major
}
