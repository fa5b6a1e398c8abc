import { expect, test } from 'vitest'
import { maxRemovedLength, PodMetadata, type PodObject } from './pod-metadata.ts'
import type { ShareLimits } from './pod-shares.ts'

const delayMs = 60_000
const pod = (index: number, annotation: string) => ({
  metadata: { name: `p-${index}`, namespace: 'shop', uid: `u-${index}`, annotations: { note: annotation } },
})
const keeping = (limits?: ShareLimits) => {
  const metadata = new PodMetadata(limits)
  metadata.keepFor(delayMs)
  return metadata
}
const folder = (index: number) => `shop_p-${index}_u-${index}`

test('deleted pods are kept for some time, as far as space allows', () => {
  const metadata = keeping()
  const note = 'x'.repeat(256 * 1024)
  const max = Math.floor(maxRemovedLength / note.length)
  for (let index = 0; index < 3000; index++) {
    metadata.setPod(pod(index, note))
    metadata.removePod(pod(index, note))
    metadata.expire(Date.now())
    expect([...metadata.pods()].length).toBeLessThanOrEqual(max)
  }
  expect(metadata.pod(folder(2999))).toBeDefined()
  expect(metadata.pod(folder(0))).toBeUndefined()
  metadata.expire(Date.now() + delayMs)
  expect([...metadata.pods()]).toEqual([])
})

test('existing and recreated pods use no space of removed ones', () => {
  const metadata = keeping()
  const note = 'x'.repeat(256 * 1024)
  for (let index = 0; index < 200; index++) metadata.setPod(pod(index, note))
  for (let round = 0; round < 200; round++) {
    metadata.removePod(pod(0, note))
    metadata.setPod(pod(0, note))
  }
  metadata.removePod(pod(1, note))
  expect(metadata.expire(Date.now())).toEqual([])
  expect([...metadata.pods()]).toHaveLength(200)
})

const limits: ShareLimits = { maxLength: 1 << 20, maxNamespaceLength: 256 << 10 }

function podOf(namespace: string, index: number, labels: Record<string, string> = {}): PodObject {
  const annotations = { note: 'x'.repeat(10_000) }
  const name = `p-${String(index).padStart(6, '0')}`
  return {
    metadata: { name, namespace, uid: `u-${index}`, labels: { app: name, ...labels }, annotations },
    spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'shop:1' }] },
  }
}

const extents = (metadata: PodMetadata, namespace: string) => {
  const pods = [...metadata.pods()].filter(([, pod]) => pod.namespace === namespace).map(([, pod]) => pod)
  return {
    whole: pods.filter(({ annotations }) => annotations['note'] !== undefined).length,
    reduced: pods.filter(({ annotations, labels }) => labels !== undefined && annotations['note'] === undefined).length,
    names: pods.filter(({ labels }) => labels === undefined).length,
  }
}

test('a namespace with very many pods gets only its share, and other namespaces get theirs', () => {
  const metadata = keeping(limits)
  for (let index = 0; index < 100_000; index++) metadata.setPod(podOf('evil', index))
  const { whole, reduced, names } = extents(metadata, 'evil')
  // 128 KiB of pods with annotations, 128 KiB of pods without.
  expect([whole, reduced, whole + reduced + names]).toEqual([10, 61, 100_000])
  expect(metadata.takeReduced()).toEqual(new Map([['evil', 100_000 - whole]]))
  expect(metadata.takeReduced()).toEqual(new Map())
  for (let index = 0; index < 5; index++) metadata.setPod(podOf('shop', index))
  expect(extents(metadata, 'shop')).toEqual({ whole: 5, reduced: 0, names: 0 })
  const named = metadata.pod('evil_p-099999_u-99999')
  expect(named).toMatchObject({
    name: 'p-099999',
    namespace: 'evil',
    uid: 'u-99999',
    node: 'node-1',
    labels: undefined,
  })
})

test('if all space is used, each namespace still gets an equal part', () => {
  const metadata = keeping(limits)
  for (let namespace = 0; namespace < 19; namespace++) {
    for (let index = 0; index < 100; index++) metadata.setPod(podOf(`evil-${namespace}`, index))
  }
  for (let index = 0; index < 4; index++) metadata.setPod(podOf('shop', index))
  expect(extents(metadata, 'shop')).toEqual({ whole: 4, reduced: 0, names: 0 })
})

test('known pods keep their metadata when a list contains many more', () => {
  const metadata = keeping(limits)
  const known = [500, 501, 502].map((index) => podOf('shop', index))
  metadata.replacePods(known)
  const many = Array.from({ length: 1000 }, (_, index) => podOf('shop', index))
  metadata.replacePods(many)
  for (const index of [500, 501, 502]) {
    expect(metadata.pod(`shop_p-000${index}_u-${index}`)?.annotations).toHaveProperty('note')
  }
  metadata.replacePods(known)
  metadata.setPod(podOf('shop', 1))
  expect(metadata.pod('shop_p-000001_u-1')?.annotations).toHaveProperty('note')
})

test('removed pods release their space', () => {
  const metadata = keeping(limits)
  for (let index = 0; index < 10_000; index++) {
    metadata.setPod(podOf('shop', index))
    metadata.setPod(podOf('shop', index, { version: '2' }))
    metadata.removePod(podOf('shop', index))
  }
  expect(metadata.takeReduced()).toEqual(new Map())
})

test('a pod with very many labels is kept with only its name if its namespace has no space', () => {
  const metadata = keeping({ maxLength: 1 << 20, maxNamespaceLength: 32 << 10 })
  const labels = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`label-${index}`, 'x'.repeat(63)]))
  metadata.setPod(podOf('shop', 1, labels))
  expect(extents(metadata, 'shop')).toEqual({ whole: 0, reduced: 0, names: 1 })
})
