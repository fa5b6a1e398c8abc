// Authenticates callers and checks their rights through the API server: the operator does not decide this itself. Without
// cluster-wide rights, local-reviews.ts does the same.

import { errorText } from '@penstock/agent/errors'
import type { Logger } from '@penstock/agent/telemetry'
import { Counter, type Registry } from 'prom-client'
import { apiVersionOf, type ResourceType } from '../api/object.ts'
import { type KubeClient, KubeError, pathOf } from './client.ts'
import { monotonicNow } from './clock.ts'
import {
  localSubjectAccessReviewType,
  selfSubjectReviewType,
  subjectAccessReviewType,
  tokenReviewType,
} from './resource-types.ts'

export interface User {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** A user's action in the form of a SubjectAccessReview. */
export type ReviewedAction =
  | {
      readonly resourceAttributes: {
        readonly group: string
        readonly resource: string
        readonly subresource?: string
        readonly verb: string
        readonly namespace?: string | undefined
        readonly name?: string | undefined
      }
    }
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } }

/** How a process authenticates its callers. */
export interface Reviews {
  /** Accepted token owners, for error messages. */
  readonly takes: string
  /** The owner of a token; undefined if the token is invalid, or has another audience. */
  userOf(token: string, audience?: string): Promise<User | undefined>
  mayDo(user: User, attempt: ReviewedAction): Promise<boolean>
  /** Why nobody can be authenticated at the moment: the begin of a sentence. */
  readonly problem?: string | undefined
}

/**
 * A caller waits with an open connection until the review is done. If the review waited behind the status writes of a
 * large change, the caller would time out.
 */
const callerWaits = { urgent: 'connection' } as const

/** Every review is a request to the API server: for operators with cluster-wide rights to reviews. */
export function serverReviews(kube: KubeClient): Reviews {
  return {
    takes: 'of a user or ServiceAccount of this cluster',
    userOf: (token, audience) => userOf(kube, token, audience),
    mayDo: (user, attempt) => mayDo(kube, user, attempt),
  }
}

/** Fewer failures in a row may be the fault of single requests. */
const minFailures = 3
/** A problem that nobody has met for this long may be over. */
const problemMs = 120_000

/** Counts the results of reviews, and reports when the API server stops and starts to answer them. */
export class ReportedReviews implements Reviews {
  readonly #reviews: Reviews
  readonly #logger: Logger
  readonly #count: Counter
  #failures = 0
  #failedAt = 0
  #problem = ''

  constructor(reviews: Reviews, metrics: Registry, logger: Logger) {
    this.#reviews = reviews
    this.#logger = logger
    this.#count = new Counter({
      name: 'penstock_reviews_total',
      help: 'Reviews of tokens and rights by the API server, by result: answered or failed.',
      labelNames: ['review', 'result'],
      registers: [metrics],
    })
  }

  get takes(): string {
    return this.#reviews.takes
  }

  get problem(): string | undefined {
    if (this.#failures < minFailures || monotonicNow() - this.#failedAt > problemMs) return undefined
    return this.#problem
  }

  userOf(token: string, audience?: string): Promise<User | undefined> {
    return this.#counted('token', () => this.#reviews.userOf(token, audience))
  }

  mayDo(user: User, attempt: ReviewedAction): Promise<boolean> {
    return this.#counted('rights', () => this.#reviews.mayDo(user, attempt))
  }

  async #counted<T>(review: 'token' | 'rights', ask: () => Promise<T>): Promise<T> {
    try {
      const answer = await ask()
      this.#count.inc({ review, result: 'answered' })
      if (this.#failures >= minFailures) this.#logger.info('The API server answers reviews again.')
      this.#failures = 0
      return answer
    } catch (error) {
      this.#count.inc({ review, result: 'failed' })
      this.#failures++
      this.#failedAt = monotonicNow()
      const status = error instanceof KubeError ? error.status : 0
      this.#problem =
        status === 0 ? 'The API server does not answer reviews' : `The API server answers reviews with status ${status}`
      if (this.#failures === minFailures)
        this.#logger.warn(
          { error: errorText(error) },
          'The API server does not answer reviews; the operator rejects agents and users that it does not know yet.',
        )
      throw error
    }
  }
}

/** The owner of a token; undefined if the token is not from this cluster, or has another audience. */
async function userOf(kube: KubeClient, token: string, audience?: string): Promise<User | undefined> {
  const { status } = await kube.request<{
    status?: { authenticated?: boolean; audiences?: readonly string[]; user?: User }
  }>(
    'POST',
    pathOf(tokenReviewType),
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audience === undefined ? {} : { audiences: [audience] }) },
    },
    callerWaits,
  )
  if (status?.authenticated !== true) return undefined
  return audience === undefined || status.audiences?.includes(audience) === true ? status.user : undefined
}

/** The identity of this process for the API server. */
export async function selfOf(kube: KubeClient): Promise<User> {
  const { status } = await kube.request<{ status: { userInfo: User } }>('POST', pathOf(selfSubjectReviewType), {
    apiVersion: apiVersionOf(selfSubjectReviewType),
    kind: selfSubjectReviewType.kind,
  })
  return status.userInfo
}

export function mayDo(kube: KubeClient, user: User, attempt: ReviewedAction): Promise<boolean> {
  return review(kube, subjectAccessReviewType, user, attempt)
}

/** The same for one namespace, which only needs rights in that namespace. */
export function mayDoIn(kube: KubeClient, namespace: string, user: User, attempt: ReviewedAction): Promise<boolean> {
  return review(kube, localSubjectAccessReviewType, user, attempt, namespace)
}

async function review(
  kube: KubeClient,
  type: ResourceType,
  user: User,
  attempt: ReviewedAction,
  namespace?: string,
): Promise<boolean> {
  const body = {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    ...(namespace === undefined ? {} : { metadata: { namespace } }),
    spec: {
      user: user.username ?? '',
      groups: user.groups ?? [],
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
      ...attempt,
    },
  }
  const path = pathOf(type, namespace)
  const { status } = await kube.request<{ status: { allowed: boolean } }>('POST', path, body, callerWaits)
  return status.allowed
}
