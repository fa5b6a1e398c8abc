// How commands connect to the operator itself: through the API server, using a Role for one port of its Service, or at the
// operator's address. A token identifies the caller, because the API server does not forward any other identity.

import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { errorText, exitCodeOf, exitCodes, PenstockError } from '@penstock/agent/errors'
import { type Access, bodyText, Transport } from '@penstock/agent/kube'
import { type Flags, interrupted, version } from '@penstock/agent/program'
import { isApart } from '../fleet/skew.ts'
import type { KubeConnection } from '../kube/connection.ts'
import { type ActingAs, actingAsText } from '../serving/observe/acting-as.ts'
import { actingAsHeader, tokenHeader, versionHeader } from '../serving/observe/relay.ts'
import { operatorName } from '../workloads/installation-names.ts'
import { helpOf } from './arguments.ts'
import { type ClusterFlags, connectionOptions, openConnection } from './cluster.ts'
import { unreachableHelp } from './unreachable.ts'

/** Flags of a command that connects to the operator. */
export const operatorOptions = {
  token: { type: 'string', value: 'TOKEN', help: 'Token of the caller (that of the kubeconfig).' },
  'operator-namespace': {
    type: 'string',
    default: 'penstock-system',
    value: 'NS',
    help: 'Namespace of the operator (penstock-system).',
  },
  'operator-url': {
    type: 'string',
    value: 'URL',
    help: `Address of the operator, such as https://127.0.0.1:9443 with \`kubectl port-forward -n NS service/${operatorName} 9443\`. Without it, the command goes through the API server.`,
  },
  'operator-ca': {
    type: 'string',
    value: 'FILE',
    help: `With --operator-url: certificate authority of the operator, which is ca.crt in the Secret ${operatorName}-tls.`,
  },
  ...connectionOptions,
} as const satisfies Flags

export interface OperatorFlags extends ClusterFlags {
  readonly token?: string | undefined
  readonly 'operator-namespace'?: string | undefined
  readonly 'operator-url'?: string | undefined
  readonly 'operator-ca'?: string | undefined
}

export const operatorFlagHelp = `Access to the operator:
${helpOf(operatorOptions)}`

/**
 * Warns on standard error if the operator differs from this command by more than one minor version, because its responses may not be
 * understood.
 */
function warnOfSkew(operator: string | string[] | undefined): void {
  if (typeof operator !== 'string' || !isApart(version, operator)) return
  console.error(
    `This command has version ${version} and the operator ${operator}: a difference of more than one minor version is not supported. Use a command of version ${operator}.`,
  )
}

/** Why there is no token: the kubeconfig has another credential, which only the API server can check, or none. */
function withoutToken(access: Access | undefined): string {
  const other = [
    ...(access?.tls.cert === undefined ? [] : ['a client certificate']),
    ...(access?.headers['authorization'] === undefined ? [] : ['a password']),
  ]
  if (other.length === 0)
    return 'Your kubeconfig has no credentials: the user of its context has no token, no credential plugin, no client certificate and no password.'
  return `Your kubeconfig identifies you by ${other.join(' and ')}, which the operator cannot check.`
}

export class OperatorConnection implements Disposable {
  readonly namespace: string
  readonly #flags: OperatorFlags
  readonly #connection: KubeConnection | undefined
  readonly #token: string
  readonly #transport = new Transport()

  private constructor(flags: OperatorFlags, connection: KubeConnection | undefined, token: string) {
    this.#flags = flags
    this.#connection = connection
    this.#token = token
    this.namespace = flags.namespace ?? connection?.namespace ?? 'default'
  }

  /** @param need the right that the token's owner needs, for the message if it is missing */
  static async open(flags: OperatorFlags, need: string): Promise<OperatorConnection> {
    const direct = flags['operator-url'] !== undefined && flags.token !== undefined
    const connection = await openConnection(flags).catch((error: unknown) => {
      if (direct && exitCodeOf(error) !== exitCodes.usage) return undefined // the cluster itself is not needed in this case
      throw error
    })
    const more = Object.keys(connection?.access.headers ?? {}).find((name) => /^impersonate-(?:uid|extra-)/.test(name))
    if (more !== undefined) {
      connection?.close()
      throw new PenstockError(
        'PEN_USAGE',
        `The user of your kubeconfig has \`${more === 'impersonate-uid' ? 'as-uid' : 'as-user-extra'}\`, which the operator does not support. Use --context to select a context whose user only has \`as\` and \`as-groups\`.`,
      )
    }
    const own = /^Bearer (.+)$/i.exec(String(connection?.access.headers['authorization'] ?? ''))?.[1]
    const token = flags.token ?? own
    if (token === undefined) {
      connection?.close()
      throw new PenstockError(
        'PEN_USAGE',
        `${withoutToken(connection?.access)} Pass a token of an account that may ${need}:\n  --token "$(kubectl create token NAME -n NAMESPACE)" for a ServiceAccount.`,
      )
    }
    return new OperatorConnection(flags, connection, token)
  }

  /** The lines from the operator, parsed and as text, until the operator or the signal ends them. */
  async *lines(path: string, signal: AbortSignal): AsyncGenerator<readonly [received: OperatorLine, text: string]> {
    const answer = await this.#get(path, signal)
    warnOfSkew(answer.headers[versionHeader])
    if (answer.statusCode !== 200) throw await this.#refused(answer)
    const acting = this.#actingAs[actingAsHeader]
    if (acting !== undefined && answer.headers[actingAsHeader] !== acting) {
      answer.destroy()
      const older = answer.headers[versionHeader] ?? 'of an earlier version'
      throw new PenstockError(
        'PEN_UNAVAILABLE',
        `The operator (${older}) cannot act as another user, and answers with your own rights: give neither --as nor a kubeconfig with \`as\`, or upgrade the operator.`,
      )
    }
    answer.on('error', () => {}) // a connection that breaks ends the lines
    const lines = createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })
    lines.on('error', () => {})
    for await (const line of lines) yield [JSON.parse(line) as OperatorLine, line]
  }

  [Symbol.dispose](): void {
    this.#transport.close()
    this.#connection?.close()
  }

  get #url(): URL | undefined {
    const given = this.#flags['operator-url']
    if (given === undefined) return undefined
    const url = URL.parse(given)
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new PenstockError(
        'PEN_USAGE',
        `\`--operator-url\` takes a URL such as https://127.0.0.1:9443; found \`${given}\`.`,
      )
    return url
  }

  async #get(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const url = this.#url
    try {
      if (url === undefined) {
        // Observers only need access to this port, so a Role can be limited to it.
        const service = `https:${operatorName}:agents`
        const root = `/api/v1/namespaces/${encodeURIComponent(this.#operatorNamespace)}/services/${service}/proxy`
        const headers = { [tokenHeader]: this.#token, ...this.#actingAs }
        return await (this.#connection as KubeConnection).send({ method: 'GET', path: root + path, headers, signal })
      }
      const file = this.#flags['operator-ca']
      const loopback = /^(?:127\.|localhost$|\[::1\]$)/.test(url.hostname)
      const tls = {
        ca: file === undefined ? undefined : readFileSync(file, 'utf8'),
        // Its certificate has the name of its Service, which differs from that of a forwarded port.
        servername: loopback ? `${operatorName}.${this.#operatorNamespace}.svc` : undefined,
      }
      const headers = { authorization: `Bearer ${this.#token}`, ...this.#actingAs }
      return await this.#transport.send({ server: url.origin, headers, tls }, { method: 'GET', path, signal })
    } catch (error) {
      if (signal.aborted) throw error
      const where =
        url === undefined ? `The API server ${this.#connection?.access.server}` : `The operator at ${url.origin}`
      const code = (error as { code?: string }).code ?? ''
      const hint =
        url !== undefined && /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)
          ? ` Give the authority of its certificate by --operator-ca: kubectl get secret ${operatorName}-tls -n ${this.#operatorNamespace} -o jsonpath='{.data.ca\\.crt}' | base64 -d`
          : url === undefined
            ? `\n${unreachableHelp}`
            : ''
      throw new PenstockError('PEN_UNAVAILABLE', `${where} cannot be reached: ${errorText(error)}.${hint}`, {
        cause: error,
      })
    }
  }

  /** The user that the caller impersonates, by the kubeconfig or the flags. */
  get #actingAs(): Readonly<Record<string, string>> {
    const {
      'impersonate-user': username = this.#flags.as,
      'impersonate-group': groups = this.#flags['as-group'] ?? [],
    } = this.#connection?.access.headers ?? {}
    if (username === undefined) return {}
    const acting: ActingAs = { username: String(username), groups: [groups].flat() }
    return { [actingAsHeader]: actingAsText(acting) }
  }

  get #operatorNamespace(): string {
    return this.#flags['operator-namespace'] ?? 'penstock-system'
  }

  /** The meaning of an error response, from the operator or from the API server in front of it. */
  async #refused(answer: IncomingMessage): Promise<PenstockError> {
    const text = await bodyText(answer, 1 << 20).catch((error: unknown) => errorText(error))
    const status = answer.statusCode ?? 0
    const received = objectIn(text)
    if (typeof received['error'] === 'string')
      return new PenstockError('PEN_UNAVAILABLE', received['error'], { status })
    const namespace = this.#operatorNamespace
    const message = String(received['message'] ?? text.slice(0, 500)).trim()
    const forward = `Or bypass the API server: kubectl port-forward -n ${namespace} service/${operatorName} 9443, and --operator-url https://127.0.0.1:9443 --operator-ca FILE.`
    if (this.#url !== undefined || received['kind'] !== 'Status')
      return new PenstockError('PEN_UNAVAILABLE', `The operator responded with status ${status}: ${message}`)
    if (status === 403) {
      return new PenstockError(
        'PEN_UNAVAILABLE',
        `You may not connect to the operator through the API server: ${message}\nAn administrator grants access: kubectl create rolebinding penstock-cli -n ${namespace} --role=penstock-cli --user=YOU (or --group, --serviceaccount). ${forward}`,
      )
    }
    if (status === 404) {
      return new PenstockError(
        'PEN_UNAVAILABLE',
        `There is no Service ${operatorName} in namespace ${namespace}: if Penstock is installed in another one, set it with --operator-namespace.`,
      )
    }
    return new PenstockError(
      'PEN_UNAVAILABLE',
      `The operator in namespace ${namespace} does not answer (${status}): ${message}\nCheck its pods: kubectl get pods -n ${namespace} -l app.kubernetes.io/name=${operatorName}. ${forward}`,
    )
  }
}

export interface OperatorLine {
  readonly kind: string
  readonly message?: string
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {} // words of a proxy between
  }
}

/** Ctrl-C, or a closed output, ends it gracefully. */
export function stopped(): AbortSignal {
  const closed = new AbortController()
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    closed.abort()
  })
  return AbortSignal.any([interrupted(), closed.signal])
}
