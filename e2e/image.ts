// The project's own images, built from their Dockerfiles by buildah into an archive for the containerd of nodes. The base image is built from
// this machine's Node (cluster/images.sh), without a registry. Archives are cached under a hash of all inputs, together with those of other
// checkouts of the project.

import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { cacheFolder } from './cache.ts'
import { command, node, root } from './command.ts'
import { fingerprint } from './fingerprint.ts'

export type ImageName = 'agent' | 'operator'

export const imageRepository = (name: ImageName) => `localhost/penstock/${name}`
/** The image name in pods. */
export const imageName = (name: ImageName) => `${imageRepository(name)}:e2e`

/** The folders with its inputs. */
export const inputs: Record<ImageName, readonly string[]> = {
  agent: ['agent'],
  operator: ['agent', 'operator'],
}
const shared = ['package.json', 'package-lock.json', '.npmrc', '.dockerignore', 'tsconfig.json']

/** Builds an image unless its archive exists, and returns the path of the archive. */
export async function buildImage(name: ImageName, signal?: AbortSignal): Promise<string> {
  const folder = join(cacheFolder, 'images')
  await mkdir(folder, { recursive: true })
  const made = fingerprint([...shared, ...inputs[name]], await command(node, ['--version']))
  const archive = join(folder, `${name}-${made}.tar`)
  if (existsSync(archive)) {
    await utimes(archive, new Date(), new Date())
    return archive
  }

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
  // Another checkout may build at the same time in the same storage. The two must not get each other's images.
  const own = `${imageName(name)}-${made}-${process.pid}`
  await buildah(
    ...['build', '--isolation', 'chroot', '--pull-never', '--build-arg', 'BASE=localhost/node-base:26'],
    ...(await npmVolumes(folder)),
    ...['-f', `${name}/Dockerfile`, '-t', own, '.'],
  )
  await buildah('push', '-q', own, `oci-archive:${archive}.${process.pid}:${imageName(name)}`)
  await buildah('rmi', '--force', own)
  await buildah('rmi', '--prune', '--force') // remove intermediate stages
  await rename(`${archive}.${process.pid}`, archive)
  await removeUnused(folder, name)
  return archive
}

/** Number of archives to keep, of about 65 MB each. */
const maxArchives = 6
const unusedMs = 14 * 86_400_000

/** Removes archives of an image that were not used for two weeks, and the least recently used ones above the limit. */
export async function removeUnused(folder: string, name: ImageName, now = Date.now()): Promise<void> {
  const found: { readonly path: string; readonly usedAt: number }[] = []
  for (const file of await readdir(folder)) {
    if (!file.startsWith(`${name}-`)) continue
    const path = join(folder, file)
    const stats = await stat(path).catch(() => undefined) // another run may have removed or renamed it
    if (stats !== undefined) found.push({ path, usedAt: stats.mtimeMs })
  }
  found.sort((left, right) => right.usedAt - left.usedAt)
  for (const [index, { path, usedAt }] of found.entries())
    if (index >= maxArchives || now - usedAt > unusedMs) await rm(path, { force: true })
}

export interface ImageContent {
  readonly config: { readonly User?: string; readonly Entrypoint: readonly string[] }
  readonly architecture: string
  /** Files of all layers, without a leading slash. */
  readonly paths: readonly string[]
}

/** Reads the archive of an image. */
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

// The user's npm settings and cache, so that npm inside the build uses the same registry, and downloads nothing that is cached. The lock file
// pins the content. npm's home and global folder are those of the base image.
async function npmVolumes(folder: string): Promise<string[]> {
  const get = async (name: string) => (await command('npm', ['config', 'get', name])).trim()
  const settings = join(folder, 'npmrc')
  const global = await readFile(await get('globalconfig'), 'utf8').catch(() => '') // most have none
  await writeFile(settings, `${global}\nprefer-offline=true\n`, { mode: 0o600 }) // it may contain tokens
  const mounts = [
    [await get('userconfig'), '/.npmrc:ro'],
    [await get('userconfig'), '/root/.npmrc:ro'],
    [settings, '/usr/local/etc/npmrc:ro'],
    [await get('cache'), '/.npm'],
  ]
  return mounts.flatMap(([from, to]) => (from !== undefined && existsSync(from) ? ['--volume', `${from}:${to}`] : []))
}
