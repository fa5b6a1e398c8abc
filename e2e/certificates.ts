// New certificates for tests in a temporary folder: an authority, a server certificate for loopback, and an unrelated authority.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command } from './command.ts'

export interface Certificates extends AsyncDisposable {
  readonly folder: string
  /** Paths of PEM files. */
  readonly authority: string
  readonly otherAuthority: string
  readonly server: { readonly key: string; readonly cert: string }
}

export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-tls-'))
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => command('openssl', args)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const self = ['req', '-x509', ...key, '-days', '30', '-addext', 'basicConstraints=critical,CA:TRUE']
  await openssl(...self, '-subj', '/CN=Test authority', '-keyout', at('ca.key'), '-out', at('ca.crt'))
  await openssl(...self, '-subj', '/CN=Other authority', '-keyout', at('other.key'), '-out', at('other.crt'))
  await openssl('req', ...key, '-subj', '/CN=server', '-keyout', at('server.key'), '-out', at('server.csr'))
  await writeFile(at('names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n')
  await openssl(
    ...['x509', '-req', '-in', at('server.csr'), '-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial'],
    ...['-days', '30', '-extfile', at('names'), '-out', at('server.crt')],
  )
  return {
    folder,
    authority: at('ca.crt'),
    otherAuthority: at('other.crt'),
    server: { key: await readFile(at('server.key'), 'utf8'), cert: await readFile(at('server.crt'), 'utf8') },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
