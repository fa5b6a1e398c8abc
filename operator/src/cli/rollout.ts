// `penstock rollout status|pause|resume|undo AGENT` and `penstock rollout retry PIPELINE`: show and control how agents receive a
// revision.

import { closest, PenstockError } from '@penstock/agent/errors'
import { type Field, outputFormats, rowText } from '@penstock/agent/output'
import type { Flags } from '@penstock/agent/program'
import type { Agent } from '../api/agent.ts'
import { conditionOf } from '../api/conditions.ts'
import { keyOf, objectKey } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { isGood, undoAnnotation } from '../fleet/undo.ts'
import { helpOf, parseFlags } from './arguments.ts'
import { type ClusterAccess, connect, connectionOptions, namespaceOption, typeOf } from './cluster.ts'

const actions = ['status', 'pause', 'resume', 'undo', 'retry'] as const
type Action = (typeof actions)[number]

export const words: readonly string[] = actions

/** Any new value makes the operator retry a rolled-back version. */
const retryAnnotation = 'penstock.dev/retry'

export const options = {
  output: {
    type: 'string',
    short: 'o',
    oneOf: outputFormats,
    value: 'FORMAT',
    help: 'Format of `status`: text, table, json, yaml (text).',
  },
  'to-revision': {
    type: 'string',
    value: 'R',
    help: 'For `undo`: an earlier revision, or the beginning of its name (the previous one). `status` lists them. The current one is rejected with exit code 1.',
  },
  ...namespaceOption('of the Agent or Pipeline'),
  cluster: { type: 'boolean', help: 'For `retry`: PIPELINE is a ClusterPipeline.' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock rollout ACTION NAME [FLAGS]

Shows and controls how a new configuration reaches the agents.

  status AGENT      show which revision runs where, and the previous revisions
  pause AGENT       pause the rollout
  resume AGENT      continue the rollout, or end an \`undo\`
  undo AGENT        put all agents back to an earlier revision at once, until a Pipeline changes or \`resume\`
  retry PIPELINE    try a Pipeline again that was rolled back

${helpOf(options)}
`

function actionHelp(found: string | undefined): string {
  if (found === undefined)
    return 'Name the action and its object: penstock rollout status|pause|resume|undo AGENT, or penstock rollout retry PIPELINE [--cluster].'
  const meant = closest(found, actions)
  const hint = meant === undefined ? `The actions are ${actions.join(', ')}.` : `Did you mean \`${meant}\`?`
  return `There is no action \`${found}\`. ${hint}`
}

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [action, name, ...more] = words
  if (!isAction(action)) throw new PenstockError('PEN_USAGE', actionHelp(action))
  if (name === undefined) {
    const object = action === 'retry' ? 'PIPELINE [--cluster]' : 'AGENT'
    throw new PenstockError('PEN_USAGE', `Name the object: penstock rollout ${action} ${object}.`)
  }
  if (more.length > 0) throw new PenstockError('PEN_USAGE', `Unexpected argument \`${more[0]}\`.`)
  if (values['to-revision'] !== undefined && action !== 'undo')
    throw new PenstockError('PEN_USAGE', '`--to-revision` is for `penstock rollout undo`.')
  if (values.output !== undefined && action !== 'status')
    throw new PenstockError('PEN_USAGE', '`--output` is for `penstock rollout status`.')
  const { output = 'text' } = values
  const access = await connect(values)
  switch (action) {
    case 'retry':
      return retry(access, name, values.cluster)
    case 'status':
      return status(access, name, output)
    case 'undo':
      return undo(access, name, values['to-revision'])
    default:
      return pause(access, name, action === 'pause')
  }
}

function isAction(text: string | undefined): text is Action {
  return (actions as readonly (string | undefined)[]).includes(text)
}

async function agentOf({ client, namespace = 'default' }: ClusterAccess, name: string): Promise<Agent | undefined> {
  const agent = await client.get<Agent>(typeOf('Agent'), namespace, name)
  if (agent === undefined) console.error(`There is no Agent ${name} in namespace ${namespace}.`)
  return agent
}

const programmedOf = ({ status }: Agent) => conditionOf(status?.conditions, 'Programmed')

const fields: readonly Field<Agent>[] = [
  { name: 'namespace', column: 'NAMESPACE', value: ({ metadata }) => metadata.namespace },
  { name: 'name', column: 'AGENT', value: ({ metadata }) => metadata.name },
  { name: 'revision', column: 'REVISION', value: ({ status }) => status?.revision },
  { name: 'stableRevision', column: 'STABLE', value: ({ status }) => status?.stableRevision },
  { name: 'paused', column: 'PAUSED', value: ({ spec }) => spec.rollout?.paused === true },
  { name: 'desired', column: 'DESIRED', value: ({ status }) => status?.nodes?.desired },
  { name: 'current', column: 'UP TO DATE', value: ({ status }) => status?.nodes?.current },
  { name: 'ready', column: 'READY', value: ({ status }) => status?.nodes?.ready },
  { name: 'failed', column: 'FAILED', value: ({ status }) => status?.nodes?.failed },
  { name: 'silent', column: 'SILENT', value: ({ status }) => status?.nodes?.stale },
  { name: 'programmed', value: (agent) => programmedOf(agent)?.status },
  { name: 'reason', column: 'REASON', value: (agent) => programmedOf(agent)?.reason },
  { name: 'message', value: (agent) => programmedOf(agent)?.message },
  { name: 'history', value: ({ status }) => status?.history ?? [] },
]

async function status(access: ClusterAccess, name: string, output: (typeof outputFormats)[number]): Promise<number> {
  const agent = await agentOf(access, name)
  if (agent === undefined) return 1
  if (output === 'text') console.log(rolloutText(agent))
  else process.stdout.write(rowText(fields, agent, output))
  return programmedOf(agent)?.status === 'True' ? 0 : 1
}

/** The rollout of an Agent in a few lines. */
function rolloutText(agent: Agent): string {
  const { revision = 'none', stableRevision = 'none', nodes, history } = agent.status ?? {}
  const paused = agent.spec.rollout?.paused === true ? ' (paused)' : ''
  const lines = [
    `Agent ${keyOf(agent)}${paused}`,
    revision === stableRevision
      ? `  revision ${revision} is rolled out`
      : `  revision ${revision} is being rolled out; ${stableRevision} is stable`,
  ]
  if (nodes !== undefined) {
    const { desired = 0, current = 0, ready = 0, failed = 0, stale = 0 } = nodes
    lines.push(`  agents: ${current} of ${desired} up to date, ${ready} ready, ${failed} failed, ${stale} silent`)
  }
  for (const { revision: old, at = '', result = '' } of history ?? []) lines.push(`  ${at} ${old} ${result}`)
  const programmed = programmedOf(agent)
  if (programmed !== undefined && programmed.status !== 'True') {
    lines.push(`  ${programmed.reason}: ${programmed.message}`)
  }
  return lines.join('\n')
}

async function pause(access: ClusterAccess, name: string, paused: boolean): Promise<number> {
  const agent = await agentOf(access, name)
  if (agent === undefined) return 1
  const key = keyOf(agent)
  const isUndone = agent.metadata.annotations?.[undoAnnotation] !== undefined
  const isPaused = agent.spec.rollout?.paused === true
  if (isPaused === paused && (paused || !isUndone)) {
    console.log(`The rollout of Agent ${key} is ${paused ? 'paused' : 'not paused'} already.`)
    return 0
  }
  await access.client.patch(typeOf('Agent'), agent.metadata.namespace, name, {
    ...(isPaused === paused ? {} : { spec: { rollout: { paused } } }),
    ...(isUndone && !paused ? { metadata: { annotations: { [undoAnnotation]: null } } } : {}),
  })
  console.log(paused ? `The rollout of Agent ${key} is paused.` : `The rollout of Agent ${key} continues.`)
  return 0
}

async function undo(access: ClusterAccess, name: string, asked: string | undefined): Promise<number> {
  const agent = await agentOf(access, name)
  if (agent === undefined) return 1
  const key = keyOf(agent)
  const { revision: newest, history = [], conditions } = agent.status ?? {}
  const isUndone = conditionOf(conditions, 'Programmed')?.reason === 'Undone'
  // The revisions that ran on all agents, newest first.
  const earlier = [
    ...new Set(history.filter((one) => isGood({ result: one.result ?? '' })).map(({ revision }) => revision)),
  ]
  // During a rollout, the previous revision is the stable one.
  const others = earlier.filter((revision) => revision !== newest)
  const choice = others.length === 0 ? '' : ` There are: ${others.join(', ')}.`
  const isAsked = (each: string) => asked !== undefined && asked !== '' && each.startsWith(asked)
  if (newest !== undefined && isAsked(newest) && !others.some(isAsked)) {
    console.error(`Agent ${key} already runs revision ${newest}, so nothing was changed.${choice}`)
    return 1
  }
  if (others.length === 0) {
    console.error(`Agent ${key} has no earlier revision.`)
    return 1
  }
  if (asked === undefined && isUndone) {
    console.error(
      `Agent ${key} was already returned to revision ${newest}. Select another with --to-revision, or let the rollout continue: penstock rollout resume ${name}.${choice}`,
    )
    return 1
  }
  const revision = asked === undefined ? others[0] : others.find(isAsked)
  if (revision === undefined) {
    console.error(`Agent ${key} has no earlier revision ${asked}.${choice}`)
    return 1
  }
  await access.client.patch(typeOf('Agent'), agent.metadata.namespace, name, {
    metadata: { annotations: { [undoAnnotation]: `${revision} ${new Date().toISOString()}` } },
  })
  console.log(
    `Agent ${key} returns to revision ${revision}. It stays there until its Pipelines change, or until: penstock rollout resume ${name} -n ${agent.metadata.namespace}`,
  )
  return 0
}

async function retry(
  { client, namespace = 'default' }: ClusterAccess,
  name: string,
  cluster: boolean,
): Promise<number> {
  const kind = cluster ? 'ClusterPipeline' : 'Pipeline'
  const where = cluster ? undefined : namespace
  const found = await client.get<Pipeline>(typeOf(kind), where, name)
  if (found === undefined) {
    console.error(`There is no ${kind} ${objectKey(where, name)}.`)
    return 1
  }
  await client.patch(typeOf(kind), where, name, {
    metadata: { annotations: { [retryAnnotation]: new Date().toISOString() } },
  })
  const isRolledBack = conditionOf(found.status?.conditions, 'Programmed')?.reason === 'RolledBack'
  console.log(
    `${kind} ${objectKey(where, name)} ${isRolledBack ? 'is retried.' : 'is not rolled back, so there is nothing to retry.'}`,
  )
  return 0
}
