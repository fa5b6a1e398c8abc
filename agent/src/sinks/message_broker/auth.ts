// The client's identity for the broker: a method and its data, such as `token` and a JWT. It can be an access token that
// OAuth2 issues for client credentials (RFC 6749, section 4.4), which is sent as `token` and replaced before it expires.

import { fileURLToPath } from 'node:url'
import { errorText, failureOf, PenstockError } from '../../errors.ts'
import { readGivenTextAsync } from '../../given-file.ts'
import type { HttpClient, HttpResponse } from '../../http/client.ts'
import { withoutSecret } from '../../net/redact.ts'
import { isInline } from '../../schema/meaning.ts'

export interface BrokerCredentials {
  /**
   * Returns the method and its data; both undefined if the broker requires none. Throws a PenstockError with code
   * `PEN_AUTH`.
   */
  get(signal: AbortSignal): Promise<{ readonly method: string | undefined; readonly data: Buffer | undefined }>
  /** The broker refused the credentials: the next `get` fetches new ones if possible. */
  refused(): void
  /** Returns the broker's text with secrets removed. */
  hidden(text: string): string
}

/**
 * `token` is the method for a JWT. `basic` takes `user:password`. Any other name is a user name for basic authentication, with the
 * token as password.
 */
export function fixedCredentials(name: string | undefined, token: string | undefined): BrokerCredentials {
  const isUser = name !== undefined && name !== 'token' && name !== 'basic'
  const method = isUser ? 'basic' : name
  const data = isUser && token !== undefined ? `${name}:${token}` : token
  const given = { method, data: data === undefined ? undefined : Buffer.from(data, 'utf8') }
  return {
    get: () => Promise.resolve(given),
    refused() {},
    hidden: (text) => (token === undefined ? text : withoutSecret(withoutSecret(text, data ?? ''), token)),
  }
}

export interface Oauth2Options {
  readonly issuer_url: string
  readonly credentials_url: string
  readonly audience: string | undefined
  readonly scope: string | undefined
}

/** Returns the problem of the address of a credentials file, if any. */
export function credentialsUrlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (url?.protocol === 'data:') {
    return /^data:application\/json;base64,/.test(text)
      ? undefined
      : 'must begin with `data:application/json;base64,` if it is a data URL'
  }
  return url?.protocol === 'file:' ? undefined : 'must be a URL with scheme file or data'
}

/** Fraction of a token's lifetime during which it is used. */
const usedPart = 0.9
/** Lifetime of a token that states none. */
const defaultLifeSecs = 3600

export class Oauth2Credentials implements BrokerCredentials {
  readonly #options: Oauth2Options
  readonly #client: HttpClient
  readonly #now: () => number
  #token: { readonly text: string; readonly untilMs: number } | undefined
  #loading: Promise<string> | undefined
  #secret = ''

  constructor(options: Oauth2Options, client: HttpClient, now: () => number = Date.now) {
    this.#options = options
    this.#client = client
    this.#now = now
  }

  async get(): Promise<{ readonly method: string; readonly data: Buffer }> {
    const known = this.#token
    let text: string
    if (known !== undefined && this.#now() < known.untilMs) {
      text = known.text
    } else {
      // All concurrent connections share the request, so no single signal aborts it; the request has its own time
      // limits.
      this.#loading ??= this.#load().finally(() => {
        this.#loading = undefined
      })
      text = await this.#loading
    }
    return { method: 'token', data: Buffer.from(text, 'utf8') }
  }

  refused(): void {
    this.#token = undefined
  }

  hidden(text: string): string {
    const token = this.#token?.text ?? ''
    return withoutSecret(withoutSecret(text, token), this.#secret)
  }

  async #load(): Promise<string> {
    const { issuer_url, audience, scope } = this.#options
    const credentials = await this.#credentials()
    this.#secret = credentials.secret
    const wellKnown = `${issuer_url.replace(/\/+$/, '')}/.well-known/openid-configuration`
    const endpoint = membersOf(await this.#send(wellKnown))['token_endpoint']
    if (typeof endpoint !== 'string' || !/^https?:\/\//.test(endpoint)) {
      throw new PenstockError('PEN_AUTH', `No access token: ${wellKnown} names no \`token_endpoint\`.`)
    }
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: credentials.id,
      client_secret: credentials.secret,
      ...(audience === undefined ? {} : { audience }),
      ...(scope === undefined ? {} : { scope }),
    })
    const answer = membersOf(await this.#send(endpoint, form.toString()))
    const text = answer['access_token']
    if (typeof text !== 'string' || text === '') {
      throw new PenstockError('PEN_AUTH', `No access token: the response of ${placeOf(endpoint)} contains none.`)
    }
    const life = Number(answer['expires_in'] ?? defaultLifeSecs)
    this.#token = { text, untilMs: this.#now() + (Number.isFinite(life) ? life : defaultLifeSecs) * 1000 * usedPart }
    return text
  }

  async #send(address: string, form?: string): Promise<HttpResponse> {
    const url = new URL(address)
    const request =
      form === undefined
        ? { method: 'GET', url, headers: { accept: 'application/json' } }
        : {
            method: 'POST',
            url,
            headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
            body: Buffer.from(form),
          }
    let response: HttpResponse
    try {
      response = await this.#client.send(request, AbortSignal.timeout(30_000))
    } catch (error) {
      throw new PenstockError(
        'PEN_AUTH',
        `No access token: ${placeOf(address)} cannot be reached: ${errorText(error)}.`,
        failureOf(error),
      )
    }
    if (response.status !== 200) {
      throw new PenstockError(
        'PEN_AUTH',
        `No access token: ${placeOf(address)} responded with status ${response.status}.`,
        { fact: `The token service responded with status ${response.status}.`, status: response.status },
      )
    }
    return response
  }

  /** The client's credentials. Error messages never quote their content. */
  async #credentials(): Promise<{ readonly id: string; readonly secret: string }> {
    const { credentials_url } = this.#options
    let text: string
    let place: string
    if (isInline('data', credentials_url)) {
      place = '`auth.oauth2.credentials_url`'
      text = Buffer.from(credentials_url.slice(credentials_url.indexOf(',') + 1), 'base64').toString('utf8')
    } else {
      try {
        const path = fileURLToPath(credentials_url)
        place = `the file ${path}`
        text = await readGivenTextAsync({ option: 'auth.oauth2.credentials_url', path })
      } catch (error) {
        throw new PenstockError(
          'PEN_AUTH',
          `\`auth.oauth2.credentials_url\`: the file cannot be read (${errorText(error)}).`,
        )
      }
    }
    const { client_id: id, client_secret: secret, type } = membersOf({ body: Buffer.from(text) })
    if (typeof id !== 'string' || typeof secret !== 'string') {
      throw new PenstockError('PEN_AUTH', `${place} must hold JSON with \`client_id\` and \`client_secret\`.`)
    }
    if (type !== undefined && type !== 'client_credentials') {
      throw new PenstockError('PEN_AUTH', `\`type\` in ${place} must be \`client_credentials\`.`)
    }
    return { id, secret }
  }
}

/** Members of a JSON object; none for any other value. */
function membersOf({ body }: { readonly body: Buffer }): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {} // the caller reports the missing members
  }
}

function placeOf(address: string): string {
  const url = URL.parse(address)
  return url === null ? 'the address' : `${url.origin}${url.pathname}`
}
