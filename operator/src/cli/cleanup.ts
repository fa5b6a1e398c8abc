// `penstock cleanup`: stops everything that must stop before an installation is removed. It stops the operator first, so that the
// operator restores nothing. Then it deletes the Agents of the installation, the bindings that garbage collection does not reach, and
// finalizers that nothing else would remove. It leaves the users' Agents and all their other objects. If agents have cluster-wide
// rights, `helm uninstall` needs none of this, because garbage collection removes the operator's objects. The command is for other
// kinds of installations, and for bindings in namespaces.

import { type Flags, pause } from '@penstock/agent/program'
import { agentKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import { clusterRoleBindingType, deploymentType, podType, roleBindingType } from '../kube/resource-types.ts'
import { defaultsName, operatorName } from '../workloads/installation-names.ts'
import { labels } from '../workloads/names.ts'
import { clusterBindings } from '../workloads/render.ts'
import { durationMs, helpOf, parseFlags } from './arguments.ts'
import { connect, connectionOptions, namespaceOption } from './cluster.ts'

type Binding = KubeObject & { readonly subjects?: readonly { readonly namespace?: string; readonly name: string }[] }

export const options = {
  ...namespaceOption('of the installation'),
  namespaces: {
    type: 'string',
    value: 'A,B',
    help: 'Namespaces of the Agents, if the account may only read these (all).',
  },
  timeout: { type: 'string', default: '45s', value: 'TIME', help: 'How long to wait for the operator to stop (45s).' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock cleanup [FLAGS]

Prepares the removal of an installation: stops the operator, deletes the Agents that came with it, and removes finalizers.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values } = parseFlags(argv, options)
  const timeoutMs = durationMs(values.timeout)
  const { client, namespace = 'default' } = await connect(values)
  // Agents in the installation's own namespace always count.
  const within =
    values.namespaces === undefined ? undefined : [...new Set([namespace, ...values.namespaces.split(',')])]
  const everywhere = async (type: ResourceType, labelSelector?: string) => {
    const scopes = within ?? [undefined]
    return (await Promise.all(scopes.map((scope) => client.list(type, { namespace: scope, labelSelector })))).flat()
  }

  const deployment = await client.get(deploymentType, namespace, operatorName)
  if (deployment !== undefined) {
    await client.patch(deploymentType, namespace, operatorName, { spec: { replicas: 0 } })
    const labelSelector = `app.kubernetes.io/name=${operatorName},app.kubernetes.io/component=operator`
    const ended = await wait(timeoutMs, async () => {
      return (await client.list(podType, { namespace, labelSelector })).length === 0
    })
    if (!ended) console.error(`The operator did not stop within ${values.timeout}.`)
  }
  for (const { metadata } of await everywhere(agentKind)) {
    if ((metadata.finalizers ?? []).length === 0) continue
    const kept = (metadata.finalizers ?? []).filter((name) => !name.startsWith('penstock.dev/'))
    await client.patch(agentKind, metadata.namespace, metadata.name, { metadata: { finalizers: kept } })
    console.log(`Agent ${metadata.namespace}/${metadata.name} no longer waits for the operator.`)
  }
  for (const { metadata } of await everywhere(agentKind)) {
    if (metadata.ownerReferences?.some((owner) => owner.kind === 'ConfigMap' && owner.name === defaultsName) !== true)
      continue
    await client.delete(agentKind, metadata.namespace, metadata.name)
    console.log(`Agent ${metadata.namespace}/${metadata.name} is deleted with the installation.`)
  }
  const left = new Set((await everywhere(agentKind)).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))
  const ours = `${labels.managedBy}=penstock`
  if (within === undefined) {
    for (const name of clusterBindings) {
      const found = await client.get<Binding>(clusterRoleBindingType, undefined, name)
      if (found?.metadata.labels?.[labels.managedBy] !== 'penstock') continue
      // Remaining Agents keep their rights.
      const accounts = new Set([...left].map((agent) => agent.replace('/', '/penstock-')))
      if (found.subjects?.some((subject) => accounts.has(`${subject.namespace}/${subject.name}`)) === true) continue
      await client.delete(clusterRoleBindingType, undefined, name, { uid: found.metadata.uid ?? '' })
    }
    return 0
  }
  for (const { metadata } of await everywhere(roleBindingType, `${ours},${labels.agentNamespace}`)) {
    const agent = `${metadata.labels?.[labels.agentNamespace]}/${metadata.labels?.[labels.agent]}`
    if (!left.has(agent)) await client.delete(roleBindingType, metadata.namespace, metadata.name)
  }
  return 0
}

async function wait(limitMs: number, done: () => Promise<boolean>): Promise<boolean> {
  const limit = AbortSignal.timeout(limitMs)
  while (!limit.aborted) {
    if (await done()) return true
    await pause(500, limit)
  }
  return false
}
