// The real command at a double of the API server that keeps a list of the requests: what `cleanup` changes, and when nothing.

import { spawn } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'

vi.setConfig({ testTimeout: 120_000 })
const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const system = 'penstock-system'
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'penstock-operator', namespace: system },
}

interface Cluster {
  /** Where Helm keeps its record, and the labels of that record. */
  readonly record?: { readonly resource: 'secrets' | 'configmaps'; readonly labels: Readonly<Record<string, string>> }
  readonly forbidden?: readonly string[]
}

/** Runs `penstock cleanup`; returns its exit code, its output and each request that was no GET. */
async function cleanup(flags: readonly string[], { record, forbidden = [] }: Cluster) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-cleanup-'))
  const changes: string[] = []
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://cluster')
    const resource = pathname.split('/').at(-1) ?? ''
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (request.method !== 'GET') changes.push(`${request.method} ${pathname}`)
    request.resume()
    if (forbidden.includes(resource)) {
      answer(403, { kind: 'Status', reason: 'Forbidden', message: `${resource} is forbidden`, code: 403 })
    } else if (resource === 'penstock-operator') answer(200, deployment)
    else if (resource.startsWith('penstock-')) {
      answer(404, { kind: 'Status', reason: 'NotFound', message: 'not found', code: 404 })
    } else {
      const wanted = (searchParams.get('labelSelector') ?? '').split(',').map((pair) => pair.split('='))
      const isWanted =
        resource === record?.resource &&
        pathname.includes(`/namespaces/${system}/`) &&
        wanted.every(([key = '', value]) => record.labels[key] === value)
      answer(200, { metadata: {}, items: isWanted ? [{ metadata: { name: 'record', namespace: system } }] : [] })
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const kubeconfig = join(folder.path, 'kubeconfig')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one', namespace: system } }],
    clusters: [{ name: 'one', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'one', user: { token: 'secret' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  const args = ['--conditions=source', main, 'cleanup', '--kubeconfig', kubeconfig, ...flags]
  const command = spawn(process.execPath, args)
  let said = ''
  const hear = (text: Buffer) => {
    said += text
  }
  command.stdout.on('data', hear)
  command.stderr.on('data', hear)
  try {
    const code = await new Promise<number | null>((done) => command.on('close', done))
    return { code, said, changes }
  } finally {
    command.kill('SIGKILL')
    server.close()
    server.closeAllConnections()
  }
}

const going = { owner: 'helm', name: 'logs', status: 'uninstalling' }
const scaled = [`PATCH /apis/apps/v1/namespaces/${system}/deployments/penstock-operator`]
const ofRelease = ['--release=logs']

test.each<{ case: string; flags: readonly string[]; cluster: Cluster; changes: readonly string[] }>([
  { case: 'no record of Helm', flags: ofRelease, cluster: {}, changes: [] },
  {
    case: 'a release that runs',
    flags: ofRelease,
    cluster: { record: { resource: 'secrets', labels: { ...going, status: 'deployed' } } },
    changes: [],
  },
  {
    case: 'another release that goes',
    flags: ofRelease,
    cluster: { record: { resource: 'secrets', labels: { ...going, name: 'other' } } },
    changes: [],
  },
  {
    case: 'records that may not be read',
    flags: ofRelease,
    cluster: { forbidden: ['secrets', 'configmaps'] },
    changes: [],
  },
  {
    case: 'a release that goes',
    flags: ofRelease,
    cluster: { record: { resource: 'secrets', labels: going } },
    changes: scaled,
  },
  {
    case: 'a release that goes, kept in ConfigMaps by a Helm whose Secrets may not be read',
    flags: ofRelease,
    cluster: { record: { resource: 'configmaps', labels: going }, forbidden: ['secrets'] },
    changes: scaled,
  },
  { case: 'a person who names no release', flags: [], cluster: {}, changes: scaled },
])('$case: changes $changes', async ({ flags, cluster, changes }) => {
  const result = await cleanup(flags, cluster)
  expect(result.changes, result.said).toEqual(changes)
  expect(result.code, result.said).toBe(0)
})
