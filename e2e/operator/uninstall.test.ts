// `helm uninstall` without pullable images and without an operator: it ends immediately, and Kubernetes removes the rest. There are no nodes, so
// no pod ever starts; the operator that created the objects runs outside of the cluster.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { patience, within } from '../command.ts'
import { chart, helm, missingForHelm, prepareHelm } from '../helm.ts'
import { eventually, OperatorProcess, system } from './process.ts'

const missing = missingForCluster(0) ?? missingForHelm()

describe.skipIf(missing !== undefined)(`uninstalling${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster

  const helmHere = (...args: string[]) =>
    helm(args, { env: { KUBECONFIG: cluster.kubeconfig }, timeoutMs: patience * 120_000 })
  /** Names of Penstock's objects by kind. */
  const left = async () => {
    const kinds = 'plagent,daemonset,serviceaccount,clusterrole,clusterrolebinding,deployment,job,pod'
    const names = await cluster.kubectl(['get', kinds, '-A', '-o', 'name', '--ignore-not-found'])
    return names.split('\n').filter((name) => /penstock|agent\.penstock\.dev/.test(name))
  }

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepareHelm()
  }, 300_000)
  afterAll(() => resources.disposeAsync())

  test('ends in seconds, and leaves no objects and permissions of Agents', { timeout: 300_000 }, async () => {
    await helmHere('install', 'penstock', chart(), '-n', system, '--create-namespace', ...within(60))
    const operator = resources.use(OperatorProcess.start({ kubeconfig: cluster.kubeconfig }))
    await operator.leading()
    await eventually(async () =>
      expect(await left()).toEqual(
        expect.arrayContaining([
          'agent.penstock.dev/node',
          'daemonset.apps/penstock-node',
          'clusterrolebinding.rbac.authorization.k8s.io/penstock-agent-node',
        ]),
      ),
    )
    await operator.kill()

    const start = performance.now()
    await helmHere('uninstall', 'penstock', '-n', system, '--wait', ...within(45))
    console.log(`helm uninstall took ${Math.round((performance.now() - start) / 100) / 10} s.`)
    await eventually(async () => expect(await left()).toEqual([]))
    expect(await helmHere('list', '-n', system, '--all', '-q')).toBe('')
  })
})
