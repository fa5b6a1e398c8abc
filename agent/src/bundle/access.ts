// Access to metrics and events of an agent in a cluster: users whom the API server allows to get the path. An agent without the right
// to ask the API server asks the operator, which allows metrics only. Answers are kept for a minute. Readers on the same machine are in
// the pod and are let in; if neither server answers, no other reader is.

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { PenstockError } from '../errors.ts'
import type { ApiServerClient } from '../kube/client.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { OperatorClient } from './operator-client.ts'

const keepMs = 60_000
/** How long the last answer stays valid while the operator is unreachable: metrics matter most when something is wrong. */
const unaskedMs = 3_600_000
const maxKept = 1000
const timeoutMs = 10_000

/** Path at the operator: answers whether the owner of a token may read the metrics of the agent that asks. */
export const readersPath = '/v1/readers'
export interface ReadersBody {
  readonly token: string
}
export interface ReadersAnswer {
  readonly allowed: boolean
}

/** Rejects when there is no answer. */
export type AskAccess = (token: string, path: string) => Promise<boolean>

interface Known {
  readonly until: number
  readonly allowed: Promise<boolean>
  /** When it was last answered. */
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
        const goesOn = known !== undefined && now - known.askedAt < unaskedMs
        this.#logger.warn(
          { error },
          goesOn
            ? 'A reader could not be looked up; what was last known of it goes on.'
            : 'A reader could not be looked up and is refused.',
        )
        asked.askedAt = known?.askedAt ?? Number.NEGATIVE_INFINITY
        return goesOn ? known.allowed : false
      }),
    }
    this.#kept.set(key, asked)
    return asked.allowed
  }
}

/** The API server, by its reviews of tokens and of rights. */
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

/** The operator, about metrics. All other paths, such as events, are for the pod itself. */
export function askOperator(client: OperatorClient): AskAccess {
  return async (token, path) => {
    if (path !== '/metrics') return false
    const body: ReadersBody = { token }
    const answer = await client.post(readersPath, body, AbortSignal.timeout(timeoutMs))
    const text = answer.body.toString('utf8')
    if (answer.status !== 200)
      throw new PenstockError('PEN_REQUEST_FAILED', `The operator answered ${answer.status}: ${text.slice(0, 200)}`)
    return (JSON.parse(text) as ReadersAnswer).allowed
  }
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address ?? '')
}
