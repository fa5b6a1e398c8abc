// Rollouts while Pipelines are added, removed and changed: tests plan, transition and content together, with agents that load their
// content at once. The test controls time.

import { takesCandidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import { RolloutBench } from '../../testing/rollout-bench.ts'
import { maxWaitMs } from '../rollout-judge.ts'

const clock = { now: Date.parse('2026-01-01T00:00:00Z') }

const nodes = Array.from({ length: 40 }, (_, index) => `n${index}`)

async function running(...desired: readonly string[]): Promise<RolloutBench> {
  const cluster = new RolloutBench(clock, nodes.length)
  cluster.want(...desired)
  await cluster.settle()
  for (const name of desired) expect(cluster.count(name)).toBe(nodes.length)
  return cluster
}

test('a new Pipeline is on all nodes at once, a change on some first', async () => {
  const cluster = await running('a1')
  cluster.want('a1', 'n1')
  await cluster.settle()
  expect(cluster.count('n1')).toBe(nodes.length)
  cluster.want('a1', 'n2')
  await cluster.settle()
  expect(cluster.count('n2')).toBeGreaterThan(0)
  expect(cluster.count('n2')).toBeLessThan(nodes.length / 4)
  await cluster.pass(200)
  expect(cluster.count('n2')).toBe(nodes.length)
  cluster.want('a2', 'n2')
  await cluster.settle()
  expect(cluster.count('a2')).toBeGreaterThan(0)
  expect(cluster.count('a2')).toBeLessThan(nodes.length / 4)
  await cluster.pass(200)
  expect(cluster.count('a2')).toBe(nodes.length)
})

test.each([
  ['is being tried', undefined, false],
  ['is paused', undefined, true],
  ['agents do not load', 'hangs' as const, false],
])('new and removed Pipelines do not wait for a change that %s, and the change continues', async (_, harm, paused) => {
  const cluster = await running('a1', 'g1')
  cluster.rollout = { paused }
  if (harm !== undefined) cluster.harms.set('a2', harm)
  cluster.want('a2', 'g1')
  await cluster.pass(30)
  const before = { ...cluster.delivered.candidate, ...cluster.delivered.record }
  const share = cluster.count('a2')
  cluster.want('a2', 'n1')
  await cluster.settle()
  const chosen = nodes.filter((node) => takesCandidate(before as { percent: number; salt: string }, node)).length
  expect(cluster.count('n1')).toBe(harm === undefined ? nodes.length : nodes.length - chosen)
  expect(cluster.count('g1')).toBe(harm === undefined ? 0 : chosen)
  expect(cluster.count('a2')).toBe(share)
  const { percent, salt, step, since } = before
  expect({ ...cluster.delivered.candidate, ...cluster.delivered.record }).toMatchObject({ percent, salt, step })
  expect(cluster.delivered.record.since).toBe(since)
})

test('changes in quick succession are tried together, later ones in another trial', async () => {
  const cluster = await running('a1', 'b1', 'c1')
  cluster.want('a2', 'b1', 'c1')
  await cluster.pass(30)
  cluster.want('a2', 'b2', 'c1')
  await cluster.settle()
  const first = cluster.count('a2')
  expect(cluster.count('b2')).toBe(first)
  // The second change gets a full bake.
  await cluster.pass(55)
  expect(cluster.count('b2')).toBe(first)
  await cluster.pass(10)
  expect(cluster.count('b2')).toBeGreaterThan(first)
  cluster.want('a2', 'b2', 'c2')
  await cluster.settle()
  expect(cluster.count('c2')).toBe(first)
  await cluster.pass(150)
  expect(cluster.count('b2')).toBe(nodes.length)
  expect(cluster.count('c2')).toBeGreaterThan(first)
})

test('new Pipelines every few seconds do not keep a change from completing', async () => {
  const cluster = await running('a1')
  const letters = 'bcdefghijklmnopqrstuvwxyz'
  for (const letter of letters) {
    const others = [...letters.slice(0, letters.indexOf(letter) + 1)].map((each) => `${each}1`)
    cluster.want(letter === 'b' ? 'a1' : 'a2', ...others)
    await cluster.pass(10)
    expect(cluster.count(`${letter}1`)).toBe(nodes.length)
  }
  expect(cluster.count('a2')).toBe(nodes.length)
})

test.each([
  ['end', 'crashes'],
  ['wait', 'waits'],
] as const)('only the new Pipeline by which agents %s is rolled back', async (_, harm) => {
  const cluster = await running('a1')
  cluster.harms.set('n1', harm)
  cluster.want('a1', 'n1', 'm1')
  await cluster.settle()
  cluster.want('a2', 'n1', 'm1')
  await cluster.pass((2 * maxWaitMs) / 1000 + 600)
  expect(cluster.rolledBack).toEqual(['n1'])
  expect(['n1', 'a2', 'm1'].map((each) => cluster.count(each))).toEqual([0, nodes.length, nodes.length])
})

test('a new Pipeline during a trial also becomes a suspect when the agents of the trial end, and the change is tried again', async () => {
  const cluster = await running('a1')
  cluster.want('a2')
  await cluster.pass(10)
  cluster.harms.set('n1', 'crashes')
  cluster.want('a2', 'n1')
  await cluster.settle()
  expect([cluster.count('a2'), cluster.count('n1')]).toEqual([expect.any(Number), 0])
  await cluster.pass(400)
  expect(cluster.rolledBack).toEqual(['n1'])
  expect([cluster.count('a2'), cluster.count('n1')]).toEqual([nodes.length, 0])
})
