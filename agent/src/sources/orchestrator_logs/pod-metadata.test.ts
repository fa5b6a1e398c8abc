import { expect, test } from 'vitest'
import { maxRemovedLength, PodMetadata } from './pod-metadata.ts'

const delayMs = 60_000
const pod = (index: number, annotation: string) => ({
  metadata: { name: `p-${index}`, namespace: 'shop', uid: `u-${index}`, annotations: { note: annotation } },
})
const folder = (index: number) => `shop_p-${index}_u-${index}`

test('pods that come and go are kept for a while, and no more of them than have room', () => {
  const metadata = new PodMetadata(delayMs)
  const note = 'x'.repeat(256 * 1024)
  const most = Math.floor(maxRemovedLength / note.length)
  for (let index = 0; index < 3000; index++) {
    metadata.setPod(pod(index, note))
    metadata.removePod(pod(index, note))
    metadata.expire(Date.now())
    expect([...metadata.pods()].length).toBeLessThanOrEqual(most)
  }
  expect(metadata.pod(folder(2999))).toBeDefined()
  expect(metadata.pod(folder(0))).toBeUndefined()
  metadata.expire(Date.now() + delayMs)
  expect([...metadata.pods()]).toEqual([])
})

test('pods that are there, or are there again, take no room of those that were removed', () => {
  const metadata = new PodMetadata(delayMs)
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
