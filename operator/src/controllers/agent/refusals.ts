// Why the operator does not run an Agent: mistakes in its spec, and writes that the API server rejected.

import { type Agent, misplacementOf } from '../../api/agent.ts'
import type { Finding } from '../../api/conditions.ts'
import { keyOf } from '../../api/object.ts'
import { shapeVerdict } from '../../compile/job.ts'
import type { OperatorContext } from '../../context.ts'
import { isNormal, KubeError } from '../../kube/client.ts'
import { dataFolder, ForeignObjectError, leaseName, leaseNames, sharesDataFolder } from '../../workloads/names.ts'
import { workloadProblems } from '../../workloads/render.ts'
import { allowRecreate, recreation } from '../volumes.ts'

type LiveWorkload = Parameters<typeof recreation>[1]

/** If a right to write is missing, the operator retries an Agent after this time. */
export const deniedMs = 15_000

/** An Agent may be older than the schema of its kind. It keeps its spec, and the condition reports invalid fields. */
export function acceptedOf(agent: Agent): Finding {
  return { type: 'Accepted', ...shapeVerdict(agent) }
}

/** Why an Agent is not accepted. @param agents all Agents @param live its workload in the cluster */
export function refusalOfAgent(
  agent: Agent,
  agents: () => Iterable<Agent>,
  settings: OperatorContext['settings'],
  live: () => LiveWorkload,
): Finding | undefined {
  const { namespace = '' } = agent.metadata
  const { mode } = agent.spec
  const misplaced = misplacementOf(agent, settings)
  if (misplaced !== undefined) {
    const message = `${misplaced.message}. ${misplaced.help}`
    return { type: 'Accepted', status: 'False', reason: 'NamespaceNotAllowed', message }
  }
  if (mode === 'Aggregator' && leaseName(agent, agents()) === undefined) {
    return {
      type: 'Accepted',
      status: 'False',
      reason: 'InvalidConfig',
      message: `A namespace may have ${leaseNames.length} Agents of mode Aggregator; "${namespace}" has more. Create it in another namespace.`,
    }
  }
  const sharing = sharesDataFolder(agent, agents())
  if (sharing !== undefined) {
    const message = `Agent ${keyOf(sharing)} uses the same folder on the nodes, ${dataFolder(agent)}: set another spec.node.dataDir.hostPath, or choose another name.`
    return { type: 'Accepted', status: 'False', reason: 'NameConflict', message }
  }
  const [problem] = workloadProblems(agent, settings)
  if (problem === undefined) return recreationRefusal(agent, live())
  return {
    type: 'Accepted',
    status: 'False',
    reason: 'InvalidConfig',
    message: `${problem.path.startsWith('metadata.') ? '' : 'spec.'}${problem.path}: ${problem.message}`,
  }
}

/**
 * Converts a rejected write to conditions. A missing right only appears when a write is denied; undefined if the error is not a
 * rejection. @param lacksRights whether the operator lacks a right in the Agent's namespace. The response to the write does not
 * show this, because rejections by quotas and admission have the same status and reason.
 */
export function refusedWrite(
  agent: Agent,
  error: unknown,
  settings: OperatorContext['settings'],
  lacksRights: boolean,
): { findings: readonly Finding[]; waitMs?: number } | undefined {
  if (error instanceof ForeignObjectError) {
    const finding: Finding = { type: 'Accepted', status: 'False', reason: 'NameConflict', message: error.message }
    return { findings: [finding], waitMs: deniedMs }
  }
  if (!(error instanceof KubeError) || isNormal(error) || ![400, 403, 422].includes(error.status)) return undefined
  const { namespace } = agent.metadata
  if (error.status === 403 && lacksRights) {
    const { namespace: own, rolesOnly } = settings
    const right = rolesOnly
      ? 'The chart value `tenantAgents.enabled` grants it.'
      : `The chart value \`tenantAgents.enabled\` grants it everywhere; to grant it only for this namespace: kubectl create rolebinding penstock-operator -n ${namespace} --clusterrole=penstock-operator-namespace --serviceaccount=${own}:penstock-operator`
    const message = `The operator may not write what agents need in namespace "${namespace}" (${error.message}). ${right}`
    return {
      findings: [{ type: 'Accepted', status: 'False', reason: 'NamespaceNotAllowed', message }],
      waitMs: deniedMs,
    }
  }
  const message = `The API server rejects an object that the Agent needs: ${error.message}`
  return {
    findings: [acceptedOf(agent), { type: 'Available', status: 'False', reason: 'PodsNotReady', message }],
  }
}

/** A change that would delete and recreate the workload must be requested explicitly. */
function recreationRefusal(agent: Agent, live: LiveWorkload): Finding | undefined {
  const change = recreation(agent, live)
  if (change === undefined || agent.metadata.annotations?.[allowRecreate] === 'true') return undefined
  return {
    type: 'Accepted',
    status: 'False',
    reason: 'InvalidConfig',
    message: `spec.${change.path}: ${change.what}. This recreates the workload: annotate the Agent with ${allowRecreate}: "true" to allow it, or undo the change.`,
  }
}
