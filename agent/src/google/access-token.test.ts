import { expect, test } from 'vitest'
import { HttpClient } from '../http/client.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import { type Answer, fakeDestination } from '../testing/destination.ts'
import { AccessTokens } from './access-token.ts'

const never = new AbortController().signal

async function tokensOf(...answers: Answer[]) {
  const destination = await fakeDestination(...answers)
  const client = new HttpClient({ tls: compileTls(defaultTls), proxy: () => undefined })
  const clock = { ms: 0 }
  const tokens = AccessTokens.ofInstance({ env: { GCE_METADATA_HOST: destination.host } }, client, () => clock.ms)
  return {
    destination,
    clock,
    tokens,
    async [Symbol.asyncDispose]() {
      await client.close()
      await destination[Symbol.asyncDispose]()
    },
  }
}

const token = (name: string, seconds: number): Answer => ({
  body: JSON.stringify({ access_token: name, expires_in: seconds }),
})

test('a token is shared, and replaced 200 seconds before it expires', async () => {
  await using given = await tokensOf(token('a', 3600), token('b', 3600))
  const { tokens, clock, destination } = given

  expect(await Promise.all([tokens.get(never), tokens.get(never)])).toEqual(['a', 'a'])
  clock.ms = 3_399_999
  expect(await tokens.get(never)).toBe('a')
  expect(destination.requests).toHaveLength(1)
  clock.ms = 3_400_000
  expect(await tokens.get(never)).toBe('b')
})

test('a token that cannot be replaced is used until it expires, with another attempt after two seconds', async () => {
  await using given = await tokensOf(token('a', 300), 500, 500, token('b', 300))
  const { tokens, clock, destination } = given

  expect(await tokens.get(never)).toBe('a')
  clock.ms = 100_000
  expect(await tokens.get(never)).toBe('a')
  expect(await tokens.get(never)).toBe('a')
  expect(destination.requests).toHaveLength(2)
  clock.ms = 102_000
  expect(await tokens.get(never)).toBe('a')
  expect(destination.requests).toHaveLength(3)
  clock.ms = 300_000
  expect(await tokens.get(never)).toBe('b')
})

test('a short-lived token is kept for two seconds', async () => {
  await using given = await tokensOf(token('a', 1), token('b', 1))
  const { tokens, clock } = given

  expect(await tokens.get(never)).toBe('a')
  clock.ms = 1999
  expect(await tokens.get(never)).toBe('a')
  clock.ms = 2000
  expect(await tokens.get(never)).toBe('b')
})

test.each<{ what: string; answer: Answer; problem: string }>([
  { what: 'an error', answer: 403, problem: 'it responded with status 403' },
  { what: 'no JSON', answer: { body: 'secret' }, problem: 'its response contains no token' },
  {
    what: 'no token',
    answer: { body: '{"access_token":1,"expires_in":2}' },
    problem: 'its response contains no token',
  },
  { what: 'a closed connection', answer: 'garbage', problem: 'No access token from http://127.0.0.1' },
])('reports $what', async ({ answer, problem }) => {
  await using given = await tokensOf(answer)
  const answered = given.tokens.get(never)
  await expect(answered).rejects.toThrow(problem)
  await expect(answered).rejects.toMatchObject({ code: 'PEN_AUTH' })
})

test('an aborted caller stops waiting immediately', async () => {
  await using given = await tokensOf('hang')
  const leaving = new AbortController()
  const answered = given.tokens.get(leaving.signal)
  await given.destination.received(1)

  leaving.abort(new Error('left'))

  await expect(answered).rejects.toThrow('left')
})
