// The rights of observers: requests to the real observer server, beside an API server that grants Pipelines in all namespaces, whatever
// their name, and nothing of ClusterPipelines.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HeartbeatBody } from '@penstock/agent/bundle'
import { silentLogger } from '@penstock/agent/telemetry'
import { afterEach, expect, test, vi } from 'vitest'
import { objectKey } from '../../api/object.ts'
import type { Artifact } from '../../compile/artifact.ts'
import { Artifacts } from '../../controllers/artifacts.ts'
import { type Delivered, FleetState } from '../../fleet/state.ts'
import { monotonicNow } from '../../kube/clock.ts'
import type { ReviewedAction, User } from '../../kube/reviews.ts'
import { testContext } from '../../testing/context.ts'
import { actingAsText } from './acting-as.ts'
import { Inquiries } from './inquiries.ts'
import { Observers } from './observers.ts'
import type { TopLine } from './top-look.ts'

const artifactOf = (kind: Artifact['kind'], namespace: string | undefined, name: string) =>
  ({
    id: `${namespace ?? '_cluster'}/${name}`,
    kind,
    namespace,
    name,
    sources: {},
    transforms: {},
    sinks: {},
    hub: { subscriptions: [] },
  }) as unknown as Artifact

afterEach(() => void vi.useRealTimers())

interface Rights {
  readonly rolesOnly?: boolean
  /** The identities that the owner of the token may take: `users alice`, `serviceaccounts shop/reader`. */
  readonly impersonates?: readonly string[]
}

async function started({ rolesOnly = false, impersonates = [] }: Rights = {}) {
  const stack = new AsyncDisposableStack()
  const ending = new AbortController()
  stack.defer(() => ending.abort())
  const artifacts = new Artifacts()
  artifacts.set(artifactOf('ClusterPipeline', undefined, 'audit'))
  artifacts.set(artifactOf('Pipeline', 'shop', 'checkout'))
  artifacts.markComplete()
  const asked: ReviewedAction[] = []
  const askers: User[] = []
  const context = testContext({
    ...{ artifacts, logger: silentLogger, signal: ending.signal, settings: { rolesOnly } },
    caches: { cache: () => ({ get: () => undefined }) },
    reviews: {
      userOf: async (token: string) => ({ username: token === 'of-eve' ? 'eve' : 'mallory' }),
      mayDo: async (user: User, attempt: ReviewedAction) => {
        asked.push(attempt)
        askers.push(user)
        if ('resourceAttributes' in attempt && attempt.resourceAttributes.verb === 'impersonate') {
          const { resource, namespace, name } = attempt.resourceAttributes
          return user.username === 'mallory' && impersonates.includes(`${resource} ${objectKey(namespace, name ?? '')}`)
        }
        return 'resourceAttributes' in attempt && attempt.resourceAttributes.resource === 'pipelines'
      },
    },
  })
  const fleet = new FleetState()
  const inquiries = new Inquiries()
  const observers = new Observers(context, fleet, inquiries)
  const server = createServer((request, response) => void observers.serve(request, response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => server.closeAllConnections())
  stack.defer(() => void server.close())
  const { port } = server.address() as AddressInfo
  return {
    asked,
    askers,
    fleet,
    /** The first line of an answer. */
    async first(path: string): Promise<TopLine> {
      const leaving = new AbortController()
      const headers = { authorization: 'Bearer t' }
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, signal: leaving.signal })
      let text = ''
      for await (const part of answer.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(part).toString()
        if (text.includes('\n')) break
      }
      leaving.abort()
      return JSON.parse(text.split('\n')[0] as string)
    },
    ask: async (path: string, more: Record<string, string> = {}) => {
      const headers = { authorization: 'Bearer t', ...more }
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
      const said = answer.status === 200 ? '' : ((await answer.json()) as { error: string }).error
      if (answer.status === 200) await answer.body?.cancel()
      return { status: answer.status, said }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const odd = [
  '_cluster',
  '..',
  'shop/',
  'Shop',
  '-a',
  'a-',
  'a'.repeat(254),
  '*',
  'shop%2F..',
  '\u0000',
  'sh\u00f6p',
  'a\nb',
]

test.each(
  ['/v1/tap', '/v1/top'].flatMap((path) =>
    ['namespace', 'name', 'node'].flatMap((parameter) => odd.map((value) => ({ path, parameter, value }))),
  ),
)(
  '$path with $parameter $value is refused before anybody is asked about rights',
  async ({ path, parameter, value }) => {
    await using server = await started()
    const query = new URLSearchParams({ namespace: 'shop', name: 'checkout', [parameter]: value })
    const { status, said } = await server.ask(`${path}?${query}`)
    expect([status, said.startsWith(`\`${parameter}\` is a DNS `)]).toEqual([400, true])
    expect(server.asked).toEqual([])
  },
)

test.each([
  ['/v1/tap?kind=ClusterPipeline&name=audit', 403],
  ['/v1/top?kind=ClusterPipeline&name=audit', 403],
  ['/v1/tap?kind=ClusterPipeline&namespace=shop&name=audit', 400],
  ['/v1/tap?kind=clusterpipeline&name=audit', 400],
  ['/v1/tap?kind=Pipeline&kind=ClusterPipeline&namespace=shop&name=audit', 400],
  ['/v1/tap?namespace=shop&namespace=bank&name=checkout', 400],
  ['/v1/tap?namespace=shop&name=checkout', 409],
  ['/v1/tap?namespace=shop&name=audit', 404],
  ['/v1/top?namespace=shop&name=checkout', 200],
])('%s is answered with %i', async (path, expected) => {
  await using server = await started()
  expect((await server.ask(path)).status).toBe(expected)
})

test('of a pod it says whether agents of its node report, have stopped to, or may not have begun', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  await using server = await started()
  const { fleet } = server
  const selected = new Map([['shop/checkout', {}]])
  fleet.set('system/node', { selected, revisions: new Map() } as unknown as Delivered)
  const hear = (node: string) =>
    fleet.hear(
      'system/node',
      { pod: node, podUid: node, node },
      { state: 'Loaded', pipelines: {}, failures: [], failed: [] } as unknown as HeartbeatBody,
      monotonicNow(),
    )
  const on = async (node: string) => {
    const line = await server.first(`/v1/top?namespace=shop&name=checkout&pod=u1&node=${node}&interval=1000`)
    const { asked, silent } = line.pipelines[0]?.agents ?? {}
    return { asked, silent, complete: line.complete }
  }
  hear('node-a')
  hear('node-b')
  expect(await on('node-a')).toEqual({ asked: 1, silent: 0, complete: false }) // it has not answered
  expect(await on('node-c')).toEqual({ asked: 0, silent: 0, complete: false })
  vi.advanceTimersByTime(fleet.hearingMs + 1)
  hear('node-a')
  expect(await on('node-c')).toEqual({ asked: 0, silent: 0, complete: true })
  vi.advanceTimersByTime(120_000)
  hear('node-a')
  expect(await on('node-b')).toEqual({ asked: 0, silent: 1, complete: true })
})

const top = '/v1/top?namespace=shop&name=checkout'
const acting = (username: string, ...groups: string[]) => ({
  'x-penstock-acting-as': actingAsText({ username, groups }),
})
const account = 'system:serviceaccount:shop:reader'

test.each<{ as: Record<string, string>; rights: Rights; status: number; says?: string; asker?: User }>([
  {
    as: acting('alice'),
    rights: {},
    status: 403,
    says: 'mallory may not impersonate users "alice".',
  },
  {
    as: acting('alice'),
    rights: { impersonates: ['users alice'] },
    status: 200,
    asker: { username: 'alice', groups: ['system:authenticated'] },
  },
  {
    as: acting('alice', 'dev', 'system:masters'),
    rights: { impersonates: ['users alice', 'groups dev'] },
    status: 403,
    says: 'mallory may not impersonate groups "system:masters".',
  },
  {
    as: acting('alice', 'dev'),
    rights: { impersonates: ['users alice', 'groups dev'] },
    status: 200,
    asker: { username: 'alice', groups: ['dev', 'system:authenticated'] },
  },
  {
    as: acting(account),
    rights: { impersonates: [`users ${account}`, 'serviceaccounts bank/reader'] },
    status: 403,
    says: 'mallory may not impersonate serviceaccounts "reader" in namespace shop.',
  },
  {
    as: acting(account),
    rights: { impersonates: ['serviceaccounts shop/reader'], rolesOnly: true },
    status: 200,
    asker: {
      username: account,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    },
  },
  {
    as: acting('alice'),
    rights: { impersonates: ['users alice'], rolesOnly: true },
    status: 403,
    says: 'mallory may not impersonate users "alice": this operator has rights in its namespaces only',
  },
  {
    as: acting('system:anonymous'),
    rights: { impersonates: ['users system:anonymous'] },
    status: 200,
    asker: { username: 'system:anonymous', groups: ['system:unauthenticated'] },
  },
  {
    as: acting('alice', 'system:unauthenticated'),
    rights: { impersonates: ['users alice', 'groups system:unauthenticated'] },
    status: 200,
    asker: { username: 'alice', groups: ['system:unauthenticated'] },
  },
  {
    as: acting('system:anonymous', 'system:authenticated'),
    rights: { impersonates: ['users system:anonymous', 'groups system:authenticated'] },
    status: 200,
    asker: { username: 'system:anonymous', groups: ['system:authenticated', 'system:unauthenticated'] },
  },
  {
    as: acting('alice', 'system:authenticated'),
    rights: { impersonates: ['users alice'] },
    status: 403,
    says: 'mallory may not impersonate groups "system:authenticated".',
  },
  {
    // Named groups are all that a ServiceAccount has: it keeps none of its own.
    as: acting(account, 'dev'),
    rights: { impersonates: ['serviceaccounts shop/reader', 'groups dev'] },
    status: 200,
    asker: { username: account, groups: ['dev', 'system:authenticated'] },
  },
])('a caller acts as $as: $status', async ({ as, rights, status, says = '', asker }) => {
  await using server = await started(rights)
  const answer = await server.ask(top, as)
  expect(answer.status, answer.said).toBe(status)
  expect(answer.said).toContain(says)
  // The right to the Pipeline is that of the user that it acts as.
  if (asker !== undefined) expect(server.askers.at(-1)).toEqual(asker)
})

const encoded = (text: string | Buffer) => Buffer.from(text).toString('base64url')
const alice = actingAsText({ username: 'alice', groups: [] })

test.each([
  ...['', '!', encoded(''), encoded('{}'), encoded('null'), encoded('[]'), encoded('"alice"')],
  ...['{"username":"alice"}', '{"username":"alice","groups":"dev"}', '{"username":"","groups":[]}'].map(encoded),
  ...[
    '{"username":["alice"],"groups":[]}',
    '{"username":"alice","groups":[1]}',
    '{"username":"alice","groups":[""]}',
  ].map(encoded),
  encoded('{"__proto__":{"username":"alice","groups":[]}}'),
  actingAsText({ username: 'alice', groups: Array.from({ length: 101 }, () => 'dev') }),
  actingAsText({ username: 'a'.repeat(8000), groups: [] }),
  // More than what is read, or twice.
  encoded('{"username":"alice","groups":[],"extra":{"scopes":["user:info"]}}'),
  encoded('{"username":"alice","groups":[],"uid":"1"}'),
  encoded('{"username":"bob","username":"alice","groups":[]}'),
  encoded('{"username":"alice","groups":["system:masters"],"groups":[]}'),
  // Another form of the same.
  encoded('{"groups":[],"username":"alice"}'),
  encoded('{"username":"\\u0061lice","groups":[]}'),
  encoded(' {"username":"alice","groups":[]}'),
  encoded('\ufeff{"username":"alice","groups":[]}'),
  `${alice}=`,
  `${alice.slice(0, 8)}.${alice.slice(8)}`,
  `${alice}, ${actingAsText({ username: 'bob', groups: [] })}`,
  `${alice.slice(0, 8)}, ${alice.slice(8)}`,
  // No header of the API server could carry these names.
  encoded(Buffer.from('{"username":"\xff","groups":[]}', 'latin1')),
  ...['ali\u0000ce', 'alice\n', '\ud800', 'al\u0085ice'].map((username) => actingAsText({ username, groups: [] })),
  actingAsText({ username: 'alice', groups: ['dev\r\nsystem:masters'] }),
])('whom a caller acts as is not taken from %j, and nobody is asked about rights', async (value) => {
  await using server = await started({ impersonates: ['users alice', 'users bob', 'users \ufffd', 'groups dev'] })
  const { status, said } = await server.ask(top, { 'x-penstock-acting-as': value })
  expect([status, said]).toEqual([400, 'This command says in another form whom it acts as.'])
  expect(server.asked).toEqual([])
})

test('a repeated header is no way to act as somebody, nor are those of the API server', async () => {
  await using server = await started({ impersonates: ['users alice'] })
  const repeated = new Headers({ 'x-penstock-acting-as': alice })
  repeated.append('X-Penstock-Acting-As', alice)
  expect((await server.ask(top, Object.fromEntries(repeated))).status).toBe(400)
  const others = { 'impersonate-user': 'root', 'impersonate-group': 'system:masters', 'impersonate-uid': '1' }
  expect((await server.ask(top, others)).status).toBe(200)
  expect(server.askers).toEqual([{ username: 'mallory' }])
  expect((await server.ask(top, { ...others, ...acting('alice') })).status).toBe(200)
  expect(server.askers.slice(1)).toEqual([
    { username: 'mallory' },
    { username: 'alice', groups: ['system:authenticated'] },
  ])
})

test('a caller who acts as one user after another uses up what it may ask itself, and nobody else waits for it', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const names = Array.from({ length: 300 }, (_, index) => `user-${index}`)
  await using server = await started({ impersonates: names.map((name) => `users ${name}`) })
  const seen = new Map<number, number>()
  for (const name of names) {
    const { status } = await server.ask(top, acting(name, 'system:masters'))
    seen.set(status, (seen.get(status) ?? 0) + 1)
  }
  expect([...seen.keys()]).toEqual([403, 429])
  expect(server.asked.length).toBeLessThanOrEqual(250)
  expect(await server.ask(top, acting('user-0', 'dev'))).toMatchObject({
    status: 429,
    said: expect.stringContaining('Too many ask at once'),
  })
  expect((await server.ask(top, { authorization: 'Bearer of-eve' })).status).toBe(200)
  vi.advanceTimersByTime(1000)
  expect((await server.ask(top)).status).toBe(200)
})

test('a group that is named many times is asked about once', async () => {
  await using server = await started({ impersonates: ['users alice', 'groups dev'] })
  expect((await server.ask(top, acting('alice', ...Array.from({ length: 100 }, () => 'dev')))).status).toBe(200)
  expect(server.asked).toHaveLength(3)
})
