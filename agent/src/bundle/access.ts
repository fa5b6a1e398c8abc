// Who may read metrics and events of an agent in a cluster: whoever the API server says may get the path. Answers are kept for a
// minute. Readers on the same machine are in the pod and let in; without an API to ask, nobody else is.

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { KubeClient } from '../sources/orchestrator_logs/kube/client.ts'
import type { Logger } from '../telemetry/logger.ts'

const keepMs = 60_000
const mostKept = 1000
const timeoutMs = 10_000

export class ReaderAccess {
  readonly #client: KubeClient | undefined
  readonly #logger: Logger
  readonly #kept = new Map<string, { readonly until: number; readonly allowed: Promise<boolean> }>()

  constructor(client: KubeClient | undefined, logger: Logger) {
    this.#client = client
    this.#logger = logger
  }

  async allows(request: IncomingMessage, path: string): Promise<boolean> {
    if (isLoopback(request.socket.remoteAddress)) return true
    const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (token === undefined || this.#client === undefined) return false
    const key = createHash('sha256').update(`${path} ${token}`).digest('base64')
    const now = performance.now()
    const known = this.#kept.get(key)
    if (known !== undefined && known.until > now) return known.allowed
    if (this.#kept.size >= mostKept) this.#kept.clear()
    const allowed = this.#ask(token, path)
    this.#kept.set(key, { until: now + keepMs, allowed })
    return allowed
  }

  async #ask(token: string, path: string): Promise<boolean> {
    try {
      const review = await this.#post('/apis/authentication.k8s.io/v1/tokenreviews', {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token },
      })
      const user = review?.['user'] as Record<string, unknown> | undefined
      if (review?.['authenticated'] !== true || user === undefined) return false
      const access = await this.#post('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
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
    } catch (error) {
      this.#logger.warn({ error }, 'A reader could not be looked up at the Kubernetes API and is refused.')
      return false
    }
  }

  async #post(path: string, body: object): Promise<Record<string, unknown> | undefined> {
    const answer = await (this.#client as KubeClient).json(path, AbortSignal.timeout(timeoutMs), body)
    return (answer.body as { status?: Record<string, unknown> } | undefined)?.status
  }
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address ?? '')
}
