// Kubeconfigs that our own reader covers only in part: several files merged, and users who sign in by a program, by OIDC or by
// impersonation. @kubernetes/client-node reads them. This module loads only for these, because it takes half a second and 80 MB.

import { readFileSync } from 'node:fs'
import type { RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import { errorText, PenstockError } from '@penstock/agent/errors'
import type { KubeTarget } from '@penstock/agent/kube'

export interface SignedTarget extends KubeTarget {
  /** Further headers of every request, in small letters. */
  readonly headers?: Readonly<Record<string, string>>
}

/** @param path the files of KUBECONFIG if not given */
export async function libraryTarget(path: string | undefined, context: string | undefined): Promise<SignedTarget> {
  const config = new KubeConfig()
  try {
    if (path === undefined) config.loadFromDefault()
    else config.loadFromFile(path)
    if (context !== undefined) config.setCurrentContext(context)
    const cluster = config.getCurrentCluster()
    if (cluster === null) throw new Error(`it has no cluster for the context "${config.getCurrentContext()}"`)
    const request: RequestOptions & { auth?: string | null } = {}
    await config.applyToHTTPSOptions(request)
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(request.headers ?? {}))
      headers[name.toLowerCase()] = String(value).trim()
    if (typeof request.auth === 'string')
      headers['authorization'] = `Basic ${Buffer.from(request.auth).toString('base64')}`
    const { caFile } = cluster
    return {
      server: new URL(cluster.server),
      ca: caFile === undefined ? text(request.ca) : readFileSync(caFile, 'utf8'),
      cert: text(request.cert),
      key: text(request.key),
      verify: cluster.skipTLSVerify !== true,
      serverName: text(request.servername),
      namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? undefined,
      headers,
      authorization: () => undefined,
    }
  } catch (error) {
    const from = path === undefined ? `The kubeconfigs ${process.env['KUBECONFIG']}` : `The kubeconfig ${path}`
    throw new PenstockError(
      'PEN_KUBERNETES',
      `${from} cannot be used to reach the Kubernetes API: ${problemOf(error).replace(/\.$/, '')}.`,
    )
  }
}

/** Messages of the library's YAML reader quote what they are about, which may be a token. */
function problemOf(error: unknown): string {
  const { name, mark } = error as { readonly name?: unknown; readonly mark?: { readonly line?: number } }
  if (name !== 'YAMLException') return errorText(error)
  return `not valid YAML${mark?.line === undefined ? '' : ` at line ${mark.line + 1}`}`
}

function text(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value)
}
