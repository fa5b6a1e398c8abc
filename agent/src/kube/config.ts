// Reads the address and the credentials of the Kubernetes API, from the pod's service account or from a kubeconfig.
// Every request reads the token again, because the kubelet replaces it regularly.

import { dirname, resolve } from 'node:path'
import { errorText, PenstockError } from '../errors.ts'
import { GivenFileError, readGivenText, readGivenTextAsync } from '../given-file.ts'

export interface KubeTarget {
  readonly server: URL
  /** PEM texts. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly verify: boolean
  readonly serverName: string | undefined
  /** Namespace of the kubeconfig's context. */
  readonly namespace: string | undefined
  /** The value of the `authorization` header. */
  authorization(): string | undefined
}

export const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The API server of the cluster that the agent runs in. */
export async function inClusterTarget(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  folder = accountFolder,
): Promise<KubeTarget> {
  const host = environment['KUBERNETES_SERVICE_HOST']
  const port = environment['KUBERNETES_SERVICE_PORT']
  if (!host || !port) {
    throw new PenstockError(
      'PEN_KUBERNETES',
      'The address of the Kubernetes API is unknown: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so the agent does not run in a pod. Set `kube_config_file` to the path of a kubeconfig.',
    )
  }
  const tokenPath = `${folder}/token`
  tokenFrom(tokenPath)
  return {
    server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
    ca: await textOf(`${folder}/ca.crt`, 'The certificate authority of the cluster'),
    cert: undefined,
    key: undefined,
    verify: true,
    serverName: undefined,
    namespace: undefined,
    authorization: () => `Bearer ${tokenFrom(tokenPath)}`,
  }
}

interface Named<T> {
  readonly name?: unknown
  readonly value: T
}

export interface KubeConfigReading {
  /** By default, the current context of the file. */
  readonly context?: string | undefined
  /** Called for users with other credentials, such as a program. By default, these users are rejected. */
  readonly otherwise?: () => Promise<KubeTarget>
}

/** The kinds of credentials in a kubeconfig that this reader supports. */
const knownOfUsers = new Set([
  'token',
  'tokenFile',
  'username',
  'password',
  'client-certificate',
  'client-certificate-data',
  'client-key',
  'client-key-data',
])

/** The API server of a context of a kubeconfig. */
export async function kubeConfigTarget(path: string, reading: KubeConfigReading = {}): Promise<KubeTarget> {
  const text = await textOf(path, 'The kubeconfig')
  const { parse, YAMLParseError } = await import('yaml')
  let document: Record<string, unknown>
  try {
    document = parse(text, { logLevel: 'error' }) as Record<string, unknown>
  } catch (error) {
    // The library's messages quote the text, which may contain a token.
    const [start] = error instanceof YAMLParseError ? error.pos : []
    const place = start === undefined ? '' : ` at line ${text.slice(0, start).split('\n').length}`
    throw new PenstockError('PEN_KUBERNETES', `The kubeconfig ${path} is not valid YAML${place}.`)
  }
  const contextName = reading.context ?? document?.['current-context']
  const context = entry(document?.['contexts'], contextName, 'context')
  if (context === undefined) {
    throw new PenstockError(
      'PEN_KUBERNETES',
      contextName === undefined || contextName === ''
        ? `The kubeconfig ${path} has no \`current-context\`. Set it to one of its contexts${namesOf(document?.['contexts'])}.`
        : `The kubeconfig ${path} has no context "${String(contextName)}". Set \`current-context\` to one of its contexts${namesOf(document?.['contexts'])}.`,
    )
  }
  const cluster = entry(document['clusters'], context['cluster'], 'cluster')
  const server = cluster?.['server']
  if (cluster === undefined || typeof server !== 'string' || !URL.canParse(server)) {
    throw new PenstockError(
      'PEN_KUBERNETES',
      `The kubeconfig ${path} has no cluster "${String(context['cluster'] ?? '')}" with a valid \`server\`.`,
    )
  }
  const user = entry(document['users'], context['user'], 'user') ?? {}
  const unknown = Object.keys(user).find((name) => !knownOfUsers.has(name))
  if (unknown !== undefined) {
    if (reading.otherwise !== undefined) return reading.otherwise()
    throw new PenstockError(
      'PEN_KUBERNETES',
      `The user of the kubeconfig ${path} has \`${unknown}\`, which the agent does not support. Use a token, a token file or a client certificate.`,
    )
  }
  const folder = dirname(path)
  const pem = async (table: Record<string, unknown>, name: string): Promise<string | undefined> => {
    const data = table[`${name}-data`]
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8')
    const file = table[name]
    return typeof file === 'string' ? textOf(resolve(folder, file), `The file of \`${name}\``) : undefined
  }
  const tokenFile = typeof user['tokenFile'] === 'string' ? resolve(folder, user['tokenFile']) : undefined
  if (tokenFile !== undefined) tokenFrom(tokenFile)
  const fixed = fixedAuthorization(user)
  const serverName = cluster['tls-server-name']
  return {
    server: new URL(server),
    ca: await pem(cluster, 'certificate-authority'),
    cert: await pem(user, 'client-certificate'),
    key: await pem(user, 'client-key'),
    verify: cluster['insecure-skip-tls-verify'] !== true,
    serverName: typeof serverName === 'string' ? serverName : undefined,
    namespace: typeof context['namespace'] === 'string' ? context['namespace'] : undefined,
    authorization: () => (tokenFile === undefined ? fixed : `Bearer ${tokenFrom(tokenFile)}`),
  }
}

function fixedAuthorization(user: Record<string, unknown>): string | undefined {
  if (typeof user['token'] === 'string') return `Bearer ${user['token']}`
  if (typeof user['username'] !== 'string') return undefined
  return `Basic ${Buffer.from(`${user['username']}:${String(user['password'] ?? '')}`).toString('base64')}`
}

/** The names in a list, for a message. */
function namesOf(list: unknown): string {
  const names = Array.isArray(list) ? (list as Named<unknown>[]).map((item) => String(item?.name)) : []
  return names.length === 0 ? '' : `: ${names.slice(0, 10).join(', ')}`
}

/** The table at `key` in the list entry with this name. */
function entry(list: unknown, name: unknown, key: string): Record<string, unknown> | undefined {
  if (!Array.isArray(list)) return undefined
  const found = (list as Named<unknown>[]).find((item) => item?.name === name) as Record<string, unknown> | undefined
  const value = found?.[key]
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

function tokenFrom(path: string): string {
  try {
    return readGivenText({ option: 'kube_config_file', path }).trim()
  } catch (error) {
    throw new PenstockError(
      'PEN_KUBERNETES',
      `The token ${path} cannot be read: ${reasonOf(error)}. The pod needs a service account with a mounted token.`,
      { cause: error },
    )
  }
}

async function textOf(path: string, what: string): Promise<string> {
  try {
    return await readGivenTextAsync({ option: 'kube_config_file', path })
  } catch (error) {
    throw new PenstockError('PEN_KUBERNETES', `${what} ${path} cannot be read: ${reasonOf(error)}`, { cause: error })
  }
}

function reasonOf(error: unknown): string {
  return error instanceof GivenFileError ? error.reason : errorText(error)
}
