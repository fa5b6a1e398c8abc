import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test, vi } from 'vitest'
import { KubeApi } from '../testing/kube-api.ts'
import { ApiServerClient } from './client.ts'
import { kubeConfigTarget } from './config.ts'
import { follow, type WatchedObject } from './watch.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('a caller that aborts after a failure does not wait for the backoff', async () => {
  vi.useFakeTimers() // so that no wait ends by itself
  const ending = new AbortController()
  const client = { json: () => Promise.reject(new Error('not today')) } as unknown as ApiServerClient
  const failed = vi.fn(() => ending.abort())
  const hooks = { failed, listed() {}, replaced() {}, changed() {}, removed() {} }
  await follow(client, { name: 'pods', path: '/api/v1/pods' }, hooks, { fromCache: false, signal: ending.signal })
  expect(failed).toHaveBeenCalledOnce()
})

test('a watch keeps no reference to the objects of the list', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await using api = await KubeApi.start()
  api.set('pods', { metadata: { name: 'web-1', namespace: 'shop' } })
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-watch-'))
  const config = join(folder.path, 'kubeconfig')
  await writeFile(config, api.kubeConfig())
  const client = new ApiServerClient(await kubeConfigTarget(config), 'Penstock/test')
  const ending = new AbortController()
  let listed: WeakRef<WatchedObject> | undefined
  const replaced = ([first]: readonly WatchedObject[]) => {
    listed = first === undefined ? undefined : new WeakRef(first)
  }
  const failed = vi.fn()
  const hooks = { failed, listed() {}, replaced, changed() {}, removed() {} }
  const path = { name: 'pods', path: '/api/v1/pods' }
  const followed = follow(client, path, hooks, { fromCache: false, signal: ending.signal })
  try {
    await vi.waitFor(() => expect(api.requests.some((request) => request.includes('watch=true'))).toBe(true))
    expect(listed).toBeDefined()
    await vi.waitFor(() => {
      collect()
      expect(listed?.deref()).toBeUndefined()
    })
    expect(failed).not.toHaveBeenCalled()
  } finally {
    ending.abort()
    await followed
    await client.close()
  }
})
