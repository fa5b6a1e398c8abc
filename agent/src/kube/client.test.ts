import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Certificates, type Issued, makeCertificates } from '../testing/certificates.ts'
import { ApiServerClient } from './client.ts'
import { inClusterTarget, kubeConfigTarget } from './config.ts'

let certificates: Certificates
let server: Issued
let user: Issued
let folder: string
beforeAll(async () => {
  certificates = await makeCertificates()
  server = await certificates.issue('api', 'DNS:localhost,IP:127.0.0.1')
  user = await certificates.issue('agent')
  folder = mkdtempSync(join(tmpdir(), 'penstock-kube-'))
})
afterAll(async () => {
  await certificates[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const signal = new AbortController().signal
const text = (path: string) => readFileSync(path, 'utf8')
const base64 = (path: string) => readFileSync(path).toString('base64')

interface Listening extends AsyncDisposable {
  readonly port: number
  readonly sockets: Set<Socket>
}

async function listen(listening: Server): Promise<Listening> {
  const sockets = new Set<Socket>()
  listening.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  return {
    port: (listening.address() as AddressInfo).port,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listening.close(resolve))
    },
  }
}

/** Responds with the path and the caller's identity, over HTTP/2 if the client supports it. */
function secureServer(options: object = {}): Server {
  return createSecureServer({ cert: text(server.crt), key: text(server.key), ...options }, (request, response) => {
    const { authorization } = request.headers
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ version: request.httpVersion, path: request.url, authorization }))
  })
}

function kubeConfig(port: number, cluster: object, account: object): string {
  const path = join(folder, `config-${port}`)
  writeFileSync(
    path,
    JSON.stringify({
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${port}/base`, ...cluster } }],
      users: [{ name: 'u', user: account }],
    }),
  )
  return path
}

test('all requests share one HTTP/2 connection, which is reopened after it was lost', async () => {
  await using api = await listen(secureServer())
  const config = kubeConfig(api.port, { 'certificate-authority-data': base64(certificates.ca.crt) }, { token: 't1' })
  const client = new ApiServerClient(await kubeConfigTarget(config), 'Penstock/test')
  try {
    const answers = await Promise.all(['/a', '/b?x=1', '/c'].map((path) => client.json(path, signal)))
    expect(answers.map(({ body }) => body)).toEqual([
      { version: '2.0', path: '/base/a', authorization: 'Bearer t1' },
      { version: '2.0', path: '/base/b?x=1', authorization: 'Bearer t1' },
      { version: '2.0', path: '/base/c', authorization: 'Bearer t1' },
    ])
    expect(api.sockets.size).toBe(1)
    for (const socket of api.sockets) socket.destroy()
    await expect.poll(() => client.json('/d', signal).then(({ status }) => status, String)).toBe(200)
    expect(api.sockets.size).toBe(2)
  } finally {
    await client.close()
  }
})

test.each(['2.0', '1.1'])('an object is written by PUT over HTTP/%s', async (httpVersion) => {
  const echo = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) => {
    let body = ''
    request.on('data', (part) => {
      body += part
    })
    request.on('end', () => {
      const { method, headers } = request
      ;(response as ServerResponse).end(JSON.stringify({ version: request.httpVersion, method, body, headers }))
    })
  }
  const identity = { cert: text(server.crt), key: text(server.key) }
  await using api = await listen(
    httpVersion === '2.0' ? createSecureServer(identity, echo) : createHttpsServer(identity, echo),
  )
  const client = new ApiServerClient(
    await kubeConfigTarget(kubeConfig(api.port, { 'insecure-skip-tls-verify': true }, {})),
    'Penstock/test',
  )
  try {
    expect((await client.json('/a', signal, { b: 1 }, 'PUT')).body).toMatchObject({
      ...{ version: httpVersion, method: 'PUT', body: '{"b":1}' },
      headers: { 'content-type': 'application/json' },
    })
  } finally {
    await client.close()
  }
})

test('the client presents its certificate, also from files next to the kubeconfig', async () => {
  await using api = await listen(
    secureServer({ requestCert: true, rejectUnauthorized: true, ca: text(certificates.ca.crt) }),
  )
  writeFileSync(join(folder, 'user.crt'), text(user.crt))
  const config = kubeConfig(
    api.port,
    { 'certificate-authority': certificates.ca.crt },
    { 'client-certificate': 'user.crt', 'client-key-data': base64(user.key) },
  )
  const client = new ApiServerClient(await kubeConfigTarget(config), 'Penstock/test')
  try {
    expect((await client.json('/a', signal)).status).toBe(200)
  } finally {
    await client.close()
  }
})

test('a server without HTTP/2 receives HTTP/1.1', async () => {
  const plain = createHttpsServer({ cert: text(server.crt), key: text(server.key) }, (request, response) =>
    response.end(JSON.stringify({ version: request.httpVersion })),
  )
  await using api = await listen(plain)
  const config = kubeConfig(api.port, { 'insecure-skip-tls-verify': true }, {})
  const client = new ApiServerClient(await kubeConfigTarget(config), 'Penstock/test')
  try {
    expect((await client.json('/a', signal)).body).toEqual({ version: '1.1' })
    expect((await client.json('/b', signal)).body).toEqual({ version: '1.1' })
  } finally {
    await client.close()
  }
})

test('the client rejects a server with a certificate from another authority', async () => {
  await using api = await listen(secureServer())
  const client = new ApiServerClient(await kubeConfigTarget(kubeConfig(api.port, {}, {})), 'Penstock/test')
  try {
    await expect(client.json('/a', signal)).rejects.toMatchObject({
      code: 'PEN_KUBERNETES',
      message: expect.stringContaining(`https://127.0.0.1:${api.port} could not be reached`),
    })
  } finally {
    await client.close()
  }
})

test('in a pod, the client uses the service account and reads its token for every request', async () => {
  await using api = await listen(secureServer())
  writeFileSync(join(folder, 'token'), 'one\n')
  writeFileSync(join(folder, 'ca.crt'), text(certificates.ca.crt))
  const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(api.port) }
  const client = new ApiServerClient(await inClusterTarget(environment, folder), 'Penstock/test')
  try {
    expect((await client.json('/a', signal)).body).toMatchObject({ authorization: 'Bearer one' })
    writeFileSync(join(folder, 'token'), 'two\n')
    expect((await client.json('/a', signal)).body).toMatchObject({ authorization: 'Bearer two' })
  } finally {
    await client.close()
  }
})

test('outside a cluster, the message explains what to do', async () => {
  await expect(inClusterTarget({}, folder)).rejects.toMatchObject({
    code: 'PEN_KUBERNETES',
    message: expect.stringContaining('Set `kube_config_file`'),
  })
})
