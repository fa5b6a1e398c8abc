// Access to an agent's metrics, as the API server or the operator decides it: a server on loopback.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { silentLogger } from '../telemetry/logger.ts'
import { fakeDestination } from '../testing/destination.ts'
import { askOperator, ReaderAccess } from './access.ts'
import { OperatorClient } from './operator-client.ts'

afterEach(() => vi.restoreAllMocks())

const reader = (token: string, remoteAddress = '10.0.0.7') =>
  ({ headers: { authorization: `Bearer ${token}` }, socket: { remoteAddress } }) as unknown as IncomingMessage

test('the operator decides who may read metrics; its last answer is valid for a limited time while it is unavailable', async () => {
  let nowMs = 1000
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  let allowed: boolean | 503 = true
  await using operator = await fakeDestination(() => (allowed === 503 ? 503 : { body: JSON.stringify({ allowed }) }))
  const folder = mkdtempSync(join(tmpdir(), 'penstock-access-'))
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'token'), 'of-the-pod\n')
  const client = new OperatorClient({
    url: operator.url,
    tokenFile: join(folder, 'token'),
    caFile: join(folder, 'none'),
  })
  cleanup.defer(() => client.close())
  const access = new ReaderAccess(askOperator(client), silentLogger)

  expect(await access.allows(reader('scraper'), '/metrics')).toBe(true)
  expect(await access.allows(reader('scraper'), '/metrics')).toBe(true)
  expect(operator.requests.map((request) => [request.path, request.headers['authorization'], request.json()])).toEqual([
    ['/v1/readers', 'Bearer of-the-pod', { token: 'scraper' }],
  ])
  // Events are only for the pod itself.
  expect(await access.allows(reader('scraper'), '/v1/tap')).toBe(false)
  expect(await access.allows(reader('any', '127.0.0.1'), '/v1/tap')).toBe(true)
  expect(operator.requests).toHaveLength(1)

  allowed = 503
  for (const minutes of [2, 30]) {
    nowMs = 1000 + minutes * 60_000
    expect(await access.allows(reader('scraper'), '/metrics')).toBe(true)
  }
  expect(await access.allows(reader('stranger'), '/metrics')).toBe(false)
  nowMs = 1000 + 61 * 60_000
  expect(await access.allows(reader('scraper'), '/metrics')).toBe(false)
  allowed = false
  nowMs += 120_000
  expect(await access.allows(reader('scraper'), '/metrics')).toBe(false)
  expect(await new ReaderAccess(undefined, silentLogger).allows(reader('scraper'), '/metrics')).toBe(false)
})
