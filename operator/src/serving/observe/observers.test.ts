// The rights of observers: requests to the real observer server, with an API server that grants Pipelines in all namespaces, whatever
// their name, and no ClusterPipelines.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HeartbeatBody } from '@penstock/agent/bundle'
import { silentLogger } from '@penstock/agent/telemetry'
import { afterEach, expect, test, vi } from 'vitest'
import { objectKey } from '../../api/object.ts'
import type { Artifact } from '../../compile/artifact.ts'
import { Artifacts } from '../../controllers/artifacts.ts'
import { type Delivered, FleetState } from '../../fleet/state.ts'
import type { KubeClient } from '../../kube/client.ts'
import { monotonicNow } from '../../kube/clock.ts'
import { LocalReviews } from '../../kube/local-reviews.ts'
import { type ReviewedAction, type Reviews, serverReviews, type User } from '../../kube/reviews.ts'
import { testContext } from '../../testing/context.ts'
import { actingAsText } from './acting-as.ts'
import { Inquiries } from './inquiries.ts'
import { Observers } from './observers.ts'
import { relay } from './relay.ts'
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
  /** The identities that the owner of the token may impersonate: `users alice`, `serviceaccounts shop/reader`. */
  readonly impersonates?: readonly string[]
  /** Overrides the table of these rights. */
  readonly reviews?: Pick<Reviews, 'mayDo'>
}

async function started({ rolesOnly = false, impersonates = [], reviews }: Rights = {}) {
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
      userOf: async (token: string) => ({ username: token === 't' ? 'mallory' : token }),
      mayDo: async (user: User, attempt: ReviewedAction) => {
        asked.push(attempt)
        askers.push(user)
        if (reviews !== undefined) return reviews.mayDo(user, attempt)
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
  // A replica that is not the leader.
  const other = createServer((request, response) => {
    void relay(request, response, { host: '127.0.0.1', port, ca: undefined }, undefined, 60_000)
  })
  await new Promise<void>((done) => other.listen(0, '127.0.0.1', done))
  stack.defer(() => other.closeAllConnections())
  stack.defer(() => void other.close())
  const replica = (other.address() as AddressInfo).port
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
    open: (path: string, user: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${user}` } }),
    ask: async (path: string, more: Record<string, string> = {}, by: 'leader' | 'replica' = 'leader') => {
      const headers = { authorization: 'Bearer t', ...more }
      const answer = await fetch(`http://127.0.0.1:${by === 'leader' ? port : replica}${path}`, { headers })
      const errorMessage = answer.status === 200 ? '' : ((await answer.json()) as { error: string }).error
      if (answer.status === 200) await answer.body?.cancel()
      return { status: answer.status, errorMessage, as: answer.headers.get('x-penstock-acting-as') }
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
)('$path with $parameter $value is refused before rights are checked', async ({ path, parameter, value }) => {
  await using server = await started()
  const query = new URLSearchParams({ namespace: 'shop', name: 'checkout', [parameter]: value })
  const { status, errorMessage } = await server.ask(`${path}?${query}`)
  expect([status, errorMessage.startsWith(`\`${parameter}\` is a DNS `)]).toEqual([400, true])
  expect(server.asked).toEqual([])
})

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

test('shows for a pod whether agents of its node report, have stopped, or may not have started', async () => {
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
    says: 'mallory may not impersonate users "alice": this operator only has rights in its namespaces',
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
    // Named groups replace all groups of a ServiceAccount.
    as: acting(account, 'dev'),
    rights: { impersonates: ['serviceaccounts shop/reader', 'groups dev'] },
    status: 200,
    asker: { username: account, groups: ['dev', 'system:authenticated'] },
  },
])('a caller acts as $as: $status', async ({ as, rights, status, says = '', asker }) => {
  await using server = await started(rights)
  const answer = await server.ask(top, as)
  expect(answer.status, answer.errorMessage).toBe(status)
  expect(answer.errorMessage).toContain(says)
  // The right to the Pipeline is that of the impersonated user.
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
  // Unknown members, or members that occur twice.
  encoded('{"username":"alice","groups":[],"extra":{"scopes":["user:info"]}}'),
  encoded('{"username":"alice","groups":[],"uid":"1"}'),
  encoded('{"username":"bob","username":"alice","groups":[]}'),
  encoded('{"username":"alice","groups":["system:masters"],"groups":[]}'),
  // Another encoding of the same value.
  encoded('{"groups":[],"username":"alice"}'),
  encoded('{"username":"\\u0061lice","groups":[]}'),
  encoded(' {"username":"alice","groups":[]}'),
  encoded('\ufeff{"username":"alice","groups":[]}'),
  `${alice}=`,
  `${alice.slice(0, 8)}.${alice.slice(8)}`,
  `${alice}, ${actingAsText({ username: 'bob', groups: [] })}`,
  `${alice.slice(0, 8)}, ${alice.slice(8)}`,
  // No header of the API server could contain these names.
  encoded(Buffer.from('{"username":"\xff","groups":[]}', 'latin1')),
  ...['ali\u0000ce', 'alice\n', '\ud800', 'al\u0085ice'].map((username) => actingAsText({ username, groups: [] })),
  actingAsText({ username: 'alice', groups: ['dev\r\nsystem:masters'] }),
])('does not take impersonation from %j, and asks nobody about rights', async (value) => {
  await using server = await started({ impersonates: ['users alice', 'users bob', 'users \ufffd', 'groups dev'] })
  const { status, errorMessage } = await server.ask(top, { 'x-penstock-acting-as': value })
  expect([status, errorMessage]).toEqual([400, 'This command sends the impersonated user in another format.'])
  expect(server.asked).toEqual([])
})

test('repeated headers and headers of the API server do not impersonate anybody', async () => {
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

test('a caller who impersonates many users only uses its own allowance', async () => {
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
    errorMessage: expect.stringContaining('Too many requests at once'),
  })
  expect((await server.ask(top, { authorization: 'Bearer eve' })).status).toBe(200)
  vi.advanceTimersByTime(1000)
  expect((await server.ask(top)).status).toBe(200)
})

test('a repeated group is checked once', async () => {
  await using server = await started({ impersonates: ['users alice', 'groups dev'] })
  expect((await server.ask(top, acting('alice', ...Array.from({ length: 100 }, () => 'dev')))).status).toBe(200)
  expect(server.asked).toHaveLength(3)
})

test.each<{ headers: Record<string, string>; status: number; asker?: User }>([
  { headers: {}, status: 200, asker: { username: 'mallory' } },
  { headers: acting('bob'), status: 403 },
  { headers: acting('alice', 'system:masters'), status: 403 },
  { headers: acting('alice'), status: 200, asker: { username: 'alice', groups: ['system:authenticated'] } },
  { headers: { 'x-penstock-acting-as': `${alice}, ${alice}` }, status: 400 },
  // The leader does not trust statements of replicas.
  { headers: { 'x-penstock-forwarded': '1', ...acting('bob') }, status: 403 },
  { headers: { 'x-penstock-forwarded': '1', 'x-remote-user': 'root' }, status: 200, asker: { username: 'mallory' } },
  { headers: { 'x-penstock-token': 'eve', ...acting('alice') }, status: 403 },
])('the leader responds to $headers with $status, also to a replica', async ({ headers, status, asker }) => {
  await using server = await started({ impersonates: ['users alice'] })
  const answers = [await server.ask(top, headers), await server.ask(top, headers, 'replica')]
  expect(answers.map((answer) => answer.status)).toEqual([status, status])
  expect(answers[0]).toEqual(answers[1])
  const last = server.askers.at(-1)
  expect(last).toEqual(server.askers[server.askers.length / 2 - 1])
  if (asker !== undefined) expect(last).toEqual(asker)
  // A command knows by it whose rights an answer has.
  const acted = headers['x-penstock-acting-as'] ?? null
  expect(answers[0]?.as).toBe(status === 200 ? acted : null)
})

test('one token can impersonate several users at a time, and a revoked right ends at once', async () => {
  const impersonates = ['users alice', 'users bob']
  await using server = await started({ impersonates })
  const all = [acting('alice'), {}, acting('eve'), acting('bob'), {}, acting('alice', 'dev')]
  const answers = await Promise.all(all.map((headers) => server.ask(top, headers)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 403, 200, 200, 403])
  impersonates.pop()
  expect((await server.ask(top, acting('bob'))).status).toBe(403)
  expect((await server.ask(top, acting('alice'))).status).toBe(200)
  // The right to impersonate one user is not the right to impersonate others.
  expect(server.askers.filter(({ username }) => username === 'alice')).toHaveLength(2)
})

test('a caller without the right to impersonate learns nothing about existing objects', async () => {
  await using server = await started()
  const says = async (path: string) => (await server.ask(path, acting('alice'))).errorMessage
  const errorMessage = new Set<string>()
  for (const verb of ['tap', 'top'])
    for (const name of ['checkout', 'none'])
      for (const namespace of ['shop', 'bank'])
        errorMessage.add(await says(`/v1/${verb}?namespace=${namespace}&name=${name}`))
  errorMessage.add(await says('/v1/tap?kind=ClusterPipeline&name=audit'))
  expect([...errorMessage]).toEqual(['mallory may not impersonate users "alice".'])
  expect(server.askers.every(({ username }) => username === 'mallory')).toBe(true)
})

test('the API server gets the same checks as for its own impersonation', async () => {
  const specs: unknown[] = []
  const kube = {
    request: async (_method: string, path: string, { spec }: { spec: object }) => {
      specs.push({ path, ...spec })
      return { status: { allowed: true } }
    },
  } as unknown as KubeClient
  await using server = await started({ reviews: serverReviews(kube) })
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
  const mallory = { path, user: 'mallory', groups: [] }
  const attempt = (resource: string, name: string, more: object = {}) => ({
    resourceAttributes: { group: '', verb: 'impersonate', resource, name, ...more },
  })
  const users = ['alice', 'system:serviceaccount:shop', 'system:serviceaccount:shop:a:b', 'system:serviceaccount::a']
  for (const user of [...users, 'System:serviceaccount:shop:a', 'system:node:n', 'system:kube-controller-manager']) {
    specs.length = 0
    expect((await server.ask(top, acting(user, 'dev', 'system:masters'))).status).toBe(200)
    expect(specs.slice(0, -1)).toEqual([
      { ...mallory, ...attempt('users', user) },
      { ...mallory, ...attempt('groups', 'dev') },
      { ...mallory, ...attempt('groups', 'system:masters') },
    ])
    expect(specs.at(-1)).toMatchObject({ user, groups: ['dev', 'system:masters', 'system:authenticated'] })
  }
  specs.length = 0
  expect((await server.ask(top, acting('system:serviceaccount:bank:reader'))).status).toBe(200)
  expect(specs[0]).toEqual({ ...mallory, ...attempt('serviceaccounts', 'reader', { namespace: 'bank' }) })
  expect(specs).toHaveLength(2)
})

test('with Roles only, a caller can only impersonate ServiceAccounts of the watched namespaces', async () => {
  const paths: string[] = []
  const kube = {
    request: async (_method: string, path: string) => {
      paths.push(path)
      return { status: { allowed: true } } // like a Role with all verbs on all resources
    },
  } as unknown as KubeClient
  const reviews = new LocalReviews({
    ...{ kube, logger: silentLogger, namespace: 'system', namespaces: ['shop', 'system'], ownToken: () => undefined },
  })
  await using server = await started({ rolesOnly: true, reviews })
  const users = ['alice', 'system:admin', 'system:serviceaccount:shop', 'system:serviceaccount:shop:a:b']
  const strange = ['bank', 'Shop', 'shop/../bank', 'shop?', '..', ' shop', 'shop%2f..'].map(
    (namespace) => `system:serviceaccount:${namespace}:reader`,
  )
  for (const user of [...users, ...strange])
    expect([user, (await server.ask(top, acting(user))).status]).toEqual([user, 403])
  expect(paths).toEqual([])
  for (const one of ['system:masters', 'system:serviceaccounts', 'system:serviceaccounts:bank', 'system:authenticated'])
    expect((await server.ask(top, acting(account, one))).errorMessage).toContain(`impersonate groups "${one}"`)
  const bank = '/v1/top?namespace=bank&name=checkout'
  expect((await server.ask(bank, acting(account))).status).toBe(403)
  expect((await server.ask(top, acting(account))).status).toBe(200)
  const own = '/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews'
  expect(new Set(paths)).toEqual(new Set([own]))
})

test('a user, or all service accounts of a namespace, can only hold a part of the open requests', async () => {
  await using server = await started()
  const account = (name: string) => `system:serviceaccount:shop:${name}`
  const open = (user: string) => server.open('/v1/top?namespace=shop', user)
  const holds = (user: string) => Promise.all(Array.from({ length: 8 }, () => open(user)))
  const refusal = async (user: string) => {
    const answer = await open(user)
    return [answer.status, ((await answer.json()) as { error: string }).error]
  }
  const held = (await Promise.all(['eve', account('a'), 'u1', 'u2', 'u3', 'u4', 'u5', 'u6'].map(holds))).flat()
  expect(held.map(({ status }) => status)).toEqual(held.map(() => 200))
  const ended = 'try again when one has ended.'
  expect(await refusal('eve')).toEqual([429, `eve already has 8 commands that observe Pipelines; ${ended}`])
  expect(await refusal(account('b'))).toEqual([
    429,
    `Namespace shop already has 8 commands that observe Pipelines; ${ended}`,
  ])
  expect(await refusal('u7')).toEqual([429, `64 commands already observe Pipelines; ${ended}`])

  await held[0]?.body?.cancel()
  await vi.waitFor(async () => expect((await open('u7')).status).toBe(200), { timeout: 60_000 })
})
