// Secret values in a tenant's pipeline. The operator cannot see them, so the agent applies the same declarations.

import { expect, test } from 'vitest'
import { registry } from '../registry.ts'
import type { Secrets } from './folder.ts'
import type { PipelinePart } from './part.ts'
import { forbiddenSecrets } from './restricted.ts'

const place = { $secret: 'key' }
const problems = (sinks: PipelinePart['sinks'], value: string, more: Partial<PipelinePart> = {}) =>
  forbiddenSecrets(
    {
      id: 'shop/p',
      pipeline: { uid: 'u', generation: 1, hash: 'h', restricted: true },
      subscriptions: [],
      sources: {},
      transforms: {},
      sinks,
      ...more,
    },
    { value: () => Buffer.from(value) } as unknown as Secrets,
    registry,
  ).map(({ path, message }) => `${path} ${message}`)

const oauth = { 'shop/p/out': { type: 'message_broker', auth: { oauth2: { credentials_url: place } } } }
const notAFile = 'must not name a file in a namespaced resource (T4), but the value of the secret does'

test.each([
  'file:///dev/zero',
  '\u0001file:///dev/zero',
  'fi\tle:///dev/zero',
  'fi\nle:///dev/zero',
  '/etc/passwd',
  ' data:',
])('a secret cannot name a file by %j', (value) => {
  expect(problems(oauth, value)).toEqual([`sinks.shop/p/out.auth.oauth2.credentials_url ${notAFile}`])
})

test.each(['/x-----BEGIN /../etc/passwd', '{/etc/passwd', ' -----BEGIN CERTIFICATE-----'])(
  'recognizes names as the reader of the option does: %j',
  (value) => {
    const sinks = { 'shop/p/out': { type: 'http', tls: { ca_path: place } } }
    expect(problems(sinks, value)).toEqual([`sinks.shop/p/out.tls.ca_path ${notAFile}`])
  },
)

test('an address from a secret is not a file, and a program cannot come from a secret', () => {
  const proxied = { 'shop/p/out': { type: 'http', proxy: { https: place } } }
  expect(problems(proxied, 'fi\tle:/etc/passwd')).toEqual([`sinks.shop/p/out.proxy.https ${notAFile}`])
  const filter = { 'shop/p/t': { type: 'filter', condition: place } }
  expect(problems({}, 'true', { transforms: filter })).toEqual([
    'transforms.shop/p/t.condition must not come from a secret in a namespaced resource (T6)',
  ])
})

test('content is allowed', () => {
  expect(problems(oauth, 'data:application/json;base64,e30=')).toEqual([])
  const others = {
    'shop/p/out': { type: 'http', tls: { ca_file: place } },
    'shop/p/siem': { type: 'siem_unstructured', credentials_path: place },
  }
  expect(problems({ 'shop/p/out': others['shop/p/out'] }, '-----BEGIN CERTIFICATE-----')).toEqual([])
  expect(problems({ 'shop/p/siem': others['shop/p/siem'] }, ' {"type":"service_account"}')).toEqual([])
})
