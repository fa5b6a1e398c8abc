// Forwards a request to the leader, which alone has the state, with the sender's own token, so that the leader can check it. The
// leader's response is passed back as it arrives, so it may continue for as long as the client listens.

import { type IncomingMessage, request as requestPlain, type ServerResponse } from 'node:http'
import { request as requestSecure } from 'node:https'
import type { CountedBody } from '../bodies.ts'

export interface Leader {
  readonly host: string
  readonly port: number
  /** The authority of its certificate; undefined if there is none. */
  readonly ca: string | undefined
}

export const forwardedHeader = 'x-penstock-forwarded'
/** A user's token, if the API server is in between and uses `Authorization` for itself. */
export const tokenHeader = 'x-penstock-token'
/**
 * The user that the caller acts as; `acting-as.ts` knows the value. An answer with the rights of that user repeats it: a release that
 * does not know the header ignores it, and answers with the caller's own rights.
 */
export const actingAsHeader = 'x-penstock-acting-as'
export const maxActingAsBytes = 8192
/** The operator's version, so that commands can warn if theirs differs too much. */
export const versionHeader = 'x-penstock-version'
const passedOn = ['authorization', tokenHeader, actingAsHeader, 'content-type'] as const
/** Headers of the leader's answer that only the leader can set, because another replica may be of another release. */
const passedBack = [actingAsHeader] as const

/**
 * Returns the status of the response once its headers have arrived; rejects if the leader cannot be reached. @param
 * idleMs a connection without data for this long is closed
 */
export function relay(
  request: IncomingMessage,
  response: ServerResponse,
  { host, port, ca }: Leader,
  body: CountedBody | undefined,
  idleMs: number,
): Promise<number> {
  const headers: Record<string, string> = { [forwardedHeader]: '1' }
  for (const name of passedOn) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  return new Promise((resolve, reject) => {
    const options = { host, port, method: request.method, path: request.url, headers, timeout: idleMs }
    const take = (answered: IncomingMessage) => {
      const status = answered.statusCode ?? 502
      for (const name of passedBack) {
        const value = answered.headers[name]
        if (value !== undefined) response.setHeader(name, value)
      }
      response.writeHead(status, { 'content-type': answered.headers['content-type'] ?? 'application/json' })
      response.flushHeaders()
      answered.on('error', () => response.destroy()) // the leader has ended: the client sees an incomplete response and retries
      answered.pipe(response)
      resolve(status)
    }
    const passed =
      ca === undefined
        ? requestPlain(options, take)
        : // the certificate is for the name of the Service, but the leader is reached at its own address
          requestSecure({ ...options, ca, checkServerIdentity: () => undefined }, take)
    passed.on('timeout', () => passed.destroy(new Error('The leader did not respond in time.')))
    passed.on('error', reject)
    response.on('close', () => passed.destroy())
    passed.end(body?.take(), () => body?.[Symbol.dispose]())
  })
}
