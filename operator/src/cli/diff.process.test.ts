// The real `penstock diff` at a double of the API server that lets its user read what a Role of one namespace allows.

import { spawn } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const pipeline = (sink: object, source = '.a = 1') => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', config: {} }],
    transforms: [{ name: 'edit', type: 'remap', config: { source } }],
    sinks: [{ name: 'out', ...sink }],
  },
})

async function diff(live: object, file: object) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-diff-'))
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://cluster')
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (!pathname.includes('/namespaces/shop/'))
      answer(403, { kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 })
    else if (pathname.endsWith('/pipelines/web')) answer(200, live)
    else answer(200, { metadata: {}, items: [] })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const path = join(folder.path, 'web.yaml')
  const kubeconfig = join(folder.path, 'kubeconfig')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one', namespace: 'shop' } }],
    clusters: [{ name: 'one', cluster: { server: url } }],
    users: [{ name: 'one', user: { token: 'secret' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  await writeFile(path, JSON.stringify(file))
  const command = spawn(process.execPath, ['--conditions=source', main, 'diff', path, '--kubeconfig', kubeconfig])
  let said = ''
  const hear = (text: Buffer) => {
    said += text
  }
  command.stdout.on('data', hear)
  command.stderr.on('data', hear)
  try {
    const code = await new Promise<number | null>((done) => command.on('close', done))
    return { code, said }
  } finally {
    command.kill('SIGKILL')
    server.close()
    server.closeAllConnections()
  }
}

const own = { type: 'blackhole', config: {} }
const shared = { ref: { kind: 'ClusterSink', name: 'store' } }

test.each([
  { what: 'the same', live: pipeline(own), file: pipeline(own), code: 0, says: 'No difference.' },
  { what: 'a change', live: pipeline(own), file: pipeline(own, '.a = 2'), code: 1, says: '+    source: .a = 2' },
  {
    what: 'a shared sink',
    live: pipeline(own),
    file: pipeline(shared),
    code: 69,
    says: 'Pipeline web refers to a ClusterSink, and you may not read ClusterSinks',
  },
  {
    what: 'no shared sink any more',
    live: pipeline(shared),
    file: pipeline(own),
    code: 69,
    says: 'Pipeline web refers to a ClusterSink, and you may not read ClusterSinks',
  },
])('with the rights of one namespace: $what', async ({ live, file, code: expected, says }) => {
  const { code, said } = await diff(live, file)
  expect(said).toContain(says)
  expect(code, said).toBe(expected)
})
