import { describe, expect, test } from 'vitest'
import type { Condition, Finding } from '../api/conditions.ts'
import { pipelineKind, type ResourceKind, sinkKind } from '../api/kinds.ts'
import { type StatusObject, statusOf } from './status.ts'

const now = new Date('2026-01-02T03:04:05.678Z')
const object = (status?: StatusObject['status'], spec: StatusObject['spec'] = {}): StatusObject => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name: 'checkout', namespace: 'shop', generation: 3 },
  spec,
  ...(status === undefined ? {} : { status }),
})
const good: Finding[] = [
  { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
  { type: 'ResolvedRefs', status: 'True', reason: 'Resolved', message: '' },
]
const programmed: Finding[] = [{ type: 'Programmed', status: 'True', reason: 'Programmed', message: '' }]
const refused: Finding = { type: 'Accepted', status: 'False', reason: 'ForbiddenOption', message: 'no' }

/** Conditions as `Type=Status/Reason`. */
const says = (
  compile: readonly Finding[],
  rollout?: readonly Finding[],
  before?: StatusObject,
  kind: ResourceKind = pipelineKind,
) => {
  const reports = {
    compile: { generation: 3, findings: compile },
    ...(rollout === undefined ? {} : { rollout: { generation: 3, findings: rollout } }),
  }
  const status = statusOf(kind, before ?? object(), reports, now)
  return (status['conditions'] as Condition[]).map(({ type, status, reason }) => `${type}=${status}/${reason}`)
}

describe('the summary of a Pipeline', () => {
  test('is unknown and in progress before the first report of agents', () => {
    expect(says(good)).toEqual([
      'Accepted=True/Valid',
      'ResolvedRefs=True/Resolved',
      'Programmed=Unknown/Pending',
      'Flowing=Unknown/NoData',
      'Ready=Unknown/Pending',
      'Reconciling=True/Progressing',
    ])
  })

  test('is ready when it runs, with any traffic, without remaining conditions for kstatus', () => {
    const flowing: Finding = { type: 'Flowing', status: 'False', reason: 'NoEventsDelivered', message: '' }
    expect(says(good, [...programmed, flowing]).slice(4)).toEqual(['Ready=True/Ready'])
  })

  test.each([
    [[refused, good[1] as Finding], 'ForbiddenOption', 'Stalled=True/ForbiddenOption'],
    [
      [good[0] as Finding, { type: 'ResolvedRefs', status: 'False', reason: 'SinkNotFound', message: '' } as Finding],
      'SinkNotFound',
      'Reconciling=True/Progressing',
    ],
  ])('names the first failure, and stalls only if the user must act: %j', (findings, reason, kstatus) => {
    expect(says(findings, programmed).slice(4)).toEqual([`Ready=False/${reason}`, kstatus])
  })

  test('is ready while suspended, without running', () => {
    const suspended = object(undefined, { suspend: true })
    expect(says(good, undefined, suspended).slice(4)).toEqual(['Ready=True/Suspended'])
    const reports = { compile: { generation: 3, findings: good } }
    const { conditions } = statusOf(pipelineKind, suspended, reports, now) as { conditions: Condition[] }
    expect(conditions.find(({ type }) => type === 'Flowing')?.message).toBe('spec.suspend is true: no agent runs it.')
  })

  test('a Sink with a refusing destination is not ready, but still accepted', () => {
    const reachable: Finding = { type: 'Reachable', status: 'False', reason: 'Unauthorized', message: '401' }
    expect(says(good, [reachable], undefined, sinkKind).slice(2)).toEqual([
      'Reachable=False/Unauthorized',
      'Ready=False/Unreachable',
    ])
  })
})

test('a Pipeline whose own sinks are refused stays ready, because it runs', () => {
  const reachable: Finding = { type: 'Reachable', status: 'False', reason: 'Unauthorized', message: '401' }
  expect(says(good, [...programmed, reachable])).toContain('Ready=True/Ready')
  expect(says(good, [...programmed, reachable])).toContain('Reachable=False/Unauthorized')
})

test('after a restart, conditions that no part has reported yet stay unchanged, so that nothing is written', () => {
  const reports = {
    compile: { generation: 3, findings: good },
    rollout: { generation: 3, findings: programmed, fields: { agents: [] } },
  }
  const first = statusOf(pipelineKind, object(), reports, now)
  const later = new Date('2026-05-05T00:00:00Z')
  expect(statusOf(pipelineKind, object(first), { compile: reports.compile }, later)).toEqual(first)
})

test('the time of a condition changes only with its status', () => {
  const times = (status: ReturnType<typeof statusOf>) =>
    Object.fromEntries(
      (status['conditions'] as Condition[]).map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
    )
  const first = statusOf(pipelineKind, object(), { compile: { generation: 3, findings: good } }, now)
  const later = new Date('2026-01-02T04:00:00Z')
  const second = statusOf(
    pipelineKind,
    object(first),
    { compile: { generation: 4, findings: [refused, good[1] as Finding] } },
    later,
  )
  expect(times(second)).toMatchObject({ Accepted: '2026-01-02T04:00:00Z', ResolvedRefs: '2026-01-02T03:04:05Z' })
})

describe('a condition of an earlier generation does not apply to this one', () => {
  const before = (findings: readonly Finding[]) =>
    object(
      statusOf(
        pipelineKind,
        object(),
        { compile: { generation: 2, findings: good }, rollout: { generation: 2, findings } },
        now,
      ),
    )
  test.each<[string, readonly Finding[]]>([
    ['it ran', programmed],
    ['it was rolled back', [{ type: 'Programmed', status: 'False', reason: 'RolledBack', message: 'no' }]],
    ['it was suspended', [{ type: 'Programmed', status: 'False', reason: 'Suspended', message: 'no' }]],
  ])('%s, and the new generation is accepted: its readiness is unknown', (_, earlier) => {
    const known = before(earlier)
    const expected = ['Ready=Unknown/Pending', 'Reconciling=True/Progressing']
    // The responsible part has reported for the earlier generation, or in an earlier process.
    const compile = { generation: 3, findings: good }
    for (const reports of [{ compile, rollout: { generation: 2, findings: earlier } }, { compile }]) {
      const { conditions, observedGeneration } = statusOf(pipelineKind, known, reports, now)
      expect(observedGeneration).toBe(3)
      const shown = conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`)
      expect(shown.filter((each) => /^(Ready|Reconciling|Stalled)/.test(each))).toEqual(expected)
      expect(conditions.find(({ type }) => type === 'Programmed')?.observedGeneration).toBe(2)
    }
  })
})
