// The Pipelines that are excluded if a quota is exceeded. Ages are days of January.

import { expect, test } from 'vitest'
import type { Agent } from '../api/agent.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { type Claim, diskBudgetProblem, type Need, namespaceQuotaProblem } from './quota.ts'

const need = (components: number, gibibytes = 0): Need => ({ components, diskBytes: gibibytes * 2 ** 30 })
const claim = (day: number, wanted: Need | undefined, running?: Need): Claim => {
  const creationTimestamp = `2026-01-${String(day).padStart(2, '0')}T00:00:00Z`
  return {
    pipeline: { kind: 'Pipeline', metadata: { name: `p${day}`, namespace: 'shop', creationTimestamp } } as Pipeline,
    wanted,
    running,
  }
}

/** Days of refused Pipelines, in any order of evaluation. */
function refused(quota: Parameters<typeof namespaceQuotaProblem>[2], claims: readonly Claim[]): string[] {
  const found = (order: readonly Claim[]) =>
    claims
      .filter((each) => namespaceQuotaProblem(each, order, quota) !== undefined)
      .map((each) => each.pipeline.metadata.name)
  const names = found(claims)
  expect(found(claims.toReversed())).toEqual(names)
  return names
}

test('the youngest Pipeline is refused, and a Pipeline refused for another reason uses no quota', () => {
  const two = need(2)
  expect(refused({ pipelines: 2 }, [claim(1, two), claim(2, two), claim(3, two)])).toEqual(['p3'])
  expect(refused({ pipelines: 2 }, [claim(1, two), claim(2, undefined), claim(3, two)])).toEqual([])
  expect(refused({ components: 4 }, [claim(1, two), claim(2, undefined), claim(3, two), claim(4, two)])).toEqual(['p4'])
  expect(refused({ diskBuffer: '2Gi' }, [claim(1, undefined), claim(2, need(2, 2)), claim(3, need(2, 1))])).toEqual([
    'p3',
  ])
  // Nothing of it goes to a disk.
  expect(refused({ diskBuffer: '2Gi' }, [claim(1, need(2, 2)), claim(2, need(2))])).toEqual([])
})

test('counts the parts of a refused Pipeline that still run', () => {
  const broken = claim(1, undefined, need(3))
  expect(refused({ components: 5 }, [broken, claim(2, need(3))])).toEqual(['p2'])
  expect(refused({ components: 5 }, [broken, claim(2, need(2))])).toEqual([])
  // It was accepted before an older one grew.
  expect(refused({ components: 6 }, [claim(1, need(4)), claim(2, need(3), need(3)), claim(3, need(2))])).toEqual([
    'p2',
    'p3',
  ])
})

test('a Pipeline above the quota that never ran does not exclude younger ones that fit', () => {
  const large = claim(2, need(9))
  expect(refused({ components: 6 }, [claim(1, need(2)), large, claim(3, need(4)), claim(4, need(1))])).toEqual([
    'p2',
    'p4',
  ])
  // Its presence does not affect the others.
  expect(refused({ components: 6 }, [claim(1, need(2)), claim(3, need(4)), claim(4, need(1))])).toEqual(['p4'])
})

test('the message lists the used shares', () => {
  const peers = [claim(1, need(2)), claim(2, undefined), claim(3, need(3))]
  expect(namespaceQuotaProblem(peers[2] as Claim, peers, { pipelines: 1 })).toBe(
    'The namespace may have 1 Pipeline, and this is number 2 by age',
  )
  expect(namespaceQuotaProblem(peers[2] as Claim, peers, { components: 4 })).toBe(
    'The namespace may have 4 components, and with this Pipeline it has 5',
  )
})

test('the disk budget of nodes is shared by the same rule (T10)', () => {
  const agent = {
    metadata: { name: 'node', namespace: 'system' },
    spec: { mode: 'Node', node: { dataDir: { diskBudget: '2Gi' } } },
  } as Agent
  const [old, broken, young] = [claim(1, need(2, 1)), claim(2, undefined), claim(3, need(2, 1))] as const
  expect(diskBudgetProblem(young, [old, broken, young], agent)).toBeUndefined()
  const running = claim(2, undefined, need(2, 1))
  expect(diskBudgetProblem(young, [old, running, young], agent)).toBe(
    'Agent system/node has 2Gi for disk buffers, and with this Pipeline 3Gi are required (T10)',
  )
})

test('an Agent without a budget has a default for Pipelines of namespaces (T10)', () => {
  const agent = { metadata: { name: 'node', namespace: 'system' }, spec: { mode: 'Node' } } as Agent
  const [old, young] = [claim(1, need(2, 6)), claim(2, need(2, 5))] as const
  expect(diskBudgetProblem(old, [old, young], agent)).toBeUndefined()
  expect(diskBudgetProblem(young, [old, young], agent)).toBe(
    'Agent system/node has 10Gi for disk buffers, and with this Pipeline 11Gi are required (T10); set another limit with spec.node.dataDir.diskBudget of the Agent',
  )
  const platform = { ...old, pipeline: { ...old.pipeline, kind: 'ClusterPipeline' } as Pipeline }
  expect(diskBudgetProblem(platform, [platform, young], agent)).toBeUndefined()
  expect(diskBudgetProblem(young, [platform, young], agent)).toBeUndefined()
  const hub = { ...agent, spec: { mode: 'Aggregator', aggregator: { storage: { size: '4Gi' } } } } as Agent
  expect(diskBudgetProblem(young, [young], hub)).toContain('has 4Gi for disk buffers')
})
