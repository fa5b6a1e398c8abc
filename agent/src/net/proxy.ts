// Chooses the proxy for a request. Settings of a component override global settings, which override the environment. In the environment,
// lowercase variables override uppercase ones.

import { PenstockError } from '../errors.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { Egress, type EgressOptions } from './egress.ts'
import { compileNoProxy, type NoProxy } from './no-proxy.ts'

/** The proxies in the environment. */
export function environmentProxy(env: Readonly<Record<string, string | undefined>>): ProxyOptions {
  const read = (name: string) => {
    const value = env[name.toLowerCase()] ?? env[name.toUpperCase()]
    return value === '' ? undefined : value
  }
  const noProxy = read('no_proxy')
  return {
    enabled: true,
    http: read('http_proxy'),
    https: read('https_proxy'),
    no_proxy: noProxy?.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])),
  }
}

/** Merges proxy settings. Specific settings override general ones, including an empty list of exceptions or `enabled: true`. */
export function mergeProxy(specific: ProxyOptions, general: ProxyOptions): ProxyOptions {
  return {
    enabled: specific.enabled ?? general.enabled,
    http: specific.http ?? general.http,
    https: specific.https ?? general.https,
    no_proxy: specific.no_proxy ?? general.no_proxy,
  }
}

/** Problems with proxy settings: an option and a message for each. */
export function proxyProblems(options: ProxyOptions): { readonly path: string; readonly message: string }[] {
  const problems: { path: string; message: string }[] = []
  for (const name of ['http', 'https'] as const) {
    const value = options[name]
    if (value !== undefined && parseProxy(value) === undefined) {
      problems.push({
        path: `proxy.${name}`,
        message: 'must be a URL with scheme http or https, such as `http://proxy:3128`',
      })
    }
  }
  return problems
}

export interface ProxyAddress {
  readonly host: string
  readonly port: number
  /** Whether the connection to the proxy itself uses TLS. */
  readonly secure: boolean
  /** Value of `Proxy-Authorization`, from the credentials in the address. */
  readonly authorization: string | undefined
}

export function parseProxy(text: string): ProxyAddress | undefined {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') return undefined
  const secure = url.protocol === 'https:'
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  let authorization: string | undefined
  if (url.username !== '' || url.password !== '') {
    try {
      const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
      authorization = `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`
    } catch {
      return undefined // a stray percent sign
    }
  }
  return { host, port: url.port === '' ? (secure ? 443 : 80) : Number(url.port), secure, authorization }
}

/** Chooses the proxy for an address; undefined for a direct connection. */
export interface ChooseProxy {
  (url: URL): ProxyAddress | undefined
  /** Restricts the destinations of connections; undefined if there are no restrictions. */
  readonly egress?: Egress | undefined
}

/** Throws a PenstockError if the address of a proxy is not a URL. */
export function compileProxy(options: ProxyOptions & { readonly egress?: EgressOptions | undefined }): ChooseProxy {
  const { egress } = options
  return Object.assign(chooser(options), { egress: egress === undefined ? undefined : new Egress(egress) })
}

function chooser(options: ProxyOptions): (url: URL) => ProxyAddress | undefined {
  if (options.enabled === false) return () => undefined
  const parse = (name: 'http' | 'https'): ProxyAddress | undefined => {
    const text = options[name]
    if (text === undefined) return undefined
    const proxy = parseProxy(text)
    if (proxy !== undefined) return proxy
    throw new PenstockError('PEN_PROXY_INVALID', `\`proxy.${name}\` must be a URL, such as \`http://proxy:3128\`.`)
  }
  const http = parse('http')
  const https = parse('https')
  const direct: NoProxy = compileNoProxy(options.no_proxy ?? [])
  return (url) => {
    const secure = url.protocol === 'https:'
    const proxy = secure ? https : http
    if (proxy === undefined) return undefined
    const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
    return direct(url.hostname, port) ? undefined : proxy
  }
}
