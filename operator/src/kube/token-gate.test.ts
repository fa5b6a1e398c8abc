import { expect, test } from 'vitest'
import { KubeError } from './client.ts'
import { Allowances, busy, claimsOf, ReviewError, TokenGate } from './token-gate.ts'

const limits = { perSource: { perSecond: 1, burst: 5 }, total: { perSecond: 10, burst: 20 } }

/** A gate with a fake clock, whose reviews accept tokens that begin with `good`. */
function gateOf() {
  const asked: string[] = []
  let now = 0
  const review = async (token: string) => {
    asked.push(token)
    return token.startsWith('good') ? `owner of ${token}` : undefined
  }
  const gate = new TokenGate<string>({ ...limits, review, now: () => now })
  const pass = (ms: number) => {
    now += ms
  }
  return { gate, asked, pass }
}

test('a flood of tokens causes few reviews, and does not delay a known sender', async () => {
  const { gate, asked, pass } = gateOf()
  expect(await gate.of('good agent', '10.0.0.1')).toBe('owner of good agent')
  for (let second = 0; second < 300; second++) {
    for (let attempt = 0; attempt < 20; attempt++)
      for (const address of ['10.6.6.1', '10.6.6.2', '10.6.6.3']) await gate.of(`bad ${second} ${attempt}`, address)
    // Even from the flooding address: a known token does not count as unknown.
    expect(await gate.of('good agent', second % 2 === 0 ? '10.0.0.1' : '10.6.6.1')).toBe('owner of good agent')
    pass(1000)
  }
  expect(asked.filter((token) => token === 'good agent').length, 'once a minute').toBe(5)
  expect(asked.length).toBeLessThan(3 * (5 + 300) + 5)
})

test('strangers with other addresses do not delay a new sender, and none delay a known one', async () => {
  const { gate } = gateOf()
  for (let attempt = 0; attempt < 100; attempt++) await gate.of(`bad ${attempt}`, '10.6.6.1')
  expect(await gate.of('good sidecar', '10.6.6.1')).toBe(busy)
  expect(await gate.of('good sidecar', '10.0.0.2')).toBe('owner of good sidecar')
  for (let source = 0; source < 50; source++)
    for (let attempt = 0; attempt < 10; attempt++) await gate.of(`bad ${source} ${attempt}`, `10.7.0.${source}`)
  expect(await gate.of('good other', '10.0.0.3'), 'the reviews of all strangers are used up').toBe(busy)
  expect(await gate.of('good agent', '10.0.0.4', 'at uid-of-a-pod')).toBe('owner of good agent')
  for (let attempt = 0; attempt < 100; attempt++) await gate.of(`forged ${attempt}`, '10.6.6.1', 'of uid-of-a-pod')
  expect(await gate.of('good next', '10.0.0.4', 'at uid-of-a-pod')).toBe('owner of good next')
})

test('refused senders have no debt, so a flood has no later effect', async () => {
  const { gate, pass } = gateOf()
  for (let attempt = 0; attempt < 10_000; attempt++) await gate.of(`bad ${attempt}`, '10.6.6.1')
  expect(await gate.of('good late', '10.6.6.1')).toBe(busy)
  pass(1000)
  expect(await gate.of('good late', '10.6.6.1')).toBe('owner of good late')
})

test('the caller determines at each use how long a review is valid', async () => {
  const asked: string[] = []
  let [now, keepMs] = [0, 600_000]
  const review = async (token: string) => {
    asked.push(token)
    return keepMs > 0 ? 'owner' : undefined
  }
  const gate = new TokenGate<string>({ ...limits, review, now: () => now, keepMs: () => keepMs })
  for (; now < 600_000; now += 30_000) expect(await gate.of('token', '10.0.0.1')).toBe('owner')
  expect(asked.length).toBe(1)
  expect(await gate.of('token', '10.0.0.1')).toBe('owner')
  expect(asked.length, 'the time is over').toBe(2)
  keepMs = 0
  expect(await gate.of('token', '10.0.0.1'), 'the owner is no longer confirmed').toBeUndefined()
})

test('simultaneous requests with one token cause one review, and a failed review is not an answer', async () => {
  let fails = true
  let asked = 0
  const review = async () => {
    asked++
    if (fails) throw new Error('the API server does not answer')
    return 'owner'
  }
  const gate = new TokenGate<string>({ ...limits, review })
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => gate.of('token', '10.0.0.1')))
  expect(all.every(({ status }) => status === 'rejected')).toBe(true)
  expect(asked).toBe(1)
  fails = false
  expect(await gate.of('token', '10.0.0.1')).toBe('owner')
  expect(await gate.of('x'.repeat(20_000), '10.0.0.1')).toBeUndefined()
  expect(asked).toBe(2)
})

/** A gate whose API server does not answer until `answer` is called with a result. */
function failingGate() {
  let now = 0
  const waiting: ((result: string | Error | undefined) => void)[] = []
  const review = () =>
    new Promise<string | undefined>((resolve, reject) => {
      waiting.push((result) => (result instanceof Error ? reject(result) : resolve(result)))
    })
  const keepMs = () => 600_000
  const limits = { perSource: { perSecond: 1000, burst: 10_000 }, total: { perSecond: 1000, burst: 10_000 } }
  const gate = new TokenGate<string>({
    ...limits,
    review,
    keepMs,
    trustsKnown: (owner) => owner !== 'deleted',
    now: () => now,
  })
  return {
    ...{ gate, waiting },
    answer: (result: string | Error | undefined) => {
      for (const each of waiting.splice(0)) each(result)
    },
    pass: (ms: number) => {
      now += ms
    },
  }
}

test.each([
  { why: 'errors', error: new Error('500'), waitMs: 5_000 },
  {
    why: 'Retry-After',
    error: new KubeError('429', { status: 429, reason: '', retryAfterMs: 20_000 }),
    waitMs: 20_000,
  },
])(
  'while reviews fail with $why, few are sent, known senders stay accepted for an hour, and the end is noticed',
  async ({ error, waitMs }) => {
    const { gate, waiting, answer, pass } = failingGate()
    for (const owner of ['known', 'deleted']) {
      const asked = gate.of(owner, '10.0.0.1', `at ${owner}`)
      answer(owner)
      expect(await asked).toBe(owner)
    }
    pass(600_000)
    let sent = 0
    for (let second = 0; second < 60; second++) {
      const all = Array.from({ length: 1000 }, (_, index) => gate.of(`agent ${index}`, '10.0.0.1', `at ${index}`))
      const known = gate.of('known', '10.0.0.1', 'at known')
      const deleted = gate.of('deleted', '10.0.0.1', 'at deleted')
      sent += second === 0 ? 0 : waiting.length
      answer(error)
      expect(await known).toBe('known')
      for (const each of await Promise.allSettled([...all, deleted])) expect(each).toMatchObject({ status: 'rejected' })
      await expect(gate.of('one more', '10.0.0.1', 'at one more')).rejects.toThrow(ReviewError)
      pass(1000)
    }
    expect(sent, 'about four at each attempt').toBeLessThan(100)
    pass(waitMs)
    const next = gate.of('agent 1', '10.0.0.1', 'at 1')
    answer('agent 1')
    expect(await next).toBe('agent 1')
    const all = Array.from({ length: 1000 }, (_, index) => gate.of(`next ${index}`, '10.0.0.1', `at ${index}`))
    expect(waiting.length).toBe(1000)
    answer('owner')
    expect(new Set(await Promise.all(all))).toEqual(new Set(['owner']))
  },
)

test('a sender is no longer accepted after an hour of failures, and failures of strangers do not affect others', async () => {
  const { gate, answer, pass } = failingGate()
  const first = gate.of('known', '10.0.0.1', 'at known')
  answer('known')
  await first
  for (let attempt = 0; attempt < 10; attempt++) {
    const strange = gate.of(`strange ${attempt}`, '10.0.0.9')
    answer(new Error('500'))
    await expect(strange).rejects.toThrow(ReviewError)
  }
  const agent = gate.of('agent', '10.0.0.2', 'at agent')
  answer('agent')
  expect(await agent).toBe('agent')
  pass(3_600_000)
  const late = gate.of('known', '10.0.0.1', 'at known')
  answer(new Error('500'))
  await expect(late).rejects.toThrow(ReviewError)
})

test.each([
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', true],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['::ffff:10.0.0.1', '10.0.0.1', true],
  ['10.0.0.1', '10.0.0.2', false],
])('%s and %s have one allowance: %s', (left, right, shared) => {
  const allowances = new Allowances({ perSecond: 0, burst: 1 })
  expect(allowances.take(left)).toBe(true)
  expect(allowances.take(right)).toBe(!shared)
})

const at = 1_800_000_000_000
const claims = {
  iss: 'https://kubernetes.default.svc',
  aud: ['penstock-operator'],
  exp: at / 1000 + 600,
  sub: 'system:serviceaccount:shop:app',
  'kubernetes.io': {
    namespace: 'shop',
    serviceaccount: { name: 'app', uid: 'a' },
    pod: { name: 'app-1', uid: 'p' },
  },
}
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const tokenOf = (body: unknown, head: unknown = { alg: 'RS256', kid: 'k' }) => `${part(head)}.${part(body)}.c2ln`

test('a possibly valid token is parsed', () => {
  const expected = { namespace: 'shop', account: 'app', pod: 'app-1', podUid: 'p' }
  expect(claimsOf(tokenOf(claims), 'penstock-operator', at)).toEqual(expected)
  expect(claimsOf(tokenOf({ ...claims, aud: 'penstock-operator' }), 'penstock-operator', at)).toEqual(expected)
})

test.each([
  ['no token', 'garbage'],
  ['two parts', tokenOf(claims).split('.').slice(0, 2).join('.')],
  ['no JSON', 'a.b.c'],
  ['null', tokenOf(null)],
  ['no signature', tokenOf(claims, { alg: 'none' })],
  ['another audience', tokenOf({ ...claims, aud: ['https://kubernetes.default.svc'] })],
  ['none', tokenOf({ ...claims, aud: undefined })],
  ['it is over', tokenOf({ ...claims, exp: at / 1000 - 120 })],
  ['no end', tokenOf({ ...claims, exp: undefined })],
  ['no issuer', tokenOf({ ...claims, iss: undefined })],
  ['a user', tokenOf({ ...claims, sub: 'alice' })],
  ['another account', tokenOf({ ...claims, sub: 'system:serviceaccount:shop:other' })],
  ['no pod', tokenOf({ ...claims, 'kubernetes.io': { ...claims['kubernetes.io'], pod: undefined } })],
  ['a pod without uid', tokenOf({ ...claims, 'kubernetes.io': { ...claims['kubernetes.io'], pod: { name: 'x' } } })],
  ['too long', tokenOf({ ...claims, more: 'x'.repeat(20_000) })],
])('an impossible token causes no review: %s', (_, token) => {
  expect(claimsOf(token, 'penstock-operator', at)).toBeUndefined()
})
