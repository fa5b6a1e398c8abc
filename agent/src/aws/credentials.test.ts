import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HttpClient } from '../http/client.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import { type Answer, type Destination, fakeDestination } from '../testing/destination.ts'
import { type AwsAuth, CredentialProvider } from './credentials.ts'
import { findRegion } from './region.ts'

let home: string
let client: HttpClient

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'penstock-aws-'))
  client = new HttpClient({
    tls: compileTls(defaultTls),
    proxy: compileProxy({ enabled: false, http: undefined, https: undefined, no_proxy: undefined }),
  })
})

afterAll(async () => {
  await client.close()
  await rm(home, { recursive: true, force: true })
})

const imds = { max_attempts: 1, connect_timeout_seconds: 1, read_timeout_seconds: 1 }
const end = '2100-01-01T00:00:00Z'

function provider(auth: Partial<AwsAuth>, env: Record<string, string>, now?: () => number) {
  return new CredentialProvider(
    { imds, ...auth },
    {
      client,
      identity: { env: { HOME: home, AWS_EC2_METADATA_DISABLED: 'true', ...env } },
      region: 'eu-west-1',
      ...(now === undefined ? {} : { now }),
    },
  )
}

const xml = (id: string): Answer => ({
  body: `<R><Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${end}</Expiration></Credentials></R>`,
})

const json = (id: string, expiration = end): Answer => ({
  body: JSON.stringify({ Code: 'Success', AccessKeyId: id, SecretAccessKey: 's', Token: 't', Expiration: expiration }),
})

test('keys in the options precede those in the environment, and neutral names precede others', async () => {
  const env = {
    CLOUD_ACCESS_KEY_ID: 'cloud',
    CLOUD_SECRET_ACCESS_KEY: 's',
    AWS_ACCESS_KEY_ID: 'aws',
    AWS_SECRET_ACCESS_KEY: 's',
  }
  const { CLOUD_ACCESS_KEY_ID: _, CLOUD_SECRET_ACCESS_KEY: __, ...injected } = env
  const own = await provider({ access_key_id: 'own', secret_access_key: 's' }, env).get()
  expect(own.accessKeyId).toBe('own')
  expect((await provider({}, env).get()).accessKeyId).toBe('cloud')
  expect((await provider({}, injected).get()).accessKeyId).toBe('aws')
})

test('profiles are read from the shared files', async () => {
  const file = join(home, 'keys')
  await writeFile(
    file,
    '[default]\naws_access_key_id = one\naws_secret_access_key = s\n# comment\n[other]\naws_access_key_id=two\naws_secret_access_key=s=\n',
  )
  expect(await provider({ credentials_file: file }, {}).get()).toMatchObject({ accessKeyId: 'one' })
  expect(await provider({ credentials_file: file, profile: 'other' }, {}).get()).toMatchObject({
    accessKeyId: 'two',
    secretAccessKey: 's=',
  })
  await mkdir(join(home, '.aws'), { recursive: true })
  await writeFile(
    join(home, '.aws', 'config'),
    `[profile run]\ncredential_process = echo '{"Version":1,"AccessKeyId":"three","SecretAccessKey":"s","SessionToken":"t"}'\n`,
  )
  expect(await provider({}, { AWS_PROFILE: 'run' }).get()).toMatchObject({ accessKeyId: 'three', sessionToken: 't' })
})

test('keys or a web identity can assume a role', async () => {
  await using service = await fakeDestination(xml('assumed'), xml('web'))
  const env = { AWS_ENDPOINT_URL_STS: service.url }

  const assumed = await provider(
    { access_key_id: 'base', secret_access_key: 's', assume_role: 'arn:role', external_id: 'x', session_name: 'me' },
    env,
  ).get()
  expect(assumed).toEqual({
    accessKeyId: 'assumed',
    secretAccessKey: 's',
    sessionToken: 't',
    expiresMs: Date.parse(end),
  })
  const tokenFile = join(home, 'token')
  await writeFile(tokenFile, 'jwt\n')
  const web = await provider({}, { ...env, AWS_ROLE_ARN: 'arn:web', AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile }).get()
  expect(web.accessKeyId).toBe('web')

  expect(service.requests.map((request) => Object.fromEntries(new URLSearchParams(request.text())))).toEqual([
    {
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: 'arn:role',
      RoleSessionName: 'me',
      ExternalId: 'x',
      DurationSeconds: '3600',
    },
    {
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: 'arn:web',
      RoleSessionName: expect.stringMatching(/^penstock-\d+$/),
      WebIdentityToken: 'jwt',
    },
  ])
  expect(service.requests[0]?.headers.authorization).toContain('/eu-west-1/sts/aws4_request')
  expect(service.requests[1]?.headers.authorization).toBeUndefined()
})

test('the container and the instance supply credentials', async () => {
  await using container = await fakeDestination(json('container'))
  const fromContainer = await provider(
    {},
    { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container.url}/c`, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'tok' },
  ).get()
  expect(fromContainer.accessKeyId).toBe('container')
  expect(container.requests[0]?.headers.authorization).toBe('tok')

  await using metadata = await fakeDestination({ body: 'session' }, { body: 'role' }, json('instance'))
  const env = { AWS_EC2_METADATA_DISABLED: 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url }
  expect((await provider({}, env).get()).accessKeyId).toBe('instance')
  expect(asked(metadata)).toEqual([
    'PUT /latest/api/token undefined',
    'GET /latest/meta-data/iam/security-credentials/ session',
    'GET /latest/meta-data/iam/security-credentials/role session',
  ])
})

function asked({ requests }: Destination): string[] {
  return requests.map(({ method, path, headers }) => `${method} ${path} ${headers['x-aws-ec2-metadata-token']}`)
}

test('credentials are loaded again before they expire, and kept if that fails', async () => {
  const start = Date.parse('2026-01-01T00:00:00Z')
  let now = start
  await using container = await fakeDestination(
    json('first', '2026-01-01T01:00:00Z'),
    500,
    json('second', '2026-01-01T02:00:00Z'),
  )
  const credentials = provider({}, { AWS_CONTAINER_CREDENTIALS_FULL_URI: container.url }, () => now)

  const [one, other] = await Promise.all([credentials.get(), credentials.get()])
  expect([one.accessKeyId, other.accessKeyId]).toEqual(['first', 'first'])
  now = start + 50 * 60_000
  expect((await credentials.get()).accessKeyId).toBe('first')
  expect(container.requests).toHaveLength(1)
  now = start + 58 * 60_000
  expect((await credentials.get()).accessKeyId).toBe('first') // loading failed
  expect((await credentials.get()).accessKeyId).toBe('first') // not every request loads again
  expect(container.requests).toHaveLength(2)
  now += 5000
  expect((await credentials.get()).accessKeyId).toBe('second')
  expect(container.requests).toHaveLength(3)
})

test('if there are no credentials, the message lists the searched places', async () => {
  const error = await provider({}, { AWS_PROFILE: 'shop' })
    .get()
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'PEN_AUTH' })
  expect((error as Error).message).toBe(
    `No credentials for AWS were found. Searched places: ${[
      '`auth.access_key_id` with `auth.secret_access_key`',
      'CLOUD_ACCESS_KEY_ID or AWS_ACCESS_KEY_ID with its secret in the environment',
      `the profile \`shop\` of ${home}/.cloud/credentials, ${home}/.aws/credentials, ${home}/.cloud/config, ${home}/.aws/config`,
      'AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN',
      'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI',
      'the instance metadata service, which AWS_EC2_METADATA_DISABLED turns off',
    ].join('; ')}.`,
  )
})

test('credentials that the service rejected are loaded again, others are kept', async () => {
  await using container = await fakeDestination(json('first'), json('second'))
  const credentials = provider({}, { AWS_CONTAINER_CREDENTIALS_FULL_URI: container.url })
  const first = await credentials.get()
  credentials.refused(first)
  expect((await credentials.get()).accessKeyId).toBe('second')
  credentials.refused(first) // a late response
  expect((await credentials.get()).accessKeyId).toBe('second')
})

/** A home folder with a single sign-on profile and its token cache. */
async function signOnHome(folder: string, config: string, key: string, token: object): Promise<string> {
  const path = join(home, folder)
  await mkdir(join(path, '.aws', 'sso', 'cache'), { recursive: true })
  await writeFile(join(path, '.aws', 'config'), config)
  const name = createHash('sha1').update(key).digest('hex')
  await writeFile(join(path, '.aws', 'sso', 'cache', `${name}.json`), JSON.stringify(token))
  return path
}

const session = `[profile dev]
sso_session = corp
sso_account_id = 123456789012
sso_role_name = Reader
[sso-session corp]
sso_start_url = https://corp.example/start
sso_region = eu-west-1
`

test('a single sign-on profile uses the cached token of the sign-on', async () => {
  await using portal = await fakeDestination({
    body: '{"roleCredentials":{"accessKeyId":"sso","secretAccessKey":"s","sessionToken":"t","expiration":4102444800000}}',
  })
  const path = await signOnHome('sso', session, 'corp', { accessToken: 'token', expiresAt: end })
  const env = { HOME: path, AWS_PROFILE: 'dev', AWS_ENDPOINT_URL_SSO: portal.url }
  expect(await provider({}, env).get()).toEqual({
    accessKeyId: 'sso',
    secretAccessKey: 's',
    sessionToken: 't',
    expiresMs: Date.parse(end),
  })
  const [request] = portal.requests
  expect(request?.path).toBe('/federation/credentials?role_name=Reader&account_id=123456789012')
  expect(request?.headers['x-amz-sso_bearer_token']).toBe('token')
})

test('an expired sign-on is reported with a fix', async () => {
  const path = await signOnHome('ended', session, 'corp', { accessToken: 'token', expiresAt: '2000-01-01T00:00:00Z' })
  await expect(provider({}, { HOME: path, AWS_PROFILE: 'dev' }).get()).rejects.toThrow(
    'The sign-on token of the profile `dev` has expired. Sign on again: aws sso login --profile dev.',
  )
})

test('the region comes from the option, the environment, the profile or the instance, in this order', async () => {
  const path = join(home, 'region')
  await mkdir(join(path, '.aws'), { recursive: true })
  await writeFile(join(path, '.aws', 'config'), '[default]\nregion = of-profile\n[profile bare]\nfoo = 1\n')
  await using instance = await fakeDestination({ body: 'token' }, { body: 'of-instance\n' })
  const env = { HOME: path, AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.url }
  const region = (given: string | undefined, more: Record<string, string> = {}) =>
    findRegion(
      given,
      { imds, credentials_file: undefined, profile: undefined },
      { client, identity: { env: { ...env, ...more } } },
    )
  expect(await region('of-option', { AWS_REGION: 'of-environment' })).toBe('of-option')
  expect(await region(undefined, { AWS_REGION: 'of-environment' })).toBe('of-environment')
  expect(await region(undefined, { AWS_DEFAULT_REGION: 'default' })).toBe('default')
  // Platforms inject AWS_REGION into every pod; the agent's own variable precedes it.
  expect(await region(undefined, { AWS_REGION: 'injected', CLOUD_DEFAULT_REGION: 'own' })).toBe('own')
  expect(await region(undefined)).toBe('of-profile')
  expect(instance.requests).toHaveLength(0)
  expect(await region(undefined, { AWS_PROFILE: 'bare' })).toBe('of-instance')
  expect(instance.requests.map((request) => `${request.method} ${request.path}`)).toEqual([
    'PUT /latest/api/token',
    'GET /latest/meta-data/placement/region',
  ])
  expect(await region(undefined, { AWS_PROFILE: 'bare', AWS_EC2_METADATA_DISABLED: 'true' })).toBeUndefined()
})
