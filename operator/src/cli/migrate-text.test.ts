import { expect, test } from 'vitest'
import { migrateText } from './migrate-text.ts'

test('replaces only the versions of resources, and keeps comments, quotes and order', () => {
  const text = `# The team's Pipeline, of penstock.dev/v1alpha1
kind: Pipeline   # first the kind
apiVersion: "penstock.dev/v1alpha1"   # then the version
spec: { note: penstock.dev/v1alpha1 }
---
apiVersion: v1
kind: ConfigMap
data: { apiVersion: penstock.dev/v1alpha1 }
---
apiVersion: v1
kind: List
items:
  - { apiVersion: penstock.dev/v1alpha1, kind: Sink }
  - { apiVersion: penstock.dev/v1beta1, kind: Source }
  - { apiVersion: penstock.dev/v1alpha1, kind: Unknown }
`
  const expected = text
    .replace('"penstock.dev/v1alpha1"', '"penstock.dev/v1beta1"')
    .replace('{ apiVersion: penstock.dev/v1alpha1, kind: Sink', '{ apiVersion: penstock.dev/v1beta1, kind: Sink')
  expect(migrateText('a.yaml', text)).toEqual({ text: expected, count: 2, problems: [] })
  expect(migrateText('a.yaml', expected)).toEqual({ text: expected, count: 0, problems: [] })
})

test('reports an invalid YAML document with its place', () => {
  expect(migrateText('a.yaml', 'kind: Sink\nspec: a: b\n').problems).toMatchObject([
    { severity: 'error', file: 'a.yaml', line: 2 },
  ])
})
