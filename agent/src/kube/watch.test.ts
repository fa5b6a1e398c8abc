import { afterEach, expect, test, vi } from 'vitest'
import type { KubeClient } from './client.ts'
import { follow } from './watch.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('whoever stops at a failure waits no more', async () => {
  vi.useFakeTimers() // none ends by itself
  const ending = new AbortController()
  const client = { json: () => Promise.reject(new Error('not today')) } as unknown as KubeClient
  const failed = vi.fn(() => ending.abort())
  const hooks = { failed, listed() {}, replaced() {}, changed() {}, removed() {} }
  await follow(client, { name: 'pods', path: '/api/v1/pods' }, hooks, { fromCache: false, signal: ending.signal })
  expect(failed).toHaveBeenCalledOnce()
})
