// How commands connect to the observation server of a running agent.

import { type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import type { Flags } from '../command-line/flags.ts'
import { errorText, PenstockError } from '../errors.ts'

const defaultUrl = 'http://127.0.0.1:8686'

export const clientFlags = {
  url: { type: 'string', short: 'u', value: 'URL', help: `Address of the agent (${defaultUrl}).` },
  'no-reconnect': { type: 'boolean', short: 'n', help: 'End when the connection is lost, instead of reconnecting.' },
} as const satisfies Flags

/** An address of the agent's server as a URL; also accepts `host:port`. */
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
      `No agent answers at ${url.origin}: ${errorText(error)}. The agent's configuration must have \`api.enabled: true\`.`,
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

/** The lines that the agent's server sends, until the server or the signal ends them. */
export async function* getLines(base: URL, path: string, signal: AbortSignal): AsyncGenerator<string> {
  const url = new URL(path, base)
  const response = await get(url, signal)
  if (response.statusCode !== 200) {
    response.setEncoding('utf8')
    let text = ''
    for await (const part of response) text += part
    throw refused(url, response, text)
  }
  // A lost connection ends the lines; the caller decides whether to reconnect.
  response.on('error', () => {})
  const lines = createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })
  lines.on('error', () => {})
  yield* lines
}

/** Parses an agent's response as JSON. */
export function parsed(base: URL, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const message = `${base.origin} is not a Penstock agent: its response is not JSON.`
    throw new PenstockError('PEN_UNAVAILABLE', message, { cause: error })
  }
}

function refused(url: URL, response: IncomingMessage, text: string): PenstockError {
  const status = response.statusCode
  const reason = errorOf(text)
  const message =
    reason === undefined
      ? `${url.origin} is not a Penstock agent: it responded to ${url.pathname} with status ${status}.`
      : `${url.origin} responded with status ${status}: ${reason}`
  return new PenstockError('PEN_UNAVAILABLE', message)
}

/** The reason in an agent's error response; undefined if the response is not from an agent. */
function errorOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined // another server's page
  }
}
