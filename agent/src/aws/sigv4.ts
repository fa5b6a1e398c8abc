// Signs requests to AWS with signature version 4. The signature covers the bytes of the body, so compression must come first.
// @smithy/signature-v4 is not used, because it only signs asynchronously, and the queue source alone loads the SDK.

import { createHash, createHmac } from 'node:crypto'

export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
  /** Milliseconds since the epoch; undefined if the credentials do not expire. */
  readonly expiresMs: number | undefined
}

export interface Signable {
  readonly method: string
  readonly url: URL
  /** Lowercase names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
}

export interface SigningScope {
  readonly region: string
  /** `es`, `aoss`, `aps`, `sqs`, `sts`. */
  readonly service: string
}

/** The headers of the request, including those of the signature. */
export function signRequest(
  request: Signable,
  credentials: Credentials,
  { region, service }: SigningScope,
  nowMs: number,
): Record<string, string> {
  const time = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = time.slice(0, 8)
  const bodyHash = sha256(request.body ?? Buffer.alloc(0))
  const headers: Record<string, string> = { ...request.headers, 'x-amz-date': time }
  if (credentials.sessionToken !== undefined) headers['x-amz-security-token'] = credentials.sessionToken
  if (service === 'aoss') headers['x-amz-content-sha256'] = bodyHash
  const signed: Record<string, string> = { host: request.url.host }
  for (const [name, value] of Object.entries(headers)) {
    if (name === 'content-type' || name.startsWith('x-amz-')) signed[name] = value.trim().replace(/\s+/g, ' ')
  }
  const names = Object.keys(signed).sort()
  const signedNames = names.join(';')
  const canonical = [
    request.method,
    canonicalPath(request.url.pathname),
    canonicalQuery(request.url.searchParams),
    ...names.map((name) => `${name}:${signed[name]}`),
    '',
    signedNames,
    bodyHash,
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(Buffer.from(canonical, 'utf8'))}`
  const key = [region, service, 'aws4_request'].reduce(
    (previous, part) => hmac(previous, part),
    hmac(`AWS4${credentials.secretAccessKey}`, day),
  )
  const signature = hmac(key, toSign).toString('hex')
  headers['authorization'] =
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${signedNames}, Signature=${signature}`
  return headers
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text, 'utf8').digest()
}

/** Encodes the path of a URL, which is already encoded once, because every service except S3 requires double encoding. */
function canonicalPath(path: string): string {
  return path.split('/').map(encoded).join('/')
}

function canonicalQuery(parameters: URLSearchParams): string {
  return [...parameters]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&')
}

/** Percent-encodes all characters except the unreserved ones (RFC 3986, section 2.3). */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
