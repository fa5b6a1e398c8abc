// Gets access tokens from Google, with a service account (RFC 7523, a JWT signed with its key) or from the metadata server of the
// instance. A token is replaced before it expires, and concurrent requests share one token request.
//
// google-auth-library is not used, because these two flows need only one request each, which goes through the component's own client,
// with its proxy, its TLS settings and its denied addresses.

import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { errorText, failureOf, PenstockError } from '../errors.ts'
import { GivenFileError, parseSecretJson, readGivenTextAsync } from '../given-file.ts'
import type { HttpClient, HttpResponse } from '../http/client.ts'
import type { Identity } from '../http/identity.ts'
import { isInline } from '../schema/meaning.ts'
import { unlessAborted } from '../timing/wait.ts'

const defaultTokenUri = 'https://oauth2.googleapis.com/token'
const metadataPath = '/computeMetadata/v1/instance/service-accounts/default/token'

/** A token is replaced this long before it expires. After a failure, the next attempt follows after the minimum interval. */
const earlyMs = 200_000
const minIntervalMs = 2000

/** Maximum time for one token request. */
const timeoutMs = 30_000

/** The content of a service account's key file. */
export interface ServiceAccount {
  readonly clientEmail: string
  readonly privateKey: KeyObject
  readonly privateKeyId: string | undefined
  readonly tokenUri: string
}

/**
 * Reads the key file of a service account; throws a PenstockError with its path.
 * @param given the path of the file, or its content
 */
export async function readServiceAccount(given: string): Promise<ServiceAccount> {
  const isContent = isInline('json', given)
  const path = isContent ? '(inline content)' : given
  let members: unknown
  try {
    members = parseSecretJson(isContent ? given : await readGivenTextAsync({ option: 'credentials_path', path: given }))
  } catch (error) {
    const reason = error instanceof GivenFileError ? error.reason : errorText(error)
    throw new PenstockError('PEN_AUTH', `The credentials file ${path} cannot be read: ${reason}.`)
  }
  const text = (name: string): string | undefined => {
    const value =
      typeof members === 'object' && members !== null ? (members as Record<string, unknown>)[name] : undefined
    return typeof value === 'string' ? value : undefined
  }
  const clientEmail = text('client_email')
  const pem = text('private_key')
  if (clientEmail === undefined || pem === undefined) {
    throw new PenstockError(
      'PEN_AUTH',
      `The credentials file ${path} is not that of a service account: it needs \`client_email\` and \`private_key\`.`,
    )
  }
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    throw new PenstockError('PEN_AUTH', `The \`private_key\` in the credentials file ${path} is not a PEM key.`)
  }
  return {
    clientEmail,
    privateKey,
    privateKeyId: text('private_key_id'),
    tokenUri: text('token_uri') ?? defaultTokenUri,
  }
}

interface Token {
  readonly value: string
  readonly refreshMs: number
  readonly endMs: number
}

/** Provides valid tokens. */
export class AccessTokens {
  readonly #fetch: (signal: AbortSignal) => Promise<HttpResponse>
  readonly #source: string
  readonly #now: () => number
  #token: Token | undefined
  #loading: Promise<Token> | undefined
  #notBeforeMs = 0

  private constructor(source: string, fetch: (signal: AbortSignal) => Promise<HttpResponse>, now: () => number) {
    this.#source = source
    this.#fetch = fetch
    this.#now = now
  }

  static ofServiceAccount(account: ServiceAccount, scope: string, client: HttpClient, now = Date.now): AccessTokens {
    return new AccessTokens(
      account.tokenUri,
      (signal) => {
        const body = new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
          assertion: assertion(account, scope, Math.floor(now() / 1000)),
        })
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        const url = new URL(account.tokenUri)
        return client.send({ method: 'POST', url, headers, body: Buffer.from(body.toString()) }, signal)
      },
      now,
    )
  }

  /** @param client a client without a proxy, because the metadata server responds only to the instance itself */
  static ofInstance({ env }: Pick<Identity, 'env'>, client: HttpClient, now = Date.now): AccessTokens {
    const host = env['GCE_METADATA_HOST'] ?? 'metadata.google.internal'
    const url = new URL(`http://${host}${metadataPath}`)
    return new AccessTokens(
      url.origin,
      (signal) => client.send({ method: 'GET', url, headers: { 'metadata-flavor': 'Google' } }, signal),
      now,
    )
  }

  /** Throws a PenstockError with code `PEN_AUTH` if there is none. */
  async get(signal: AbortSignal): Promise<string> {
    const now = this.#now()
    const known = this.#token
    const valid = known !== undefined && now < known.endMs
    if (valid && (now < known.refreshMs || now < this.#notBeforeMs)) return known.value
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    try {
      // Several callers share the request. If one stops waiting, the request continues for the others.
      const token = await unlessAborted(this.#loading, signal)
      this.#token = token
      return token.value
    } catch (error) {
      if (signal.aborted) throw error
      this.#notBeforeMs = this.#now() + minIntervalMs
      if (valid) return known.value // use it until it expires
      throw error
    }
  }

  /** Call after the destination rejected the token. The next request gets a new one. */
  refuse(token: string): void {
    if (this.#token?.value === token) this.#token = undefined
  }

  async #load(): Promise<Token> {
    let response: HttpResponse
    try {
      response = await this.#fetch(AbortSignal.timeout(timeoutMs))
    } catch (error) {
      throw new PenstockError(
        'PEN_AUTH',
        `No access token from ${this.#source}: ${errorText(error)}.`,
        failureOf(error),
      )
    }
    if (response.status !== 200) {
      throw new PenstockError(
        'PEN_AUTH',
        `No access token from ${this.#source}: it responded with status ${response.status}.`,
        {
          fact: `The token service responded with status ${response.status}.`,
          status: response.status,
        },
      )
    }
    const answer = parsedAnswer(response.body)
    if (answer === undefined) {
      throw new PenstockError('PEN_AUTH', `No access token from ${this.#source}: its response contains no token.`)
    }
    const now = this.#now()
    const lifeMs = answer.expiresIn * 1000
    return {
      value: answer.token,
      refreshMs: now + Math.max(lifeMs - earlyMs, minIntervalMs),
      endMs: now + Math.max(lifeMs, minIntervalMs),
    }
  }
}

function parsedAnswer(body: Buffer): { readonly token: string; readonly expiresIn: number } | undefined {
  try {
    const answer = JSON.parse(body.toString('utf8')) as Record<string, unknown> | null
    const token = answer?.['access_token']
    const expiresIn = Number(answer?.['expires_in'])
    return typeof token === 'string' && Number.isFinite(expiresIn) ? { token, expiresIn } : undefined
  } catch {
    return undefined
  }
}

/** The signed JWT with which a service account requests a token for the scope. */
function assertion(account: ServiceAccount, scope: string, now: number): string {
  const header = { alg: 'RS256', typ: 'JWT', kid: account.privateKeyId }
  const claims = { iss: account.clientEmail, scope, aud: account.tokenUri, iat: now, exp: now + 3600 }
  const text = `${encoded(header)}.${encoded(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), account.privateKey).toString('base64url')}`
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
