// Calls the server as the API server does: reviews over TLS, with a certificate that is replaced while the server runs.

import { createPrivateKey, webcrypto } from 'node:crypto'
import { request } from 'node:https'
import { createLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { Agent } from '../api/agent.ts'
import { KubeError } from '../kube/client.ts'
import { OperatorCertificate, renewCertificates, serverNames } from '../serving/certificates.ts'
import { testContext } from '../testing/context.ts'
import { type ClientAuthority, WebhookServer } from './server.ts'
import { pathOfWebhook, WebhookTokens } from './tokens.ts'
import type { Judge } from './validate.ts'

const agent: Agent = {
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'side', namespace: 'shop' },
  spec: { mode: 'Sidecar' },
}

const judge: Judge = async (_, object) =>
  object.metadata.name === 'wrong'
    ? [{ severity: 'error', reason: 'InvalidConfig', path: 'spec.sinks', message: 'there is none' }]
    : object.metadata.name === 'slow'
      ? new Promise(() => {})
      : []

const token = 'a token that only the API server knows'
const at = (path: string) => pathOfWebhook(path, token)

interface Recorded {
  readonly type: { readonly kind: string }
  readonly object: { readonly metadata: { readonly annotations?: Record<string, string> } }
}

interface Given {
  readonly judging?: Judge
  readonly clients?: ClientAuthority
  /** The answer to a review of rights. */
  readonly rights?: () => Promise<{ status: { allowed: boolean } }>
}

const allowed = async () => ({ status: { allowed: true } })

async function started({ judging = judge, clients, rights = allowed }: Given = {}) {
  const tokens = new WebhookTokens()
  tokens.set([{ value: token, createdAt: 0 }])
  const written: Recorded[] = []
  const kube = {
    as: () => kube,
    request: async (_: string, path: string) => (path.endsWith('subjectaccessreviews') ? rights() : { minor: '36+' }),
    get: async () => undefined,
    apply: async (type: Recorded['type'], object: Recorded['object']) => void written.push({ type, object }),
  }
  const certificate = new OperatorCertificate()
  const make = async () => certificate.set((await renewCertificates({}, serverNames('ns'), new Date())).server)
  await make()
  let port = 0
  // Only the parts of the context that the server uses.
  const context = testContext({
    settings: { webhookAddress: '127.0.0.1:0', authorizeClusterPipelines: true, namespace: 'ns' },
    caches: { cache: () => ({ get: (_: string, name: string) => (name === 'side' ? agent : undefined) }) },
    kube,
    metrics: new Registry(),
    logger: createLogger({ level: 'silent', format: 'json' }),
  })
  const server = new WebhookServer(context, certificate, {
    tokens,
    clients,
    judge: () => judging,
    workloadInput: () => ({ image: 'x:1', operatorUrl: 'https://o:9443', operatorNamespace: 'ns' }),
    listening: (bound) => {
      port = bound
    },
  })
  await server.listen()
  return { server, port: () => port, certificate, make, tokens, written, ca: () => certificate.current()?.ca ?? '' }
}

/** Posts a body and returns status and parsed response, or the connection's error. */
function post(
  port: number,
  ca: string,
  path: string,
  body: unknown,
  more: object = {},
): Promise<{ code: number; body: Record<string, unknown> }> {
  return new Promise((done, failed) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: 'POST',
        ca,
        servername: 'penstock-webhook.ns.svc',
        agent: false,
        ...more,
      },
      (answer) => {
        let text = ''
        answer.on('data', (part) => {
          text += part
        })
        answer.on('end', () => done({ code: answer.statusCode ?? 0, body: JSON.parse(text) }))
      },
    )
    asked.on('error', failed)
    asked.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
}

const review = (kind: string, object: object) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'uid-7', kind: { kind }, namespace: 'shop', operation: 'CREATE', object, oldObject: null },
})
const pipeline = (name: string) => ({ kind: 'Pipeline', metadata: { name }, spec: {} })

test('reviews are answered with their uid: allowed, refused, patched, warned', async () => {
  const { server, port, certificate } = await started()
  await using _ = server
  const ca = certificate.current()?.ca ?? ''
  const ask = async (path: string, kind: string, object: object) => {
    const { code, body } = await post(port(), ca, at(path), review(kind, object))
    expect(code).toBe(200)
    expect(body).toMatchObject({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' })
    return body['response'] as Record<string, unknown>
  }
  expect(await ask('/validate', 'Pipeline', pipeline('good'))).toEqual({ uid: 'uid-7', allowed: true })
  expect(await ask('/validate', 'Pipeline', pipeline('wrong'))).toMatchObject({
    allowed: false,
    status: { code: 422, reason: 'Invalid', message: expect.stringContaining('there is none') },
  })
  expect(await ask('/validate', 'Unknown', {})).toEqual({ uid: 'uid-7', allowed: true })
  expect(
    await ask('/warn', 'Deployment', {
      kind: 'Deployment',
      metadata: { annotations: { 'penstock.dev/sidecar': 'side' } },
    }),
  ).toMatchObject({ allowed: true, warnings: [expect.stringContaining('spec.template')] })
  const annotations = {
    'penstock.dev/sidecar': 'side',
    'penstock.dev/log-volume': 'logs',
    'penstock.dev/log-paths': '/logs/*',
  }
  const patched = await ask('/inject', 'Pod', { metadata: { annotations }, spec: { containers: [{ name: 'app' }] } })
  expect(patched).toMatchObject({ allowed: true, patchType: 'JSONPatch' })
  const operations = JSON.parse(Buffer.from(String(patched['patch']), 'base64').toString())
  expect(operations.map((one: { path: string }) => one.path)).toEqual([
    '/spec/volumes',
    '/spec/initContainers',
    '/spec/containers',
    '/metadata/annotations',
  ])
})

test('refuses input that is not a review, and allows a request if the check takes too long', async () => {
  const { server, port, certificate } = await started()
  await using _ = server
  const ca = certificate.current()?.ca ?? ''
  expect((await post(port(), ca, at('/validate'), 'no json')).code).toBe(400)
  expect((await post(port(), ca, at('/validate'), {})).code).toBe(400)
  expect((await post(port(), ca, '/elsewhere', review('Pipeline', {}))).code).toBe(404)
  const { body } = await post(port(), ca, at('/validate'), review('Pipeline', pipeline('slow')))
  expect(body['response']).toMatchObject({ allowed: true, warnings: [expect.stringContaining('too long')] })
})

test('a renewed certificate is used for the next connection', async () => {
  const { server, port, certificate, make } = await started()
  await using _ = server
  const before = certificate.current()?.ca ?? ''
  await post(port(), before, at('/validate'), review('Pipeline', pipeline('good')))
  await make()
  await expect(post(port(), before, at('/validate'), review('Pipeline', pipeline('good')))).rejects.toThrow()
  const after = certificate.current()?.ca ?? ''
  expect((await post(port(), after, at('/validate'), review('Pipeline', pipeline('good')))).code).toBe(200)
})

/** A self-signed certificate, like one that the API server may use. */
async function clientCertificate(name: string): Promise<{ cert: string; key: string }> {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notAfter: new Date(Date.now() + 86_400_000),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
    ],
  })
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'pem', type: 'pkcs8' })
  return { cert: certificate.toString('pem'), key: String(key) }
}

const clusterPipeline = { kind: 'ClusterPipeline', metadata: { name: 'all', uid: 'u' }, spec: {} }
const forged = (more: object = {}) => {
  const asks = review('ClusterPipeline', clusterPipeline)
  const userInfo = { username: 'system:admin', groups: ['system:masters'] }
  return { ...asks, request: { ...asks.request, namespace: undefined, userInfo, ...more } }
}

test.each([
  ['/validate'],
  ['/validate/'],
  ['/validate/undefined'],
  [pathOfWebhook('/validate', 'another token')],
  [`/validate${at('/inject').slice('/inject'.length)}`],
  [`${at('/validate')}/more`],
  [at('/warn').slice(0, -1)],
  ['/'],
])('a review for %s is not checked, and leaves no record', async (path) => {
  let judged = 0
  const counting: Judge = async () => {
    judged++
    return []
  }
  const { server, port, ca, written } = await started({ judging: counting })
  await using _ = server
  expect(await post(port(), ca(), path, forged())).toMatchObject({ code: 404 })
  expect([judged, written]).toEqual([0, []])
})

test('without a token, no review is answered', async () => {
  const { server, port, ca, tokens } = await started()
  await using _ = server
  tokens.set([])
  expect((await post(port(), ca(), at('/validate'), forged())).code).toBe(404)
})

test('the author of a ClusterPipeline is recorded for a request of the API server, but not for a dry run', async () => {
  const { server, port, ca, written } = await started()
  await using _ = server
  const { body } = await post(port(), ca(), at('/validate'), forged({ dryRun: true }))
  expect(body['response']).toMatchObject({ allowed: true })
  expect(written).toEqual([])
  await post(port(), ca(), at('/validate'), forged())
  expect(written.map(({ type }) => type.kind)).toEqual(['ConfigMap'])
  expect(written[0]?.object.metadata.annotations?.['penstock.dev/author']).toContain('system:admin')
})

test('if a client certificate is configured, the path is not sufficient', async () => {
  const client = await clientCertificate('kube-apiserver')
  const stranger = await clientCertificate('kube-apiserver')
  const { server, port, ca } = await started({ clients: { ca: client.cert, names: ['kube-apiserver'] } })
  const named = await started({ clients: { ca: client.cert, names: ['somebody-else'] } })
  await using _ = server
  await using __ = named.server
  const path = at('/validate')
  const ask = async (of: { port: () => number; ca: () => string }, more: object) =>
    (await post(of.port(), of.ca(), path, review('Pipeline', pipeline('good')), more)).code
  expect(await ask({ port, ca }, {})).toBe(403)
  expect(await ask({ port, ca }, stranger)).toBe(403)
  expect(await ask({ port, ca }, client)).toBe(200)
  expect(await ask(named, client)).toBe(403)
})

test('a namespace with too many requests must retry, and the others are answered', async () => {
  const waiting: (() => void)[] = []
  const holding: Judge = async (_, object) => {
    if (object.metadata.namespace === 'evil') await new Promise<void>((done) => waiting.push(done))
    return []
  }
  const { server, port, ca } = await started({ judging: holding })
  await using _ = server
  const ask = async (namespace: string, name: string) => {
    const asks = review('Pipeline', { ...pipeline(name), metadata: { name, namespace } })
    const body = { ...asks, request: { ...asks.request, namespace } }
    const answer = await post(port(), ca(), `${at('/validate')}?timeout=30s`, body)
    return answer.body['response'] as { allowed: boolean; status?: { code: number; message: string } }
  }
  let refused = 0
  const flood = Array.from({ length: 40 }, async (_, index) => {
    const { status } = await ask('evil', `p${index}`)
    if (status?.code !== 429) return
    expect(status.message).toMatch(/too many reviews .*try again/)
    refused++
  })
  // Two are processed and sixteen wait; further requests are rejected without waiting.
  await expect.poll(() => refused).toBe(22)
  expect(waiting).toHaveLength(2)
  // Another namespace does not even wait for one of them.
  expect(await ask('shop', 'good')).toEqual({ uid: 'uid-7', allowed: true })
  expect(waiting).toHaveLength(2)
  const draining = setInterval(() => waiting.shift()?.(), 5)
  await Promise.all(flood).finally(() => clearInterval(draining))
  expect(refused).toBe(22)
})

test('large reviews of one namespace do not use up the memory for others', async () => {
  const ending = Promise.withResolvers<void>()
  const holding: Judge = async (_, object) => {
    if (object.metadata.namespace === 'evil') await ending.promise
    return []
  }
  const { server, port, ca } = await started({ judging: holding })
  await using _ = server
  const ask = async (namespace: string, bytes: number) => {
    const object = { ...pipeline('p'), metadata: { name: 'p', namespace }, spec: { text: 'x'.repeat(bytes) } }
    const asks = review('Pipeline', object)
    const body = { ...asks, request: { ...asks.request, namespace } }
    const answer = await post(port(), ca(), `${at('/validate')}?timeout=30s`, body)
    return answer.body['response'] as { allowed: boolean; status?: { code: number } } | undefined
  }
  let refused = 0
  const flood = Array.from({ length: 16 }, async () => {
    const response = await ask('evil', 3_000_000)
    if (response?.status?.code === 429) refused++
  })
  await expect.poll(() => refused, { timeout: 30_000 }).toBe(12)
  expect(await ask('shop', 3_000_000)).toEqual({ uid: 'uid-7', allowed: true })
  ending.resolve()
  await Promise.all(flood)
})

test.each([
  ['answers with an error', new KubeError('500', { status: 500, reason: 'InternalError' })],
  ['does not answer in time', new DOMException('The operation timed out.', 'TimeoutError')],
])('an object is allowed with a warning if the API server %s', async (_name, error) => {
  const { server, port, ca } = await started({ judging: () => Promise.reject(error) })
  await using _ = server
  const { code, body } = await post(port(), ca(), at('/validate'), review('Pipeline', pipeline('p')))
  expect([code, body['response']]).toEqual([
    200,
    {
      uid: 'uid-7',
      allowed: true,
      warnings: ['The API server failed during the check; see the status for its result.'],
    },
  ])
})

test('the review of an author that takes too long holds up nobody, and leaves no record', async () => {
  const { server, port, ca, written } = await started({ rights: () => new Promise(() => {}) })
  await using _ = server
  const path = `${at('/validate')}?timeout=2s`
  const slow = Array.from({ length: 8 }, () => post(port(), ca(), path, forged()))
  expect((await post(port(), ca(), path, review('Pipeline', pipeline('good')))).body['response']).toEqual({
    ...{ uid: 'uid-7', allowed: true },
  })
  for (const { body } of await Promise.all(slow))
    expect(body['response']).toMatchObject({ allowed: true, warnings: [expect.stringContaining('too long')] })
  expect(written).toEqual([])
})

test('a response is sent before the API server stops waiting', async () => {
  const { server, port, ca } = await started()
  await using _ = server
  const { body } = await post(port(), ca(), `${at('/validate')}?timeout=1s`, review('Pipeline', pipeline('slow')))
  expect(body['response']).toMatchObject({ allowed: true, warnings: [expect.stringContaining('too long')] })
})

test('a body longer than any object is not stored', async () => {
  const { server, port, ca } = await started()
  await using _ = server
  const body = JSON.stringify({ request: { uid: 'u', object: 'x'.repeat(9 * 1024 * 1024) } })
  const answer = await post(port(), ca(), at('/validate'), body).catch((error: NodeJS.ErrnoException) => error.code)
  expect(answer).toSatisfy((found) => found === 'EPIPE' || found === 'ECONNRESET' || found.code === 413)
})
