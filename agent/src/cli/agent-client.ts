// How commands reach the observation server of a running agent.

import { type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import type { Flags } from '../command-line/flags.ts'
import { errorText, PenstockError } from '../errors.ts'

const defaultUrl = 'http://127.0.0.1:8686'

export const clientFlags = {
  url: { type: 'string', short: 'u', value: 'URL', help: `Address of the agent (${defaultUrl}).` },
  'no-reconnect': { type: 'boolean', short: 'n', help: 'End when the connection is lost; else it is tried again.' },
} as const satisfies Flags

/** An address of the agent's server as a URL; `host:port` will do. */
export function agentUrl(text: string | undefined): URL {
  const given = text ?? defaultUrl
  const url = URL.parse(given.includes('://') ? given : `http://${given}`)
  if (url === null || url.protocol !== 'http:') {
    throw new PenstockError('PEN_USAGE', `--url is "${given}"; it must be an address such as ${defaultUrl}.`)
  }
  return url
}

async function get(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
  try {
    return await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(url, { signal, agent: false }, resolve)
      sent.on('error', reject)
      sent.end()
    })
  } catch (error) {
    throw new PenstockError(
      'PEN_UNAVAILABLE',
      `No agent answers at ${url.origin}: ${errorText(error)}. It answers if its configuration has \`api.enabled: true\`.`,
      { cause: error },
    )
  }
}

/** The JSON document at a path of the agent's server. */
export async function getJson(base: URL, path: string, signal: AbortSignal): Promise<unknown> {
  const url = new URL(path, base)
  const response = await get(url, signal)
  let text = ''
  response.setEncoding('utf8')
  for await (const part of response) text += part
  if (response.statusCode !== 200) throw refused(url, response, text)
  return parsed(base, text)
}

/** The lines that the agent's server sends, until it or the signal ends. */
export async function* getLines(base: URL, path: string, signal: AbortSignal): AsyncGenerator<string> {
  const url = new URL(path, base)
  const response = await get(url, signal)
  if (response.statusCode !== 200) {
    response.setEncoding('utf8')
    let text = ''
    for await (const part of response) text += part
    throw refused(url, response, text)
  }
  // A connection that breaks ends the lines; the caller decides whether to try again.
  response.on('error', () => {})
  const lines = createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })
  lines.on('error', () => {})
  yield* lines
}

/** An agent's answer: JSON. */
export function parsed(base: URL, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const message = `${base.origin} is no Penstock agent: it answered something that is not JSON.`
    throw new PenstockError('PEN_UNAVAILABLE', message, { cause: error })
  }
}

function refused(url: URL, response: IncomingMessage, text: string): PenstockError {
  const status = response.statusCode
  const reason = errorOf(text)
  const message =
    reason === undefined
      ? `${url.origin} is no Penstock agent: it answered ${url.pathname} with ${status}.`
      : `${url.origin} answered ${status}: ${reason}`
  return new PenstockError('PEN_UNAVAILABLE', message)
}

/** The reason in a refusal of an agent; undefined if an agent did not write it. */
function errorOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined // another server's page
  }
}
