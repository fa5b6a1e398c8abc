import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createKubeClient } from './client.ts'
import { KubeConnection } from './connection.ts'
import { mayDo, mayDoIn, type ReviewedAction, serverReviews } from './reviews.ts'
import { namespaceType } from './types.ts'

/** A client with one request a burst and 20 a second, and the paths that its API server was asked for. */
async function limitedClient() {
  const stack = new AsyncDisposableStack()
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push((request.url ?? '').split('/').at(-1) ?? '')
    request.resume()
    response.end(JSON.stringify({ status: { authenticated: true, allowed: true, user: { username: 'ann' } } }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => new Promise<void>((done) => server.close(() => done())))
  const folder = mkdtempSync(join(tmpdir(), 'penstock-reviews-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const { port } = server.address() as AddressInfo
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    ...{ users: [{ name: 'u', user: {} }], contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }] },
  }
  writeFileSync(join(folder, 'config'), JSON.stringify(config))
  const connection = await KubeConnection.open({ kubeconfig: join(folder, 'config') })
  stack.defer(() => connection.close())
  const kube = createKubeClient(connection, { perSecond: 20, burst: 1 })
  return { kube, paths, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const attempt: ReviewedAction = { resourceAttributes: { group: '', resource: 'pods', verb: 'list', namespace: 'shop' } }

test.each([
  { review: 'of a token', path: 'tokenreviews', ask: 'userOf' },
  { review: 'of rights in the cluster', path: 'subjectaccessreviews', ask: 'mayDo' },
  { review: 'of rights in a namespace', path: 'localsubjectaccessreviews', ask: 'mayDoIn' },
] as const)('a review $review does not wait for the changes that wait for the rate limit', async ({ path, ask }) => {
  await using api = await limitedClient()
  const { kube, paths } = api
  const asks = {
    userOf: () => serverReviews(kube).userOf('a token'),
    mayDo: () => mayDo(kube, { username: 'ann' }, attempt),
    mayDoIn: () => mayDoIn(kube, 'shop', { username: 'ann' }, attempt),
  }
  const changes = Array.from({ length: 20 }, (_, index) =>
    kube.patch(namespaceType, undefined, `change-${index}`, { metadata: {} }, { timeoutMs: 60_000 }),
  )

  expect(await asks[ask]()).toEqual(ask === 'userOf' ? { username: 'ann' } : true)

  // The first change has its turn at once, and may be on its way still.
  expect(paths.filter((each) => each.startsWith('change')).length).toBeLessThanOrEqual(3)
  expect(paths).toContain(path)
  await Promise.all(changes)
})
