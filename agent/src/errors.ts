// Every error that ends an operation is a PenstockError with a code; users and tests match codes, never messages.
// Failures that data can cause are return values, not exceptions.

/** Code of each error and the one line that the reference says about it. */
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
  PEN_EGRESS_DENIED: 'A component of a namespaced resource would connect to an address that is closed to it.',
  PEN_IO: 'A file or directory could not be opened, read or written.',
  PEN_CANNOT_CREATE: 'The output file of a command already exists or cannot be created.',
  PEN_API_BIND: 'The observation server could not bind its address.',
  PEN_UNAVAILABLE: 'A running agent could not be reached.',
  PEN_USAGE: 'The command line was not understood.',
  PEN_INTERNAL: 'A fault of Penstock itself.',
} as const

export type ErrorCode = keyof typeof errorCodes

export interface PenstockErrorOptions extends ErrorOptions {
  /** The text to show for a tenant's component: it holds nothing of events, answers or secrets. If absent, the line of the code. */
  readonly fact?: string
  /** Id of the component that cannot be built. */
  readonly component?: string
}

export class PenstockError extends Error {
  readonly code: ErrorCode
  readonly fact: string | undefined
  readonly component: string | undefined

  constructor(code: ErrorCode, message: string, options?: PenstockErrorOptions) {
    super(message, options)
    this.name = 'PenstockError'
    this.code = code
    this.fact = options?.fact
    this.component = options?.component
  }
}

/** Text of anything thrown, for a log field or a message. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
