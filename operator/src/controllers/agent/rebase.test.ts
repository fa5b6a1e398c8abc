// Rollouts while Pipelines come, go and change: the plan, the transition and the contents together, with agents that load at once what
// is for them. Time is the test's.

import { takesCandidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import { changesOf } from '../../fleet/contents.ts'
import type { Delivered } from '../../fleet/state.ts'
import { renderBundle } from '../../render/bundle.ts'
import type { Fragment } from '../../render/fragment.ts'
import { changedIn, fragmentsIn } from '../revisions.ts'
import { type AgentNode, maxWaitMs, policyOf, type RolloutPolicy } from '../rollout-plan.ts'
import { keepRevision, rebaseRollout, triedRevisions } from './rebase.ts'
import { advance } from './transition.ts'

const nodes = Array.from({ length: 40 }, (_, index) => `node-${index}`)

function fragment(name: string): Fragment {
  const [id = ''] = name
  return {
    ...{ id, uid: id, generation: 1, hash: name, entry: JSON.stringify({ hash: name }) },
    ...{ sources: [], transforms: [], sinks: [], subscriptions: [], secretRefs: [] },
  }
}

/** `a1 b2`: Pipeline a with content 1, b with content 2. */
class Cluster {
  readonly delivered: Delivered = {
    ...{ stable: undefined, candidate: undefined, record: { rolledBack: {}, history: [] }, revisions: new Map() },
    ...{ selected: new Map(), evicted: new Map(), startSpreadMs: 0, why: '' },
  }
  now = Date.parse('2026-01-01T00:00:00Z')
  desired: readonly string[] = []
  policy: RolloutPolicy = policyOf(undefined)
  /** Agents that do not load what holds one of these: they crash, or continue waiting. */
  bad: { readonly content: string; readonly how: 'crash' | 'wait' | 'slow' } | undefined
  readonly #runs = new Map<string, string>()

  /** The operator's actions until it waits for time or for agents. */
  async settle(): Promise<void> {
    for (let pass = 0; pass < 20; pass++) {
      const before = JSON.stringify([this.delivered.stable, this.delivered.candidate, this.delivered.record])
      await this.#pass()
      for (const node of nodes) this.#load(node)
      if (JSON.stringify([this.delivered.stable, this.delivered.candidate, this.delivered.record]) === before) return
    }
    throw new Error('The operator does not come to rest.')
  }

  async pass(seconds: number): Promise<void> {
    for (let passed = 0; passed < seconds; passed += 5) {
      this.now += 5000
      await this.settle()
    }
  }

  /** Nodes whose agent runs this content. */
  count(name: string): number {
    const has = (rev: string | undefined) =>
      this.delivered.revisions.get(rev ?? '')?.fragments.get(name[0] ?? '')?.hash === name
    return nodes.filter((node) => has(this.#runs.get(node))).length
  }

  #offered(node: string): string | undefined {
    const { stable, candidate } = this.delivered
    return candidate !== undefined && takesCandidate(candidate, node) ? candidate.rev : stable?.rev
  }

  #isBad(node: string): boolean {
    const offered = this.delivered.revisions.get(this.#offered(node) ?? '')?.fragments.values() ?? []
    return [...offered].some(({ hash }) => hash === this.bad?.content)
  }

  #load(node: string): void {
    const offered = this.#offered(node)
    if (offered !== undefined && !this.#isBad(node)) this.#runs.set(node, offered)
  }

  readonly #waits = new Map<string, number>()

  #node(node: string): AgentNode {
    const isBad = this.#isBad(node)
    if (!isBad || this.bad?.how !== 'wait') this.#waits.delete(node)
    else if (!this.#waits.has(node)) this.#waits.set(node, this.now)
    return {
      ...{ node, revision: this.#runs.get(node), failed: new Set(), failures: [], reason: undefined, stuck: false },
      ...{ waitingSince: this.#waits.get(node), stale: false, crashed: isBad && this.bad?.how === 'crash' },
    }
  }

  async #pass(): Promise<void> {
    const { delivered } = this
    const artifacts = this.desired.map((name) => ({ ...fragment(name), createdAt: '' }))
    const back = delivered.record.rolledBack
    const runs = fragmentsIn(delivered, delivered.stable)
    const kept = artifacts.flatMap((each) => {
      const known = back[each.id]
      if (known?.hash !== each.hash) return [each]
      const before = runs.get(each.id)
      return before === undefined || before.hash === known.hash ? [] : [before]
    })
    const bundle = await renderBundle(kept.map((each) => ({ fragment: each, createdAt: '' })))
    keepRevision(delivered, bundle)
    await rebaseRollout(delivered, bundle, this.policy, new Map(), this.now)
    const stable = fragmentsIn(delivered, delivered.stable)
    const tried = fragmentsIn(delivered, delivered.candidate)
    const changed = changedIn(tried, stable)
    const revisionOf = triedRevisions(delivered, delivered.candidate, changed)
    const { state } = advance(delivered, {
      ...{ now: this.now, policy: this.policy, bundle, tried, changed, worse: new Set<string>() },
      isArrival: changesOf(bundle.fragments, stable).length === 0,
      triesArrivals: delivered.candidate !== undefined && changesOf(tried, stable).length === 0,
      nodes: nodes.map((node) => this.#node(node)).map((node) => ({ ...node, revision: revisionOf(node.revision) })),
      retryOf: () => undefined,
    })
    Object.assign(delivered, state)
  }
}

async function running(...desired: readonly string[]): Promise<Cluster> {
  const cluster = new Cluster()
  cluster.desired = desired
  await cluster.settle()
  for (const name of desired) expect(cluster.count(name)).toBe(nodes.length)
  return cluster
}

test('a new Pipeline is on all nodes at once, a change on some first', async () => {
  const cluster = await running('a1')
  cluster.desired = ['a1', 'n1']
  await cluster.settle()
  expect(cluster.count('n1')).toBe(nodes.length)
  cluster.desired = ['a1', 'n2']
  await cluster.settle()
  expect(cluster.count('n2')).toBeGreaterThan(0)
  expect(cluster.count('n2')).toBeLessThan(nodes.length / 4)
  await cluster.pass(200)
  expect(cluster.count('n2')).toBe(nodes.length)
  cluster.desired = ['a2', 'n2']
  await cluster.settle()
  expect(cluster.count('a2')).toBeGreaterThan(0)
  expect(cluster.count('a2')).toBeLessThan(nodes.length / 4)
  await cluster.pass(200)
  expect(cluster.count('a2')).toBe(nodes.length)
})

test.each([
  ['is being tried', undefined, false],
  ['is paused', undefined, true],
  ['agents do not load', { content: 'a2', how: 'slow' } as const, false],
])(
  'a new Pipeline and one that goes do not wait for a change that %s, which continues as it was',
  async (_, bad, paused) => {
    const cluster = await running('a1', 'g1')
    cluster.policy = { ...cluster.policy, paused }
    cluster.bad = bad
    cluster.desired = ['a2', 'g1']
    await cluster.pass(30)
    const before = { ...cluster.delivered.candidate, ...cluster.delivered.record }
    const share = cluster.count('a2')
    cluster.desired = ['a2', 'n1']
    await cluster.settle()
    const chosen = nodes.filter((node) => takesCandidate(before as { percent: number; salt: string }, node)).length
    expect(cluster.count('n1')).toBe(bad === undefined ? nodes.length : nodes.length - chosen)
    expect(cluster.count('g1')).toBe(bad === undefined ? 0 : chosen)
    expect(cluster.count('a2')).toBe(share)
    const { percent, salt, step, since } = before
    expect({ ...cluster.delivered.candidate, ...cluster.delivered.record }).toMatchObject({ percent, salt, step })
    expect(cluster.delivered.record.since).toBe(since)
  },
)

test('changes that come soon after one another are tried together, later ones in the next rollout', async () => {
  const cluster = await running('a1', 'b1', 'c1')
  cluster.desired = ['a2', 'b1', 'c1']
  await cluster.pass(30)
  cluster.desired = ['a2', 'b2', 'c1']
  await cluster.settle()
  const first = cluster.count('a2')
  expect(cluster.count('b2')).toBe(first)
  // Its bake is a whole one.
  await cluster.pass(55)
  expect(cluster.count('b2')).toBe(first)
  await cluster.pass(10)
  expect(cluster.count('b2')).toBeGreaterThan(first)
  cluster.desired = ['a2', 'b2', 'c2']
  await cluster.settle()
  expect(cluster.count('c2')).toBe(0)
  await cluster.pass(150)
  expect(cluster.count('b2')).toBe(nodes.length)
  expect(cluster.count('c2')).toBeGreaterThan(0)
})

test('new Pipelines every few seconds keep no change from its end', async () => {
  const cluster = await running('a1')
  const letters = 'bcdefghijklmnopqrstuvwxyz'
  for (const letter of letters) {
    cluster.desired = [letter === 'b' ? 'a1' : 'a2', ...letters.slice(0, letters.indexOf(letter) + 1)].map((each) =>
      each.length === 1 ? `${each}1` : each,
    )
    await cluster.pass(10)
    expect(cluster.count(`${letter}1`)).toBe(nodes.length)
  }
  expect(cluster.count('a2')).toBe(nodes.length)
})

test.each(['crash', 'wait'] as const)(
  'a new Pipeline by which agents %s is taken back, and nothing else',
  async (how) => {
    const cluster = await running('a1')
    cluster.bad = { content: 'n1', how }
    cluster.desired = ['a1', 'n1', 'm1']
    await cluster.settle()
    cluster.desired = ['a2', 'n1', 'm1']
    await cluster.pass(maxWaitMs / 1000 + 10)
    expect(Object.keys(cluster.delivered.record.rolledBack)).toContain('n')
    expect(Object.keys(cluster.delivered.record.rolledBack)).not.toContain('a')
    await cluster.pass(200)
    expect([cluster.count('n1'), cluster.count('a2')]).toEqual([0, nodes.length])
  },
)

test('a new Pipeline that came beside a trial is under suspicion, too, when the agents of the trial end', async () => {
  const cluster = await running('a1')
  cluster.desired = ['a2']
  await cluster.pass(10)
  cluster.bad = { content: 'n1', how: 'crash' }
  cluster.desired = ['a2', 'n1']
  await cluster.settle()
  expect(Object.keys(cluster.delivered.record.rolledBack).sort()).toEqual(['a', 'n'])
  await cluster.settle()
  expect(cluster.count('n1')).toBe(0)
})
