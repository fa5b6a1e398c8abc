// Function `http_request`.

import { fieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { askNetwork, needsNetwork } from '../network.ts'

const patienceMs = 10_000
const keptMs = 10_000
// Methods that open a tunnel or echo the request are not supported.
const forbiddenMethod = /^(?:connect|trace|track)$/i
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a header must not have
const headerValue = /^[^\x00-\x08\x0a-\x1f\x7f]*$/
const secretHeader = /authorization|cookie|token|secret|key|password/i

export const httpRequest = defineFunction({
  name: 'http_request',
  category: 'System',
  summary: 'Sends an HTTP request and returns the text of the response, whatever its status.',
  description:
    'Needs `remap.network: true` at the top level of the configuration. The program waits up to 10 seconds for the response. The response to a `get` without a body is cached for 10 seconds.',
  parameters: [
    { name: 'url', kind: kinds.string, description: 'The address.' },
    {
      name: 'method',
      kind: kinds.string,
      required: false,
      default: 'get',
      description: 'The method, in any letter case: `get`, `post`, `put`, `patch`, `delete`, `head`, `options`, ….',
    },
    {
      name: 'headers',
      kind: kinds.object,
      required: false,
      default: {},
      description: 'Headers: texts, or arrays of texts.',
    },
    { name: 'body', kind: kinds.string, required: false, default: '', description: 'The body.' },
    { name: 'http_proxy', kind: kinds.string, required: false, description: 'Proxy for `http` addresses.' },
    { name: 'https_proxy', kind: kinds.string, required: false, description: 'Proxy for `https` addresses.' },
    {
      name: 'redact_headers',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether errors hide the values of headers that may be secret.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The address, the method, a header or a proxy is invalid.', 'There was no response.'],
  pure: false,
  reaches: 'network',
  examples: [
    { source: 'http_request("no address") ?? "no answer"', result: '"no answer"' },
    { source: 'http_request("http://localhost", method: "no method") ?? "no method"', result: '"no method"' },
    { source: 'http_request("http://localhost", headers: {"a b": "c"}) ?? "no header"', result: '"no header"' },
  ],
  compile(call) {
    needsNetwork(call, 'http_request')
    return (
      address: string,
      method: string,
      given: ValueObject,
      body: string,
      httpProxy: string | undefined,
      httpsProxy: string | undefined,
      redact: boolean,
    ): Result => {
      const url = URL.parse(address)
      if (url === null || !/^https?:$/.test(url.protocol)) return failure(`invalid URL: ${address}`)
      if (!token.test(method) || forbiddenMethod.test(method)) return failure(`unsupported HTTP method: ${method}`)
      const headers = headersOf(given)
      if (typeof headers === 'string') return failure(headers)
      for (const proxy of [httpProxy, httpsProxy]) {
        if (proxy !== undefined && URL.parse(proxy) === null) return failure('invalid proxy: it is not a URL')
      }
      const request = {
        kind: 'http',
        url: url.href,
        method: method.toUpperCase(),
        headers,
        body,
        httpProxy,
        httpsProxy,
        timeoutMs: patienceMs,
      } as const
      const key = request.method === 'GET' && body === '' ? `http ${JSON.stringify(request)}` : undefined
      const { text, problem } = askNetwork(request, key, patienceMs + 1000, () => keptMs)
      return text ?? failure(`HTTP request failed: ${problem}${shown(headers, redact)}`)
    }
  },
})

/** Pairs of names and values; a sentence if one is invalid. */
function headersOf(given: ValueObject): (readonly [string, string])[] | string {
  const headers: (readonly [string, string])[] = []
  for (const name of fieldNames(given)) {
    const value = given[name] as Value
    if (!token.test(name)) return `invalid header name: ${name}`
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item !== 'string' || !headerValue.test(item)) return `invalid value of the header ${name}`
      headers.push([name, item])
    }
  }
  return headers
}

function shown(headers: readonly (readonly [string, string])[], redact: boolean): string {
  if (headers.length === 0) return ''
  const texts = headers.map(([name, value]) => `${name}: ${redact && secretHeader.test(name) ? '[REDACTED]' : value}`)
  return ` (headers: ${texts.join(', ')})`
}
