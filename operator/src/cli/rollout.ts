// `penstock rollout status|pause|resume AGENT` and `penstock rollout retry PIPELINE`: how a revision spreads over the agents.

import { parseArgs } from 'node:util'
import { PenstockError } from '@penstock/agent/errors'
import { closest } from '@penstock/agent/schema/problems'
import type { Agent } from '../api/agent.ts'
import { conditionOf } from '../api/conditions.ts'
import { keyOf, objectKey } from '../api/object.ts'
import { type ClusterAccess, clusterOptions, connect, typeOf } from './cluster.ts'

const actions = ['status', 'pause', 'resume', 'retry'] as const
type Action = (typeof actions)[number]

/** Any new value makes the operator try again what it has taken back. */
const retryAnnotation = 'penstock.dev/retry'

export async function run(argv: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: { ...clusterOptions, cluster: { type: 'boolean', default: false } },
  })
  const [action, name, ...more] = positionals
  if (!isAction(action) || name === undefined || more.length > 0) {
    const meant = action === undefined || isAction(action) ? undefined : closest(action, actions)
    throw new PenstockError(
      'PEN_USAGE',
      `Say what to do with what: penstock rollout status|pause|resume AGENT, or penstock rollout retry PIPELINE [--cluster].${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}`,
    )
  }
  const access = await connect(values)
  if (action === 'retry') return retry(access, name, values.cluster)
  return action === 'status' ? status(access, name) : pause(access, name, action === 'pause')
}

function isAction(text: string | undefined): text is Action {
  return (actions as readonly (string | undefined)[]).includes(text)
}

async function agentOf({ client, namespace = 'default' }: ClusterAccess, name: string): Promise<Agent | undefined> {
  const agent = await client.get<Agent>(typeOf('Agent'), namespace, name)
  if (agent === undefined) console.error(`There is no Agent ${name} in namespace ${namespace}.`)
  return agent
}

async function status(access: ClusterAccess, name: string): Promise<number> {
  const agent = await agentOf(access, name)
  if (agent === undefined) return 1
  const { revision = 'none', stableRevision = 'none', nodes, history } = agent.status ?? {}
  const paused = agent.spec.rollout?.paused === true ? ' (paused)' : ''
  console.log(`Agent ${keyOf(agent)}${paused}`)
  console.log(
    revision === stableRevision
      ? `  revision ${revision} is rolled out`
      : `  revision ${revision} is being rolled out; ${stableRevision} is stable`,
  )
  if (nodes !== undefined) {
    const { desired = 0, current = 0, ready = 0, failed = 0, stale = 0 } = nodes
    console.log(`  agents: ${current} of ${desired} up to date, ${ready} ready, ${failed} failed, ${stale} silent`)
  }
  for (const { revision: old, at = '', result = '' } of history ?? []) console.log(`  ${at} ${old} ${result}`)
  const programmed = conditionOf(agent.status?.conditions, 'Programmed')
  if (programmed !== undefined && programmed.status !== 'True') {
    console.log(`  ${programmed.reason}: ${programmed.message}`)
  }
  return programmed?.status === 'True' ? 0 : 1
}

async function pause(access: ClusterAccess, name: string, paused: boolean): Promise<number> {
  const agent = await agentOf(access, name)
  if (agent === undefined) return 1
  const key = keyOf(agent)
  if ((agent.spec.rollout?.paused === true) === paused) {
    console.log(`The rollout of Agent ${key} is ${paused ? 'paused' : 'not paused'} already.`)
    return 0
  }
  await access.client.patch(typeOf('Agent'), agent.metadata.namespace, name, { spec: { rollout: { paused } } })
  console.log(paused ? `The rollout of Agent ${key} stays where it is.` : `The rollout of Agent ${key} goes on.`)
  return 0
}

async function retry(
  { client, namespace = 'default' }: ClusterAccess,
  name: string,
  cluster: boolean,
): Promise<number> {
  const kind = cluster ? 'ClusterPipeline' : 'Pipeline'
  const where = cluster ? undefined : namespace
  if ((await client.get(typeOf(kind), where, name)) === undefined) {
    console.error(`There is no ${kind} ${objectKey(where, name)}.`)
    return 1
  }
  await client.patch(typeOf(kind), where, name, {
    metadata: { annotations: { [retryAnnotation]: new Date().toISOString() } },
  })
  console.log(`${kind} ${objectKey(where, name)} is tried again.`)
  return 0
}
