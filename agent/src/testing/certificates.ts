// Certificates for tests, created by openssl in a temporary folder.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Issued {
  /** Paths of the files. */
  readonly crt: string
  readonly key: string
}

export interface Certificates extends AsyncDisposable {
  readonly folder: string
  /** The authority that issued all others. */
  readonly ca: Issued
  /** Creates a certificate with this subject and these alternative names, such as `DNS:localhost`. With 0 days, it expires immediately. */
  issue(name: string, alternativeNames?: string, days?: number): Promise<Issued>
  /** Runs openssl in the folder. */
  openssl(...args: string[]): Promise<void>
  read(path: string): Promise<string>
}

export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-tls-'))
  const openssl = async (...args: string[]) => {
    await run('openssl', args, { cwd: folder })
  }
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const files = (name: string): Issued => ({ crt: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) })
  const ca = files('ca')
  await openssl('req', '-x509', ...curve, '-subj', '/CN=Test CA', '-days', '30', '-keyout', ca.key, '-out', ca.crt)
  return {
    folder,
    ca,
    openssl,
    read: (path) => readFile(path, 'utf8'),
    async issue(name, alternativeNames, days = 30) {
      const issued = files(name)
      const request = join(folder, `${name}.csr`)
      const extensions = join(folder, `${name}.ext`)
      await writeFile(extensions, alternativeNames === undefined ? '' : `subjectAltName=${alternativeNames}\n`)
      await openssl('req', ...curve, '-subj', `/CN=${name}`, '-keyout', issued.key, '-out', request)
      const signed = ['x509', '-req', '-in', request, '-CA', ca.crt, '-CAkey', ca.key, '-CAcreateserial']
      await openssl(...signed, '-days', String(days), '-extfile', extensions, '-out', issued.crt)
      return issued
    },
    async [Symbol.asyncDispose]() {
      await rm(folder, { recursive: true, force: true })
    },
  }
}
