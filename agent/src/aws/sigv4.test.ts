import { expect, test } from 'vitest'
import { signRequest } from './sigv4.ts'

// Requests from the published test suite for the signature.
const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: undefined,
  expiresMs: undefined,
}
const scope = { region: 'us-east-1', service: 'service' }
const now = Date.UTC(2015, 7, 30, 12, 36)

test.each([
  {
    name: 'get-vanilla',
    request: { method: 'GET', path: '/' },
    signature: '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  },
  {
    name: 'get-vanilla-query-order-key-case',
    request: { method: 'GET', path: '/?Param2=value2&Param1=value1' },
    signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  },
  {
    name: 'post-vanilla',
    request: { method: 'POST', path: '/' },
    signature: '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  },
  {
    name: 'post-x-www-form-urlencoded',
    request: {
      method: 'POST',
      path: '/',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'Param1=value1',
    },
    signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  },
])('signs $name', ({ request, signature }) => {
  const {
    method,
    path,
    headers = {},
    body,
  } = request as {
    method: string
    path: string
    headers?: Record<string, string>
    body?: string
  }
  const signed = signRequest(
    {
      method,
      url: new URL(path, 'https://example.amazonaws.com'),
      headers,
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    },
    credentials,
    scope,
    now,
  )
  expect(signed['x-amz-date']).toBe('20150830T123600Z')
  expect(signed['authorization']).toContain('Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ')
  expect(signed['authorization']).toMatch(new RegExp(`Signature=${signature}$`))
})

test('session tokens are signed, and serverless services require the hash of the body', () => {
  const signed = signRequest(
    { method: 'GET', url: new URL('https://x.aoss.amazonaws.com/'), headers: {} },
    { ...credentials, sessionToken: 'tok' },
    { region: 'us-east-1', service: 'aoss' },
    now,
  )
  expect(signed['x-amz-security-token']).toBe('tok')
  expect(signed['x-amz-content-sha256']).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  expect(signed['authorization']).toContain('SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token')
})
