// The server for probes and metrics over real connections, on an address that is not loopback for its rule about tokens.

import { Agent, get, type IncomingMessage } from 'node:http'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { Reviews } from '../kube/reviews.ts'
import { flood } from '../testing/flood.ts'
import { ProbeServer } from './probes.ts'

const reviews: Reviews = {
  takes: '',
  userOf: async (token) => (token === 'collector' ? { username: token } : undefined),
  mayDo: async () => true,
}

async function serving(options: { readonly maxStrangers?: number; readonly reviews?: Reviews } = {}) {
  const metrics = new Registry()
  const server = new ProbeServer({
    ...{ address: '0.0.0.0:0', reviews, metrics, logger: silentLogger },
    ...{ health: () => undefined, readiness: () => undefined },
    ...options,
  })
  await server.open()
  const ask = (path: string, localAddress: string, token?: string, agent = new Agent()) =>
    new Promise<{ status: number; text: string }>((done, failed) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const options = { host: '127.0.0.1', port: server.port, path, localAddress, agent, headers }
      const take = async (answer: IncomingMessage) => {
        const text = Buffer.concat(await answer.toArray()).toString()
        done({ status: answer.statusCode ?? 0, text })
      }
      get(options, (answer) => void take(answer)).on('error', failed)
    })
  return { server, ask, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test('connections without a request keep neither probes nor a collector of metrics out', async () => {
  await using operator = await serving({ maxStrangers: 20 })
  const kept = new Agent({ keepAlive: true })
  expect(await operator.ask('/metrics', '127.0.0.2', 'collector', kept)).toMatchObject({ status: 200 })
  const [[socket] = []] = Object.values(kept.freeSockets)
  using hostile = await flood(operator.server.port, '127.0.0.2', 60, false)
  await vi.waitFor(() => expect(hostile.open()).toBeLessThanOrEqual(20), 30_000)
  expect(socket?.destroyed).toBe(false)
  for (const address of ['127.0.0.1', '127.0.0.2'])
    for (const path of ['/healthz', '/readyz'])
      expect(await operator.ask(path, address)).toEqual({ status: 200, text: 'ok\n' })
  expect(await operator.ask('/metrics', '127.0.0.2', 'collector', kept)).toMatchObject({ status: 200 })
  expect(await operator.ask('/metrics', '127.0.0.3', 'other')).toMatchObject({ status: 403 })
  kept.destroy()
})
