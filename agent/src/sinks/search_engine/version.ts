// The major version of the engine, which decides whether documents have a type. OpenSearch restarted its numbering at 1; it
// behaves like version 7 and later.

import type { HttpResponse } from '../../http/client.ts'
import { isTable } from '../../schema/walk.ts'

/** The major version in the response to `GET /`; undefined if the response does not contain it. */
export function majorVersion(response: HttpResponse): number | undefined {
  if (response.status < 200 || response.status >= 300) return undefined
  let answer: unknown
  try {
    answer = JSON.parse(response.body.toString('utf8'))
  } catch {
    return undefined // not JSON
  }
  const version = isTable(answer) ? answer['version'] : undefined
  if (!isTable(version) || typeof version['number'] !== 'string') return undefined
  const major = Number.parseInt(version['number'], 10)
  if (Number.isNaN(major)) return undefined
  return version['distribution'] === 'opensearch' ? Math.max(7, major) : major
}
