// Packs manifests as an OCI artifact for Flux (`OCIRepository`), in the form of `flux push artifact`: one layer with a compressed archive
// of the files. The result is an archive of an OCI layout, which any registry tool can push. Plain JavaScript, because any version of Node
// must run it. The same files give the same bytes: their time is SOURCE_DATE_EPOCH.
//   node .ci/flux.mjs --out FILE.tar --version VERSION --revision COMMIT [--source URL] FILE…

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'

const types = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.cncf.flux.config.v1+json',
  layer: 'application/vnd.cncf.flux.content.v1.tar+gzip',
}

const text = { type: 'string' }
const { values, positionals: files } = parseArgs({
  options: { out: text, version: text, revision: text, source: text },
  allowPositionals: true,
})
const { out, version, revision, source = '' } = values
const epoch = Number(process.env.SOURCE_DATE_EPOCH)
if (!out || !version || !revision || files.length === 0 || !Number.isInteger(epoch)) {
  console.error('.ci/flux.mjs: --out, --version, --revision, files and SOURCE_DATE_EPOCH are needed')
  process.exit(2)
}

const digestOf = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** An archive of a folder's content, with the same bytes on every machine. */
function archive(folder, names) {
  const same = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX']
  return execFileSync('tar', ['-C', folder, ...same, '--format=gnu', '-cf', '-', ...names], { maxBuffer: 1 << 28 })
}

const work = mkdtempSync(join(tmpdir(), 'penstock-flux-'))
try {
  const content = join(work, 'content')
  mkdirSync(content)
  for (const file of files) copyFileSync(file, join(content, basename(file)))
  const plain = archive(content, files.map((file) => basename(file)).sort())
  const layout = join(work, 'layout')
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
  const blob = (mediaType, bytes) => {
    const digest = digestOf(bytes)
    writeFileSync(join(layout, 'blobs', digest.replace(':', '/')), bytes)
    return { mediaType, digest, size: bytes.length }
  }
  const json = (value) => Buffer.from(JSON.stringify(value))
  const created = new Date(epoch * 1000).toISOString()
  const layer = blob(types.layer, gzipSync(plain, { level: 9 }))
  const config = blob(
    types.config,
    json({ created, architecture: '', os: '', config: {}, rootfs: { type: 'layers', diff_ids: [digestOf(plain)] } }),
  )
  const manifest = blob(
    types.manifest,
    json({
      schemaVersion: 2,
      mediaType: types.manifest,
      config,
      layers: [layer],
      annotations: {
        'org.opencontainers.image.created': created,
        'org.opencontainers.image.revision': `${version}@sha1:${revision}`,
        ...(source === '' ? {} : { 'org.opencontainers.image.source': source }),
        'org.opencontainers.image.version': version,
      },
    }),
  )
  writeFileSync(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }))
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': version } }
  writeFileSync(join(layout, 'index.json'), json({ schemaVersion: 2, manifests: [named] }))
  writeFileSync(out, archive(layout, ['blobs', 'index.json', 'oci-layout']))
} finally {
  rmSync(work, { recursive: true })
}
