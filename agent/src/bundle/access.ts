// Controls access to metrics and events of an agent in a cluster: a user needs the API server's permission to get the path. An agent
// that may not query the API server asks the operator, which only allows metrics. Answers are cached for a minute. Readers on the same
// machine are in the pod and always have access; if neither server answers, all other readers are refused.

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { PenstockError } from '../errors.ts'
import type { ApiServerClient } from '../kube/client.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { OperatorClient } from './operator-client.ts'

const keepMs = 60_000
/** How long the last answer stays valid while neither server answers, because metrics matter most during a fault. */
const maxReuseMs = 3_600_000
const maxKept = 1000
const timeoutMs = 10_000

/** Path at the operator, which answers whether the owner of a token may read the metrics of the requesting agent. */
export const readersPath = '/v1/readers'
export interface ReadersBody {
  readonly token: string
}
export interface ReadersAnswer {
  readonly allowed: boolean
}

/** Rejects if there is no answer. */
export type AskAccess = (token: string, path: string) => Promise<boolean>

interface Known {
  readonly until: number
  readonly allowed: Promise<boolean>
  /** Time of the last answer. */
  askedAt: number
}

export class ReaderAccess {
  readonly #ask: AskAccess | undefined
  readonly #logger: Logger
  readonly #kept = new Map<string, Known>()

  constructor(ask: AskAccess | undefined, logger: Logger) {
    this.#ask = ask
    this.#logger = logger
  }

  async allows(request: IncomingMessage, path: string): Promise<boolean> {
    if (isLoopback(request.socket.remoteAddress)) return true
    const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (token === undefined || this.#ask === undefined) return false
    const key = createHash('sha256').update(`${path} ${token}`).digest('base64')
    const now = performance.now()
    const known = this.#kept.get(key)
    if (known !== undefined && known.until > now) return known.allowed
    if (this.#kept.size >= maxKept) this.#kept.clear()
    const asked: Known = {
      until: now + keepMs,
      askedAt: now,
      allowed: this.#ask(token, path).catch((error: unknown) => {
        const canReuse = known !== undefined && now - known.askedAt < maxReuseMs
        this.#logger.warn(
          { error },
          canReuse
            ? 'Could not look up a reader; using the last known answer.'
            : 'Could not look up a reader; refusing it.',
        )
        asked.askedAt = known?.askedAt ?? Number.NEGATIVE_INFINITY
        return canReuse ? known.allowed : false
      }),
    }
    this.#kept.set(key, asked)
    return asked.allowed
  }
}

/** Asks the API server, by its token and access reviews. */
export function askServer(client: ApiServerClient): AskAccess {
  const post = async (path: string, body: object): Promise<Record<string, unknown> | undefined> => {
    const answer = await client.json(path, AbortSignal.timeout(timeoutMs), body)
    return (answer.body as { status?: Record<string, unknown> } | undefined)?.status
  }
  return async (token, path) => {
    const review = await post('/apis/authentication.k8s.io/v1/tokenreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token },
    })
    const user = review?.['user'] as Record<string, unknown> | undefined
    if (review?.['authenticated'] !== true || user === undefined) return false
    const access = await post('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: user['username'],
        groups: user['groups'],
        uid: user['uid'],
        extra: user['extra'],
        nonResourceAttributes: { path, verb: 'get' },
      },
    })
    return access?.['allowed'] === true
  }
}

/** Asks the operator, about metrics only. All other paths, such as events, are for the pod itself. */
export function askOperator(client: OperatorClient): AskAccess {
  return async (token, path) => {
    if (path !== '/metrics') return false
    const body: ReadersBody = { token }
    const answer = await client.post(readersPath, body, AbortSignal.timeout(timeoutMs))
    const text = answer.body.toString('utf8')
    if (answer.status !== 200)
      throw new PenstockError(
        'PEN_REQUEST_FAILED',
        `The operator responded with status ${answer.status}: ${text.slice(0, 200)}`,
      )
    return (JSON.parse(text) as ReadersAnswer).allowed
  }
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address ?? '')
}
