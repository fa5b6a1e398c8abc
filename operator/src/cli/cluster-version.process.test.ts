// The real process with a double of an API server that only answers `/version`.

import { readFileSync } from 'node:fs'
import { minServerMinor } from '@penstock/agent/kube'
import { expect, test } from 'vitest'
import { type CommandRun, runAtDouble } from '../testing/command.ts'
import { clusterNeeds, minClusterMinor, minEssentialMinor } from '../workloads/cluster-needs.ts'

/** Exit code and output of an operator that is stopped after it has logged its version. */
function operatorAt(minor: number): Promise<CommandRun> {
  let isStopped = false
  return runAtDouble(
    () => ['operator', '--leader-election', 'false', '--http-address', ''],
    ({ pathname }) =>
      pathname === '/version'
        ? { status: 200, body: { major: '1', minor: `${minor}+`, gitVersion: `v1.${minor}.3` } }
        : { status: 503, body: {} },
    {
      heard(output, end) {
        // A second signal would stop it at once.
        if (isStopped || !output.includes('server_version')) return
        isStopped = true
        end()
      },
    },
  )
}

const line = (output: string) => JSON.parse(output.split('\n').find((text) => text.includes('server_version')) ?? '{}')

test('a cluster without essential features is refused, with the reason and a way out', async () => {
  const { code, output } = await operatorAt(minEssentialMinor - 1)
  expect(code).toBe(69)
  expect(output).toContain('The cluster runs Kubernetes v1.24.3; the operator needs 1.29 or newer')
  expect(output).toContain(
    'without validation rules (CEL) in CRDs, the API server accepts resources that these rules forbid',
  )
  expect(output).toContain('Upgrade the cluster, or run the agent without the operator')
  expect(output).not.toContain('    at ')
})

test('an older cluster than supported causes a warning with the missing features', async () => {
  const { code, output } = await operatorAt(28)
  expect(code).toBe(0)
  expect(line(output)).toMatchObject({
    level: 'warn',
    server_version: 'v1.28.3',
    min_version: 'v1.29',
    consequences: [
      'without native sidecar containers, injected agents are ordinary containers, so Jobs with one do not complete',
    ],
    message: 'The cluster is older than the operator supports. Upgrade it.',
  })
})

test('the version of a supported cluster is logged', async () => {
  const { code, output } = await operatorAt(minClusterMinor)
  expect(code).toBe(0)
  expect(line(output)).toMatchObject({ level: 'info', server_version: 'v1.29.3' })
})

test('the guide states the versions and reasons of the program', () => {
  const guide = readFileSync(new URL('../../guide/install.md', import.meta.url), 'utf8')
  const rows = guide.split('\n').flatMap((text) => {
    const [, runs, version, reason, otherwise] = text.split('|').map((cell) => cell.trim())
    return runs === 'the operator' || runs === 'the agent alone' ? [{ runs, version, reason, otherwise }] : []
  })
  const [alone, ...operator] = rows
  expect(alone).toMatchObject({ runs: 'the agent alone', version: `1.${minServerMinor}` })
  expect(operator.map(({ version, reason, otherwise }) => [version, reason, otherwise])).toEqual(
    clusterNeeds.map(({ minor, feature, otherwise, isEssential }) => [
      `1.${minor}`,
      feature,
      `the operator ${isEssential ? 'does not start' : 'warns at its start'}: ${otherwise}`,
    ]),
  )
})
