import { expect, test } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { isApplied } from './applied.ts'

const manager = 'penstock-defaults'
const wanted = {
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: {
    name: 'node',
    namespace: 'system',
    labels: { team: 'logs' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'penstock-defaults', uid: 'u1' }],
  },
  spec: { mode: 'Node', tolerations: [{ key: 'a', operator: 'Exists' }], finalisers: ['x'], limits: { cpu: '1' } },
}
const fieldsV1 = {
  'f:metadata': {
    'f:labels': { 'f:team': {} },
    'f:ownerReferences': { 'k:{"uid":"u1"}': {} },
  },
  'f:spec': {
    'f:mode': {},
    'f:tolerations': { 'k:{"key":"a","operator":"Exists"}': { '.': {}, 'f:key': {}, 'f:operator': {} } },
    'f:finalisers': { 'v:"x"': {} },
    'f:limits': { 'f:cpu': {} },
  },
}
const entry = { manager, operation: 'Apply', apiVersion: 'penstock.dev/v1alpha1', fieldsV1 }
/** In the API server's form, with members of other clients. */
const live = (change: { readonly entry?: object; readonly spec?: object } = {}): KubeObject =>
  ({
    ...wanted,
    metadata: {
      ...wanted.metadata,
      labels: { ...wanted.metadata.labels, own: 'x' },
      uid: 'u',
      managedFields: [
        { manager: 'kubectl', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:other': {} } } },
        { manager, operation: 'Apply', subresource: 'status', fieldsV1: { 'f:status': {} } },
        { ...entry, ...change.entry },
      ],
    },
    spec: { ...wanted.spec, other: true, ...change.spec },
  }) as unknown as KubeObject

test('does not repeat what an earlier process applied', () => {
  expect(isApplied(live(), wanted, manager)).toBe(true)
})

const owning = (spec: object) => ({
  entry: { fieldsV1: { ...fieldsV1, 'f:spec': { ...fieldsV1['f:spec'], ...spec } } },
})

test.each([
  ['a value that another client has changed', { spec: { mode: 'Aggregator' } }],
  ['a value that is gone', { spec: { mode: undefined } }],
  ['a field that is wanted no more', owning({ 'f:gone': {} })],
  ['a field within another that is wanted no more', owning({ 'f:limits': { 'f:cpu': {}, 'f:memory': {} } })],
  ['an item, by its keys, that is wanted no more', owning({ 'f:tolerations': { 'k:{"key":"b"}': { '.': {} } } })],
  ['an item, by its value, that is wanted no more', owning({ 'f:finalisers': { 'v:"y"': {} } })],
  ['another version of the kind', { entry: { apiVersion: 'penstock.dev/v1beta1' } }],
  ['another manager', { entry: { manager: 'kubectl' } }],
  ['an update without apply', { entry: { operation: 'Update' } }],
])('%s is applied', (_, change) => {
  expect(isApplied(live(change), wanted, manager)).toBe(false)
})
