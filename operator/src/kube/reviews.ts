// Authenticates callers and checks their rights through the API server: the operator does not decide this itself. Without
// cluster-wide rights, local-reviews.ts does the same.

import { apiVersionOf, type ResourceType } from '../api/object.ts'
import type { KubeClient } from './client.ts'
import { pathOf } from './client.ts'
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
