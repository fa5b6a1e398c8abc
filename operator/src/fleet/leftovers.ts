// Determines whether data on an agent's disk for Pipelines that it does not run is still needed. The answer is yes unless all facts are
// known and say no: neither a revision that its agents may run, nor the desired one, nor the API server contains the Pipeline.

import { type Leftover, leftoverKey, pipelineOf, type Revision } from '@penstock/agent/bundle'
import { isTenants } from '../api/agent.ts'
import { clusterPipelineKind, pipelineKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { OperatorSettings } from '../context.ts'
import type { KubeClient } from '../kube/client.ts'
import { monotonicNow } from '../kube/clock.ts'
import { Allowances } from '../kube/token-gate.ts'
import type { Fragment } from '../render/fragment.ts'
import type { FleetState } from './state.ts'

const maxAsked = 50
/** Many agents ask about the same pipeline repeatedly. */
const keepMs = 60_000
/** An agent waits for the answer to its report: what is unknown then counts as needed, until the agent asks again. */
const maxWaitMs = 2_000
const maxKept = 10_000
/** Requests to the API server for it, from agents of any kind: tenants control the pods of sidecars, and controllers need the same requests. */
const requests = { perSecond: 5, burst: 100 }

/** The uid of an existing object; `absent`; or `unknown` if the API server does not answer. */
type Existence = { readonly uid: string } | 'absent' | 'unknown'

export class LeftoverAnswers {
  readonly #kube: Pick<KubeClient, 'get'>
  readonly #fleet: FleetState
  readonly #settings: Pick<OperatorSettings, 'namespace' | 'agentNamespaces'>
  readonly #allowances = new Allowances(requests)
  readonly #asked = new Map<string, { readonly until: number; readonly existence: Promise<Existence> }>()

  constructor(
    kube: Pick<KubeClient, 'get'>,
    fleet: FleetState,
    settings: Pick<OperatorSettings, 'namespace' | 'agentNamespaces'>,
  ) {
    this.#kube = kube
    this.#fleet = fleet
    this.#settings = settings
  }

  /** Keys of the data that is no longer needed. */
  async gone(agent: string, reported: unknown): Promise<string[]> {
    const leftovers = Array.isArray(reported) ? reported.slice(0, maxAsked).filter(isLeftover) : []
    if (leftovers.length === 0) return []
    const late = Promise.withResolvers<false>()
    const timer = setTimeout(() => late.resolve(false), maxWaitMs)
    const answers = leftovers.map((leftover) => Promise.race([this.#isGone(agent, leftover), late.promise]))
    const isGone = await Promise.all(answers).finally(() => clearTimeout(timer))
    return leftovers.filter((_, index) => isGone[index] === true).map(leftoverKey)
  }

  async #isGone(agent: string, leftover: Leftover): Promise<boolean> {
    const revisions = this.#revisions(agent)
    if (revisions === undefined || !this.#mayAsk(agent, leftover)) return false
    if (leftover.kind === 'cursors') {
      const { id: uid, pipeline } = leftover
      if (revisions.some((fragments) => [...fragments.values()].some((fragment) => fragment.uid === uid))) return false
      const existence = await this.#existence(pipeline)
      return existence !== 'unknown' && (existence === 'absent' || existence.uid !== uid)
    }
    const pipeline = pipelineOf(leftover.id)
    const found = revisions.map((fragments) => fragments.get(pipeline))
    if (found.some((fragment) => fragment?.sinks.some(([id]) => id === leftover.id))) return false
    // The pipeline runs everywhere without this sink.
    if (found.every((fragment) => fragment !== undefined)) return true
    if (found.some((fragment) => fragment !== undefined)) return false
    // It may be suspended, not be accepted, or now belong to another Agent.
    return (await this.#existence(pipeline)) === 'absent'
  }

  /** The answer shows whether an object exists: a tenant may only know this of its own namespace. */
  #mayAsk(agent: string, leftover: Leftover): boolean {
    const [namespace = '', name = ''] = agent.split('/')
    if (!isTenants({ metadata: { namespace, name } }, this.#settings)) return true
    const pipeline = leftover.kind === 'cursors' ? leftover.pipeline : leftover.id
    return pipeline.split('/')[0] === namespace
  }

  /** Revisions that agents may or should run; undefined if unknown. */
  #revisions(agent: string): readonly ReadonlyMap<string, Fragment>[] | undefined {
    const delivered = this.#fleet.get(agent)
    if (delivered?.stable === undefined) return undefined
    const { stable, candidate, later = [], revisions, selected } = delivered
    const known = [stable, candidate, ...later]
      .filter((revision): revision is Revision => revision !== undefined)
      .map(({ rev }) => revisions.get(rev)?.fragments)
    return known.every((fragments) => fragments !== undefined) ? [...known, selected] : undefined
  }

  async #existence(pipeline: string): Promise<Existence> {
    const now = monotonicNow()
    const known = this.#asked.get(pipeline)
    if (known !== undefined && known.until > now) return known.existence
    if (!this.#allowances.take('', now)) return 'unknown'
    if (this.#asked.size >= maxKept) this.#asked.clear()
    const existence = this.#ask(pipeline)
    this.#asked.set(pipeline, { until: now + keepMs, existence })
    return existence
  }

  async #ask(pipeline: string): Promise<Existence> {
    const [namespace, name] = pipeline.split('/') as [string, string]
    try {
      const object =
        namespace === '_cluster'
          ? await this.#kube.get<KubeObject>(clusterPipelineKind, undefined, name)
          : await this.#kube.get<KubeObject>(pipelineKind, namespace, name)
      return object === undefined ? 'absent' : { uid: object.metadata.uid ?? '' }
    } catch {
      return 'unknown' // forbidden, or the API server is unavailable: checked again in a minute
    }
  }
}

const isName = (text: string) => /^[a-z0-9_][a-z0-9_.-]*$/.test(text)

function isLeftover(reported: unknown): reported is Leftover {
  if (typeof reported !== 'object' || reported === null) return false
  const { kind, id, pipeline } = reported as Readonly<Record<string, unknown>>
  const parts = (text: unknown, count: number) =>
    typeof text === 'string' && text.length < 1024 && text.split('/').length === count && text.split('/').every(isName)
  return kind === 'buffer' ? parts(id, 3) : kind === 'cursors' && parts(id, 1) && parts(pipeline, 2)
}
