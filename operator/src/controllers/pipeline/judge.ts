// Results that depend on objects other than the Pipeline: which Agents run it, and whether it fits into its shared quotas.

import { type Agent, refusalOf, remedyOf, selectsPipeline, takes } from '../../api/agent.ts'
import { keyOf } from '../../api/object.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { Artifact } from '../../compile/artifact.ts'
import type { CompileResult, Verdict } from '../../compile/job.ts'
import type { OperatorContext } from '../../context.ts'
import type { Cache } from '../../kube/cache.ts'
import type { Author } from '../../policy/authors.ts'
import type { Gatherer } from '../../policy/gather.ts'
import { type Claim, claimOf, diskBudgetProblem, namespaceQuotaProblem } from '../../policy/quota.ts'
import type { Artifacts } from '../artifacts.ts'

export interface Verdicts {
  readonly accepted: Verdict
  readonly resolved: Verdict
}

export interface JudgeOptions {
  readonly settings: OperatorContext['settings']
  readonly gathered: Gatherer
  readonly agents: Cache<Agent>
  /** Those that run. */
  readonly artifacts: Artifacts
  /** The last compiled artifact of a Pipeline, by its key, if it may run. */
  readonly newest: (key: string) => Artifact | undefined
}

export class PipelineJudge {
  readonly #settings: OperatorContext['settings']
  readonly #gathered: Gatherer
  readonly #agents: Cache<Agent>
  readonly #artifacts: Artifacts
  readonly #newest: (key: string) => Artifact | undefined

  constructor({ settings, gathered, agents, artifacts, newest }: JudgeOptions) {
    this.#settings = settings
    this.#gathered = gathered
    this.#agents = agents
    this.#artifacts = artifacts
    this.#newest = newest
  }

  /** Adds to the results of the compile step which Agents run the Pipeline, and whether it fits into quotas. */
  verdicts(pipeline: Pipeline, result: CompileResult, author: Author | undefined): Verdicts {
    const { resolved } = result
    if (result.accepted.status !== 'True' || result.artifact === undefined)
      return { accepted: result.accepted, resolved }
    if (author?.problem !== undefined)
      return { accepted: { status: 'False', reason: 'AuthorNotAllowed', message: author.problem }, resolved }
    const quota = this.#quotaProblem(pipeline, result.artifact)
    if (quota !== undefined) return { accepted: { status: 'False', reason: 'QuotaExceeded', message: quota }, resolved }
    if (this.#agentsFor(result.artifact).length === 0) {
      const { mode } = result.artifact
      const refused = this.#refusedBy(result.artifact)
      const message = `No Agent of mode ${mode} selects it${refused === undefined ? '' : `. ${refused}`}`
      return { accepted: { status: 'False', reason: 'NoMatchingAgent', message }, resolved }
    }
    const [warning] = result.warnings
    return { accepted: { ...result.accepted, message: warning === undefined ? '' : `Warning: ${warning}` }, resolved }
  }

  #quotaProblem(pipeline: Pipeline, artifact: Artifact): string | undefined {
    const claim = this.claimOf(pipeline)
    const problem = this.#namespaceProblem(claim)
    if (problem !== undefined || artifact.diskBufferBytes === 0) return problem
    for (const agent of this.#agentsFor(artifact)) {
      const peers = this.withDiskBuffers()
        .filter((each) => this.#artifactsOf(each).some((one) => one !== undefined && this.#selects(agent, one)))
        .map((each) => {
          const its = this.claimOf(each)
          return this.#namespaceProblem(its) === undefined ? its : { ...its, wanted: undefined }
        })
      const found = diskBudgetProblem(claim, peers, agent)
      if (found !== undefined) return found
    }
    return undefined
  }

  #namespaceProblem(claim: Claim): string | undefined {
    const { namespace } = claim.pipeline.metadata
    const policy = namespace === undefined ? undefined : this.#gathered.policies.of(namespace)
    const quota = policy?.spec.quota
    if (namespace === undefined || quota === undefined) return undefined
    const peers = this.#gathered.pipelines.get('Pipeline')?.find('namespace', namespace) ?? []
    const problem = namespaceQuotaProblem(
      claim,
      peers.map((peer) => this.claimOf(peer)),
      quota,
    )
    return problem && `${problem} (TenantPolicy "${policy?.metadata.name}"; the youngest Pipeline is excluded)`
  }

  /**
   * The quota usage of a Pipeline: that of its newest version if only quotas reject it, and that of the running version.
   */
  claimOf(pipeline: Pipeline): Claim {
    return claimOf(pipeline, ...this.#artifactsOf(pipeline))
  }

  #artifactsOf(pipeline: Pipeline): [Artifact | undefined, Artifact | undefined] {
    const key = `${pipeline.kind} ${keyOf(pipeline)}`
    const newest = this.#newest(key)
    const running = this.#artifacts.get(idOf(pipeline.kind, keyOf(pipeline)))
    return [newest, running?.uid === pipeline.metadata.uid ? running : undefined]
  }

  withDiskBuffers(): Pipeline[] {
    return [...this.#gathered.pipelines.values()]
      .flatMap((cache) => [...cache.values()])
      .filter((each) => this.#artifactsOf(each).some((artifact) => (artifact?.diskBufferBytes ?? 0) > 0))
  }

  #agentsFor(artifact: Artifact): Agent[] {
    return [...this.#agents.values()].filter((agent) => this.#selects(agent, artifact))
  }

  #selects(agent: Agent, artifact: Artifact): boolean {
    if (agent.metadata.deletionTimestamp !== undefined) return false
    return takes(agent, artifact, this.#labelsOfHome(artifact), this.#settings)
  }

  #labelsOfHome({ namespace }: Artifact): Readonly<Record<string, string>> | undefined {
    return namespace === undefined ? undefined : this.#gathered.namespaces.get(undefined, namespace)?.metadata.labels
  }

  /** Why an Agent that selects a Pipeline does not run it, and how to change that. */
  #refusedBy(artifact: Artifact): string | undefined {
    const settings = this.#settings
    for (const agent of this.#agents.values()) {
      // Other namespaces must not learn the selections of a tenant's Agent.
      if (agent.metadata.deletionTimestamp !== undefined || agent.metadata.namespace !== artifact.namespace) continue
      if (!selectsPipeline(agent, artifact, this.#labelsOfHome(artifact), settings)) continue
      const refusal = refusalOf(agent, artifact, settings)
      if (refusal !== undefined) return `Agent ${keyOf(agent)} may not run it: ${refusal}. ${remedyOf(artifact, agent)}`
    }
    return undefined
  }
}

/** Result of an artifact, by the kind and key of its Pipeline. */
export const idOf = (kind: string, key: string) => (kind === 'ClusterPipeline' ? `_cluster/${key}` : key)
