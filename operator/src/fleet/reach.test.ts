import type { ComponentReport, HeartbeatBody } from '@penstock/agent/bundle'
import { describe, expect, test } from 'vitest'
import type { Finding } from '../api/conditions.ts'
import { ownSinksFinding, type Refusals, reachesOf, refusalsAfter } from './reach.ts'
import type { Report } from './state.ts'

const refused = (reason = 'Unauthorized'): Partial<ComponentReport> => ({
  ...{ errors: 1, dropped: 3, lastError: { reason, message: `Request failed. ${reason}.`, at: '' } },
})
const sent: Partial<ComponentReport> = { sent: 5 }

/** A pod's report about sink `out`. */
function reported(out: Partial<ComponentReport> | undefined, hash = 'sha256:1'): HeartbeatBody['pipelines'] {
  const components = out && { out: { kind: 'sink', errors: 0, dropped: 0, sent: 0, ...out } }
  return { 'shop/p': { hash, components: components ?? {} } } as unknown as HeartbeatBody['pipelines']
}

describe('a destination', () => {
  const after = (...reports: readonly HeartbeatBody['pipelines'][]) => {
    let refusals: Refusals | undefined
    for (const pipelines of reports) refusals = refusalsAfter(refusals, pipelines, () => true)
    return refusals?.get('shop/p/out')?.reason
  }
  test.each([
    ['refuses', [reported(refused())], 'Unauthorized'],
    ['refuses while nothing is tried', [reported(refused()), reported(undefined), {}], 'Unauthorized'],
    ['refuses for another reason', [reported(refused()), reported(refused('ConnectFailed'))], 'ConnectFailed'],
    ['takes events again', [reported(refused()), reported(sent)], undefined],
    ['took events at another attempt', [reported({ ...refused('ConnectFailed'), dropped: 0, ...sent })], undefined],
    ['takes some events and rejects others', [reported({ ...refused('Rejecting'), ...sent })], 'Rejecting'],
    ['rejects single events', [reported(refused('EventsRejected'))], undefined],
    ['is another one in a new version', [reported(refused()), reported(undefined, 'sha256:2')], undefined],
  ])('%s', (_, reports, reason) => {
    expect(after(...reports)).toBe(reason)
  })

  test('is forgotten with its Pipeline', () => {
    const before = refusalsAfter(undefined, reported(refused()), () => true)
    expect(refusalsAfter(before, {}, () => false).size).toBe(0)
  })
})

function pod(node: string, out: Partial<ComponentReport>): Pick<Report, 'node' | 'refusals' | 'pipelines'> {
  return { node, pipelines: reported(out), refusals: refusalsAfter(undefined, reported(out), () => true) }
}

const finding = (pods: readonly ReturnType<typeof pod>[], destinations: readonly string[] = ['store.example:443']) =>
  reachesOf(pods, () => 'Sink/shop/store')
    .get('Sink/shop/store')
    ?.finding(() => destinations)

test.each([
  [[pod('a', refused())], 'False Unauthorized 1 of 1 node fails at store.example:443: Request failed. Unauthorized.'],
  [
    [pod('a', refused()), pod('b', refused()), pod('c', sent)],
    'False Unauthorized 2 of 3 nodes fail at store.example:443: Request failed. Unauthorized.',
  ],
  [
    [pod('a', refused('TLSFailed')), pod('b', refused('ConnectFailed')), pod('c', refused('ConnectFailed'))],
    'False ConnectFailed 2 of 3 nodes fail at store.example:443: Request failed. ConnectFailed.',
  ],
  [[pod('a', sent), pod('b', {})], 'True Reachable It answers.'],
])('the condition contains the place and the reason of the failure: %#', (pods, says) => {
  const found = finding(pods)
  expect(`${found?.status} ${found?.reason} ${found?.message}`).toBe(says)
})

test('omits addresses from Secrets, and reports nothing without reports of agents', () => {
  expect(finding([pod('a', refused())], [])?.message).toBe('1 of 1 node fails: Request failed. Unauthorized.')
  expect(finding([pod('a', {})])).toBeUndefined()
})

test('a Pipeline names its own sinks that are refused', () => {
  const bad: Finding = {
    type: 'Reachable',
    status: 'False',
    reason: 'Unauthorized',
    message: '1 of 1 node fails: 401.',
  }
  const good: Finding = { type: 'Reachable', status: 'True', reason: 'Reachable', message: 'It answers.' }
  expect(ownSinksFinding(new Map())).toBeUndefined()
  expect(ownSinksFinding(new Map([['out', good]]))).toMatchObject({ status: 'True' })
  const findings = new Map([
    ['out', good],
    ['copy', bad],
    ['old', { ...bad, reason: 'TLSFailed' as const }],
  ])
  expect(ownSinksFinding(findings)).toEqual({
    ...bad,
    message: 'sinks[copy]: 1 of 1 node fails: 401. sinks[old]: 1 of 1 node fails: 401.',
  })
})
