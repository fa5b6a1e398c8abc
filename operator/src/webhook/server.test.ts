// The server as the API server asks it: reviews over TLS, and a certificate that is exchanged while it runs.

import { request } from 'node:https'
import { createLogger } from '@penstock/agent/telemetry/logger'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { Agent } from '../api/agent.ts'
import type { OperatorContext } from '../controllers/context.ts'
import { OperatorCertificate, renewCertificates, serverNames } from './certificates.ts'
import { WebhookServer } from './server.ts'
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

async function started() {
  const certificate = new OperatorCertificate()
  const make = async () => certificate.set((await renewCertificates({}, serverNames('ns'), new Date())).server)
  await make()
  let port = 0
  // What the server takes of its context, and nothing else.
  const context = {
    settings: { webhookAddress: '127.0.0.1:0' },
    caches: { cache: () => ({ get: (_: string, name: string) => (name === 'side' ? agent : undefined) }) },
    kube: { request: async () => ({ minor: '36+' }) },
    metrics: new Registry(),
    logger: createLogger({ level: 'silent', format: 'json' }),
  } as unknown as OperatorContext
  const server = new WebhookServer(context, certificate, {
    judge: () => judge,
    workloadInput: () => ({ image: 'x:1', operatorUrl: 'https://o:9443', operatorNamespace: 'ns' }),
    listening: (bound) => {
      port = bound
    },
  })
  await server.listen()
  return { server, port: () => port, certificate, make }
}

/** Posts a body and gives status and parsed answer, or the error of the connection. */
function post(
  port: number,
  ca: string,
  path: string,
  body: unknown,
): Promise<{ code: number; body: Record<string, unknown> }> {
  return new Promise((done, failed) => {
    const asked = request(
      { host: '127.0.0.1', port, path, method: 'POST', ca, servername: 'penstock-webhook.ns.svc', agent: false },
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
    const { code, body } = await post(port(), ca, path, review(kind, object))
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

test('what is no review is refused, and a check that takes too long lets pass', { timeout: 20_000 }, async () => {
  const { server, port, certificate } = await started()
  await using _ = server
  const ca = certificate.current()?.ca ?? ''
  expect((await post(port(), ca, '/validate', 'no json')).code).toBe(400)
  expect((await post(port(), ca, '/validate', {})).code).toBe(400)
  expect((await post(port(), ca, '/elsewhere', review('Pipeline', {}))).code).toBe(404)
  const { body } = await post(port(), ca, '/validate', review('Pipeline', pipeline('slow')))
  expect(body['response']).toMatchObject({ allowed: true, warnings: [expect.stringContaining('too long')] })
})

test('a renewed certificate is used for the next connection', async () => {
  const { server, port, certificate, make } = await started()
  await using _ = server
  const before = certificate.current()?.ca ?? ''
  await post(port(), before, '/validate', review('Pipeline', pipeline('good')))
  await make()
  await expect(post(port(), before, '/validate', review('Pipeline', pipeline('good')))).rejects.toThrow()
  const after = certificate.current()?.ca ?? ''
  expect((await post(port(), after, '/validate', review('Pipeline', pipeline('good')))).code).toBe(200)
})
