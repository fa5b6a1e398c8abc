// Collects the files that Node needs in a folder, the root of an image without a shell: the libraries that the running Node has loaded, and
// the certificates that it trusts. So it depends on no tools of the base image.
// Usage: node image-files.ts FOLDER. It needs only Node.

import { chmodSync, cpSync, existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'

const [folder = ''] = process.argv.slice(2)

for (const path of ['etc/ssl/certs', 'usr/share', 'tmp']) mkdirSync(join(folder, path), { recursive: true })
chmodSync(join(folder, 'tmp'), 0o1777)

const { sharedObjects } = process.report.getReport() as { readonly sharedObjects: readonly string[] }
cpSync(realpathSync(process.execPath), join(folder, 'usr/local/bin/node'))
for (const file of sharedObjects.filter((path) => path.startsWith('/') && path !== process.execPath))
  cpSync(realpathSync(file), join(folder, file))

writeFileSync(join(folder, 'etc/ssl/certs/ca-certificates.crt'), `${rootCertificates.join('\n')}\n`)
writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/:/\npenstock:x:65532:65532:penstock:/:/\n')
writeFileSync(join(folder, 'etc/group'), 'root:x:0:\npenstock:x:65532:\n')
writeFileSync(join(folder, 'etc/nsswitch.conf'), 'hosts: files dns\n')
const zones = 'usr/share/zoneinfo'
if (existsSync(`/${zones}`)) cpSync(`/${zones}`, join(folder, zones), { recursive: true, verbatimSymlinks: true })
