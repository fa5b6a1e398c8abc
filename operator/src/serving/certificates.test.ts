import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { type Certificates, publishMs, renewCertificates, serverNames } from './certificates.ts'

const names = serverNames('penstock-system')
const start = new Date('2026-03-01T00:00:00Z')
const after = (days: number, ms = 0) => new Date(start.getTime() + days * 86_400_000 + ms)
const authorities = (kept: Certificates) => kept.server.ca.split('-----BEGIN').length - 1

/** Whether a client that trusts `ca` accepts a server's certificate for the name. */
async function isTrusted(kept: Certificates, ca: string, servername: string): Promise<boolean> {
  const server = createServer({ cert: kept.server.cert, key: kept.server.key }, (_, answer) => answer.end('yes'))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  try {
    const { port } = server.address() as AddressInfo
    const asked = request({ host: '127.0.0.1', port, servername, ca, agent: false }).end()
    const [answer] = await once(asked, 'response')
    answer.resume()
    return true
  } catch {
    return false
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('a certificate is valid only for the names of the operator', async () => {
  const kept = await renewCertificates({}, names, new Date())
  expect(await isTrusted(kept, kept.server.ca, 'penstock-webhook.penstock-system.svc')).toBe(true)
  expect(await isTrusted(kept, kept.server.ca, 'penstock-operator.penstock-system.svc')).toBe(true)
  expect(await isTrusted(kept, kept.server.ca, 'penstock-operator.elsewhere.svc')).toBe(false)
  const other = await renewCertificates({}, names, new Date())
  expect(await isTrusted(kept, other.server.ca, 'penstock-operator.penstock-system.svc')).toBe(false)
})

test('nothing changes before two thirds of the lifetime', async () => {
  const made = await renewCertificates({}, names, start)
  for (const days of [0, 1, 59]) {
    const again = await renewCertificates(made, names, after(days))
    expect(again.authority).toBe(made.authority)
    expect(again.server).toBe(made.server)
  }
  expect(new X509Certificate(made.authority.cert).validToDate).toEqual(after(365))
})

test('the server certificate is renewed under the same authority', async () => {
  const made = await renewCertificates({}, names, start)
  const renewed = await renewCertificates(made, names, after(61))
  expect(renewed.authority).toBe(made.authority)
  expect(renewed.server.cert).not.toBe(made.server.cert)
  expect(renewed.server.ca).toBe(made.server.ca)
})

test('clients trust a new authority in addition to the old one before it signs anything', async () => {
  const made = await renewCertificates({}, names, start)
  const recent = await renewCertificates(made, names, after(240))
  const rotated = await renewCertificates(recent, names, after(244))
  expect(rotated.authority.cert).not.toBe(made.authority.cert)
  expect(authorities(rotated)).toBe(2)
  expect(rotated.server.cert, 'signed by the old one').toBe(recent.server.cert)
  expect(new X509Certificate(rotated.server.cert).verify(new X509Certificate(made.authority.cert).publicKey)).toBe(true)

  const early = await renewCertificates(rotated, names, after(244, publishMs - 1))
  expect(early.server.cert).toBe(recent.server.cert)
  const signed = await renewCertificates(rotated, names, after(244, publishMs))
  expect(signed.server.cert).not.toBe(recent.server.cert)
  expect(new X509Certificate(signed.server.cert).verify(new X509Certificate(rotated.authority.cert).publicKey)).toBe(
    true,
  )
  expect(authorities(signed)).toBe(2)

  const later = await renewCertificates(signed, names, after(366))
  expect(authorities(later), 'the old one is over').toBe(1)
})

test.each([
  ['the names are others', (made: Certificates) => [made, serverNames('elsewhere'), start] as const],
  [
    'the Secret was damaged',
    (made: Certificates) => [{ ...made, server: { ...made.server, cert: 'no certificate' } }, names, start] as const,
  ],
  ['the time was slept through', (made: Certificates) => [made, names, after(400)] as const],
])('a new certificate is made when %s', async (_, change) => {
  const made = await renewCertificates({}, names, start)
  const renewed = await renewCertificates(...change(made))
  expect(renewed.server.cert).not.toBe(made.server.cert)
  const newest = new X509Certificate(renewed.authority.cert)
  expect(new X509Certificate(renewed.server.cert).verify(newest.publicKey)).toBe(true)
})
