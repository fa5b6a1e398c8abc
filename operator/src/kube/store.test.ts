import { silentLogger } from '@penstock/agent/telemetry'
import { expect, test } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { secretType } from './resource-types.ts'
import { Store } from './store.ts'

const object = (version: string, labels: Record<string, string> = {}, uid = 'one'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'a', namespace: 'shop', uid, resourceVersion: version, labels },
})
const made = () => {
  const store = new Store<KubeObject>(secretType, [''], silentLogger)
  const seen: string[] = []
  store.subscribe(({ type, object }) => seen.push(`${type} ${object.metadata.resourceVersion}`))
  return { store, seen }
}

test('after a write, no older version is shown until its event arrives', () => {
  const { store, seen } = made()
  store.set(object('1'))
  store.expect(object('4'))
  store.set(object('2'))
  store.set(object('3'))
  expect(store.get('shop', 'a')?.metadata.resourceVersion).toBe('4')
  store.set(object('4'))
  store.set(object('5'))
  expect(seen).toEqual(['added 1', 'changed 4', 'changed 5'])
})

test('a write whose event arrives before its response changes nothing', () => {
  const { store, seen } = made()
  store.set(object('1'))
  store.set(object('4'))
  store.set(object('5'))
  store.expect(object('4'))
  expect(store.get('shop', 'a')?.metadata.resourceVersion).toBe('5')
  store.set(object('6'))
  expect(seen).toEqual(['added 1', 'changed 4', 'changed 5', 'changed 6'])
})

test('a response to a write does not restore an object that was deleted meanwhile', () => {
  const { store, seen } = made()
  store.set(object('1'))
  store.remove(object('5'))
  store.expect(object('4'))
  expect(store.get('shop', 'a')).toBeUndefined()
  // Nor does it replace the object created in between.
  store.set(object('9', {}, 'two'))
  store.expect(object('4'))
  expect(store.get('shop', 'a')?.metadata.resourceVersion).toBe('9')
  store.set(object('12', {}, 'three'))
  store.expect(object('10', {}, 'two'))
  expect(store.get('shop', 'a')?.metadata.resourceVersion).toBe('12')
  expect(seen).toEqual(['added 1', 'deleted 5', 'added 9', 'deleted 9', 'added 12'])
})

test('an object that was deleted and created again is a different one', () => {
  const { store, seen } = made()
  store.set(object('1'))
  store.set(object('9', {}, 'two'))
  expect(seen).toEqual(['added 1', 'deleted 1', 'added 9'])
})

test('indexes follow changes and deletions', () => {
  const { store } = made()
  store.index('team', ({ metadata }) => Object.values(metadata.labels ?? {}))
  store.set(object('1', { team: 'blue' }))
  store.set(object('2', { team: 'red' }))
  expect([store.find('team', 'blue'), store.find('team', 'red').length]).toEqual([[], 1])
  store.remove(object('3', { team: 'red' }))
  expect(store.find('team', 'red')).toEqual([])
})

test('objects are frozen, without unused members', () => {
  const { store } = made()
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', kept: 'yes' }
  store.set({ ...object('1'), metadata: { ...object('1').metadata, annotations, managedFields: [{}] } })
  const found = store.get('shop', 'a')
  expect(found?.metadata.annotations).toEqual({ kept: 'yes' })
  expect(found?.metadata.managedFields).toBeUndefined()
  expect(() => Object.assign(found?.metadata.labels ?? {}, { a: 'b' })).toThrow(TypeError)
})
