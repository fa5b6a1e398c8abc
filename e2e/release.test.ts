// `.ci/release` without a registry, a builder and a key: rejected arguments, the commands that it would run, and the files of a release of a
// temporary repository. .ci/RELEASING.md describes how to test the whole release.

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { version } from '@penstock/agent/program'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { present } from './cluster/cluster.ts'
import { command, execute, node, root } from './command.ts'
import { raisesVersion } from './documents/on-release.ts'
import { isOf, shellBlocks } from './documents.ts'
import { helm, helmCommand, missingForHelm, objectsOf, prepareHelm, type RenderedObject } from './helm.ts'

const missing = missingForHelm() ?? (present('git') ? undefined : 'git is missing')
const manifests = ['package.json', 'agent/package.json', 'operator/package.json', 'e2e/package.json']
const zeros = `sha256:${'0'.repeat(64)}`
const operator = `registry.example/penstock/operator@${zeros}`
const agent = `registry.example/penstock/agent@${zeros}`

const mayInstall = process.env['PENSTOCK_TEST_INSTALL'] !== '0'

test.skipIf(!mayInstall)(
  'the commands of the page raise the version of all packages, and change nothing else',
  async () => {
    const folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'raised-'))
    try {
      for (const path of [...manifests, '.npmrc', 'package-lock.json']) {
        await mkdir(dirname(join(folder, path)), { recursive: true })
        await cp(join(root, path), join(folder, path))
      }
      const text =
        (await shellBlocks()).find((block) => isOf(block, raisesVersion))?.text ?? 'the page has no such block'
      await command('bash', ['-e', '-c', text], { cwd: folder })
      const read = (base: string, path: string) => JSON.parse(readFileSync(join(base, path), 'utf8'))
      for (const path of manifests) expect(read(folder, path), path).toEqual(raised(read(root, path)))
      const lock = raised(read(root, 'package-lock.json'))
      for (const name of ['', 'agent', 'operator', 'e2e']) raised(lock.packages[name])
      expect(read(folder, 'package-lock.json')).toEqual(lock)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
)

/** The package after the commands of the page. */
function raised<T extends { version: string; dependencies?: Record<string, string> }>(manifest: T): T {
  manifest.version = '1.2.3'
  if (manifest.dependencies?.['@penstock/agent'] !== undefined) manifest.dependencies['@penstock/agent'] = '1.2.3'
  return manifest
}

describe.skipIf(missing !== undefined)(`a release${missing === undefined ? '' : ` (${missing})`}`, () => {
  let folder: string
  let repository: string
  const env = { PATH: `${dirname(helmCommand)}:${process.env['PATH']}` }
  const git = (...args: string[]) =>
    command('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', ...args], { cwd: repository })
  const release = (...args: string[]) =>
    execute(join(repository, '.ci/release'), args, { cwd: folder, env, timeoutMs: 600_000 })

  beforeAll(async () => {
    await prepareHelm()
    folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'release-'))
    repository = join(folder, 'repository')
    const generated = [
      'charts',
      'operator/install.yaml',
      'operator/kustomization.yaml',
      'operator/reference/schema.json',
      'agent/reference/schema.json',
    ]
    for (const path of ['.ci', '.npmrc', 'package-lock.json', ...manifests, ...generated]) {
      await mkdir(dirname(join(repository, path)), { recursive: true })
      await cp(join(root, path), join(repository, path), { recursive: true })
    }
    await git('init', '--quiet')
    await git('add', '--all')
    await git('commit', '--quiet', '--message', 'everything')
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('all problems of its arguments are reported at once, and nothing is created', async () => {
    const out = join(folder, 'full')
    await mkdir(out)
    await writeFile(join(out, 'file'), '')
    const args = ['--registry', 'https://Registry/x', '--platforms', 'windows/amd64', '--builder', 'me', '--out', out]
    const links = ['--downloads', 'ftp://x']
    const more = ['--sign', 'none', '--signing-config', join(folder, 'none'), '--base', '--force', 'v1']
    const { code, stderr } = await release('v1.0', ...args, ...links, ...more)
    expect(code).toBe(2)
    for (const word of [
      'Usage:',
      'VERSION',
      'expected',
      '--force',
      '--base',
      '--registry',
      '--platforms',
      '--builder',
      '--downloads',
      '--out',
    ])
      expect(stderr).toContain(word)
    expect(stderr.match(/--signing-config/g)).toHaveLength(2)
    expect(await readdir(out)).toEqual(['file'])
  })

  test('a wrong version and uncommitted changes are rejected', async () => {
    const args = ['--registry', 'registry.example/penstock', '--dry-run']
    const other = await release('99.0.0', ...args)
    expect(other.code).toBe(78)
    for (const file of [
      'package.json',
      'agent/package.json',
      'operator/package.json',
      'charts/penstock-crds/Chart.yaml',
    ])
      expect(other.stderr).toContain(`${file} has `)

    await writeFile(join(repository, 'new'), '')
    const dirty = await release(version, ...args)
    await rm(join(repository, 'new'))
    expect(dirty.code).toBe(78)
    expect(dirty.stderr).toContain('?? new')
    expect(existsSync(join(repository, 'dist'))).toBe(false)
  })

  test('files from the base image are listed with checksum, and with their package if there is one', async () => {
    const program = await readFile(join(root, '.ci/documents.mjs'))
    const options = { input: program, env: { SOURCE_DATE_EPOCH: '0' } }
    const base = await command(node, ['--input-type=module', '-', 'base'], options)
    const { versions, files } = JSON.parse(base) as { versions: { node: string }; files: BaseFile[] }
    expect(`v${versions.node}`).toBe((await command(node, ['--version'])).trim())
    expect(files.map(({ file }) => file).join(' ')).toContain('libc.so')
    // The package of a library depends on the machine. There must be no invented package for another file.
    const owned = { file: '/lib/libc.so.6', sha256: 'c'.repeat(64), package: debian }
    const free = { file: '/lib/libown.so', sha256: 'f'.repeat(64) }
    for (const { file, sha256, package: from } of files) {
      const sum = createHash('sha256').update(readFileSync(file)).digest('hex')
      expect(sha256, file).toBe(sum)
      if (from !== undefined)
        expect(from, file).toMatchObject({ name: expect.stringMatching(/./), version: expect.stringMatching(/^\d/) })
    }
    await writeFile(
      join(folder, 'base.json'),
      JSON.stringify({ versions: { node: '26.0.0', v8: '14' }, files: [owned, free] }),
    )
    const args = [join(root, '.ci/documents.mjs'), 'sbom', 'agent', agent, join(folder, 'base.json')]
    const empty = JSON.stringify({ metadata: { component: {} }, components: [] })
    const sbom = JSON.parse(await command(node, args, { ...options, input: empty })) as { components: Component[] }
    expect(
      sbom.components.map(({ type, name, purl, components }) => [type, name, purl, components?.map((one) => one.name)]),
    ).toEqual([
      ['platform', 'node', 'pkg:generic/node@26.0.0', ['node-v8']],
      ['file', '/lib/libown.so', undefined, undefined],
      ['library', 'libc6', 'pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=amd64&distro=debian-12', ['/lib/libc.so.6']],
    ])
  })

  test('a dry run shows all commands, and writes the files with image digests', async () => {
    const out = join(folder, 'out')
    const registry = ['--registry', 'registry.example/penstock', '--source', 'https://git.example/penstock']
    const files = ['--downloads', 'https://git.example/v1', '--out', out, '--sign', 'cosign.key']
    const { code, stdout, stderr } = await release(version, ...registry, '--dry-run', ...files)
    expect(code, stderr).toBe(0)

    // In this order: objects exist before they are signed, and the chart comes last.
    const steps = stdout.split('\n').filter((line) => /^\+ (buildah|cosign|helm push)/.test(line))
    const summary = steps.map((line) => {
      const [, tool, verb] = line.split(' ')
      const [subject] = /checksums\.txt$|[^/ ]+\.tgz|penstock(-release)?\/[\w/-]+/.exec(line) ?? []
      const [type] = /--type \S+/.exec(line) ?? []
      return [tool, verb, subject, ...(type === undefined ? [] : [type])].join(' ')
    })
    expect(summary).toEqual([
      'buildah build penstock-release/operator',
      'buildah manifest penstock-release/operator',
      'buildah build penstock-release/agent',
      'buildah manifest penstock-release/agent',
      'cosign sign-blob checksums.txt',
      'cosign sign penstock/operator',
      'cosign attest penstock/operator --type cyclonedx',
      'cosign attest penstock/operator --type slsaprovenance1',
      'cosign sign penstock/agent',
      'cosign attest penstock/agent --type cyclonedx',
      'cosign attest penstock/agent --type slsaprovenance1',
      `helm push penstock-crds-${version}.tgz`,
      'cosign sign penstock/charts/penstock-crds',
      'cosign attest penstock/charts/penstock-crds --type slsaprovenance1',
      `helm push penstock-${version}.tgz`,
      'cosign sign penstock/charts/penstock',
      'cosign attest penstock/charts/penstock --type slsaprovenance1',
    ])
    for (const step of steps.filter((line) => line.includes('cosign '))) expect(step).toContain(' --key cosign.key ')
    const builds = steps.filter((line) => line.startsWith('+ buildah build'))
    const commit = (await git('rev-parse', 'HEAD')).trim()
    const time = (await git('log', '-1', '--format=%ct')).trim()
    // The archives are created before anything is pushed.
    const archives = stdout.indexOf('+ node .ci/archives.mjs --source')
    expect(archives).toBeGreaterThan(stdout.indexOf(' rebuild node'))
    expect(archives).toBeLessThan(stdout.indexOf('+ buildah build'))
    expect(stdout.slice(archives).split('\n')[0]).toContain(`--out ${out} --downloads https://git.example/v1`)
    for (const step of builds) {
      expect(step).toContain(`--timestamp ${time} --platform linux/amd64\\,linux/arm64`)
      expect(step).toContain(`revision=${commit}`)
    }

    const chart = join(out, `penstock-${version}.tgz`)
    const rendered = objectsOf(await helm(['template', 'penstock', chart, '--kube-version', '1.36.0']))
    const manifest = objectsOf(await readFile(join(out, 'install.yaml'), 'utf8'))
    for (const objects of [rendered, manifest]) {
      const images = imagesOf(objects)
      expect(new Set(images)).toEqual(new Set([operator, agent]))
    }
    expect(await fluxFiles(out, version, `${version}@sha1:${commit}`, join(folder, 'flux'))).toEqual({
      'install.yaml': await readFile(join(out, 'install.yaml'), 'utf8'),
      'kustomization.yaml': await readFile(join(root, 'operator/kustomization.yaml'), 'utf8'),
    })
    const metadata = parse(await helm(['show', 'chart', join(out, `penstock-crds-${version}.tgz`)]))
    expect(metadata).toMatchObject({ name: 'penstock-crds', version, appVersion: version })
    expect(await helm(['show', 'readme', chart])).toContain(`| \`agentImage.digest\` | \`"${zeros}"\` |`)

    const read = (name: string) => JSON.parse(readFileSync(join(out, name), 'utf8'))
    // The packages of an image from the lock file, with versions.
    for (const [name, has, hasNot] of [
      // The last ones are also development dependencies.
      [
        'agent',
        ['undici', 'prom-client', 'yaml', 'tslib', '@opentelemetry/api'],
        ['@kubernetes/client-node', 'vitest'],
      ],
      ['operator', ['@kubernetes/client-node', 'undici', 'yaml', 'tslib'], ['vitest', 'rolldown', 'fengari']],
    ] as const) {
      const sbom = read(`${name}.cdx.json`) as { specVersion: string; metadata: Named; components: Component[] }
      const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
      const purls = sbom.components.map(({ purl }) => decodeURIComponent(purl))
      for (const one of has) expect(purls).toContain(`pkg:npm/${one}@${lock[`node_modules/${one}`].version}`)
      for (const one of hasNot) expect(purls.filter((purl) => purl.startsWith(`pkg:npm/${one}@`))).toEqual([])
      expect(sbom.metadata.timestamp).toBe(new Date(Number(time) * 1000).toISOString())
      expect(sbom.metadata.component.name).toBe(`penstock-${name}`)
    }
    for (const [name, source] of [
      ['penstock', 'operator'],
      ['penstock-agent', 'agent'],
    ]) {
      expect(read(`${name}.schema.json`)).toEqual(
        JSON.parse(readFileSync(join(root, `${source}/reference/schema.json`), 'utf8')),
      )
    }
    const provenance = read('provenance.json')
    expect(provenance.subject.map(({ name }: { name: string }) => name)).toEqual([
      'registry.example/penstock/operator',
      'registry.example/penstock/agent',
      `penstock-${version}.tgz`,
      `penstock-crds-${version}.tgz`,
    ])
    expect(provenance.predicate.buildDefinition.resolvedDependencies[0]).toEqual({
      uri: `git+https://git.example/penstock@${commit}`,
      digest: { gitCommit: commit },
    })
    expect(provenance.predicate).toEqual(read('provenance.predicate.json'))
    await command('sha256sum', ['--check', '--strict', 'checksums.txt'], { cwd: out })
    const sums = await readFile(join(out, 'checksums.txt'), 'utf8')
    expect(sums.trim().split('\n').length).toBe((await readdir(out)).length - 1)
  })
})

const debian = {
  name: 'libc6',
  version: '2.36-9+deb12u1',
  architecture: 'amd64',
  system: { ID: 'debian', VERSION_ID: '12' },
}

interface BaseFile {
  readonly file: string
  readonly sha256: string
  readonly package?: { readonly name: string; readonly version: string }
}
interface Component {
  readonly type: string
  readonly name: string
  readonly purl: string
  readonly components?: readonly Component[]
}
interface Named {
  readonly timestamp: string
  readonly component: { readonly name: string }
}

/** The files of the artifact for Flux, read like its source controller does: layout, manifest and layer by digest. */
async function fluxFiles(out: string, tag: string, revision: string, folder: string): Promise<Record<string, string>> {
  const layout = join(folder, 'layout')
  const content = join(folder, 'content')
  await mkdir(layout, { recursive: true })
  await mkdir(content)
  await command('tar', ['-xf', join(out, `penstock-manifests-${tag}.oci.tar`), '-C', layout])
  const json = (bytes: Buffer) => JSON.parse(bytes.toString('utf8'))
  const blob = ({ digest, size }: { digest: string; size: number }) => {
    const bytes = readFileSync(join(layout, 'blobs', digest.replace(':', '/')))
    expect([`sha256:${createHash('sha256').update(bytes).digest('hex')}`, bytes.length]).toEqual([digest, size])
    return bytes
  }
  expect(json(readFileSync(join(layout, 'oci-layout')))).toEqual({ imageLayoutVersion: '1.0.0' })
  const { manifests } = json(readFileSync(join(layout, 'index.json')))
  expect(manifests).toEqual([
    expect.objectContaining({
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      annotations: { 'org.opencontainers.image.ref.name': tag },
    }),
  ])
  const { config, layers, annotations } = json(blob(manifests[0]))
  expect(annotations).toMatchObject({ 'org.opencontainers.image.revision': revision })
  expect(config.mediaType).toBe('application/vnd.cncf.flux.config.v1+json')
  expect(layers).toEqual([expect.objectContaining({ mediaType: 'application/vnd.cncf.flux.content.v1.tar+gzip' })])
  const plain = gunzipSync(blob(layers[0]))
  expect(json(blob(config)).rootfs.diff_ids).toEqual([`sha256:${createHash('sha256').update(plain).digest('hex')}`])
  await command('tar', ['-x', '-C', content], { input: plain })
  const names = await readdir(content)
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(content, name), 'utf8')]))
}

/** All images that an object refers to, of containers or agents. */
function imagesOf(objects: readonly RenderedObject[]): string[] {
  const found: string[] = []
  JSON.stringify(objects, (key, value) => {
    if (key === 'image' && typeof value === 'string') found.push(value)
    if (typeof value === 'string' && value.startsWith('--agent-image='))
      found.push(value.slice('--agent-image='.length))
    return value
  })
  return found
}
