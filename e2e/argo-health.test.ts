// Runs the health checks for Argo CD in the same way as Argo CD's own repository: each test in health_test.yaml passes an object to the Lua.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from './command.ts'
import { argoHealth, guideRule } from './gitops.ts'

interface Tests {
  readonly tests: readonly {
    readonly healthStatus: { readonly status: string; readonly message: string }
    readonly inputPath: string
  }[]
}

const folder = join(root, 'operator/resource_customizations/penstock.dev')
const crds = (await readdir(join(root, 'crds'))).filter((name) => name.endsWith('.penstock.dev.yaml'))
const kinds = await Promise.all(
  crds.map(async (name) => parse(await readFile(join(root, 'crds', name), 'utf8')).spec.names.kind as string),
)

describe.each(kinds)('%s', async (kind) => {
  const { tests } = parse(await readFile(join(folder, kind, 'health_test.yaml'), 'utf8')) as Tests
  const rule = await readFile(join(folder, kind, 'health.lua'), 'utf8')

  test.each(tests.map((one) => [one.inputPath, one] as const))('%s', async (inputPath, { healthStatus }) => {
    const object = parse(await readFile(join(folder, kind, inputPath), 'utf8'))
    expect(object.kind).toBe(kind)
    expect(argoHealth(object, rule)).toEqual(healthStatus)
  })

  test('each test data file has a test, and all health states occur', async () => {
    const files = (await readdir(join(folder, kind, 'testdata'))).map((name) => `testdata/${name}`).sort()
    expect(tests.map(({ inputPath }) => inputPath).sort()).toEqual(files)
    expect(tests.map(({ healthStatus }) => healthStatus.status)).toEqual(
      expect.arrayContaining(['Progressing', 'Healthy', 'Degraded']),
    )
  })
})

test('the example for argocd-cm contains the rule of the guide', async () => {
  const file = join(root, 'examples/argo-cd-and-flux/argo-cd-health.yaml')
  const { data } = parse(await readFile(file, 'utf8'))
  expect(data['resource.customizations.health.penstock.dev_Pipeline']).toBe(guideRule)
})
