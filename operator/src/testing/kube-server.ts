// An API server on loopback, whose responses a test decides, and a connection to it.

import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KubeConnection } from '../kube/connection.ts'

export interface KubeServer extends AsyncDisposable {
  readonly connection: KubeConnection
}

export async function startKubeServer(listener: RequestListener): Promise<KubeServer> {
  const stack = new AsyncDisposableStack()
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => new Promise<void>((done) => server.close(() => done())))
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'penstock-kube-server-')))
  const { port } = server.address() as AddressInfo
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    ...{ users: [{ name: 'u', user: {} }], contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }] },
  }
  const kubeconfig = join(folder.path, 'config')
  await writeFile(kubeconfig, JSON.stringify(config))
  const connection = await KubeConnection.open({ kubeconfig })
  stack.defer(() => connection.close())
  return { connection, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}
