// Loads credentials for AWS from the options, or else from the environment, a profile, a web identity, the container, or the instance.
// Before they expire, they are loaded again in the same way.
//
// The provider chain of the SDK is not suitable, because it always reads the environment, files and metadata services of the process.
// Here, a component gets these only through its `Identity`, which the components of tenants do not have.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { timeoutSignal } from '../clock.ts'
import type { OptionProblem } from '../component.ts'
import type { Environment } from '../environment.ts'
import { errorText, PenstockError } from '../errors.ts'
import { readGivenTextAsync } from '../given-file.ts'
import type { HttpClient, HttpResponse } from '../http/client.ts'
import { type Identity, noIdentity } from '../http/identity.ts'
import {
  cloudVariable,
  endpointOverride,
  type Profile,
  profileFiles,
  readProfiles,
  readSignOnToken,
} from './profiles.ts'
import { type Credentials, signRequest } from './sigv4.ts'

/** The parsed `auth` option with `strategy: aws`. */
export interface AwsAuth {
  readonly access_key_id?: string | undefined
  readonly secret_access_key?: string | undefined
  readonly session_token?: string | undefined
  readonly assume_role?: string | undefined
  readonly external_id?: string | undefined
  readonly session_name?: string | undefined
  readonly credentials_file?: string | undefined
  readonly profile?: string | undefined
  readonly region?: string | undefined
  readonly load_timeout_secs?: number | undefined
  readonly imds: {
    readonly max_attempts: number
    readonly connect_timeout_seconds: number
    readonly read_timeout_seconds: number
  }
}

export interface AwsContext {
  readonly client: HttpClient
  /** If undefined, credentials come only from the options. */
  readonly identity: Identity | undefined
  /** Region of the service. `auth.region` is the region of the token service. */
  readonly region: string
  readonly now?: () => number
}

/** Credentials are replaced this long before they expire. A random extra time avoids that all agents replace them at once. */
const refreshMs = 300_000
/** Minimum interval between two attempts to load new credentials, while the current ones are valid for longer than this. */
const reloadIntervalMs = 5000

export class CredentialProvider {
  readonly #auth: AwsAuth
  readonly #context: AwsContext
  readonly #now: () => number
  readonly #earlyMs = refreshMs * (1 + Math.random() * 0.2)
  #known: Credentials | undefined
  #loading: Promise<Credentials> | undefined
  #lookedUpMs = Number.NEGATIVE_INFINITY

  constructor(auth: AwsAuth, context: AwsContext) {
    this.#auth = auth
    this.#context = context
    this.#now = context.now ?? Date.now
  }

  /** Throws a PenstockError with code `PEN_AUTH` if there are none. */
  async get(): Promise<Credentials> {
    const known = this.#known
    const now = this.#now()
    if (known !== undefined) {
      const left = (known.expiresMs ?? Number.POSITIVE_INFINITY) - now
      if (left > this.#earlyMs || (left > reloadIntervalMs && now < this.#lookedUpMs + reloadIntervalMs)) return known
    }
    this.#lookedUpMs = now
    // Concurrent requests share one load.
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    try {
      this.#known = await this.#loading
      return this.#known
    } catch (error) {
      // Use valid credentials until they expire.
      if (known?.expiresMs !== undefined && known.expiresMs > this.#now()) return known
      throw error
    }
  }

  /** Call after the service rejected the credentials. The next `get` loads new ones in the same way. */
  refused(credentials: Pick<Credentials, 'accessKeyId'>): void {
    if (this.#known?.accessKeyId === credentials.accessKeyId) this.#known = undefined
  }

  /** Whether loading again may return new credentials. Those in the options or in the environment cannot change. */
  get renewable(): boolean {
    const { access_key_id, assume_role, credentials_file } = this.#auth
    const env = this.#context.identity?.env
    if (assume_role !== undefined) return true
    if (access_key_id !== undefined) return false
    if (env === undefined) return false
    if (credentials_file !== undefined) return true
    return cloudVariable(env, 'ACCESS_KEY_ID') === undefined || cloudVariable(env, 'SECRET_ACCESS_KEY') === undefined
  }

  /** The searched places, for a message. */
  #places({ env }: Identity): string {
    const { credentials_file: file, profile } = this.#auth
    if (file !== undefined) return `the profile \`${profile ?? 'default'}\` of ${file}`
    const files = profileFiles(env)
    const metadata =
      env['AWS_EC2_METADATA_DISABLED'] === 'true'
        ? 'the instance metadata service, which AWS_EC2_METADATA_DISABLED turns off'
        : `the instance metadata service at ${metadataAddress(env)}`
    return [
      '`auth.access_key_id` with `auth.secret_access_key`',
      'CLOUD_ACCESS_KEY_ID or AWS_ACCESS_KEY_ID with its secret in the environment',
      `the profile \`${this.#profileName(env)}\` of ${[...files.credentials, ...files.config].join(', ')}`,
      'AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN',
      'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI',
      metadata,
    ].join('; ')
  }

  #profileName(env: Environment): string {
    return this.#auth.profile ?? cloudVariable(env, 'PROFILE') ?? 'default'
  }

  async #load(): Promise<Credentials> {
    const auth = this.#auth
    const { identity } = this.#context
    const signal = timeoutSignal((auth.load_timeout_secs ?? 5) * 1000 + imdsBudgetMs(auth))
    try {
      let credentials: Credentials | undefined
      if (auth.access_key_id !== undefined && auth.secret_access_key !== undefined) {
        credentials = keys(auth.access_key_id, auth.secret_access_key, auth.session_token)
      } else if (identity === undefined) {
        const needed = 'Set `auth.access_key_id` and `auth.secret_access_key`, both from a Secret.'
        const message = `The options contain no credentials for AWS. ${needed} ${noIdentity}`
        throw new PenstockError('PEN_AUTH', message, { fact: message })
      } else if (auth.credentials_file !== undefined) {
        const profiles = await readProfiles(identity.env, auth.credentials_file)
        credentials = await this.#fromProfile(identity, profiles, auth.profile ?? 'default', signal)
      } else {
        credentials = await this.#chain(identity, signal)
      }
      if (credentials === undefined) {
        const places = identity === undefined ? '' : ` Searched places: ${this.#places(identity)}.`
        throw new PenstockError('PEN_AUTH', `No credentials for AWS were found.${places}`)
      }
      if (auth.assume_role === undefined) return credentials
      return await this.#assumeRole(credentials, auth.assume_role, auth.external_id, auth.session_name, signal)
    } catch (error) {
      if (error instanceof PenstockError) throw error
      throw new PenstockError('PEN_AUTH', `Credentials for AWS are not available: ${errorText(error)}.`, {
        cause: error,
      })
    }
  }

  async #chain(identity: Identity, signal: AbortSignal): Promise<Credentials | undefined> {
    const { env } = identity
    const id = cloudVariable(env, 'ACCESS_KEY_ID')
    const secret = cloudVariable(env, 'SECRET_ACCESS_KEY')
    if (id !== undefined && secret !== undefined) return keys(id, secret, cloudVariable(env, 'SESSION_TOKEN'))
    const fromProfile = await this.#fromProfile(identity, await readProfiles(env), this.#profileName(env), signal)
    if (fromProfile !== undefined) return fromProfile
    const tokenFile = cloudVariable(env, 'WEB_IDENTITY_TOKEN_FILE')
    const role = cloudVariable(env, 'ROLE_ARN')
    if (tokenFile !== undefined && role !== undefined) return this.#webIdentity(role, tokenFile, signal)
    return (await this.#container(identity, signal)) ?? (await this.#instance(identity, signal))
  }

  async #fromProfile(
    identity: Identity,
    profiles: ReadonlyMap<string, Profile>,
    name: string,
    signal: AbortSignal,
    seen: readonly string[] = [],
  ): Promise<Credentials | undefined> {
    const profile = profiles.get(name)
    if (profile === undefined || seen.includes(name)) return undefined
    const role = profile['role_arn']
    const tokenFile = profile['web_identity_token_file']
    if (role !== undefined && tokenFile !== undefined) return this.#webIdentity(role, tokenFile, signal)
    const source = profile['source_profile']
    if (role !== undefined && source !== undefined) {
      const base =
        source === name
          ? ownKeys(profile)
          : await this.#fromProfile(identity, profiles, source, signal, [...seen, name])
      if (base === undefined) return undefined
      return this.#assumeRole(base, role, profile['external_id'], profile['role_session_name'], signal)
    }
    const command = profile['credential_process']
    const own = ownKeys(profile)
    if (own !== undefined) return own
    if (command !== undefined) return this.#process(command, signal)
    return this.#singleSignOn(identity, name, profile, profiles, signal)
  }

  /** Loads credentials for a single sign-on profile, with the token that `aws sso login` wrote to the cache. */
  async #singleSignOn(
    { env }: Identity,
    name: string,
    profile: Profile,
    profiles: ReadonlyMap<string, Profile>,
    signal: AbortSignal,
  ): Promise<Credentials | undefined> {
    const { sso_session: sessionName, sso_account_id: account, sso_role_name: role } = profile
    if (account === undefined || role === undefined) return undefined
    const session = sessionName === undefined ? profile : profiles.get(`sso-session ${sessionName}`)
    const { sso_start_url: startUrl, sso_region: region } = session ?? {}
    if (startUrl === undefined || region === undefined) {
      throw new PenstockError(
        'PEN_AUTH',
        `The profile \`${name}\` has no \`sso_start_url\` or no \`sso_region\`. Add them to the profile or its session.`,
      )
    }
    const { client } = this.#context
    const token = await readSignOnToken(env, sessionName ?? startUrl, name, this.#now())
    const override = endpointOverride(env, 'SSO')
    const url = new URL('/federation/credentials', override ?? `https://portal.sso.${region}.amazonaws.com`)
    url.search = new URLSearchParams({ role_name: role, account_id: account }).toString()
    const answer = await client.send({ method: 'GET', url, headers: { 'x-amz-sso_bearer_token': token } }, signal)
    return fromSignOn(answerOf(answer, 'The single sign-on service'))
  }

  async #process(command: string, signal: AbortSignal): Promise<Credentials> {
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command], { signal })
    return fromJson(stdout, 'SessionToken')
  }

  #tokenServiceUrl(): URL {
    const { identity, region } = this.#context
    const override = endpointOverride(identity?.env, 'STS')
    return new URL(override ?? `https://sts.${this.#auth.region ?? region}.amazonaws.com/`)
  }

  #sessionName(given: string | undefined): string {
    const { identity } = this.#context
    const named = identity === undefined ? undefined : cloudVariable(identity.env, 'ROLE_SESSION_NAME')
    return given ?? named ?? `penstock-${this.#now()}`
  }

  async #webIdentity(role: string, tokenFile: string, signal: AbortSignal): Promise<Credentials> {
    const token = (await readGivenTextAsync({ option: 'web_identity_token_file', path: tokenFile })).trim()
    const form = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: this.#sessionName(undefined),
      WebIdentityToken: token,
    })
    return fromXml(await this.#post(form, undefined, signal))
  }

  async #assumeRole(
    base: Credentials,
    role: string,
    externalId: string | undefined,
    sessionName: string | undefined,
    signal: AbortSignal,
  ): Promise<Credentials> {
    const form = new URLSearchParams({
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: this.#sessionName(sessionName),
      DurationSeconds: '3600',
    })
    if (externalId !== undefined) form.set('ExternalId', externalId)
    return fromXml(await this.#post(form, base, signal))
  }

  async #post(form: URLSearchParams, signer: Credentials | undefined, signal: AbortSignal): Promise<string> {
    const request = {
      method: 'POST',
      url: this.#tokenServiceUrl(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: Buffer.from(form.toString(), 'utf8'),
    }
    const region = this.#auth.region ?? this.#context.region
    const headers =
      signer === undefined ? request.headers : signRequest(request, signer, { region, service: 'sts' }, this.#now())
    return answerOf(await this.#context.client.send({ ...request, headers }, signal), 'The token service')
  }

  async #container({ env, nodeClient }: Identity, signal: AbortSignal): Promise<Credentials | undefined> {
    const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
    const full = env['AWS_CONTAINER_CREDENTIALS_FULL_URI']
    if (relative === undefined && full === undefined) return undefined
    const url = new URL(relative === undefined ? (full as string) : `http://169.254.170.2${relative}`)
    const file = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
    const token =
      file === undefined
        ? env['AWS_CONTAINER_AUTHORIZATION_TOKEN']
        : (await readGivenTextAsync({ option: 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE', path: file })).trim()
    const headers: Record<string, string> = token === undefined ? {} : { authorization: token }
    const { client } = this.#context
    const answer = await (nodeClient ?? client).send({ method: 'GET', url, headers }, signal)
    return fromJson(answerOf(answer, 'The container credential service'), 'Token')
  }

  async #instance(identity: Identity, signal: AbortSignal): Promise<Credentials | undefined> {
    const metadata = new InstanceMetadata(identity, this.#context.client, this.#auth.imds, signal)
    const token = await metadata.token()
    if (token === undefined) return undefined
    const path = '/latest/meta-data/iam/security-credentials/'
    const role = (await metadata.get(path, token))?.trim()
    if (role === undefined || role === '') return undefined
    const answer = await metadata.get(`${path}${role}`, token)
    return answer === undefined ? undefined : fromJson(answer, 'Token')
  }
}

/** The instance metadata service, version 2. */
export class InstanceMetadata {
  readonly #env: Environment
  readonly #client: HttpClient
  readonly #options: AwsAuth['imds']
  readonly #signal: AbortSignal
  readonly #base: string

  constructor({ env, nodeClient }: Identity, client: HttpClient, options: AwsAuth['imds'], signal: AbortSignal) {
    this.#env = env
    this.#client = nodeClient ?? client
    this.#options = options
    this.#signal = signal
    this.#base = metadataAddress(env)
  }

  token(): Promise<string | undefined> {
    if (this.#env['AWS_EC2_METADATA_DISABLED'] === 'true') return Promise.resolve(undefined)
    return this.#send('PUT', '/latest/api/token', { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' })
  }

  get(path: string, token: string): Promise<string | undefined> {
    return this.#send('GET', path, { 'x-aws-ec2-metadata-token': token })
  }

  /** The body of the response; undefined if the service or the entry does not exist. */
  async #send(method: string, path: string, headers: Record<string, string>): Promise<string | undefined> {
    const { max_attempts, connect_timeout_seconds, read_timeout_seconds } = this.#options
    const url = new URL(path, this.#base)
    for (let attempt = 1; attempt <= max_attempts; attempt++) {
      const limit = timeoutSignal((connect_timeout_seconds + read_timeout_seconds) * 1000)
      try {
        const answer = await this.#client.send({ method, url, headers }, AbortSignal.any([this.#signal, limit]))
        if (answer.status === 200) return answer.body.toString('utf8')
        if (answer.status < 500) return undefined
      } catch (error) {
        if (this.#signal.aborted) throw error
        // Outside an instance, no service responds. Try once more, and then continue with the next place.
      }
    }
    return undefined
  }
}

function metadataAddress(env: Environment): string {
  return env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? 'http://169.254.169.254'
}

/** The maximum time for the metadata service to fail outside an instance, where nothing responds. */
export function imdsBudgetMs({ imds }: Pick<AwsAuth, 'imds'>): number {
  return imds.max_attempts * (imds.connect_timeout_seconds + imds.read_timeout_seconds) * 1000
}

function keys(accessKeyId: string, secretAccessKey: string, sessionToken: string | undefined): Credentials {
  return { accessKeyId, secretAccessKey, sessionToken, expiresMs: undefined }
}

function ownKeys(profile: Profile): Credentials | undefined {
  const id = profile['aws_access_key_id'] ?? profile['cloud_access_key_id']
  const secret = profile['aws_secret_access_key'] ?? profile['cloud_secret_access_key']
  if (id === undefined || secret === undefined) return undefined
  return keys(id, secret, profile['aws_session_token'] ?? profile['cloud_session_token'])
}

function answerOf(answer: HttpResponse, who: string): string {
  if (answer.status === 200) return answer.body.toString('utf8')
  const message = `${who} responded with status ${answer.status}.`
  throw new PenstockError('PEN_AUTH', message, { fact: message, status: answer.status })
}

function fromJson(text: string, tokenName: string): Credentials {
  let answer: Record<string, unknown>
  try {
    answer = JSON.parse(text) as Record<string, unknown>
  } catch {
    // The error would quote the text, which may contain keys.
    throw new PenstockError('PEN_AUTH', 'The response with credentials is not JSON.')
  }
  const { AccessKeyId: id, SecretAccessKey: secret, Expiration: end } = answer
  const token = answer[tokenName]
  if (typeof id !== 'string' || typeof secret !== 'string') {
    throw new PenstockError('PEN_AUTH', 'The response with credentials contains no access key or no secret key.')
  }
  return {
    accessKeyId: id,
    secretAccessKey: secret,
    sessionToken: typeof token === 'string' ? token : undefined,
    expiresMs: typeof end === 'string' ? Date.parse(end) : undefined,
  }
}

function fromSignOn(text: string): Credentials {
  let found: Record<string, unknown> | undefined
  try {
    found = (JSON.parse(text) as { roleCredentials?: Record<string, unknown> }).roleCredentials
  } catch {
    // The error would quote the text, which may contain keys.
  }
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = found ?? {}
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') {
    throw new PenstockError('PEN_AUTH', 'The response of the single sign-on service contains no credentials.')
  }
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: typeof sessionToken === 'string' ? sessionToken : undefined,
    expiresMs: typeof expiration === 'number' ? expiration : undefined,
  }
}

function fromXml(text: string): Credentials {
  const read = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1]
  const id = read('AccessKeyId')
  const secret = read('SecretAccessKey')
  if (id === undefined || secret === undefined) {
    throw new PenstockError('PEN_AUTH', 'The response of the token service contains no credentials.')
  }
  const end = read('Expiration')
  return {
    accessKeyId: id,
    secretAccessKey: secret,
    sessionToken: read('SessionToken'),
    expiresMs: end === undefined ? undefined : Date.parse(end),
  }
}

/** In order of precedence. Platforms inject AWS_REGION, so the agent's own variables precede it. */
const regionVariables = ['CLOUD_REGION', 'CLOUD_DEFAULT_REGION', 'AWS_REGION', 'AWS_DEFAULT_REGION']

/** The variables for the region, for messages. */
export const regionVariableNames = `${regionVariables.slice(0, -1).join(', ')} or ${regionVariables.at(-1)}`

/** The region in the environment, which applies if the options contain none. */
export function environmentRegion(env: Environment): string | undefined {
  for (const name of regionVariables) {
    const value = env[name]
    if (value !== undefined && value !== '') return value
  }
  return undefined
}

/** Members of `auth` that have no effect because another one is missing. */
export function credentialProblems(auth: AwsAuth): OptionProblem[] {
  const needs = [
    ['access_key_id', 'secret_access_key'],
    ['secret_access_key', 'access_key_id'],
    ['session_token', 'access_key_id'],
    ['external_id', 'assume_role'],
    ['session_name', 'assume_role'],
  ] as const
  return needs.flatMap(([given, needed]) =>
    auth[given] === undefined || auth[needed] !== undefined
      ? []
      : [{ path: `auth.${given}`, message: `\`${given}\` needs \`${needed}\`, which is missing` }],
  )
}
