// Tokens verified with the keys of a cluster, which the test creates; the API server is a table of responses.

import { silentLogger } from '@penstock/agent/telemetry'
import { exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { type KubeClient, KubeError } from './client.ts'
import { LocalReviews } from './local-reviews.ts'

type Pair = Awaited<ReturnType<typeof generateKeyPair>>

const issuer = 'https://cluster.example'
const apiAudience = 'https://api.example'
const pairs = new Map<string, Pair>()
const jwks = new Map<string, JWK>()
let own = ''

beforeAll(async () => {
  for (const kid of ['first', 'second', 'foreign']) {
    const pair = await generateKeyPair('RS256')
    pairs.set(kid, pair)
    jwks.set(kid, { ...(await exportJWK(pair.publicKey)), kid, alg: 'RS256', use: 'sig' })
  }
  own = await token({ account: 'penstock-operator', namespace: 'system' })
})

interface Wanted {
  readonly namespace?: string
  readonly account?: string
  readonly audience?: string
  readonly kid?: string
  readonly signedBy?: string
  readonly pod?: string
  readonly uid?: string
  readonly issuer?: string
  readonly ageSeconds?: number
}

const claimsOf = ({ namespace = 'shop', account = 'agent', pod, uid = 'pod-1' }: Wanted) => ({
  'kubernetes.io': {
    namespace,
    serviceaccount: { name: account, uid: `${namespace}-${account}` },
    ...(pod === undefined ? {} : { pod: { name: pod, uid }, node: { name: 'node-1', uid: 'n1' } }),
  },
  sub: `system:serviceaccount:${namespace}:${account}`,
})

function token(wanted: Wanted): Promise<string> {
  const { audience = apiAudience, kid = 'first', signedBy = kid, ageSeconds = 0 } = wanted
  const now = Math.floor(Date.now() / 1000) - ageSeconds
  return new SignJWT(claimsOf(wanted))
    .setProtectedHeader({ alg: 'RS256', kid })
    .setIssuer(wanted.issuer ?? issuer)
    .setAudience(audience)
    .setIssuedAt(now)
    .setNotBefore(now)
    .setExpirationTime(now + 3600)
    .sign((pairs.get(signedBy) as Pair).privateKey)
}

/** A cluster with two accounts, a pod and a Secret with a token. */
function cluster({ renewMs = 30_000 } = {}) {
  const objects = new Map<string, KubeObject & { data?: Record<string, string> }>()
  const put = (plural: string, namespace: string, name: string, uid: string, more: object = {}) =>
    objects.set(`${plural} ${namespace}/${name}`, {
      apiVersion: 'v1',
      kind: plural,
      metadata: { namespace, name, uid },
      ...more,
    })
  put('serviceaccounts', 'shop', 'agent', 'shop-agent')
  put('serviceaccounts', 'system', 'penstock-operator', 'system-penstock-operator')
  put('serviceaccounts', 'elsewhere', 'agent', 'elsewhere-agent')
  put('pods', 'shop', 'agent-x', 'pod-1')
  const known = { kids: ['first'], reads: 0, away: false }
  const asked: unknown[] = []
  const kube = {
    async request(_: string, path: string, body?: { spec: { user: string; resourceAttributes: object } }) {
      if (known.away) throw new KubeError('away', { status: 0, reason: 'Unreachable' })
      if (path === '/.well-known/openid-configuration') return { issuer }
      if (path === '/openid/v1/jwks') {
        known.reads++
        return { keys: known.kids.map((kid) => jwks.get(kid)) }
      }
      const match = /^\/apis\/authorization\.k8s\.io\/v1\/namespaces\/(\w+)\/localsubjectaccessreviews$/.exec(path)
      asked.push([match?.[1], body?.spec.user, body?.spec.resourceAttributes])
      return { status: { allowed: match?.[1] === 'shop' } }
    },
    async get(type: { plural: string }, namespace: string, name: string) {
      if (namespace === 'closed') throw new KubeError('no', { status: 403, reason: 'Forbidden' })
      return objects.get(`${type.plural} ${namespace}/${name}`)
    },
  } as unknown as KubeClient
  const reviews = new LocalReviews({
    kube,
    logger: silentLogger,
    namespace: 'system',
    namespaces: ['shop', 'system', 'closed'],
    ownToken: () => own,
    renewMs,
  })
  return { reviews, known, objects, asked, put }
}

test('a token of a pod identifies the account, the pod and the node', async () => {
  const { reviews } = cluster()
  const bound = await token({ audience: 'penstock-operator', pod: 'agent-x' })
  expect(await reviews.userOf(bound, 'penstock-operator')).toEqual({
    username: 'system:serviceaccount:shop:agent',
    uid: 'shop-agent',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    extra: {
      'authentication.kubernetes.io/pod-name': ['agent-x'],
      'authentication.kubernetes.io/pod-uid': ['pod-1'],
      'authentication.kubernetes.io/node-name': ['node-1'],
    },
  })
  // A token for the API server's audience is valid for callers that require no other.
  expect(await reviews.userOf(await token({}))).toMatchObject({ username: 'system:serviceaccount:shop:agent' })
  expect(await reviews.userOf(bound)).toBeUndefined()
})

test.each<[string, Wanted]>([
  ['another audience', { audience: 'vault' }],
  ['the API server', { audience: apiAudience }],
  ['an hour that is over', { ageSeconds: 3700 }],
  ['a moment that is still to come', { ageSeconds: -3700 }],
  ['another issuer', { issuer: 'https://other.example' }],
  ['a key of somebody else under a known name', { signedBy: 'foreign' }],
  ['an unknown key', { kid: 'foreign' }],
  ['a pod that is gone', { pod: 'agent-gone' }],
  ['a pod that was replaced', { pod: 'agent-x', uid: 'pod-0' }],
  ['an account that is gone', { account: 'former' }],
  ['a namespace that is not looked into', { namespace: 'elsewhere' }],
  ['a namespace in which nothing may be looked up', { namespace: 'closed' }],
])('a token for %s is refused', async (_, wanted) => {
  const { reviews } = cluster()
  const audience = 'penstock-operator'
  expect(await reviews.userOf(await token({ audience, ...wanted }), audience)).toBeUndefined()
})

test('refuses text that is not a signed token', async () => {
  const { reviews } = cluster()
  const unsigned = new UnsecuredJWT(claimsOf({})).setIssuer(issuer).setAudience(apiAudience).setExpirationTime('1h')
  for (const text of ['', 'x.y.z', 'no-token', unsigned.encode()]) expect(await reviews.userOf(text)).toBeUndefined()
})

test('a token of a Secret is valid for the API server while the Secret contains it', async () => {
  const { reviews, objects, put } = cluster()
  const prefix = 'kubernetes.io/serviceaccount'
  const legacy = await new SignJWT({
    [`${prefix}/namespace`]: 'shop',
    [`${prefix}/secret.name`]: 'scraper',
    [`${prefix}/service-account.name`]: 'agent',
    [`${prefix}/service-account.uid`]: 'shop-agent',
    sub: 'system:serviceaccount:shop:agent',
  })
    .setProtectedHeader({ alg: 'RS256', kid: 'first' })
    .setIssuer('kubernetes/serviceaccount')
    .sign((pairs.get('first') as Pair).privateKey)
  expect(await reviews.userOf(legacy)).toBeUndefined()
  put('secrets', 'shop', 'scraper', 's1', { data: { token: Buffer.from(legacy).toString('base64') } })
  expect(await reviews.userOf(legacy)).toMatchObject({ username: 'system:serviceaccount:shop:agent' })
  expect(await reviews.userOf(legacy, 'penstock-operator')).toBeUndefined()
  put('secrets', 'shop', 'scraper', 's2', { data: { token: Buffer.from('another').toString('base64') } })
  expect(await reviews.userOf(legacy)).toBeUndefined()
  objects.clear()
  expect(await reviews.userOf(legacy)).toBeUndefined()
})

test('new keys are read when a token names one, but not for each such token', async () => {
  const slow = cluster()
  expect(await slow.reviews.userOf(await token({}))).toBeDefined()
  slow.known.kids = ['second']
  const next = await token({ kid: 'second' })
  expect(await slow.reviews.userOf(next)).toBeUndefined()
  expect(slow.known.reads).toBe(1)

  const quick = cluster({ renewMs: 0 })
  expect(await quick.reviews.userOf(await token({}))).toBeDefined()
  quick.known.kids = ['second']
  expect(await quick.reviews.userOf(next)).toBeDefined()
  expect(await quick.reviews.userOf(await token({}))).toBeUndefined()
})

test('an unavailable API server does not count as a refusal', async () => {
  const { reviews, known } = cluster()
  known.away = true
  await expect(reviews.userOf(await token({}))).rejects.toThrow('away')
  known.away = false
  expect(await reviews.userOf(await token({}))).toBeDefined()
})

test('rights are checked in one namespace, or in all watched ones', async () => {
  const { reviews, asked } = cluster()
  const user = { username: 'me' }
  const wish = { group: 'penstock.dev', resource: 'pipelines', verb: 'get' }
  expect(await reviews.mayDo(user, { resourceAttributes: { ...wish, namespace: 'shop', name: 'one' } })).toBe(true)
  expect(await reviews.mayDo(user, { resourceAttributes: { ...wish, namespace: 'elsewhere' } })).toBe(false)
  expect(await reviews.mayDo(user, { resourceAttributes: wish })).toBe(false)
  expect(await reviews.mayDo(user, { nonResourceAttributes: { path: '/metrics', verb: 'get' } })).toBe(false)
  expect(await reviews.mayDo(user, { nonResourceAttributes: { path: '/other', verb: 'get' } })).toBe(false)
  expect(asked).toEqual([
    ['shop', 'me', { ...wish, namespace: 'shop', name: 'one' }],
    ['shop', 'me', { ...wish, namespace: 'shop' }],
    ['system', 'me', { ...wish, namespace: 'system' }],
    ['system', 'me', { group: 'penstock.dev', resource: 'metrics', verb: 'get', namespace: 'system' }],
  ])
})
