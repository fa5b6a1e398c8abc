// Reads kubeconfigs that our own reader does not fully support: several merged files, and users who authenticate with a program,
// OIDC or impersonation. It uses @kubernetes/client-node, and is only loaded for these, because the library takes half a second
// and 80 MB.

import { readFileSync } from 'node:fs'
import type { RequestOptions } from 'node:https'
import { delimiter } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { errorText, PenstockError } from '@penstock/agent/errors'
import type { KubeTarget } from '@penstock/agent/kube'
import { parse } from 'yaml'

export interface SignedTarget extends KubeTarget {
  /** Additional headers of every request, in lower case. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
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
    const headers: Record<string, string | readonly string[]> = {}
    for (const [name, value] of Object.entries(request.headers ?? {}))
      headers[name.toLowerCase()] = String(value).trim()
    if (typeof request.auth === 'string')
      headers['authorization'] = `Basic ${Buffer.from(request.auth).toString('base64')}`
    const paths = path === undefined ? (process.env['KUBECONFIG'] ?? '').split(delimiter) : [path]
    Object.assign(headers, impersonation(userIn(paths, config.getCurrentUser()?.name)))
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
      `${from} cannot be used to connect to the Kubernetes API: ${problemOf(error).replace(/\.$/, '')}.`,
    )
  }
}

/** The user as written; the library only keeps `as` of the impersonation fields. */
function userIn(paths: readonly string[], name: string | undefined): Readonly<Record<string, unknown>> {
  for (const path of paths.filter((each) => each !== '')) {
    const config = parse(readFileSync(path, 'utf8'), { logLevel: 'error' }) as {
      readonly users?: readonly { readonly name?: unknown; readonly user?: Readonly<Record<string, unknown>> }[]
    } | null
    const found = config?.users?.find((each) => each?.name === name)
    if (found !== undefined) return found.user ?? {}
  }
  return {}
}

/** The headers for `as-uid`, `as-groups` and `as-user-extra`, by which the API server impersonates another user. */
function impersonation(user: Readonly<Record<string, unknown>>): Record<string, string | readonly string[]> {
  const isTexts = (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((item) => typeof item === 'string')
  const headers: Record<string, string | readonly string[]> = {}
  const { 'as-uid': uid = null, 'as-groups': groups = null, 'as-user-extra': extra = null } = user
  const given = Object.entries({ 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra })
  const [first] = given.find(([, value]) => value !== null) ?? []
  if (first !== undefined && (user['as'] ?? '') === '') throw new Error(`its user has \`${first}\` without \`as\``)
  if (uid !== null) {
    if (typeof uid !== 'string') throw new Error('`as-uid` of its user is not a text')
    headers['impersonate-uid'] = uid
  }
  if (groups !== null) {
    if (!isTexts(groups)) throw new Error('`as-groups` of its user is not a list of texts')
    if (groups.length > 0) headers['impersonate-group'] = groups
  }
  if (extra === null) return headers
  if (typeof extra !== 'object' || !Object.values(extra).every(isTexts))
    throw new Error('`as-user-extra` of its user is not a map of lists of texts')
  for (const [key, values] of Object.entries(extra)) headers[`impersonate-extra-${headerWord(key)}`] = values
  return headers
}

/** A key as the end of a header name: the API server decodes characters that header names do not allow. */
function headerWord(key: string): string {
  return encodeURIComponent(key.toLowerCase()).replace(/[()]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
}

/** Error messages of the library's YAML parser quote the text, which may be a token. */
function problemOf(error: unknown): string {
  const { name, mark } = error as { readonly name?: unknown; readonly mark?: { readonly line?: number } }
  if (name !== 'YAMLException' && name !== 'YAMLParseError') return errorText(error)
  return `not valid YAML${mark?.line === undefined ? '' : ` at line ${mark.line + 1}`}`
}

function text(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value)
}
