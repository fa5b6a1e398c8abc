import { expect, test } from 'vitest'
import { startKubeServer } from '../testing/kube-server.ts'
import { createKubeClient } from './client.ts'
import { namespaceType } from './resource-types.ts'
import { mayDo, mayDoIn, type ReviewedAction, serverReviews } from './reviews.ts'

/** A client with one request a burst and 20 a second, and the paths that its API server was asked for. */
async function limitedClient() {
  const paths: string[] = []
  const server = await startKubeServer((request, response) => {
    paths.push((request.url ?? '').split('/').at(-1) ?? '')
    request.resume()
    response.end(JSON.stringify({ status: { authenticated: true, allowed: true, user: { username: 'ann' } } }))
  })
  const kube = createKubeClient(server.connection, { perSecond: 20, burst: 1 })
  return { kube, paths, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const attempt: ReviewedAction = { resourceAttributes: { group: '', resource: 'pods', verb: 'list', namespace: 'shop' } }

test.each([
  { review: 'of a token', path: 'tokenreviews', ask: 'userOf' },
  { review: 'of rights in the cluster', path: 'subjectaccessreviews', ask: 'mayDo' },
  { review: 'of rights in a namespace', path: 'localsubjectaccessreviews', ask: 'mayDoIn' },
] as const)('a review $review does not wait for changes delayed by the rate limit', async ({ path, ask }) => {
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
