// Who somebody is and what they may do, as the API server says: the operator itself trusts nobody.

import type { KubeClient } from './client.ts'
import { pathOf } from './client.ts'
import { subjectAccessReviewType, tokenReviewType } from './types.ts'

export interface User {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What a user wants to do, as a SubjectAccessReview has it. */
export type Attempt =
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

/** The owner of a token; undefined when it is none of this cluster, or not for the audience that is asked for. */
export async function userOf(kube: KubeClient, token: string, audience?: string): Promise<User | undefined> {
  const { status } = await kube.request<{
    status?: { authenticated?: boolean; audiences?: readonly string[]; user?: User }
  }>('POST', pathOf(tokenReviewType), {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, ...(audience === undefined ? {} : { audiences: [audience] }) },
  })
  if (status?.authenticated !== true) return undefined
  return audience === undefined || status.audiences?.includes(audience) === true ? status.user : undefined
}

export async function mayDo(kube: KubeClient, user: User, attempt: Attempt): Promise<boolean> {
  const { status } = await kube.request<{ status: { allowed: boolean } }>('POST', pathOf(subjectAccessReviewType), {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: user.username ?? '',
      groups: user.groups ?? [],
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
      ...attempt,
    },
  })
  return status.allowed
}
