import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { connect as connectTls, createServer } from 'node:tls'
import { expect, test } from 'vitest'
import { codeText, failureOf, PenstockError } from './errors.ts'
import { factText } from './telemetry/facts.ts'
import { makeCertificates } from './testing/certificates.ts'
import { freePort } from './testing/free-port.ts'

function errorOf(socket: ReturnType<typeof connect>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    socket.on('error', resolve)
    socket.on('secureConnect', () => reject(new Error('It connected.')))
  }).finally(() => socket.destroy())
}

test('a refused connection has its own kind, also as the cause of another error, in a group, or after a timeout', async () => {
  const refused = await errorOf(connect(await freePort(), '127.0.0.1'))
  expect(failureOf(refused)).toEqual({ kind: 'connection' })
  const outer = new PenstockError('PEN_REQUEST_FAILED', 'It failed.', { cause: refused })
  expect(failureOf(outer)).toEqual({ kind: 'connection' })
  expect(failureOf(new AggregateError([refused, refused]))).toEqual({ kind: 'connection' })
  expect(failureOf(new DOMException('late', 'TimeoutError'))).toEqual({ kind: 'connection' })
})

test('a refused certificate has its own kind: unknown authority, or another name', async () => {
  await using certificates = await makeCertificates()
  const [ca, good] = [await certificates.read(certificates.ca.crt), await certificates.issue('good', 'DNS:good.test')]
  const server = createServer({ cert: await readFile(good.crt), key: await readFile(good.key) })
  server.on('tlsClientError', () => {}) // the client gives up on purpose
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    const to = { host: '127.0.0.1', port }
    expect(failureOf(await errorOf(connectTls({ ...to, servername: 'good.test' })))).toEqual({ kind: 'tls' })
    expect(failureOf(await errorOf(connectTls({ ...to, ca, servername: 'other.test' })))).toEqual({ kind: 'tls' })
  } finally {
    server.close()
  }
})

test('closed files are a kind; a status is that of the nearest error that has one', async () => {
  const closed = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' })
  expect(failureOf(closed)).toEqual({ kind: 'permission' })
  const inner = new PenstockError('PEN_HEALTHCHECK', 'It answered.', { status: 403 })
  expect(failureOf(new PenstockError('PEN_AUTH', 'No token.', { cause: inner }))).toEqual({ status: 403 })
  expect(failureOf(new Error('connect ECONNREFUSED status 500 certificate'))).toEqual({})
})

test('the status of a tenant explains why a destination cannot be reached, without the words of the error', async () => {
  const refused = await errorOf(connect(await freePort(), '127.0.0.1'))
  const outer = new TypeError('fetch of https://user:secret@host failed', { cause: refused })
  expect(factText(refused)).toBe('ECONNREFUSED: nothing accepts connections at the address.')
  expect(factText(outer)).toBe('TypeError. ECONNREFUSED: nothing accepts connections at the address.')
})

test.each([
  { code: 'ENOTFOUND', says: 'ENOTFOUND: the name does not exist.' },
  { code: 'UND_ERR_SOCKET', says: 'UND_ERR_SOCKET: the other side closed the connection.' },
  { code: 'HPE_INVALID_CONSTANT', says: 'HPE_INVALID_CONSTANT: the answer is not HTTP.' },
  { code: 'toString', says: 'toString.' },
  { code: 'ENOSPC', says: 'ENOSPC.' },
])('the text of code $code', ({ code, says }) => {
  expect(codeText(code)).toBe(says)
})
