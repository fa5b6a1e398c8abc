// The OCI artifact for Flux: pushed to a real registry as described in the page about releases, and read through the registry's protocol like
// Flux's source controller does.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { present } from './cluster/cluster.ts'
import { command, node, root, until } from './command.ts'
import { registryPackages } from './distribution.ts'
import { pushesArtifact } from './documents/on-release.ts'
import { isOf, shellBlocks } from './documents.ts'

const absent = Object.entries(registryPackages).filter(([name]) => !present(name))
const missing = absent.length === 0 ? undefined : `missing packages: ${absent.map(([, name]) => name).join(' ')}`
const blocks = await shellBlocks()
const files = ['install.yaml', 'kustomization.yaml']
const sha256 = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const media = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.cncf.flux.config.v1+json',
  content: 'application/vnd.cncf.flux.content.v1.tar+gzip',
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

describe.skipIf(missing !== undefined)(`the artifact for Flux${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let folder: string
  let host: string
  let archive: string

  beforeAll(async () => {
    folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'flux-'))
    resources.defer(() => rm(folder, { recursive: true, force: true }))
    host = `127.0.0.1:${await freePort()}`
    const config = join(folder, 'registry.yaml')
    const storage = { filesystem: { rootdirectory: join(folder, 'storage') } }
    await writeFile(config, stringify({ version: 0.1, storage, http: { addr: host } }))
    const registry = spawn('docker-registry', ['serve', config], { stdio: ['ignore', 'ignore', 'pipe'] })
    let printed = ''
    registry.stderr.on('data', (text) => {
      printed += text
    })
    const ended = once(registry, 'close')
    resources.defer(async () => {
      registry.kill('SIGKILL')
      await ended
    })
    await until('the registry to answer', 120_000, async () => {
      if (registry.exitCode !== null) throw new Error(`It has ended: ${printed}`)
      return (await fetch(`http://${host}/v2/`)).ok
    })
    archive = join(folder, 'penstock-manifests-1.2.3.oci.tar')
    const flags = ['--out', archive, '--version', '1.2.3', '--revision', 'c0ffee', '--source', 'https://git.example/p']
    await command(node, [join(root, '.ci/flux.mjs'), ...flags, ...files.map((name) => join(root, 'operator', name))], {
      env: { SOURCE_DATE_EPOCH: '0' },
    })
  })
  afterAll(() => resources.disposeAsync())

  const get = async (path: string, accept = '*/*') => {
    const answer = await fetch(`http://${host}/v2/penstock/manifests/${path}`, { headers: { accept } })
    expect(answer.status, path).toBe(200)
    return { bytes: Buffer.from(await answer.arrayBuffer()), headers: answer.headers }
  }
  const blob = async ({ digest, size }: Descriptor) => {
    const { bytes } = await get(`blobs/${digest}`)
    expect([sha256(bytes), bytes.length]).toEqual([digest, size])
    return bytes
  }

  test('a registry tool can push it, and its tag and digest contain the files of the release', async () => {
    const text = blocks.find((block) => isOf(block, pushesArtifact))?.text ?? 'the page has no such block'
    const here = text.replaceAll('HOST/PATH', `${host}/penstock`).replaceAll('VERSION', '1.2.3')
    // The registry of this machine has no certificate.
    const settings = join(folder, '.config/containers')
    await mkdir(settings, { recursive: true })
    await writeFile(join(settings, 'registries.conf'), `[[registry]]\nlocation = "${host}"\ninsecure = true\n`)
    await command('bash', ['-e', '-c', here], { cwd: folder, env: { HOME: folder } })

    const { bytes, headers } = await get('manifests/1.2.3', media.manifest)
    const digest = headers.get('docker-content-digest') ?? ''
    // A tool that converts it would change the signed digest.
    const layout = JSON.parse(await command('tar', ['-xOf', archive, 'index.json'])) as { manifests: Descriptor[] }
    expect([digest, sha256(bytes)]).toEqual([layout.manifests[0]?.digest, digest])
    expect(await readFile(join(folder, 'digest.txt'), 'utf8')).toBe(digest)
    expect((await get(`manifests/${digest}`, media.manifest)).bytes).toEqual(bytes)

    const manifest = JSON.parse(bytes.toString()) as {
      config: Descriptor
      layers: Descriptor[]
      annotations: Record<string, string>
    }
    expect(headers.get('content-type')).toBe(media.manifest)
    expect(manifest.config.mediaType).toBe(media.config)
    expect(manifest.layers.map(({ mediaType }) => mediaType)).toEqual([media.content])
    expect(manifest.annotations).toMatchObject({
      'org.opencontainers.image.revision': '1.2.3@sha1:c0ffee',
      'org.opencontainers.image.source': 'https://git.example/p',
    })
    await blob(manifest.config)
    const content = join(folder, 'content')
    await mkdir(content)
    const [layer] = manifest.layers as [Descriptor]
    await command('tar', ['-x', '-C', content], { input: gunzipSync(await blob(layer)) })
    expect((await readdir(content)).toSorted()).toEqual(files)
    for (const name of files)
      expect(await readFile(join(content, name), 'utf8')).toBe(await readFile(join(root, 'operator', name), 'utf8'))
  })

  test('can be copied back to a layout unchanged', async () => {
    const back = join(folder, 'back')
    await command('skopeo', [
      ...['copy', '--src-tls-verify=false'],
      ...[`docker://${host}/penstock/manifests:1.2.3`, `oci:${back}:1.2.3`],
    ])
    const before = JSON.parse(await command('tar', ['-xOf', archive, 'index.json'])) as { manifests: Descriptor[] }
    const after = JSON.parse(await readFile(join(back, 'index.json'), 'utf8')) as { manifests: Descriptor[] }
    expect(after.manifests[0]?.digest).toBe(before.manifests[0]?.digest)
  })
})
