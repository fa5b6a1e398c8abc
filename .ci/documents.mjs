// Writes the documents of a release for .ci/release: the SBOM of an image (CycloneDX), and the provenance of all results (SLSA, in-toto).
// Plain JavaScript, because any version of Node must run it, and the Node of the base image runs `base`:
//   node --input-type=module - base < FILE              the parts that images take from their base: Node, and the libraries it has loaded
//   node documents.mjs production FOLDER                restricts the manifests in FOLDER to dependencies that run in production
//   node documents.mjs sbom NAME REFERENCE BASE.json    the SBOM, from the list of npm on standard input and the output of `base`
//   node documents.mjs provenance --commit …            the provenance, from the options and results of .ci/release

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'

const print = (value) => console.log(JSON.stringify(value, undefined, 2))
const input = () => JSON.parse(readFileSync(0, 'utf8'))
const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex')
const textOf = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')

/** The files that the Dockerfiles copy, each with its Debian package if it has one, because scanners identify libraries by packages. */
function base() {
  const info = '/var/lib/dpkg/info'
  const lists = (existsSync(info) ? readdirSync(info) : []).filter((name) => name.endsWith('.list'))
  const linesOf = (name) => textOf(`${info}/${name}`).split('\n')
  const owners = new Map(lists.flatMap((name) => linesOf(name).map((path) => [path, name.slice(0, -'.list'.length)])))
  const packages = new Map()
  for (const paragraph of textOf('/var/lib/dpkg/status').split('\n\n')) {
    const fields = Object.fromEntries(paragraph.split('\n').map((line) => line.split(/: (.*)/)))
    if (fields.Package === undefined) continue
    packages.set(fields.Package, fields).set(`${fields.Package}:${fields.Architecture}`, fields)
  }
  const system = Object.fromEntries(
    textOf('/etc/os-release')
      .split('\n')
      .map((line) => line.replaceAll('"', '').split('=')),
  )
  const libraries = process.report.getReport().sharedObjects.filter((file) => file.startsWith('/'))
  const files = [...libraries, '/usr/share/zoneinfo/tzdata.zi'].filter(existsSync).map((file) => {
    const real = realpathSync(file)
    const names = [file, real, `/usr${real}`, real.replace(/^\/usr/, '')]
    const found = names.map((name) => packages.get(owners.get(name))).find((one) => one !== undefined)
    if (found === undefined) return { file, sha256: sha256(real) }
    const { Package: name, Version: version, Architecture: architecture } = found
    return { file, sha256: sha256(real), package: { name, version, architecture, system } }
  })
  print({ versions: process.versions, files })
}

/**
 * Removes development dependencies from a copy of the manifests and the lock file. `npm sbom --omit dev` would also omit packages
 * that both the product and its development need.
 */
function production(folder) {
  const edit = (name, change) => {
    const file = join(folder, name)
    const content = JSON.parse(readFileSync(file, 'utf8'))
    change(content)
    writeFileSync(file, JSON.stringify(content))
  }
  const { workspaces } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const take = (manifest) => {
    delete manifest.devDependencies
  }
  for (const name of ['', ...workspaces]) edit(join(name, 'package.json'), take)
  edit('package-lock.json', ({ packages }) => {
    for (const name of ['', ...workspaces]) take(packages[name])
  })
}

/** The SBOM of one image, without times or places of the build, so that it is reproducible. */
function sbom(name, reference, baseFile) {
  const document = input()
  const { versions, files } = JSON.parse(readFileSync(baseFile, 'utf8'))
  const [repository, digest] = reference.split('@sha256:')
  const uuid = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-5$3-8$4-$5')
  document.serialNumber = `urn:uuid:${uuid}`
  document.metadata.timestamp = new Date(Number(process.env.SOURCE_DATE_EPOCH) * 1000).toISOString()
  document.metadata.component = {
    ...document.metadata.component,
    type: 'container',
    name: `penstock-${name}`,
    purl: `pkg:oci/${name}@sha256%3A${digest}?repository_url=${encodeURIComponent(repository)}`,
    hashes: [{ alg: 'SHA-256', content: digest }],
  }
  const generic = (type, part, version) => ({
    'bom-ref': `${part}@${version}`,
    type,
    name: part,
    version,
    purl: `pkg:generic/${part}@${encodeURIComponent(version)}`,
  })
  const { node, modules: _, napi: __, ...bundled } = versions
  const parts = Object.entries(bundled)
    .filter(([, version]) => version !== '')
    .map(([part, version]) => generic('library', `node-${part}`, version))
  document.components.push({ ...generic('platform', 'node', node), components: parts })
  const packages = new Map()
  for (const { file, sha256: content, package: from } of files) {
    const whole = { 'bom-ref': file, type: 'file', name: file, hashes: [{ alg: 'SHA-256', content }] }
    if (from === undefined) {
      document.components.push(whole)
      continue
    }
    const { name, version, architecture, system } = from
    const about = `arch=${architecture}&distro=${system.ID}-${system.VERSION_ID}`
    const purl = `pkg:deb/${system.ID}/${name}@${encodeURIComponent(version)}?${about}`
    const known = packages.get(purl) ?? { 'bom-ref': purl, type: 'library', name, version, purl, components: [] }
    known.components.push(whole)
    packages.set(purl, known)
  }
  document.components.push(...packages.values())
  print(document)
}

/** A statement about the images and files. cosign attests only its predicate for each of them. */
function provenance(args) {
  const one = { type: 'string', default: '' }
  const many = { type: 'string', multiple: true, default: [] }
  const { values } = parseArgs({
    args,
    options: {
      ...{ version: one, commit: one, source: one, builder: one, started: one, platforms: one },
      ...{ base: one, 'base-digest': one, image: many, file: many, tool: many, 'build-option': many },
    },
  })
  const { version, commit, base } = values
  const from = values.source === '' ? {} : { uri: `git+${values.source}@${commit}` }
  const baseDigest = values['base-digest'].replace('sha256:', '')
  const images = values.image.map((reference) => reference.split('@sha256:'))
  print({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [
      ...images.map(([name, digest]) => ({ name, digest: { sha256: digest } })),
      ...values.file.map((file) => ({ name: basename(file), digest: { sha256: sha256(file) } })),
    ],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://penstock.dev/release/v1',
        externalParameters: {
          version,
          base,
          platforms: values.platforms.split(','),
          buildOptions: values['build-option'],
        },
        resolvedDependencies: [
          { ...from, digest: { gitCommit: commit } },
          { uri: `docker://${base}`, ...(baseDigest === '' ? {} : { digest: { sha256: baseDigest } }) },
        ],
      },
      runDetails: {
        builder: {
          id: values.builder,
          version: Object.fromEntries(values.tool.map((tool) => tool.split(/=(.*)/).slice(0, 2))),
        },
        metadata: { startedOn: values.started, finishedOn: new Date().toISOString() },
      },
    },
  })
}

const [what, ...args] = process.argv.slice(2)
if (what === 'base') base()
else if (what === 'production') production(...args)
else if (what === 'sbom') sbom(...args)
else if (what === 'provenance') provenance(args)
else throw new Error(`expected base, production, sbom or provenance; found ${what}`)
