// `penstock cleanup`: what has to end before an installation is removed. The operator ends first, so that it brings nothing back;
// then the Agents that came with it, the bindings that no garbage collector knows, and finalizers that nobody would look after.
// Agents that users have made stay, as does everything else of theirs.

import { parseArgs } from 'node:util'
import { agentKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import { pause } from '../kube/backoff.ts'
import type { KubeClient } from '../kube/client.ts'
import { clusterRoleBindingType, deploymentType, podType } from '../kube/types.ts'
import { defaultsName, operatorName } from '../workloads/installation.ts'
import { labels } from '../workloads/names.ts'
import { durationMs } from './arguments.ts'
import { clusterOptions, connect } from './cluster.ts'

export const usage = `Usage: penstock cleanup [FLAGS]

Ends what must end before an installation is removed: the operator, the Agents that came with it, finalizers.

  -n, --namespace NS         of the installation; that of the context
  --timeout TIME             how long to wait for the operator (45s)
  --kubeconfig FILE, --context NAME   the cluster, as for kubectl
`

export async function run(argv: string[]): Promise<number> {
  const { values } = parseArgs({
    args: argv,
    options: { ...clusterOptions, timeout: { type: 'string', default: '45s' } },
  })
  const { client, namespace = 'default' } = await connect(values)

  const deployment = await client.get(deploymentType, namespace, operatorName)
  if (deployment !== undefined) {
    await client.patch(deploymentType, namespace, operatorName, { spec: { replicas: 0 } })
    const labelSelector = `app.kubernetes.io/name=${operatorName},app.kubernetes.io/component=operator`
    const ended = await wait(durationMs(values.timeout), async () => {
      return (await client.list(podType, { namespace, labelSelector })).length === 0
    })
    if (!ended) console.error(`The operator did not end in ${values.timeout}.`)
  }
  for (const { metadata } of await agents(client)) {
    if ((metadata.finalizers ?? []).length === 0) continue
    const kept = (metadata.finalizers ?? []).filter((name) => !name.startsWith('penstock.dev/'))
    await client.patch(agentKind, metadata.namespace, metadata.name, { metadata: { finalizers: kept } })
    console.log(`Agent ${metadata.namespace}/${metadata.name} waits for the operator no more.`)
  }
  for (const { metadata } of await agents(client)) {
    if (metadata.ownerReferences?.some((owner) => owner.kind === 'ConfigMap' && owner.name === defaultsName) !== true)
      continue
    await client.delete(agentKind, metadata.namespace, metadata.name)
    console.log(`Agent ${metadata.namespace}/${metadata.name} ends with the installation.`)
  }
  const left = new Set((await agents(client)).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))
  for (const { metadata } of await client.list<KubeObject>(clusterRoleBindingType, {
    labelSelector: labels.agentNamespace,
  })) {
    const agent = `${metadata.labels?.[labels.agentNamespace]}/${metadata.labels?.[labels.agent]}`
    if (!left.has(agent)) await client.delete(clusterRoleBindingType, undefined, metadata.name)
  }
  return 0
}

const agents = (client: KubeClient): Promise<readonly KubeObject[]> => client.list<KubeObject>(agentKind)

async function wait(limitMs: number, done: () => Promise<boolean>): Promise<boolean> {
  const limit = AbortSignal.timeout(limitMs)
  while (!limit.aborted) {
    if (await done()) return true
    await pause(500, limit)
  }
  return false
}
