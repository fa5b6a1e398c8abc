// The texts that users read when they install it for the first time, from a checkout whose images nobody has published.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

const root = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const installed = parseAllDocuments(read('operator/install.yaml')).map(
  (document) =>
    document.toJS() as { kind: string; metadata: { name: string; annotations?: Readonly<Record<string, string>> } },
)

test.each(['README.md', 'operator/guide/getting-started.md', 'operator/guide/install.md', 'kind-config.yaml'])(
  '%s explains how to build the images before it installs the chart of this folder',
  (path) => {
    const text = read(path)
    const at = text.indexOf('helm install penstock charts/penstock')
    expect(at).toBeGreaterThan(0)
    expect(text.slice(0, at)).toMatch(/docker build|CONTRIBUTING\.md#images/)
  },
)

test('the notes of the chart name the command that shows whether it runs, and do not claim that it runs', () => {
  const notes = read('charts/penstock/templates/NOTES.txt')
  const [first = ''] = notes.split('\n')
  expect(first).not.toMatch(/\bruns?\b(?!:)/)
  expect(notes).toMatch(/kubectl rollout status deployment\/penstock-operator -n {{ \.Release\.Namespace }}/)
})

test.each(['charts/penstock/templates/NOTES.txt', 'operator/guide/troubleshooting.md'])(
  'workloads of the operator in %s exist',
  (path) => {
    const named = [...read(path).matchAll(/(deployment|statefulset|daemonset)\/(penstock-operator)/g)]
    expect(named.length).toBeGreaterThan(0)
    for (const [, kind, name] of named)
      expect(
        installed.some((each) => each.kind.toLowerCase() === kind && each.metadata.name === name),
        `${kind}/${name}`,
      ).toBe(true)
  },
)

test('Flux keeps the CRDs, and so all Pipelines, when its Kustomization is deleted', () => {
  const crds = installed.filter(({ kind }) => kind === 'CustomResourceDefinition')
  expect(crds).toHaveLength(8)
  for (const { metadata } of crds)
    expect(metadata.annotations).toMatchObject({ 'kustomize.toolkit.fluxcd.io/prune': 'disabled' })
})
