// An in-memory registry for OCI artifacts such as charts, with the operations that `helm push` and `helm install oci://…` need.

import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { makeCertificates } from '@penstock/agent/testing/certificates'

export interface Registry extends AsyncDisposable {
  /** `127.0.0.1:PORT` */
  readonly address: string
  /** Path of the CA certificate. */
  readonly authority: string
}

interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: Buffer | string
}

const digestOf = (content: Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`

class Store {
  readonly #blobs = new Map<string, Buffer>()
  /** Manifests by repository name, then by tag and digest. */
  readonly #manifests = new Map<string, Map<string, { readonly type: string; readonly content: Buffer }>>()
  readonly #uploads = new Map<string, Buffer>()

  answer(method: string, url: URL, type: string, body: Buffer): Answer {
    const [, name = '', kind, reference = ''] =
      /^\/v2\/(.+)\/(blobs\/uploads|blobs|manifests|tags)\/(.*)$/.exec(url.pathname) ?? []
    const manifests = this.#manifests.get(name) ?? new Map()
    if (url.pathname === '/v2/') return { status: 200 }
    if (kind === 'tags') {
      const tags = [...manifests.keys()].filter((tag) => !tag.includes(':'))
      return { status: 200, body: JSON.stringify({ name, tags }) }
    }
    if (kind === 'blobs/uploads') return this.#upload(method, url, name, reference, body)
    if (kind === 'manifests' && method === 'PUT') {
      const digest = digestOf(body)
      for (const key of [reference, digest]) manifests.set(key, { type, content: body })
      this.#manifests.set(name, manifests)
      return { status: 201, headers: { location: url.pathname, 'docker-content-digest': digest } }
    }
    const blob = { type: 'application/octet-stream', content: this.#blobs.get(reference) }
    const { type: sent = '', content } = (kind === 'manifests' ? manifests.get(reference) : blob) ?? {}
    if (content === undefined) return { status: 404 }
    const headers = { 'content-type': sent, 'docker-content-digest': digestOf(content) }
    return { status: 200, headers: { ...headers, 'content-length': String(content.length) }, body: content }
  }

  #upload(method: string, url: URL, name: string, id: string, body: Buffer): Answer {
    const begun = method === 'POST' ? randomUUID() : id
    const content = Buffer.concat([this.#uploads.get(begun) ?? Buffer.alloc(0), body])
    const digest = url.searchParams.get('digest')
    if (digest === null) {
      this.#uploads.set(begun, content)
      const range = `0-${Math.max(0, content.length - 1)}`
      return { status: 202, headers: { location: `/v2/${name}/blobs/uploads/${begun}`, range } }
    }
    this.#uploads.delete(begun)
    if (digestOf(content) !== digest) return { status: 400 }
    this.#blobs.set(digest, content)
    return { status: 201, headers: { location: `/v2/${name}/blobs/${digest}`, 'docker-content-digest': digest } }
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}

export async function startRegistry(): Promise<Registry> {
  const certificates = await makeCertificates()
  const { crt, key } = await certificates.issue('registry', 'IP:127.0.0.1')
  const store = new Store()
  const server = createServer({ cert: readFileSync(crt), key: readFileSync(key) }, async (request, response) => {
    const url = new URL(request.url ?? '/', 'https://registry')
    const method = request.method ?? 'GET'
    const { status, headers, body } = store.answer(
      method,
      url,
      request.headers['content-type'] ?? '',
      await bodyOf(request),
    )
    response.writeHead(status, headers).end(method === 'HEAD' ? undefined : body)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    authority: certificates.ca.crt,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      await certificates[Symbol.asyncDispose]()
    },
  }
}
