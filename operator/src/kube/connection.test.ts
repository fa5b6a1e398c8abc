import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { inspect } from 'node:util'
import { Transport } from '@penstock/agent/kube'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { KubeConnection } from './connection.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-home-'))
  vi.stubEnv('HOME', home)
  vi.stubEnv('KUBECONFIG', undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true })
})

test('without a cluster, the error lists the searched places', async () => {
  await expect(KubeConnection.open({})).rejects.toThrow('No cluster is configured: KUBECONFIG is not set')
})

test('a missing kubeconfig is named', async () => {
  await expect(KubeConnection.open({ kubeconfig: join(home, 'none') })).rejects.toThrow(
    `The kubeconfig ${join(home, 'none')}`,
  )
})

const cluster = { name: 'c', cluster: { server: 'https://api.example:6443/base', 'insecure-skip-tls-verify': true } }
const contexts = [
  { name: 'one', context: { cluster: 'c', user: 'one', namespace: 'shop' } },
  { name: 'two', context: { cluster: 'c', user: 'two' } },
]
function written(name: string, users: readonly object[], parts: object = {}): string {
  const path = join(home, name)
  const config = { apiVersion: 'v1', kind: 'Config', clusters: [cluster], contexts, users, 'current-context': 'one' }
  writeFileSync(path, JSON.stringify({ ...config, ...parts }))
  return path
}
const credential = JSON.stringify({
  apiVersion: 'client.authentication.k8s.io/v1',
  kind: 'ExecCredential',
  status: { token: 'made' },
})
const exec = {
  apiVersion: 'client.authentication.k8s.io/v1',
  command: process.execPath,
  args: ['-e', `console.log(${JSON.stringify(credential)})`],
  interactiveMode: 'Never',
}

test.each([
  { user: { token: 'secret' }, headers: { authorization: 'Bearer secret' } },
  { user: { username: 'a', password: 'b' }, headers: { authorization: 'Basic YTpi' } },
  { user: { exec }, headers: { authorization: 'Bearer made' } },
  {
    user: { token: 'secret', as: 'somebody' },
    headers: { authorization: 'Bearer secret', 'impersonate-user': 'somebody' },
  },
])('a user signs in with $user', async ({ user, headers }) => {
  const kubeconfig = written('config', [{ name: 'one', user }])
  const connection = await KubeConnection.open({ kubeconfig })
  expect(connection.namespace).toBe('shop')
  expect(connection.access).toMatchObject({
    server: 'https://api.example:6443/base',
    tls: { rejectUnauthorized: false },
  })
  expect(connection.access.headers).toEqual(headers)
  connection.close()
})

const another = {
  token: 'secret',
  as: 'alice',
  'as-uid': '7',
  'as-groups': ['a, b', 'c'],
  'as-user-extra': { 'example.com/Scopes': ['read', 'write'], team: ['blue'] },
}

test.each([1, 2])('a kubeconfig of %i files impersonates another user with all of its settings', async (files) => {
  const path = written('config', [{ name: 'one', user: another }])
  const more = written('more', [], { contexts: [], clusters: [] })
  vi.stubEnv('KUBECONFIG', files === 1 ? path : [more, path].join(delimiter))
  const { access } = await KubeConnection.open({})
  expect(access.headers).toEqual({
    authorization: 'Bearer secret',
    'impersonate-user': 'alice',
    'impersonate-uid': '7',
    'impersonate-group': ['a, b', 'c'],
    'impersonate-extra-example.com%2Fscopes': ['read', 'write'],
    'impersonate-extra-team': ['blue'],
  })
})

test.each([
  { user: { 'as-groups': ['a'] }, says: 'its user has `as-groups` without `as`' },
  { user: { 'as-uid': '7' }, says: 'its user has `as-uid` without `as`' },
  { user: { 'as-user-extra': {} }, says: 'its user has `as-user-extra` without `as`' },
  { user: { as: 'alice', 'as-groups': 'a' }, says: '`as-groups` of its user is not a list of texts' },
  { user: { as: 'alice', 'as-uid': 7 }, says: '`as-uid` of its user is not a text' },
  { user: { as: 'alice', 'as-user-extra': { a: 'b' } }, says: '`as-user-extra` of its user is not a map' },
])('a kubeconfig with $user is refused', async ({ user, says }) => {
  const kubeconfig = written('config', [{ name: 'one', user: { token: 'secret', ...user } }])
  await expect(KubeConnection.open({ kubeconfig })).rejects.toThrow(says)
})

test('a command impersonates the given user', async () => {
  const kubeconfig = written('config', [{ name: 'one', user: { token: 'secret' } }])
  const { access } = await KubeConnection.open({ kubeconfig, as: 'system:serviceaccount:shop:reader' })
  expect(access.headers).toMatchObject({
    ...{ authorization: 'Bearer secret', 'impersonate-user': 'system:serviceaccount:shop:reader' },
  })
})

test('each group of the user is a header of its own', async () => {
  const kubeconfig = written('config', [{ name: 'one', user: { token: 'secret' } }])
  let asked: readonly string[] = []
  const server = createServer((request, response) => {
    asked = request.rawHeaders.filter((_, index) => /^impersonate-group$/i.test(request.rawHeaders[index - 1] ?? ''))
    response.end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const connection = await KubeConnection.open({ kubeconfig, as: 'alice', asGroups: ['a, b', 'c'] })
  const { port } = server.address() as AddressInfo
  using transport = new DisposableStack()
  transport.defer(() => server.close())
  const own = transport.adopt(new Transport(), (one) => one.close())
  const signal = AbortSignal.timeout(60_000)
  const access = { ...connection.access, server: `http://127.0.0.1:${port}` }
  const answer = await own.send(access, { method: 'GET', path: '/', signal })
  answer.resume()
  expect(asked).toEqual(['a, b', 'c'])
})

test('files of KUBECONFIG count as one, and a context can be chosen', async () => {
  const first = written('first', [{ name: 'one', user: { token: '1' } }])
  const second = join(home, 'second')
  writeFileSync(
    second,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: 'two', user: { token: '2' } }] }),
  )
  vi.stubEnv('KUBECONFIG', `${first}:${second}`)
  const connection = await KubeConnection.open({ context: 'two' })
  expect(connection.access.headers).toEqual({ authorization: 'Bearer 2' })
  connection.close()
})

test('a missing context is an error that lists the existing ones', async () => {
  const kubeconfig = written('config', [{ name: 'one', user: { token: '1' } }])
  await expect(KubeConnection.open({ kubeconfig, context: 'three' })).rejects.toThrow(
    `The kubeconfig ${kubeconfig} has no context "three". Set \`current-context\` to one of its contexts: one, two. Set another kubeconfig with --kubeconfig or KUBECONFIG, or a context with --context.`,
  )
})

test('a kubeconfig without a context is an error', async () => {
  const kubeconfig = join(home, 'none')
  writeFileSync(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', contexts: [{ name: 'one' }] }))
  await expect(KubeConnection.open({ kubeconfig })).rejects.toThrow(
    `The kubeconfig ${kubeconfig} has no \`current-context\`. Set it to one of its contexts: one.`,
  )
})

test('a replaced token file is read again', async () => {
  const tokenFile = join(home, 'token')
  writeFileSync(tokenFile, 'old\n')
  const connection = await KubeConnection.open({
    kubeconfig: written('config', [{ name: 'one', user: { tokenFile } }]),
  })
  writeFileSync(tokenFile, 'new\n')
  await connection.refresh()
  expect(connection.access.headers).toEqual({ authorization: 'Bearer new' })
  connection.close()
})

test.each([
  ['a bracket that is not closed', 'user: { token: QUOTED'],
  ['an alias that names nothing', 'user: { token: *QUOTED }'],
  ['a tag that is not known', 'user: { token: !QUOTED x'],
  ['a character that begins nothing', 'user: { token: @QUOTED }'],
])('both readers refuse a kubeconfig with invalid YAML without showing its content: %s', async (_, line) => {
  const text = `apiVersion: v1\nkind: Config\ncurrent-context: one\nusers:\n- name: one\n  ${line}\n`
  const paths = ['left', 'right'].map((name) => join(home, name))
  for (const path of paths) writeFileSync(path, text)
  for (const kubeconfig of [paths[0], paths.join(delimiter)]) {
    vi.stubEnv('KUBECONFIG', kubeconfig)
    const problem = await KubeConnection.open({}).catch((error: unknown) => error)
    expect(inspect(problem, { depth: 10 })).toContain('not valid YAML')
    expect(inspect(problem, { depth: 10 })).not.toContain('QUOTED')
  }
})
