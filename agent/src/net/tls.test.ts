import { readFileSync, writeFileSync } from 'node:fs'
import type { ServerOptions } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HttpClient } from '../http/client.ts'
import type { TlsOptions } from '../schema/groups.ts'
import { type Certificates, type Issued, makeCertificates } from '../testing/certificates.ts'
import { fakeTlsDestination } from '../testing/destination.ts'
import { compileProxy } from './proxy.ts'
import { compileTls, defaultTls } from './tls.ts'

let certificates: Certificates
let local: Issued
let elsewhere: Issued
let expired: Issued
let client: Issued

beforeAll(async () => {
  certificates = await makeCertificates()
  local = await certificates.issue('local', 'DNS:localhost,IP:127.0.0.1')
  elsewhere = await certificates.issue('elsewhere', 'DNS:elsewhere.example')
  client = await certificates.issue('client')
  expired = await certificates.issue('expired', 'DNS:localhost,IP:127.0.0.1', 0)
  const { openssl } = certificates
  await openssl('x509', '-in', certificates.ca.crt, '-outform', 'DER', '-out', 'ca.der')
  await openssl('x509', '-in', client.crt, '-outform', 'DER', '-out', 'client.der')
  await openssl('pkcs8', '-topk8', '-in', client.key, '-outform', 'DER', '-nocrypt', '-out', 'client.key.der')
  await openssl('pkcs8', '-topk8', '-in', client.key, '-passout', 'pass:secret', '-out', 'client.key.enc')
  const p12 = ['pkcs12', '-export', '-in', client.crt, '-inkey', client.key]
  await openssl(...p12, '-passout', 'pass:secret', '-out', 'client.p12')
  const tripleDes = ['-keypbe', 'PBE-SHA1-3DES', '-certpbe', 'PBE-SHA1-3DES', '-macalg', 'sha1']
  await openssl(...p12, ...tripleDes, '-passout', 'pass:secret', '-out', 'client.3des.p12')
  writeFileSync(join(certificates.folder, 'garbage'), 'not a certificate')
})

afterAll(() => certificates[Symbol.asyncDispose]())

const file = (name: string) => join(certificates.folder, name)
const text = (name: string) => readFileSync(name, 'utf8')

/** The status of a request to a server with these options, or the error code. */
async function request(tls: Partial<TlsOptions>, server: ServerOptions): Promise<unknown> {
  await using destination = await fakeTlsDestination(server)
  const http = new HttpClient({
    tls: compileTls({ ...defaultTls, ...tls }),
    proxy: compileProxy({ enabled: false, http: undefined, https: undefined, no_proxy: undefined }),
  })
  try {
    const url = new URL(destination.url)
    return (await http.send({ method: 'GET', url, headers: {} }, AbortSignal.timeout(5000))).status
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    await http.close()
  }
}

const serverOf = (issued: Issued, more: ServerOptions = {}): ServerOptions => ({
  cert: text(issued.crt),
  key: text(issued.key),
  ...more,
})

test.each<{ what: string; server: () => ServerOptions; tls: () => Partial<TlsOptions>; outcome: unknown }>([
  { what: 'an unknown authority', server: () => serverOf(local), tls: () => ({}), outcome: /^(UNABLE_TO|SELF_SIGNED)/ },
  {
    what: 'an authority in PEM',
    server: () => serverOf(local),
    tls: () => ({ ca_file: certificates.ca.crt }),
    outcome: 200,
  },
  {
    what: 'an authority in DER',
    server: () => serverOf(local),
    tls: () => ({ ca_file: file('ca.der') }),
    outcome: 200,
  },
  {
    what: 'an authority as text, one of several',
    server: () => serverOf(local),
    tls: () => ({ ca_file: text(elsewhere.crt) + text(certificates.ca.crt) }),
    outcome: 200,
  },
  {
    what: 'another host name',
    server: () => serverOf(elsewhere),
    tls: () => ({ ca_file: certificates.ca.crt }),
    outcome: 'ERR_TLS_CERT_ALTNAME_INVALID',
  },
  {
    what: 'another host name, not verified',
    server: () => serverOf(elsewhere),
    tls: () => ({ ca_file: certificates.ca.crt, verify_hostname: false }),
    outcome: 200,
  },
  {
    what: 'another host name, which the client requests',
    server: () => serverOf(elsewhere),
    tls: () => ({ ca_file: certificates.ca.crt, server_name: 'elsewhere.example' }),
    outcome: 200,
  },
  {
    what: 'an unknown authority, without verification of the host name',
    server: () => serverOf(local),
    tls: () => ({ verify_hostname: false }),
    outcome: /^(UNABLE_TO|SELF_SIGNED)/,
  },
  {
    what: 'an unknown authority, not verified',
    server: () => serverOf(local),
    tls: () => ({ verify_certificate: false }),
    outcome: 200,
  },
  {
    what: 'another host name, without verification of the certificate',
    server: () => serverOf(elsewhere),
    tls: () => ({ verify_certificate: false }),
    outcome: 'ERR_TLS_CERT_ALTNAME_INVALID',
  },
  {
    what: 'an unknown authority and another host name, without any verification',
    server: () => serverOf(elsewhere),
    tls: () => ({ verify_certificate: false, verify_hostname: false }),
    outcome: 200,
  },
  {
    what: 'an expired certificate',
    server: () => serverOf(expired),
    tls: () => ({ ca_file: certificates.ca.crt }),
    outcome: 'CERT_HAS_EXPIRED',
  },
])('a server with $what', async ({ server, tls, outcome }) => {
  const result = await request(tls(), server())
  if (outcome instanceof RegExp) expect(result).toMatch(outcome)
  else expect(result).toBe(outcome)
})

test.each<{ what: string; identity: () => Partial<TlsOptions> }>([
  { what: 'PEM files', identity: () => ({ crt_file: client.crt, key_file: client.key }) },
  { what: 'PEM text', identity: () => ({ crt_file: text(client.crt), key_file: text(client.key) }) },
  { what: 'DER files', identity: () => ({ crt_file: file('client.der'), key_file: file('client.key.der') }) },
  {
    what: 'an encrypted key',
    identity: () => ({ crt_file: client.crt, key_file: file('client.key.enc'), key_pass: 'secret' }),
  },
  { what: 'PKCS#12', identity: () => ({ crt_file: file('client.p12'), key_pass: 'secret' }) },
  { what: 'PKCS#12 in triple DES', identity: () => ({ crt_file: file('client.3des.p12'), key_pass: 'secret' }) },
])('a client presents a certificate from $what', async ({ identity }) => {
  const ca = text(certificates.ca.crt)
  const server = serverOf(local, { ca, requestCert: true, rejectUnauthorized: true })
  expect(await request({ ca_file: certificates.ca.crt, ...identity() }, server)).toBe(200)
})

test('a server that requires a certificate rejects a client without one', async () => {
  const ca = text(certificates.ca.crt)
  const server = serverOf(local, { ca, requestCert: true, rejectUnauthorized: true })
  expect(await request({ ca_file: certificates.ca.crt }, server)).not.toBe(200)
})

test.each<{ what: string; tls: () => Partial<TlsOptions>; code: string }>([
  { what: 'a certificate without its key', tls: () => ({ crt_file: client.crt }), code: 'PEN_TLS_KEY_MISSING' },
  { what: 'a missing file', tls: () => ({ ca_file: file('none') }), code: 'PEN_TLS_FILE' },
  { what: 'an invalid authority', tls: () => ({ ca_file: file('garbage') }), code: 'PEN_TLS_INVALID' },
  { what: 'an invalid certificate', tls: () => ({ crt_file: file('garbage') }), code: 'PEN_TLS_INVALID' },
  {
    what: 'a wrong passphrase',
    tls: () => ({ crt_file: client.crt, key_file: file('client.key.enc'), key_pass: 'wrong' }),
    code: 'PEN_TLS_INVALID',
  },
  {
    what: 'a wrong passphrase for PKCS#12',
    tls: () => ({ crt_file: file('client.p12'), key_pass: 'wrong' }),
    code: 'PEN_TLS_INVALID',
  },
  {
    what: 'a key of another certificate',
    tls: () => ({ crt_file: client.crt, key_file: local.key }),
    code: 'PEN_TLS_INVALID',
  },
])('$what is reported at start', ({ tls, code }) => {
  expect(() => compileTls({ ...defaultTls, ...tls() })).toThrowError(expect.objectContaining({ code }))
})

test('a PKCS#12 file with RC2, as old tools write it, is reported with a fix', () => {
  const crt_file = join(import.meta.dirname, 'testdata/rc2.p12')
  expect(() => compileTls({ ...defaultTls, crt_file, key_pass: 'secret' })).toThrowError(
    expect.objectContaining({
      code: 'PEN_TLS_INVALID',
      message: expect.stringContaining('openssl pkcs12 -legacy -in'),
    }),
  )
})

test('messages contain no secrets', () => {
  expect(() =>
    compileTls({ ...defaultTls, crt_file: client.crt, key_file: file('client.key.enc'), key_pass: 'hunter2' }),
  ).toThrowError(expect.objectContaining({ message: expect.not.stringContaining('hunter2') }))
})

test('protocols are offered in order', async () => {
  let agreed: string | false | null = null
  await using destination = await fakeTlsDestination(
    serverOf(local, {
      ALPNCallback: ({ protocols }) => {
        agreed = protocols.join()
        return protocols.at(-1)
      },
    }),
  )
  const http = new HttpClient({
    tls: compileTls({ ...defaultTls, ca_file: certificates.ca.crt, alpn_protocols: ['x-own', 'http/1.1'] }),
    proxy: () => undefined,
  })
  await http.send({ method: 'GET', url: new URL(destination.url), headers: {} }, AbortSignal.timeout(5000))
  await http.close()
  expect(agreed).toBe('x-own,http/1.1')
})

test('a failed handshake leaves no connection open', async () => {
  const sockets: TLSSocket[] = []
  const settings = compileTls({ ...defaultTls, ca_file: certificates.ca.crt })
  await using destination = await fakeTlsDestination(serverOf(elsewhere))
  const { connect } = await import('node:net')
  const socket = connect(Number(new URL(destination.url).port), '127.0.0.1')
  await expect(settings.secure(socket, 'localhost').then((secured) => sockets.push(secured))).rejects.toThrow()
  expect(sockets).toEqual([])
  expect(socket.destroyed).toBe(true)
})

test('a disabled verification causes a warning', () => {
  expect(compileTls(defaultTls).warnings).toEqual([])
  expect(compileTls({ ...defaultTls, verify_certificate: false, verify_hostname: false }).warnings).toEqual([
    expect.stringContaining('man-in-the-middle'),
    expect.stringContaining('man-in-the-middle'),
  ])
})
