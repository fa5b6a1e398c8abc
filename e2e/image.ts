// The project's own images, built from their Dockerfiles by buildah into an archive that the nodes' containerd reads.
// No registry is asked for a base image: the base is made from this machine's Node (cluster/images.sh). An archive is kept
// in the cache under a hash of everything that goes into it.

import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { cacheFolder } from './cache.ts'
import { command, node, root } from './command.ts'
import { fingerprint } from './fingerprint.ts'

export type ImageName = 'agent' | 'operator'

/** The name that pods use. */
export const imageName = (name: ImageName) => `localhost/penstock/${name}:e2e`

/** The folders that it is made of. */
export const inputs: Record<ImageName, readonly string[]> = {
  agent: ['agent'],
  operator: ['agent', 'operator'],
}
const shared = ['package.json', 'package-lock.json', '.npmrc', '.dockerignore', 'tsconfig.json']

/** Builds an image, unless its archive is there already, and returns the archive's path. */
export async function buildImage(name: ImageName, signal?: AbortSignal): Promise<string> {
  const folder = join(cacheFolder, 'images')
  await mkdir(folder, { recursive: true })
  const made = fingerprint([...shared, ...inputs[name]], await command(node, ['--version']))
  const archive = join(folder, `${name}-${made}.tar`)
  if (existsSync(archive)) return archive

  const images = process.env['CLUSTER_IMAGES'] ?? join(cacheFolder, 'cluster-images')
  const ends = signal === undefined ? {} : { signal }
  await command(resolve(root, 'e2e/cluster/images.sh'), [], { env: { NODE: node }, ...ends })
  const storage = join(cacheFolder, 'buildah')
  const buildah = (...args: string[]) =>
    command(
      'flock',
      [
        join(folder, '.lock'),
        'buildah',
        ...['--root', join(storage, 'root'), '--runroot', join(storage, 'run'), '--storage-driver', 'overlay'],
        ...args,
      ],
      ends,
    )
  await buildah('pull', '-q', `oci-archive:${join(images, 'base/node.tar')}`)
  await buildah(
    ...['build', '--isolation', 'chroot', '--pull-never', '--build-arg', 'BASE=localhost/node-base:26'],
    ...(await npmVolumes(folder)),
    ...['-f', `${name}/Dockerfile`, '-t', imageName(name), '.'],
  )
  await buildah('push', '-q', imageName(name), `oci-archive:${archive}.${process.pid}:${imageName(name)}`)
  await buildah('rmi', '--prune', '--force') // the image that the name pointed to before
  for (const old of await readdir(folder)) {
    if (old.startsWith(`${name}-`) && !old.endsWith(`.${process.pid}`)) await rm(join(folder, old), { force: true })
  }
  await rename(`${archive}.${process.pid}`, archive)
  return archive
}

export interface ImageContent {
  readonly config: { readonly User?: string; readonly Entrypoint: readonly string[] }
  readonly architecture: string
  /** Files of all layers, without a slash before them. */
  readonly paths: readonly string[]
}

/** The content of an image's archive. */
export async function contentOf(archive: string): Promise<ImageContent> {
  const read = async (path: string) => JSON.parse(await command('tar', ['-xOf', archive, path]))
  const blob = (digest: string) => `blobs/${digest.replace(':', '/')}`
  const [image] = (await read('index.json')).manifests
  const manifest = await read(blob(image.digest))
  const { config, architecture } = await read(blob(manifest.config.digest))
  const paths: string[] = []
  for (const { digest } of manifest.layers) {
    const list = await command('sh', ['-c', 'tar -xOf "$0" "$1" | gzip -dcf | tar -t', archive, blob(digest)])
    paths.push(
      ...list
        .split('\n')
        .filter((path) => path !== '')
        .map((path) => path.replace(/^\.?\//, '')),
    )
  }
  return { config, architecture, paths }
}

// The user's npm settings and npm's cache, so npm inside the build uses the same registry as npm outside, and requests nothing that the
// cache has: the lock file names the content. npm's home and global folder there are those of the base image.
async function npmVolumes(folder: string): Promise<string[]> {
  const get = async (name: string) => (await command('npm', ['config', 'get', name])).trim()
  const settings = join(folder, 'npmrc')
  const global = await readFile(await get('globalconfig'), 'utf8').catch(() => '') // most have none
  await writeFile(settings, `${global}\nprefer-offline=true\n`, { mode: 0o600 }) // there may be tokens in it
  const mounts = [
    [await get('userconfig'), '/.npmrc:ro'],
    [await get('userconfig'), '/root/.npmrc:ro'],
    [settings, '/usr/local/etc/npmrc:ro'],
    [await get('cache'), '/.npm'],
  ]
  return mounts.flatMap(([from, to]) => (from !== undefined && existsSync(from) ? ['--volume', `${from}:${to}`] : []))
}
