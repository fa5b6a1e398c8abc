// The findings that a reconcile would have if an object were applied now, for admission on every replica. It uses the same gatherer
// and compiler.

import { type Agent, excessOf, misplacementOf } from '../api/agent.ts'
import type { ResourceKind } from '../api/kinds.ts'
import { agentKind, clusterPipelineKind, pipelineKind, tenantPolicyKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { CompileProblem } from '../compile/compiled.ts'
import type { CompilePool } from '../compile/pool.ts'
import { resourceOf } from '../compile/resources.ts'
import { sharedProblems } from '../compile/shape.ts'
import { problemsIn, sharedPipeline } from '../compile/shared.ts'
import type { OperatorContext } from '../context.ts'
import { workloadProblems } from '../workloads/render.ts'
import type { ApiAddresses } from './api-addresses.ts'
import { Gatherer } from './gather.ts'

/** A judge that works until the context's signal is aborted. */
export function judgeOf(
  context: OperatorContext,
  apiAddresses: ApiAddresses,
  pool: CompilePool,
): (kind: ResourceKind, object: KubeObject) => Promise<readonly CompileProblem[]> {
  const gathered = new Gatherer(context, apiAddresses)
  gathered.policies.start(() => {})
  if (context.settings.webhookAddress !== '') pool.warm()
  context.signal.addEventListener('abort', () => gathered[Symbol.dispose]())
  /**
   * Settings that the Agent requests but would not get. They only cause a warning, because the operator's flags may
   * change.
   */
  const excessProblems = (agent: Agent): CompileProblem[] => {
    const { namespace } = agent.metadata
    const others = [...gathered.namespaces.values()].filter(({ metadata }) => metadata.name !== namespace)
    const labels = others.map(({ metadata }) => metadata.labels)
    const excess = misplacementOf(agent, context.settings) ?? excessOf(agent, labels, context.settings)
    return excess === undefined
      ? []
      : [{ ...excess, severity: 'warning', reason: 'NamespaceNotAllowed', path: `spec.${excess.path}` }]
  }
  return async (kind, object) => {
    if (kind === pipelineKind || kind === clusterPipelineKind) {
      const job = await gathered.jobOf(
        object as Pipeline,
        AbortSignal.any([context.signal, AbortSignal.timeout(4_000)]),
        'connection',
      )
      return (await pool.compile(job)).problems
    }
    const problems = sharedProblems(resourceOf(object))
    if (kind === agentKind) {
      // An invalid shape is reported alone, because its members may have any type.
      const further = problems.length > 0 ? [] : workloadProblems(object as Agent)
      return [
        ...problems,
        ...(problems.length > 0 ? [] : excessProblems(object as Agent)),
        ...further.map((one): CompileProblem => ({ ...one, reason: 'InvalidConfig', path: `spec.${one.path}` })),
      ]
    }
    if (kind === tenantPolicyKind) return problems
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(4_000)])
    const job = await gathered.jobOf(sharedPipeline(resourceOf(object)), signal, 'connection')
    return problemsIn((await pool.compile({ ...job, resources: [object] })).problems)
  }
}
