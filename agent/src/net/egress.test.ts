// Connections of tenants, through the client that all components use, with names from a resolver of the test.

import type { LookupAddress } from 'node:dns'
import { expect, test } from 'vitest'
import { HttpClient } from '../http/client.ts'
import { type Destination, fakeDestination } from '../testing/destination.ts'
import { ChangingHosts, Egress, type EgressOptions, type ResolveAll } from './egress.ts'
import { compileTls, defaultTls } from './tls.ts'

const denied = ['169.254.0.0/16', '10.0.0.0/8', 'fe80::/10', '::1/128', 'api.cluster.test']

/** The addresses of names. Connections to 127.0.0.1 succeed unless it is denied too. */
const names: Readonly<Record<string, readonly string[]>> = {
  'metadata.test': ['169.254.169.254'],
  'mapped.test': ['::ffff:169.254.169.254'],
  'among.test': ['127.0.0.1', '10.1.2.3'],
  'local.test': ['fe80::1'],
  'good.test': ['127.0.0.1'],
  'es.shop.test': ['127.0.0.1'],
  'api.cluster.test': ['127.0.0.1'],
}
const resolve: ResolveAll = (host, _, done) => {
  const addresses = names[host]?.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }))
  if (addresses !== undefined) done(null, addresses)
  else done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), [])
}

/** The status of a request, or the code of its error. */
async function get(host: string, port: string, options: Partial<EgressOptions> = {}, proxy?: Destination) {
  const [proxyHost = '', proxyPort] = (proxy?.host ?? '').split(':')
  const address = { host: proxyHost, port: Number(proxyPort), secure: false, authorization: undefined }
  const client = new HttpClient({
    tls: compileTls(defaultTls),
    proxy: Object.assign(() => (proxy === undefined ? undefined : address), {
      egress: new Egress({ deny: denied, ...options }, resolve),
    }),
  })
  try {
    const url = new URL(`http://${host}:${port}/`)
    return (await client.send({ method: 'GET', url, headers: {} }, AbortSignal.timeout(10_000))).status
  } catch (error) {
    return (error as { code?: string }).code
  } finally {
    await client.close()
  }
}

const portOf = (destination: Destination) => destination.host.split(':')[1] as string

test.each([
  { host: 'good.test', found: 200 },
  { host: '127.0.0.1', found: 200 },
  { host: 'metadata.test', found: 'PEN_EGRESS_DENIED' },
  { host: 'mapped.test', found: 'PEN_EGRESS_DENIED' },
  { host: 'among.test', found: 'PEN_EGRESS_DENIED' }, // one denied address among permitted ones
  { host: 'local.test', found: 'PEN_EGRESS_DENIED' },
  { host: '169.254.169.254', found: 'PEN_EGRESS_DENIED' },
  { host: '[::ffff:169.254.169.254]', found: 'PEN_EGRESS_DENIED' },
  { host: '[::1]', found: 'PEN_EGRESS_DENIED' },
  { host: '0xa9fea9fe', found: 'PEN_EGRESS_DENIED' }, // the same address as a number
  { host: 'API.cluster.test', found: 'PEN_EGRESS_DENIED' }, // a denied name
  { host: 'nowhere.test', found: 'ENOTFOUND' },
])('a request to $host ends with $found', async ({ host, found }) => {
  await using destination = await fakeDestination()
  expect(await get(host, portOf(destination))).toBe(found)
  expect(destination.connections).toBe(found === 200 ? 1 : 0)
})

test('with allowed hosts, any other host is rejected, even by its address', async () => {
  await using destination = await fakeDestination()
  const allowHosts = ['good.test', '*.shop.test']
  expect(await get('good.test', portOf(destination), { allowHosts })).toBe(200)
  expect(await get('es.shop.test', portOf(destination), { allowHosts })).toBe(200)
  expect(await get('127.0.0.1', portOf(destination), { allowHosts })).toBe('PEN_EGRESS_DENIED')
  expect(await get('shop.test', portOf(destination), { allowHosts })).toBe('PEN_EGRESS_DENIED')
  const both = { allowHosts: ['metadata.test'] }
  expect(await get('metadata.test', portOf(destination), both)).toBe('PEN_EGRESS_DENIED') // allowed, but resolves to a denied address
})

test('a redirect is not followed', async () => {
  await using inside = await fakeDestination()
  await using destination = await fakeDestination({ status: 302, headers: { location: inside.url } })
  expect(await get('good.test', portOf(destination))).toBe(302)
  expect(inside.connections).toBe(0)
})

test('a proxy does not circumvent the restrictions, and the agent’s own proxy may have any address', async () => {
  await using proxy = await fakeDestination()
  const own = { host: '127.0.0.1', port: Number(portOf(proxy)) }
  const options = { deny: [...denied, '127.0.0.0/8'], ownProxies: [own] }
  expect(await get('good.test', '80', options)).toBe('PEN_EGRESS_DENIED')
  // The proxy may resolve names that this machine cannot.
  expect(await get('outside.test', '80', options, proxy)).toBe(200)
  expect(await get('metadata.test', '80', options, proxy)).toBe('PEN_EGRESS_DENIED')
  expect(await get('169.254.169.254', '80', options, proxy)).toBe('PEN_EGRESS_DENIED')
  expect(await get('outside.test', '80', { ...options, allowHosts: ['good.test'] }, proxy)).toBe('PEN_EGRESS_DENIED')
  // A proxy that a tenant configures is subject to the same restrictions.
  expect(await get('outside.test', '80', { ...options, ownProxies: [] }, proxy)).toBe('PEN_EGRESS_DENIED')
  expect(proxy.requests).toHaveLength(1)
})

test('the denied hosts may change between two connections', async () => {
  await using destination = await fakeDestination(204, 204, 204)
  const { port } = new URL(destination.url)
  const changing = new ChangingHosts()
  expect(await get('good.test', port, { changing })).toBe(204)
  changing.set(['127.0.0.1'])
  expect(await get('good.test', port, { changing })).toBe('PEN_EGRESS_DENIED')
  changing.set(['es.shop.test', '192.0.2.1'])
  expect(await get('good.test', port, { changing })).toBe(204)
  expect(await get('es.shop.test', port, { changing })).toBe('PEN_EGRESS_DENIED')
})
