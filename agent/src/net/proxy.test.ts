import { createServer, request as forward, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HttpClient } from '../http/client.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { type Certificates, type Issued, makeCertificates } from '../testing/certificates.ts'
import { fakeDestination, fakeTlsDestination } from '../testing/destination.ts'
import { compileNoProxy } from './no-proxy.ts'
import { compileProxy, environmentProxy, mergeProxy, proxyProblems } from './proxy.ts'
import { compileTls, defaultTls } from './tls.ts'

const none: ProxyOptions = { enabled: true, http: undefined, https: undefined, no_proxy: undefined }

let certificates: Certificates
let local: Issued

beforeAll(async () => {
  certificates = await makeCertificates()
  local = await certificates.issue('local', 'DNS:localhost,IP:127.0.0.1')
})

afterAll(() => certificates[Symbol.asyncDispose]())

/** A real proxy on loopback that records requests and their credentials. With `refuse`, it rejects every tunnel with status 403. */
async function startProxy({ secure = false, refuse = false } = {}) {
  const asked: string[] = []
  const note = ({ method, url, headers }: IncomingMessage) => {
    asked.push(`${method} ${url} ${headers['proxy-authorization'] ?? '-'}`)
  }
  const options = secure
    ? { cert: await certificates.read(local.crt), key: await certificates.read(local.key) }
    : undefined
  const server = options === undefined ? createServer() : createTlsServer(options)
  server.on('request', (incoming, response) => {
    note(incoming)
    const { 'proxy-authorization': _, ...headers } = incoming.headers
    const outgoing = forward(incoming.url ?? '', { method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    incoming.pipe(outgoing)
  })
  server.on('connect', (incoming, socket) => {
    note(incoming)
    if (refuse) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const [host, port] = (incoming.url ?? '').split(':')
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(target)
      target.pipe(socket)
    })
    target.on('error', () => socket.destroy())
    socket.on('error', () => target.destroy())
    socket.on('close', () => target.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function post(proxy: Partial<ProxyOptions>, url: string): Promise<number> {
  const client = new HttpClient({
    tls: compileTls({ ...defaultTls, ca_file: certificates.ca.crt }),
    proxy: compileProxy({ ...none, ...proxy }),
  })
  try {
    const body = Buffer.from('body')
    const request = { method: 'POST', url: new URL(url), headers: {}, body }
    return (await client.send(request, AbortSignal.timeout(5000))).status
  } finally {
    await client.close()
  }
}

const authorization = `Basic ${Buffer.from('us er:p@ss').toString('base64')}`

test.each([
  { target: 'http', proxy: 'http', credentials: '', expected: (url: string, _host: string) => `POST ${url}/in?a=b -` },
  {
    target: 'http',
    proxy: 'http',
    credentials: 'us%20er:p%40ss@',
    expected: (url: string, _host: string) => `POST ${url}/in?a=b ${authorization}`,
  },
  { target: 'http', proxy: 'https', credentials: '', expected: (url: string, _host: string) => `POST ${url}/in?a=b -` },
  { target: 'https', proxy: 'http', credentials: '', expected: (_url: string, host: string) => `CONNECT ${host} -` },
  {
    target: 'https',
    proxy: 'http',
    credentials: 'us%20er:p%40ss@',
    expected: (_url: string, host: string) => `CONNECT ${host} ${authorization}`,
  },
  { target: 'https', proxy: 'https', credentials: '', expected: (_url: string, host: string) => `CONNECT ${host} -` },
])(
  'a request to $target through a proxy with $proxy ($credentials)',
  async ({ target, proxy, credentials, expected }) => {
    await using destination = await (target === 'http'
      ? fakeDestination()
      : fakeTlsDestination({ cert: await certificates.read(local.crt), key: await certificates.read(local.key) }))
    await using server = await startProxy({ secure: proxy === 'https' })

    const status = await post({ [target]: `${proxy}://${credentials}${server.host}` }, `${destination.url}/in?a=b`)

    expect(status).toBe(200)
    expect(server.asked).toEqual([expected(destination.url, destination.host)])
    const [request] = destination.requests
    expect(request).toMatchObject({ path: '/in?a=b', headers: { host: destination.host } })
    expect(request?.headers['proxy-authorization']).toBeUndefined()
    expect(request?.text()).toBe('body')
  },
)

test.each<{ what: string; options: Partial<ProxyOptions> }>([
  { what: 'it is disabled', options: { enabled: false } },
  { what: 'the host is an exception', options: { no_proxy: ['127.0.0.0/8'] } },
])('the proxy is not used when $what', async ({ options }) => {
  await using destination = await fakeDestination()
  await using server = await startProxy()
  expect(await post({ http: `http://${server.host}`, ...options }, destination.url)).toBe(200)
  expect(server.asked).toEqual([])
})

test('if the proxy refuses the tunnel, the request fails', async () => {
  await using server = await startProxy({ refuse: true })
  await expect(post({ https: `http://${server.host}` }, 'https://127.0.0.1:1')).rejects.toThrow('status 403')
})

test.each([
  { pattern: 'example.com', host: 'example.com', direct: true },
  { pattern: 'EXAMPLE.com', host: 'example.COM', direct: true },
  { pattern: 'example.com', host: 'a.example.com', direct: false },
  { pattern: '.example.com', host: 'a.b.example.com', direct: true },
  { pattern: '.example.com', host: 'example.com', direct: true },
  { pattern: '.example.com', host: 'badexample.com', direct: false },
  { pattern: '*.example.com', host: 'a.example.com', direct: true },
  { pattern: '10.0.0.1', host: '10.0.0.1', direct: true },
  { pattern: '10.0.0.1', host: '10.0.0.2', direct: false },
  { pattern: '10.0.0.0/8', host: '10.9.8.7', direct: true },
  { pattern: '10.0.0.0/8', host: '11.0.0.1', direct: false },
  { pattern: '10.0.0.0/8', host: 'example.com', direct: false },
  { pattern: 'fd00::/8', host: '[fd00::1]', direct: true },
  { pattern: '::1', host: '[0:0:0:0:0:0:0:1]', direct: true },
  { pattern: '[::1]:80', host: '[::1]', direct: true },
  { pattern: 'example.com:80', host: 'example.com', direct: true },
  { pattern: 'example.com:81', host: 'example.com', direct: false },
  { pattern: '10.0.0.1:80', host: '10.0.0.1', direct: true },
  { pattern: '*', host: 'anything', direct: true },
  { pattern: '', host: 'example.com', direct: false },
])('no_proxy $pattern and host $host: direct is $direct', ({ pattern, host, direct }) => {
  expect(compileNoProxy([pattern])(host, 80)).toBe(direct)
})

test('component settings override global settings and the environment, and lowercase variables override uppercase ones', () => {
  const environment = environmentProxy({
    http_proxy: 'http://lower',
    HTTP_PROXY: 'http://upper',
    HTTPS_PROXY: 'http://secure',
    NO_PROXY: 'a, .b ,',
  })
  expect(environment).toEqual({ enabled: true, http: 'http://lower', https: 'http://secure', no_proxy: ['a', '.b'] })
  const global = mergeProxy({ ...none, https: 'http://global' }, environment)
  expect(global).toEqual({ enabled: true, http: 'http://lower', https: 'http://global', no_proxy: ['a', '.b'] })
  expect(mergeProxy({ ...none, enabled: false, http: 'http://own', no_proxy: ['c'] }, global)).toEqual({
    enabled: false,
    http: 'http://own',
    https: 'http://global',
    no_proxy: ['c'],
  })
})

test('a component can revert global settings, also with an empty list and with `enabled: true`', () => {
  const general = { enabled: false, http: 'http://global', https: undefined, no_proxy: ['a'] }
  expect(mergeProxy({ ...none, enabled: true, no_proxy: [] }, general)).toEqual({
    enabled: true,
    http: 'http://global',
    https: undefined,
    no_proxy: [],
  })
  expect(mergeProxy({ ...none, enabled: undefined }, general)).toEqual(general)
})

test('invalid addresses are reported', () => {
  expect(() => compileProxy({ ...none, http: 'http://' })).toThrowError(
    expect.objectContaining({ code: 'PEN_PROXY_INVALID' }),
  )
  expect(proxyProblems({ ...none, https: 'ftp://proxy' })).toMatchObject([{ path: 'proxy.https' }])
  expect(proxyProblems({ ...none, http: 'proxy:3128' })).toEqual([])
})
