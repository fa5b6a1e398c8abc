import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { KubeClient } from '../kube/client.ts'
import { ApiAddresses } from './api-addresses.ts'

const reader = (get: () => Promise<unknown>) => ({
  kube: { get } as unknown as KubeClient,
  logger: pino({ enabled: false }),
  signal: new AbortController().signal,
})
const slice =
  (...addresses: string[]) =>
  async () => ({ endpoints: addresses.map((each) => ({ addresses: [each] })) })

test('the endpoints are followed as they change, and stay while they cannot be read', async () => {
  const addresses = new ApiAddresses(['api.example', '', '10.96.0.1'])
  expect(addresses.current()).toEqual(['api.example', '10.96.0.1'])

  await addresses.read(reader(slice('192.0.2.7', '192.0.2.5')))
  expect(addresses.current()).toEqual(['api.example', '10.96.0.1', '192.0.2.5', '192.0.2.7'])

  await addresses.read(reader(slice('192.0.2.9')))
  expect(addresses.current()).toEqual(['api.example', '10.96.0.1', '192.0.2.9'])

  await addresses.read(reader(() => Promise.reject(new Error('forbidden'))))
  await addresses.read(reader(async () => undefined))
  await addresses.read(reader(async () => ({ endpoints: null })))
  expect(addresses.current()).toEqual(['api.example', '10.96.0.1', '192.0.2.9'])
})
