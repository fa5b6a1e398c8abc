// Every error that ends an operation is a PenstockError with a code; users and tests match codes, never messages.
// Failures that data can cause are return values, not exceptions.

/** Each error code with its one-line summary in the reference. */
export const errorCodes = {
  PEN_CONFIG_INVALID: 'The configuration has problems; each is listed with its file, line and path.',
  PEN_CONFIG_UNREADABLE: 'A configuration file or directory cannot be read.',
  PEN_DATA_DIR: 'The data directory is missing, not a directory or not writable.',
  PEN_TLS_FILE: 'A certificate or key file cannot be read.',
  PEN_TLS_KEY_MISSING: 'A certificate was given without its private key.',
  PEN_TLS_INVALID: 'A certificate, key or passphrase cannot be used.',
  PEN_PROXY_INVALID: 'A proxy address is not a valid URL.',
  PEN_AUTH: 'Credentials are missing, contradictory or were refused.',
  PEN_HEALTHCHECK: 'A destination did not pass its health check.',
  PEN_REQUEST_FAILED: 'A request could not be sent or its answer could not be read.',
  PEN_KUBERNETES: 'The Kubernetes API could not be reached or refused a request.',
  PEN_NODE_NAME: 'The name of the node is not known: neither `self_node_name` nor its environment variable is set.',
  PEN_EGRESS_DENIED: 'A component of a namespaced resource would connect to a denied address.',
  PEN_IO: 'A file or directory could not be opened, read or written.',
  PEN_CANNOT_CREATE: 'The output file of a command already exists or cannot be created.',
  PEN_API_BIND: 'The observation server could not bind its address.',
  PEN_UNAVAILABLE: 'A running agent could not be reached.',
  PEN_USAGE: 'The command line is invalid.',
  PEN_INTERNAL: 'An internal error of Penstock.',
} as const

export type ErrorCode = keyof typeof errorCodes

export interface PenstockErrorOptions extends ErrorOptions {
  /**
   * The text to show for a tenant's component, without any part of events, responses or secrets; by default the summary of the
   * code.
   */
  readonly fact?: string
  /** Id of the component that cannot be built. */
  readonly component?: string
  /** Status of the response that caused the error. */
  readonly status?: number
  /** The cause of the failure, if the system gives no code for it. */
  readonly kind?: FailureKind
}

/** The cause of a failed operation: no connection, a refused certificate, or closed files. */
export type FailureKind = 'connection' | 'tls' | 'permission'

export class PenstockError extends Error {
  readonly code: ErrorCode
  readonly fact: string | undefined
  readonly component: string | undefined
  readonly status: number | undefined
  readonly kind: FailureKind | undefined

  constructor(code: ErrorCode, message: string, options?: PenstockErrorOptions) {
    super(message, options)
    this.name = 'PenstockError'
    this.code = code
    this.fact = options?.fact
    this.component = options?.component
    this.status = options?.status
    this.kind = options?.kind
  }
}

const kindsOfCodes: readonly (readonly [RegExp, FailureKind])[] = [
  [/^(?:EACCES|EPERM)$/, 'permission'],
  [/CERT|TLS|SSL|SELF_SIGNED|^EPROTO$|^HOSTNAME_MISMATCH$|^UNABLE_TO_/, 'tls'],
  [
    /^(?:ECONN|EHOST|ENET|EAI_|UND_ERR_|HPE_)|^(?:ENOTFOUND|ETIMEDOUT|EPIPE|PEN_EGRESS_DENIED|TimeoutError)$/,
    'connection',
  ],
]

/**
 * The kind of failure for an error code of the system, of TLS or of the HTTP client. Pass the name of an error that has
 * no code.
 */
export const kindOfCode = (code: string): FailureKind | undefined =>
  kindsOfCodes.find(([codes]) => codes.test(code))?.[1]

const maxCauses = 8

/**
 * The kind and the status of an error, or of its nearest cause that has one. For an AggregateError, those of its first error.
 */
export function failureOf(error: unknown): { readonly kind?: FailureKind; readonly status?: number } {
  let kind: FailureKind | undefined
  let status: number | undefined
  let next: unknown = error
  for (let depth = 0; depth < maxCauses && next instanceof Error; depth++) {
    const { code, kind: own } = next as { code?: unknown; kind?: unknown }
    if (next instanceof PenstockError) status ??= next.status
    kind ??= next instanceof PenstockError ? (own as FailureKind | undefined) : undefined
    kind ??= kindOfCode(typeof code === 'string' ? code : next.name)
    next = next instanceof AggregateError ? (next.errors[0] ?? next.cause) : next.cause
  }
  return { ...(kind === undefined ? {} : { kind }), ...(status === undefined ? {} : { status }) }
}

const fileReasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EEXIST: 'it exists already',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder, not a regular file',
  ENOTDIR: 'a part of its path is not a folder',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'its name is too long',
  ENXIO: 'it is not a regular file',
  ENOSPC: 'the disk is full',
  EROFS: 'its file system is read-only',
  EMFILE: 'too many files are open',
}

/** Authorities that a client does not know, by the codes of TLS. */
const unknownAuthority = 'the authority of the certificate is not known here; `tls.ca_file` names it'
const closedEarly = 'the other side closed the connection'
const noRoute = 'no route leads to the address'
const notInTime = 'no connection within the time limit'
const wantsCertificate = 'the other side refused the handshake; it may require a client certificate'

const connectionReasons: ReadonlyMap<string, string> = new Map(
  Object.entries({
    EAI_AGAIN: 'the name server gave no answer about the name',
    ENOTFOUND: 'the name does not exist',
    ECONNREFUSED: 'nothing accepts connections at the address',
    ECONNRESET: closedEarly,
    EPIPE: closedEarly,
    UND_ERR_SOCKET: closedEarly,
    EHOSTUNREACH: noRoute,
    ENETUNREACH: noRoute,
    ETIMEDOUT: notInTime,
    UND_ERR_CONNECT_TIMEOUT: notInTime,
    CERT_HAS_EXPIRED: 'the certificate is no longer valid',
    CERT_NOT_YET_VALID: 'the certificate is not valid yet',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed; `tls.ca_file` makes it trusted',
    SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
    UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
    ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name',
    ERR_SSL_WRONG_VERSION_NUMBER: 'the answer is not TLS; the port may expect `http`',
    ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: wantsCertificate,
    ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: wantsCertificate,
  }),
)

/** An error code of the system, of TLS or of the HTTP client, with its meaning if it is about a connection. A sentence. */
export function codeText(code: string): string {
  const meaning = connectionReasons.get(code) ?? (code.startsWith('HPE_') ? 'the answer is not HTTP' : undefined)
  return meaning === undefined ? `${code}.` : `${code}: ${meaning}.`
}

/**
 * Why a file cannot be read or written, as a clause for people. The system's own text contains codes and function names.
 */
export function fileReason(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  return fileReasons[code ?? ''] ?? code ?? errorText(error)
}

/** The text of any thrown value, for a log field or a message. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
