// A loopback stand-in for the parts of the Kubernetes API that an agent uses: its version, and list and watch of pods, namespaces,
// nodes and Events with field and label selectors. With it, `penstock run` shows real tailing and enrichment without a cluster.

import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { compileSelector } from '@penstock/agent/kube'

export interface SampleObject {
  readonly kind: 'Pod' | 'Namespace' | 'Node' | 'Event'
  readonly apiVersion: 'v1' | 'events.k8s.io/v1'
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[]
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

const notFound = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }
/** The kind listed at each path, with the group and version of its objects. */
const lists = {
  '/api/v1/pods': { kind: 'Pod', apiVersion: 'v1' },
  '/api/v1/namespaces': { kind: 'Namespace', apiVersion: 'v1' },
  '/api/v1/nodes': { kind: 'Node', apiVersion: 'v1' },
  '/apis/events.k8s.io/v1/events': { kind: 'Event', apiVersion: 'events.k8s.io/v1' },
} as const

export class SampleApiServer implements AsyncDisposable {
  readonly #objects: readonly SampleObject[]
  readonly #server: Server
  readonly #watches = new Set<ServerResponse>()

  constructor(objects: readonly SampleObject[]) {
    this.#objects = objects
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://localhost')
      if (url.pathname === '/version') {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ major: '1', minor: '33', gitVersion: 'v1.33.0' }))
        return
      }
      const pod = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/.exec(url.pathname)
      if (pod !== null) {
        const found = this.#objects.find(
          ({ kind, metadata }) => kind === 'Pod' && metadata.namespace === pod[1] && metadata.name === pod[2],
        )
        response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(found ?? notFound))
        return
      }
      const [, group, namespace, resource] =
        /^(\/apis?\/.+?)(?:\/namespaces\/([^/]+))?(\/[^/]+)$/.exec(url.pathname) ?? []
      const listed = lists[`${group}${resource}` as keyof typeof lists]
      if (listed === undefined) {
        response.writeHead(404, { 'content-type': 'application/json' })
        response.end(JSON.stringify(notFound))
        return
      }
      response.writeHead(200, { 'content-type': 'application/json' })
      // Nothing changes after the start, so a watch stays open without events.
      if (['1', 'true'].includes(url.searchParams.get('watch') ?? '')) {
        this.#watches.add(response)
        response.on('close', () => this.#watches.delete(response))
        response.flushHeaders()
        return
      }
      const isSelected = compileSelector(url.searchParams.get('labelSelector') ?? '')
      const items = this.#objects.filter(
        (object) =>
          object.kind === listed.kind &&
          (namespace === undefined || object.metadata.namespace === namespace) &&
          matchesFields(object, url.searchParams.get('fieldSelector') ?? '') &&
          isSelected(object.metadata.labels ?? {}),
      )
      response.end(
        JSON.stringify({
          kind: `${listed.kind}List`,
          apiVersion: listed.apiVersion,
          metadata: { resourceVersion: '1' },
          items,
        }),
      )
    })
  }

  /** Listens on a free loopback port and returns the address. */
  async open(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const watch of this.#watches) watch.end()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** Whether a field selector selects an object. */
export function matchesFields(object: SampleObject, selector: string): boolean {
  return terms(selector).every((term) => {
    const [, path, operator, value] = /^([^=!]+)(!?=)=?(.*)$/.exec(term) ?? []
    const found = (path ?? '')
      .split('.')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], object)
    return (String(found ?? '') === value) === (operator === '=')
  })
}

/** Splits at commas outside parentheses. */
function terms(selector: string): string[] {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '')
}
