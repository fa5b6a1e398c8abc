// The release after this one, for tests of two releases side by side. Its images, charts and command are built from the same sources with
// the next minor version, and its Pipeline CRD has one additional field. A program reads its version from the package.json beside it, so
// only that file is replaced in an image.

import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { version } from '@penstock/agent/program'
import { pack } from '@penstock/agent/tools/pack'
import { command, root } from './command.ts'
import { changedChart } from './helm.ts'
import { buildImage, type ImageName, imageRepository } from './image.ts'
import { type Program, programIn } from './program.ts'

const [major, minor] = version.split('.').map(Number)
export const nextVersion = `${major}.${(minor ?? 0) + 1}.0`

/** A field of a Pipeline that this release does not know. */
export const nextField = 'later'

export interface NextRelease {
  /** Archives of its images, which are tagged with its version. */
  readonly images: readonly string[]
  readonly charts: { readonly penstock: string; readonly crds: string }
  readonly command: Program
}

/** Builds the release in an empty folder. */
export async function nextRelease(folder: string): Promise<NextRelease> {
  const packed = pack(join(folder, 'command'), 'operator')
  const manifest = join(dirname(packed), 'package.json')
  await rm(manifest) // a link to that of this release
  await writeFile(manifest, await packageJson('operator'))
  return {
    images: [await nextImage('operator', folder), await nextImage('agent', folder)],
    charts: await nextCharts(folder),
    command: programIn(packed, 'operator'),
  }
}

export async function nextCharts(folder: string): Promise<NextRelease['charts']> {
  const numbered = {
    'Chart.yaml': (file: object) => Object.assign(file, { version: nextVersion, appVersion: nextVersion }),
    'files/crds/pipelines.penstock.dev.yaml': ({ spec }: Definition) => {
      for (const { schema } of spec.versions)
        schema.openAPIV3Schema.properties.spec.properties[nextField] = { type: 'string' }
    },
  }
  const charts = join(folder, 'charts')
  await mkdir(charts)
  return {
    penstock: await changedChart(charts, 'penstock', numbered),
    crds: await changedChart(charts, 'penstock-crds', numbered),
  }
}

interface Definition {
  readonly spec: {
    readonly versions: readonly {
      readonly schema: {
        readonly openAPIV3Schema: {
          readonly properties: { readonly spec: { readonly properties: Record<string, object> } }
        }
      }
    }[]
  }
}

async function packageJson(workspace: ImageName): Promise<string> {
  const content = JSON.parse(await readFile(join(root, workspace, 'package.json'), 'utf8'))
  return JSON.stringify({ ...content, version: nextVersion })
}

/** Adds a layer with one file to an image of this release; returns the archive. */
export async function nextImage(name: ImageName, folder: string): Promise<string> {
  const [image, file] = [join(folder, `${name}-image`), `app/${name}/package.json`]
  await mkdir(image)
  await command('tar', ['-xf', await buildImage(name), '-C', image])
  const blob = (digest: string) => join(image, 'blobs', digest.replace(':', '/'))
  const read = async (path: string) => JSON.parse(await readFile(path, 'utf8'))
  const add = async (content: Buffer | object) => {
    const bytes = content instanceof Buffer ? content : Buffer.from(JSON.stringify(content))
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    await writeFile(blob(digest), bytes)
    return { digest, size: bytes.length }
  }

  const files = join(folder, `${name}-files`)
  await mkdir(dirname(join(files, file)), { recursive: true })
  await writeFile(join(files, file), await packageJson(name))
  const layerFile = join(folder, `${name}-layer.tar`)
  await command('tar', [
    '-C',
    files,
    '--numeric-owner',
    '--owner=0',
    '--group=0',
    '--mode=0644',
    '-cf',
    layerFile,
    file,
  ])
  const layer = await add(await readFile(layerFile))

  const index = await read(join(image, 'index.json'))
  const manifest = await read(blob(index.manifests[0].digest))
  const config = await read(blob(manifest.config.digest))
  config.rootfs.diff_ids.push(layer.digest)
  config.history?.push({ created_by: `version ${nextVersion}` })
  manifest.layers.push({ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layer })
  Object.assign(manifest.config, await add(config))
  const annotations = { 'org.opencontainers.image.ref.name': `${imageRepository(name)}:${nextVersion}` }
  Object.assign(index.manifests[0], await add(manifest), { annotations })
  await writeFile(join(image, 'index.json'), JSON.stringify(index))
  const archive = join(folder, `${name}-${nextVersion}.tar`)
  await command('tar', ['-C', image, '-cf', archive, '.'])
  return archive
}
