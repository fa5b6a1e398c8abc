// The examples of the reference as a user copies them: they compile without problems, and the tests of the Pipelines pass.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfigObject, runUnitTests } from '@penstock/agent/config'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { kinds } from '../api/kinds.ts'
import { resourcesOf } from '../api/reference.ts'
import { compileFiles } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('the examples compile without problems, and the tests of their Pipelines pass', async () => {
  const file = join(folder, 'all.yaml')
  const shop = { 'kubernetes.io/metadata.name': 'shop', team: 'shop' }
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: shop } }
  const resources = [namespace, ...kinds.flatMap(resourcesOf)]
  writeFileSync(file, resources.map((resource) => stringify(resource)).join('---\n'))
  const { config, problems, pipelines } = compileFiles([file], { ownMachine: false, sharedAlone: true })
  expect(problems).toEqual([])
  expect(pipelines.map(({ kind }) => kind)).toEqual(['Pipeline', 'ClusterPipeline'])
  const loaded = loadConfigObject(config)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  expect(await runUnitTests(loaded.config)).toMatchObject({ passed: true })
})
