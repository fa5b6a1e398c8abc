// Authenticates callers and checks their rights with only those rights that Roles can grant. The API server publishes keys that every
// account of the cluster may read; they verify tokens of ServiceAccounts. Each account, and the pod or Secret that a token is bound to,
// is then looked up in its namespace. So tokens from namespaces without that right are rejected, and so are users other than
// ServiceAccounts. LocalSubjectAccessReview checks rights in one namespace.

import type { Logger } from '@penstock/agent/telemetry'
import type { JSONWebKeySet, JWTPayload } from 'jose'
import { group, type KubeObject, type ResourceType } from '../api/object.ts'
import { type KubeClient, KubeError } from './client.ts'
import { podType, secretType, serviceAccountType } from './resource-types.ts'
import { mayDoIn, type ReviewedAction, type Reviews, type User } from './reviews.ts'

export interface LocalReviewOptions {
  readonly kube: KubeClient
  readonly logger: Logger
  /** The operator's own namespace, in which rights without a namespace are checked. */
  readonly namespace: string
  /** Where the operator has its Roles. */
  readonly namespaces: readonly string[]
  /** Our own token: its audience is the one that the API server's tokens have. */
  readonly ownToken: () => string | undefined
  /** Minimum time between two reads of the keys because of tokens with an unknown key; 30 s if not given. */
  readonly renewMs?: number
}

interface Issuer {
  readonly issuer: string
  readonly keys: JSONWebKeySet
  readonly at: number
}

interface Bound {
  readonly name: string
  readonly uid: string
}

/** Members of the claim `kubernetes.io`. */
interface Claims {
  readonly namespace: string
  readonly serviceaccount: Bound
  readonly pod?: Bound
  readonly secret?: Bound
  readonly node?: Bound
}

type Secret = KubeObject & { readonly data?: Readonly<Record<string, string>> }

/** Algorithms with which the API server signs. */
const algorithms = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512']
/** The tolerance for clock differences, as in the API server. */
const leewaySeconds = 60
/** Issuer of tokens in Secrets; they do not expire and are valid as long as their Secret exists. */
const secretIssuer = 'kubernetes/serviceaccount'
/** Keys are read again this often without a reason, so that a revoked key is not trusted forever. */
const keepKeysMs = 600_000
const keepAccountsMs = 30_000
const extraPrefix = 'authentication.kubernetes.io'

export class LocalReviews implements Reviews {
  readonly #options: LocalReviewOptions
  readonly #namespaces: ReadonlySet<string>
  #issuer: Promise<Issuer> | undefined
  #askedAt = Number.NEGATIVE_INFINITY
  readonly #accounts = new Map<string, { readonly until: number; readonly account: Promise<KubeObject | undefined> }>()

  constructor(options: LocalReviewOptions) {
    this.#options = options
    this.#namespaces = new Set(options.namespaces)
  }

  get takes(): string {
    return `of a ServiceAccount of one of the namespaces ${[...this.#namespaces].join(', ')}, the only ones that this operator can access`
  }

  async userOf(token: string, audience?: string): Promise<User | undefined> {
    const claims = await this.#claimsOf(token, audience)
    if (claims === undefined || !(await this.#isAlive(claims, token))) return undefined
    const { namespace, serviceaccount, pod, node } = claims
    const extra = {
      ...(pod === undefined ? {} : { [`${extraPrefix}/pod-name`]: [pod.name], [`${extraPrefix}/pod-uid`]: [pod.uid] }),
      ...(node === undefined ? {} : { [`${extraPrefix}/node-name`]: [node.name] }),
    }
    return {
      username: `system:serviceaccount:${namespace}:${serviceaccount.name}`,
      uid: serviceaccount.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      extra,
    }
  }

  /**
   * Without a namespace, all watched ones are checked. `/metrics` is represented by the resource `metrics` of our
   * group.
   */
  async mayDo(user: User, attempt: ReviewedAction): Promise<boolean> {
    const { kube, namespace } = this.#options
    if ('nonResourceAttributes' in attempt) {
      const { path, verb } = attempt.nonResourceAttributes
      if (path !== '/metrics') return false
      const resourceAttributes = { group, resource: 'metrics', verb, namespace }
      return mayDoIn(kube, namespace, user, { resourceAttributes })
    }
    const { resourceAttributes } = attempt
    const within = resourceAttributes.namespace === undefined ? this.#namespaces : [resourceAttributes.namespace]
    for (const one of within) {
      if (!this.#namespaces.has(one)) return false
      if (!(await mayDoIn(kube, one, user, { resourceAttributes: { ...resourceAttributes, namespace: one } })))
        return false
    }
    return true
  }

  /** The content of an unexpired token that the cluster signed for us. */
  async #claimsOf(token: string, audience: string | undefined): Promise<Claims | undefined> {
    const { createLocalJWKSet, decodeJwt, errors, jwtVerify } = await import('jose')
    const unverified = decoded(token, decodeJwt)
    if (unverified === undefined) return undefined
    const inSecret = unverified.iss === secretIssuer
    if (inSecret && audience !== undefined) return undefined
    const verify = async ({ issuer, keys }: Issuer) => {
      const own = this.#options.ownToken()
      const common = decoded(own ?? '', decodeJwt)?.aud ?? issuer
      const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
        algorithms,
        clockTolerance: leewaySeconds,
        ...(inSecret
          ? { issuer: secretIssuer, requiredClaims: ['sub'] }
          : {
              issuer,
              audience: audience ?? (Array.isArray(common) ? [...common] : common),
              requiredClaims: ['sub', 'exp'],
            }),
      })
      return inSecret ? legacyClaims(payload) : boundClaims(payload)
    }
    try {
      return await verify(await this.#known())
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error
      // The signing key is newer than the last read of the keys, because keys are rotated.
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayRenew()) return undefined
    }
    try {
      return await verify(await this.#read())
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error
      return undefined
    }
  }

  async #known(): Promise<Issuer> {
    const known = await (this.#issuer ?? this.#read())
    if (performance.now() - known.at < keepKeysMs || !this.#mayRenew()) return known
    // While the API server does not answer, its last keys are used.
    return this.#read().catch(() => known)
  }

  /** Tokens with unknown keys must not cause a request each. */
  #mayRenew(): boolean {
    return performance.now() - this.#askedAt >= (this.#options.renewMs ?? 30_000)
  }

  #read(): Promise<Issuer> {
    const { kube } = this.#options
    const before = this.#issuer
    this.#askedAt = performance.now()
    const reading = Promise.all([
      kube.request<{ issuer: string }>('GET', '/.well-known/openid-configuration'),
      kube.request<JSONWebKeySet>('GET', '/openid/v1/jwks', undefined, { accept: 'application/jwk-set+json' }),
    ]).then(
      ([{ issuer }, keys]) => ({ issuer, keys, at: performance.now() }),
      (error: unknown) => {
        this.#issuer = before
        throw error
      },
    )
    this.#issuer = reading
    return reading
  }

  /** Whether the objects that a token is bound to still exist: deleting them revokes the token. */
  async #isAlive(claims: Claims, token: string): Promise<boolean> {
    const { namespace, serviceaccount, pod, secret, node } = claims
    if (!this.#namespaces.has(namespace)) return false
    try {
      if ((await this.#account(namespace, serviceaccount.name))?.metadata.uid !== serviceaccount.uid) return false
      // Requested each time, like a review: a cache may contain deleted objects.
      if (pod !== undefined) return (await this.#get(podType, namespace, pod.name))?.metadata.uid === pod.uid
      if (secret !== undefined) {
        const found = await this.#get<Secret>(secretType, namespace, secret.name)
        if (secret.uid !== '') return found?.metadata.uid === secret.uid
        return Buffer.from(found?.data?.['token'] ?? '', 'base64').toString() === token
      }
      // Nodes belong to no namespace.
      return node === undefined
    } catch (error) {
      if (!(error instanceof KubeError) || error.status !== 403) throw error
      const account = `${namespace}/${serviceaccount.name}`
      this.#options.logger.warn(
        { account, error: error.message },
        'A token was rejected, because the objects that it is bound to cannot be looked up.',
      )
      return false
    }
  }

  #get<T extends KubeObject>(type: ResourceType, namespace: string, name: string): Promise<T | undefined> {
    return this.#options.kube.get<T>(type, namespace, name)
  }

  #account(namespace: string, name: string): Promise<KubeObject | undefined> {
    const now = performance.now()
    for (const [key, { until }] of this.#accounts) if (until <= now) this.#accounts.delete(key)
    const key = `${namespace}/${name}`
    const known = this.#accounts.get(key)
    if (known !== undefined) return known.account
    const account = this.#get(serviceAccountType, namespace, name)
    this.#accounts.set(key, { until: now + keepAccountsMs, account })
    account.catch(() => this.#accounts.delete(key))
    return account
  }
}

function decoded(token: string, decode: (token: string) => JWTPayload): JWTPayload | undefined {
  try {
    return decode(token)
  } catch {
    return undefined // no token of this kind
  }
}

function boundClaims(payload: JWTPayload): Claims | undefined {
  const claims = payload['kubernetes.io'] as Claims | undefined
  return isWhole(claims) && payload.sub === subjectOf(claims) ? claims : undefined
}

/** A token in a Secret names the Secret in separate claims. */
function legacyClaims(payload: JWTPayload): Claims | undefined {
  const claim = (name: string) => String(payload[`kubernetes.io/serviceaccount/${name}`] ?? '')
  const claims: Claims = {
    namespace: claim('namespace'),
    serviceaccount: { name: claim('service-account.name'), uid: claim('service-account.uid') },
    secret: { name: claim('secret.name'), uid: '' },
  }
  return isWhole(claims) && claims.secret?.name !== '' && payload.sub === subjectOf(claims) ? claims : undefined
}

const subjectOf = ({ namespace, serviceaccount }: Claims) => `system:serviceaccount:${namespace}:${serviceaccount.name}`

function isWhole(claims: Claims | undefined): claims is Claims {
  const { namespace, serviceaccount, pod } = claims ?? {}
  if (!namespace || !serviceaccount?.name || !serviceaccount.uid) return false
  return pod === undefined || (pod.name !== '' && Boolean(pod.uid))
}
