// Two served versions of the CRDs with a real API server: one object in both versions, the operator that reads it, `penstock migrate` after a
// change of the stored version, and the downgrade to a release with one version.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import { penstock as runPenstock } from '../program.ts'
import { eventually, OperatorProcess, prepare } from './process.ts'

const missing = missingForCluster(0)
const definition = 'pipelines.penstock.dev'

const pipeline = (version: string, name: string) => ({
  apiVersion: `penstock.dev/${version}`,
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs' }],
    sinks: [{ name: 'out', type: 'blackhole' }],
  },
})

describe.skipIf(missing !== undefined)(`versions of the kinds${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop')
  }, 300_000)
  afterAll(() => resources.disposeAsync())

  const read = async (resource: string, name: string) =>
    JSON.parse(await cluster.kubectl(['-n', 'shop', 'get', resource, name, '-o', 'json']))
  const crd = async () => JSON.parse(await cluster.kubectl(['get', 'crd', definition, '-o', 'json']))
  const migrate = (...flags: string[]) =>
    runPenstock(['migrate', ...flags], { env: { KUBECONFIG: cluster.kubeconfig } })
  /** Writes the CRD with one version as the stored version, or as the only one. */
  const define = async (storage: string, names: readonly string[]) => {
    const content = parse(await readFile(join(root, `crds/${definition}.yaml`), 'utf8'))
    const versions = content.spec.versions
      .filter(({ name }: { name: string }) => names.includes(name))
      .map((version: { name: string }) => ({ ...version, storage: version.name === storage }))
    const { metadata } = await crd()
    content.metadata = { ...content.metadata, resourceVersion: metadata.resourceVersion }
    await cluster.kubectl(['replace', '-f', '-'], {
      input: JSON.stringify({ ...content, spec: { ...content.spec, versions } }),
    })
  }
  const revisions = async () =>
    Promise.all(['alpha', 'beta'].map(async (name) => (await read('pl', name)).metadata.resourceVersion as string))

  test('the API server refuses a name in words, without a regular expression', async () => {
    const refused = pipeline('v1alpha1', 'refused')
    const [source] = refused.spec.sources
    const spec = { ...refused.spec, sources: [{ ...source, name: 'Web_App' }] }
    await expect(cluster.apply({ ...refused, spec })).rejects.toThrow(
      'spec.sources[0].name: Invalid value: "Web_App": must be at most 63 lower-case letters, digits and `-`',
    )
  })

  test('an object of either version can be read in both versions, and the operator accepts it', {
    timeout: 300_000,
  }, async () => {
    const operator = resources.use(OperatorProcess.start({ kubeconfig: cluster.kubeconfig }))
    await operator.leading()
    await cluster.apply(pipeline('v1alpha1', 'alpha'), pipeline('v1beta1', 'beta'))
    for (const name of ['alpha', 'beta']) {
      await eventually(async () => {
        const { status } = await read('pl', name)
        expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Accepted', status: 'True' }))
      })
      for (const version of ['v1alpha1', 'v1beta1']) {
        const object = await read(`pipelines.${version}.penstock.dev`, name)
        expect(object).toMatchObject({ ...pipeline(version, name), status: { observedGeneration: 1 } })
      }
    }
    // The same content in the other version is not a change.
    await cluster.apply(pipeline('v1beta1', 'alpha'), pipeline('v1alpha1', 'beta'))
    expect((await read('pl', 'alpha')).metadata.generation).toBe(1)
    expect((await read('pl', 'beta')).metadata.generation).toBe(1)
    await operator.stop()
    expect((await crd()).status.storedVersions).toEqual(['v1alpha1'])
    expect(await migrate()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('all objects are stored as v1alpha1'),
    })
  })

  test('migrate rewrites all objects in the stored version, and a version without objects can be removed', {
    timeout: 300_000,
  }, async () => {
    await define('v1beta1', ['v1alpha1', 'v1beta1'])
    await eventually(async () => expect((await crd()).status.storedVersions).toEqual(['v1alpha1', 'v1beta1']))
    const withoutAlpha = () => define('v1beta1', ['v1beta1'])
    await expect(withoutAlpha()).rejects.toThrow('storedVersions')

    const before = await revisions()
    const dry = await migrate('--dry-run')
    expect(dry).toMatchObject({ code: 1, stdout: expect.stringContaining('2 objects would be rewritten as v1beta1') })
    expect(await revisions()).toEqual(before)
    const done = await migrate()
    expect(done.code, done.stderr).toBe(0)
    const after = await revisions()
    expect(after.every((revision, index) => revision !== before[index])).toBe(true)
    expect((await crd()).status.storedVersions).toEqual(['v1beta1'])
    expect(await migrate('--dry-run')).toMatchObject({ code: 0 })
    await withoutAlpha()
    expect(await eventually(() => read('pipelines.v1beta1.penstock.dev', 'alpha'))).toMatchObject(
      pipeline('v1beta1', 'alpha'),
    )
  })

  test('after a migration to v1alpha1, a downgrade to a release with only this version is possible', {
    timeout: 300_000,
  }, async () => {
    await define('v1alpha1', ['v1alpha1', 'v1beta1'])
    await eventually(async () => expect((await crd()).status.storedVersions).toEqual(['v1beta1', 'v1alpha1']))
    const before = await revisions()
    expect(await migrate()).toMatchObject({ code: 0 })
    expect((await revisions()).every((revision, index) => revision !== before[index])).toBe(true)
    expect((await crd()).status.storedVersions).toEqual(['v1alpha1'])
    await define('v1alpha1', ['v1alpha1'])
    for (const name of ['alpha', 'beta']) {
      const found = await eventually(() => read('pipelines.v1alpha1.penstock.dev', name))
      expect(found).toMatchObject(pipeline('v1alpha1', name))
    }
  })
})
