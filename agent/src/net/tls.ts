// Opens TLS connections. The user's certificate authority is added to those of the system. The verification of the certificate and of
// the host name are independent of each other.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect,
  createSecureContext,
  getCACertificates,
  rootCertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import { errorText, PenstockError } from '../errors.ts'
import { GivenFileError, readGivenFile } from '../given-file.ts'
import type { TlsOptions } from '../schema/groups.ts'
import { isInline } from '../schema/meaning.ts'

export interface TlsSettings {
  /** Wraps a connection. Resolves when the peer is verified, and destroys the socket if the verification fails. */
  secure(socket: Socket, name: string, signal?: AbortSignal): Promise<TLSSocket>
  /** Options for libraries that open connections themselves. The caller must use `wrongName` after connecting. */
  connectOptions(name: string): ConnectionOptions
  /** The error if the name of a peer is wrong. Only needed if the certificate is not verified but the name is. */
  wrongName(socket: TLSSocket, name: string): Error | undefined
  /** The server name to request instead of the host of the address. */
  readonly serverName: string | undefined
  /** Whether HTTP/2 can be negotiated. */
  readonly offersHttp2: boolean
  /** Warnings for the user. */
  readonly warnings: readonly string[]
}

/** The default settings. */
export const defaultTls: TlsOptions = {
  enabled: undefined,
  alpn_protocols: undefined,
  ca_file: undefined,
  crt_file: undefined,
  key_file: undefined,
  key_pass: undefined,
  server_name: undefined,
  verify_certificate: true,
  verify_hostname: true,
}

/** Reads the files that the options name; throws a PenstockError if one is not usable. */
export function compileTls(options: TlsOptions): TlsSettings {
  const authorities = options.ca_file === undefined ? [] : readAuthorities(options.ca_file)
  const identity = readIdentity(options)
  const protocols = options.alpn_protocols ?? ['http/1.1']
  let context: SecureContext | undefined
  const secureContext = (): SecureContext => {
    try {
      context ??= createSecureContext({ ca: [...systemRoots(), ...authorities], ...identity })
      return context
    } catch (error) {
      throw new PenstockError('PEN_TLS_INVALID', unusable(error, options.crt_file), { cause: error })
    }
  }
  if (identity !== undefined) secureContext() // reports a wrong passphrase before the first connection

  const warnings: string[] = []
  if (!options.verify_certificate) {
    warnings.push(
      'Certificates are not verified because `verify_certificate` is false: connections are vulnerable to man-in-the-middle attacks.',
    )
  }
  if (!options.verify_hostname) {
    warnings.push(
      'Host names are not verified because `verify_hostname` is false: connections are vulnerable to man-in-the-middle attacks.',
    )
  }

  const connectOptions = (name: string): ConnectionOptions => ({
    secureContext: secureContext(),
    // An IP address must not be sent as the server name (RFC 6066, section 3).
    ...(isIP(name) === 0 ? { servername: name } : {}),
    rejectUnauthorized: options.verify_certificate,
    checkServerIdentity: options.verify_hostname
      ? (_, certificate) => checkServerIdentity(name, certificate)
      : () => undefined,
    ...(options.alpn_protocols === undefined ? {} : { ALPNProtocols: [...options.alpn_protocols] }),
  })
  // Node.js verifies the name only if it also verifies the certificate.
  const wrongName = (socket: TLSSocket, name: string): Error | undefined =>
    options.verify_hostname && !options.verify_certificate
      ? checkServerIdentity(name, socket.getPeerCertificate())
      : undefined

  return {
    warnings,
    connectOptions,
    wrongName,
    offersHttp2: protocols.includes('h2'),
    serverName: options.server_name,
    secure(socket, name, signal) {
      return new Promise((resolve, reject) => {
        const secured = connect({ socket, host: name, ...connectOptions(name), ALPNProtocols: [...protocols] })
        const end = () => {
          secured.off('error', fail)
          secured.off('close', closed)
          signal?.removeEventListener('abort', abort)
        }
        const fail = (error: unknown) => {
          end()
          secured.on('error', () => {}) // later errors contain no new information
          secured.destroy()
          reject(error)
        }
        const closed = () => fail(new Error('The peer closed the connection during the TLS handshake.'))
        const abort = () => fail(signal?.reason)
        secured.once('error', fail)
        secured.once('close', closed)
        signal?.addEventListener('abort', abort)
        secured.once('secureConnect', () => {
          const wrong = wrongName(secured, name)
          if (wrong !== undefined) return fail(wrong)
          end()
          resolve(secured)
        })
      })
    },
  }
}

function unusable(error: unknown, file: string | undefined): string {
  // Old tools encrypt files with RC2, which OpenSSL 3 supports only with its legacy provider.
  if ((error as NodeJS.ErrnoException).code === 'ERR_CRYPTO_UNSUPPORTED_OPERATION' && file !== undefined) {
    return [
      `\`tls.crt_file\`: the PKCS#12 file ${file} uses an encryption that is no longer supported, such as RC2. Convert it:`,
      `openssl pkcs12 -legacy -in ${file} -nodes -out identity.pem && openssl pkcs12 -export -in identity.pem -out new.p12`,
    ].join(' ')
  }
  return `The TLS certificate or its key is not usable: ${errorText(error)}.`
}

let roots: readonly string[] | undefined

/** Certificates of the system and of Node.js, read on first use. */
function systemRoots(): readonly string[] {
  if (roots === undefined) {
    const all = new Set(rootCertificates)
    try {
      for (const certificate of getCACertificates('system')) all.add(certificate)
      for (const certificate of getCACertificates('extra')) all.add(certificate)
    } catch {
      // This system has no certificate store, so use only the bundled certificates.
    }
    roots = [...all]
  }
  return roots
}

const pemStart = '-----BEGIN '

function readFileOption(option: string, value: string): Buffer {
  if (isInline('pem', value)) return Buffer.from(value, 'utf8')
  try {
    return readGivenFile({ option: `tls.${option}`, path: value })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    throw new PenstockError('PEN_TLS_FILE', `\`tls.${option}\`: the file ${value} cannot be read (${error.reason}).`, {
      cause: error,
    })
  }
}

function isPem(content: Buffer): boolean {
  return content.includes(pemStart)
}

function place(value: string): string {
  return isInline('pem', value) ? 'the inline text' : `the file ${value}`
}

function readAuthorities(value: string): string[] {
  const content = readFileOption('ca_file', value)
  const blocks = isPem(content)
    ? (content.toString('utf8').match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END [^-]*-----/g) ??
      [])
    : [content]
  try {
    const certificates = blocks.map((block) => new X509Certificate(block).toString())
    if (certificates.length > 0) return certificates
  } catch (error) {
    throw new PenstockError(
      'PEN_TLS_INVALID',
      `\`tls.ca_file\`: ${place(value)} is not a certificate in PEM or DER format.`,
      {
        cause: error,
      },
    )
  }
  throw new PenstockError('PEN_TLS_INVALID', `\`tls.ca_file\`: ${place(value)} contains no certificate.`)
}

type Identity = { cert: string; key: string } | { pfx: Buffer; passphrase?: string }

function readIdentity(options: TlsOptions): Identity | undefined {
  const { crt_file, key_file, key_pass } = options
  if (crt_file === undefined) return undefined
  const content = readFileOption('crt_file', crt_file)
  const certificate = pemCertificate(content)
  if (certificate === undefined) {
    // Neither PEM nor a DER certificate, so it must be PKCS#12, which contains the key too.
    return key_pass === undefined ? { pfx: content } : { pfx: content, passphrase: key_pass }
  }
  if (key_file === undefined) {
    throw new PenstockError(
      'PEN_TLS_KEY_MISSING',
      `\`tls.crt_file\`: ${place(crt_file)} requires a private key. Set \`tls.key_file\`, or use a PKCS#12 file.`,
    )
  }
  return { cert: certificate, key: pemKey(readFileOption('key_file', key_file), key_file, key_pass) }
}

function pemCertificate(content: Buffer): string | undefined {
  if (isPem(content)) return content.toString('utf8')
  try {
    return new X509Certificate(content).toString()
  } catch {
    return undefined // PKCS#12, or an invalid file, which the TLS context will report
  }
}

function pemKey(content: Buffer, value: string, passphrase: string | undefined): string {
  const secret = passphrase === undefined ? {} : { passphrase }
  const forms = isPem(content)
    ? [{ key: content, format: 'pem' as const, ...secret }]
    : (['pkcs8', 'pkcs1', 'sec1'] as const).map((type) => ({ key: content, format: 'der' as const, type, ...secret }))
  let cause: unknown
  for (const form of forms) {
    try {
      return createPrivateKey(form).export({ format: 'pem', type: 'pkcs8' }).toString()
    } catch (error) {
      cause ??= error
    }
  }
  const why =
    passphrase === undefined ? 'If it is encrypted, set `tls.key_pass`.' : 'Check that `tls.key_pass` is correct.'
  throw new PenstockError(
    'PEN_TLS_INVALID',
    `\`tls.key_file\`: ${place(value)} is not a readable private key in PEM or DER format. ${why}`,
    { cause },
  )
}
