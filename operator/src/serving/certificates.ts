// The operator's own certificates: an authority valid for one year in a Secret, and a server certificate signed by it. Both are
// replaced after two thirds of their lifetime. A new authority is published together with the old one for a while before it signs
// anything, so that clients always trust a certificate before it is served.
// Implemented here, so that an installation needs no other controller. If cert-manager issues the certificates, this code is not used.

import { webcrypto, X509Certificate } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import { errorText } from '@penstock/agent/errors'
import { Gauge } from 'prom-client'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import {
  mutatingWebhookConfigurationType,
  secretType,
  validatingWebhookConfigurationType,
} from '../kube/resource-types.ts'
import {
  authoritySecretName,
  certificateSecretName,
  configurationName,
  operatorName,
  webhookName,
} from '../workloads/installation-names.ts'

const dayMs = 86_400_000
const authorityDays = 365
const serverDays = 90
/** How long a new authority is published before it signs anything: mounted files take minutes to update. */
export const publishMs = 3_600_000

export interface CertificateAuthority {
  readonly cert: string
  readonly key: string
  /** The previous authority, while certificates that it signed may still be in use. */
  readonly previous?: string | undefined
}

export interface ServerCertificate {
  readonly cert: string
  readonly key: string
  /** All authorities to trust, newest first. */
  readonly ca: string
}

export interface Certificates {
  readonly authority: CertificateAuthority
  readonly server: ServerCertificate
}

/** The names under which clients reach the operator. */
export const serverNames = (namespace: string) =>
  [operatorName, webhookName].flatMap((name) => [
    `${name}.${namespace}.svc`,
    `${name}.${namespace}.svc.cluster.local`,
    `${name}.${namespace}`,
  ])

/** The certificates to use at a time; the same objects if nothing must change. */
export async function renewCertificates(
  found: { readonly authority?: CertificateAuthority | undefined; readonly server?: ServerCertificate | undefined },
  names: readonly string[],
  now: Date,
): Promise<Certificates> {
  const authority = await renewAuthority(found.authority, now)
  const ca = bundleOf(authority, now)
  const server = found.server
  if (server !== undefined && isServing(server, authority, names, now))
    return { authority, server: server.ca === ca ? server : { ...server, ca } }
  const signed = await signServer(authority, names, now)
  return { authority, server: { ...signed, ca } }
}

async function renewAuthority(found: CertificateAuthority | undefined, now: Date): Promise<CertificateAuthority> {
  const current = found === undefined ? undefined : parsed(found.cert)
  if (found !== undefined && current !== undefined && age(current, now) < 2 / 3) return found
  const made = await makeAuthority(now)
  return current !== undefined && current.validToDate > now ? { ...made, previous: found?.cert } : made
}

function bundleOf(authority: CertificateAuthority, now: Date): string {
  const previous = authority.previous === undefined ? undefined : parsed(authority.previous)
  return previous !== undefined && previous.validToDate > now
    ? `${authority.cert}${authority.previous}`
    : authority.cert
}

/** Whether a server certificate is still usable. */
function isServing(
  server: ServerCertificate,
  authority: CertificateAuthority,
  names: readonly string[],
  now: Date,
): boolean {
  const certificate = parsed(server.cert)
  const newest = parsed(authority.cert)
  if (certificate === undefined || newest === undefined || certificate.validToDate <= now) return false
  if (names.some((name) => certificate.checkHost(name) === undefined)) return false
  const published = now.getTime() - newest.validFromDate.getTime() >= publishMs
  if (!certificate.verify(newest.publicKey)) {
    const previous = authority.previous === undefined ? undefined : parsed(authority.previous)
    return !published && previous !== undefined && certificate.verify(previous.publicKey)
  }
  return age(certificate, now) < 2 / 3
}

const parsed = (pem: string): X509Certificate | undefined => {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined // treated as missing: it is created again
  }
}

/** The elapsed fraction of its lifetime. */
function age(certificate: X509Certificate, now: Date): number {
  const from = certificate.validFromDate.getTime()
  return (now.getTime() - from) / (certificate.validToDate.getTime() - from)
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

async function library() {
  await import('reflect-metadata') // needed first by the library's own dependencies
  return import('@peculiar/x509')
}

async function makeAuthority(now: Date): Promise<CertificateAuthority> {
  const x509 = await library()
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=penstock-operator-ca, OU=${now.getTime()}`, // two authorities must not have the same name
    notBefore: now,
    notAfter: new Date(now.getTime() + authorityDays * dayMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { cert: pemOf(certificate), key: await keyPem(keys.privateKey) }
}

async function signServer(authority: CertificateAuthority, names: readonly string[], now: Date) {
  const x509 = await library()
  const issuer = new x509.X509Certificate(authority.cert)
  const signingKey = await webcrypto.subtle.importKey('pkcs8', derOf(authority.key), algorithm, false, ['sign'])
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${names[0]}`,
    issuer: issuer.subject,
    notBefore: now,
    notAfter: new Date(Math.min(now.getTime() + serverDays * dayMs, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value }))),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  })
  return { cert: pemOf(certificate), key: await keyPem(keys.privateKey) }
}

const pemOf = (certificate: { toString(format: 'pem'): string }) => `${certificate.toString('pem').trim()}\n`

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key))
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`
}

const derOf = (pem: string) => Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')

// --- In the cluster ---

interface Secret extends KubeObject {
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
}

interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[]
}

const followMs = 15_000

/** The certificate for the servers of this process. Every replica watches the Secret; only the leader writes it. */
export class OperatorCertificate {
  #current: ServerCertificate | undefined
  readonly #handlers = new Set<(certificate: ServerCertificate) => void>()

  current(): ServerCertificate | undefined {
    return this.#current
  }

  /** Notified of the current certificate and of each new one. */
  subscribe(handler: (certificate: ServerCertificate) => void): Disposable {
    this.#handlers.add(handler)
    if (this.#current !== undefined) handler(this.#current)
    return { [Symbol.dispose]: () => void this.#handlers.delete(handler) }
  }

  set(certificate: ServerCertificate): void {
    const before = this.#current
    if (before?.cert === certificate.cert && before.key === certificate.key && before.ca === certificate.ca) return
    this.#current = certificate
    for (const handler of this.#handlers) handler(certificate)
  }
}

/**
 * A server that presents the newest certificate to every client, and accepts none before there is one; open connections
 * continue. With `clientAuthority` it requests client certificates; the listener handles clients without one.
 */
export function secureServer(
  certificate: OperatorCertificate,
  listener: RequestListener,
  clientAuthority?: string,
): Server {
  // Closes idle connections on time, not half a minute later, and those that do not complete their handshake.
  const common = { connectionsCheckingInterval: 2_000, handshakeTimeout: 10_000 }
  const asking =
    clientAuthority === undefined ? {} : { ca: clientAuthority, requestCert: true, rejectUnauthorized: false }
  const server = createServer({ ...common, ...asking }, listener)
  const trusted = clientAuthority === undefined ? {} : { ca: clientAuthority }
  const following = certificate.subscribe(({ cert, key }) => server.setSecureContext({ cert, key, ...trusted }))
  server.once('close', () => following[Symbol.dispose]())
  return server
}

/** Watches the Secret on every replica. */
export function followCertificatePart(certificate: OperatorCertificate): OperatorPart {
  return {
    name: 'certificate',
    leaderOnly: false,
    start: async (context) => {
      new Gauge({
        name: 'penstock_certificate_expiry_timestamp_seconds',
        help: "When the operator's own certificate expires, in seconds since the epoch.",
        registers: [context.metrics],
        collect() {
          const ends = parsed(certificate.current()?.cert ?? '')?.validToDate
          if (ends !== undefined) this.set(ends.getTime() / 1000)
        },
      })
      return loop(context, 'certificate', async () => {
        const found = await readServer(context)
        if (found !== undefined) certificate.set(found)
        return found === undefined ? 500 : followMs
      })
    },
  }
}

/** Creates and renews the certificates, and registers their authority with the API server. */
export function keepCertificatesPart(certificate: OperatorCertificate): OperatorPart {
  return {
    name: 'certificates',
    leaderOnly: true,
    start: async (context) =>
      loop(context, 'certificates', async () => {
        // With cert-manager, it manages the Secret and the trust of the API server.
        if (process.env['PENSTOCK_CERTIFICATES'] === 'external') return followMs
        const kept = await keepCertificates(context, new Date())
        certificate.set(kept.server)
        // An operator with only Roles has no webhooks.
        if (!context.settings.rolesOnly) await trustAuthority(context, kept.server.ca)
        return followMs
      }),
  }
}

/** Reads the current certificates, renews those that are due and writes new ones. */
async function keepCertificates(context: OperatorContext, now: Date): Promise<Certificates> {
  const { namespace } = context.settings
  const secret = await context.kube.get<Secret>(secretType, namespace, authoritySecretName)
  const data = decoded(secret)
  const authority =
    data['ca.crt'] === undefined || data['ca.key'] === undefined
      ? undefined
      : { cert: data['ca.crt'], key: data['ca.key'], previous: data['previous.crt'] }
  const server = await readServer(context)
  const kept = await renewCertificates({ authority, server }, serverNames(namespace), now)
  if (kept.authority !== authority) {
    const { cert, key, previous } = kept.authority
    const values = { 'ca.crt': cert, 'ca.key': key, ...(previous === undefined ? {} : { 'previous.crt': previous }) }
    await applySecret(context, authoritySecretName, 'Opaque', values)
    context.logger.info({ secret: authoritySecretName }, 'Created a new certificate authority.')
  }
  if (kept.server !== server) {
    const { cert, key, ca } = kept.server
    await applySecret(context, certificateSecretName, 'kubernetes.io/tls', {
      'tls.crt': cert,
      'tls.key': key,
      'ca.crt': ca,
    })
    context.logger.info({ secret: certificateSecretName }, 'Renewed the certificate of the operator.')
  }
  return kept
}

async function readServer(context: OperatorContext): Promise<ServerCertificate | undefined> {
  const data = decoded(await context.kube.get<Secret>(secretType, context.settings.namespace, certificateSecretName))
  const { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca } = data
  return cert === undefined || key === undefined ? undefined : { cert, key, ca: ca ?? cert }
}

const decoded = (secret: Secret | undefined): Partial<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
  )

function applySecret(context: OperatorContext, name: string, type: string, values: Record<string, string>) {
  return context.kube.apply<Secret>(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace: context.settings.namespace,
      labels: { 'app.kubernetes.io/name': operatorName, 'app.kubernetes.io/managed-by': 'penstock' },
    },
    type,
    data: Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  })
}

/**
 * `caBundle` of our webhooks, with a separate field manager, so that the tool that installed them sees no difference.
 */
async function trustAuthority(context: OperatorContext, ca: string): Promise<void> {
  const caBundle = Buffer.from(ca).toString('base64')
  const types: ResourceType[] = [validatingWebhookConfigurationType, mutatingWebhookConfigurationType]
  for (const type of types) {
    const found = await context.kube.get<WebhookConfiguration>(type, undefined, configurationName)
    const webhooks = found?.webhooks ?? []
    if (webhooks.every((webhook) => webhook.clientConfig.caBundle === caBundle)) continue
    await context.kube.apply<WebhookConfiguration>(
      type,
      {
        apiVersion: `${type.group}/${type.version}`,
        kind: type.kind,
        metadata: { name: configurationName },
        webhooks: webhooks.map(({ name }) => ({ name, clientConfig: { caBundle } })),
      },
      { fieldManager: 'penstock-certificates' },
    )
  }
}

/** Repeats a step until the end; the step returns the delay. */
export function loop(context: OperatorContext, name: string, step: () => Promise<number>): AsyncDisposable {
  const ending = new AbortController()
  const signal = AbortSignal.any([context.signal, ending.signal])
  const run = async () => {
    let failures = 0
    while (!signal.aborted) {
      let delay: number
      try {
        delay = await step()
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        delay = Math.min(30_000, 500 * 2 ** failures++)
        context.logger.warn(
          { part: name, error: errorText(error) },
          'A periodic task of the operator failed; trying again.',
        )
      }
      await wait(delay, undefined, { signal, ref: false }).catch(() => {}) // ended
    }
  }
  const running = run()
  return {
    async [Symbol.asyncDispose]() {
      ending.abort()
      await running
    },
  }
}
