// Bulk requests, with an action line and a document for each event, and the response, with a result for each of them.

import type { Attempt, Failure } from '../delivery/delivery.ts'
import type { Request } from '../delivery/request.ts'
import { isTable } from '../schema/walk.ts'
import { type Fact, fact } from '../telemetry/facts.ts'
import { classifyResponse, responseFailure } from './classify.ts'
import type { HttpResponse } from './client.ts'

export type BulkAction = 'index' | 'create'

export interface ActionParts {
  readonly action: BulkAction
  readonly index: string
  /** The document type, only before version 7. */
  readonly type: string | undefined
  readonly id: string | undefined
  readonly version: string | undefined
  readonly versionType: string | undefined
  /** The ingest pipeline of the document. */
  readonly pipeline?: string | undefined
}

/** The action line before a document, including its newline. */
export function actionLine(parts: ActionParts): string {
  const meta: Record<string, unknown> = { _index: parts.index }
  if (parts.type !== undefined) meta['_type'] = parts.type
  if (parts.id !== undefined) meta['_id'] = parts.id
  if (parts.version !== undefined && parts.versionType !== undefined) {
    meta['version'] = Number(parts.version)
    meta['version_type'] = parts.versionType
  }
  if (parts.pipeline !== undefined) meta['pipeline'] = parts.pipeline
  return `${JSON.stringify({ [parts.action]: meta })}\n`
}

/** The error types that search engines report for a document. These words contain no event data. */
const knownErrors: ReadonlySet<string> = new Set([
  'circuit_breaking_exception',
  'cluster_block_exception',
  'document_parsing_exception',
  'es_rejected_execution_exception',
  'illegal_argument_exception',
  'index_closed_exception',
  'index_not_found_exception',
  'invalid_index_name_exception',
  'mapper_exception',
  'mapper_parsing_exception',
  'parsing_exception',
  'rejected_execution_exception',
  'resource_already_exists_exception',
  'routing_missing_exception',
  'script_exception',
  'security_exception',
  'strict_dynamic_mapping_exception',
  'type_missing_exception',
  'unavailable_shards_exception',
  'validation_exception',
  'version_conflict_engine_exception',
])

interface Item {
  readonly action: string
  readonly status: number
  readonly errorType: string | undefined
  readonly reason: string | undefined
}

/**
 * Classifies the response to a bulk request. Only documents that may succeed later are sent again. If an earlier attempt has already
 * created a document, it counts as delivered.
 */
export function classifyBulk(retryPartial: boolean): (response: HttpResponse, request: Request) => Attempt {
  return (response, request) => {
    if (response.status < 200 || response.status >= 300) return classifyResponse(response)
    const text = response.body.toString('utf8')
    // An HTML page, such as the sign-in page of a proxy, does not come from the destination.
    if (/^\s*</.test(text)) {
      return { outcome: 'retry', failure: responseFailure(response.status, { reason: 'The answer is not JSON.' }) }
    }
    if (!mentionsErrors(text)) return { outcome: 'delivered' }
    const items = parseItems(text)
    if (items === 'none') return { outcome: 'delivered' }
    if (items === undefined || items.length !== request.count) {
      return { outcome: 'retry', failure: responseFailure(response.status, { reason: 'The answer cannot be read.' }) }
    }
    const delivered: number[] = []
    const rejected: number[] = []
    const retry: number[] = []
    let refused: Item | undefined
    let again: Item | undefined
    for (let position = 0; position < items.length; position++) {
      const item = items[position] as Item
      const { status } = item
      if ((status >= 200 && status < 300) || (status === 409 && item.action === 'create' && request.resends > 0)) {
        delivered.push(position)
        continue
      }
      const retriable = status === 429 || status >= 500
      if (retryPartial && retriable) {
        retry.push(position)
        again ??= item
      } else {
        rejected.push(position)
        refused ??= item
      }
    }
    const failed = again ?? refused
    if (failed === undefined) return { outcome: 'delivered' }
    const failureOf = (item: Item): Failure => ({
      type: 'request_failed',
      code: `http_response_${response.status}`,
      fields: { partial: true, item_status: item.status, error_type: kindOf(item), reason: item.reason },
    })
    return {
      outcome: 'partial',
      delivered,
      rejected,
      retry,
      failure: failureOf(failed),
      // The log line about a discarded document must contain its own error, not that of a retried document.
      rejection: refused === undefined ? undefined : failureOf(refused),
    }
  }
}

function kindOf({ errorType }: Item): Fact | string | undefined {
  return errorType !== undefined && knownErrors.has(errorType) ? fact(errorType) : errorType
}

/** False if the response clearly reports no errors, so that it need not be parsed. This is the usual case. */
function mentionsErrors(text: string): boolean {
  const head = text.slice(0, 200)
  if (/"errors"\s*:\s*false/.test(head)) return false
  return /"errors"\s*:\s*true/.test(text)
}

function parseItems(text: string): Item[] | 'none' | undefined {
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    return undefined // truncated, or not JSON
  }
  if (!isTable(answer)) return undefined
  if (answer['errors'] !== true) return 'none'
  const { items } = answer
  if (!Array.isArray(items)) return undefined
  const parsed: Item[] = []
  for (const item of items) {
    const [action, result] = isTable(item) ? (Object.entries(item)[0] ?? []) : []
    if (action === undefined || !isTable(result) || typeof result['status'] !== 'number') return undefined
    const error = isTable(result['error']) ? result['error'] : {}
    parsed.push({
      action,
      status: result['status'],
      errorType: typeof error['type'] === 'string' ? error['type'] : undefined,
      reason: typeof error['reason'] === 'string' ? error['reason'] : undefined,
    })
  }
  return parsed
}
