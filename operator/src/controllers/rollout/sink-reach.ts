// `Reachable` of Sinks, and of Pipelines for their own sinks, from the failures that pods report.

import { type Condition, conditionOf, type Finding, type Reason } from '../../api/conditions.ts'
import { clusterPipelineKind, clusterSinkKind, pipelineKind, type ResourceKind, sinkKind } from '../../api/kinds.ts'
import { keyOf, objectKey } from '../../api/object.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { SinkResource } from '../../api/sink.ts'
import { authoritiesIn } from '../../compile/egress-ports.ts'
import type { OperatorContext } from '../../context.ts'
import type { HeldTexts } from '../../fleet/held-texts.ts'
import { type DestinationRefusal, ownSinksFinding, type Reach, reachesOf } from '../../fleet/reach.ts'
import type { Report } from '../../fleet/state.ts'
import type { Cache } from '../../kube/cache.ts'

const maxDestinations = 3

/**
 * Whether the result of an earlier process stays until every pod has had time to report its next attempt: pods that report first, or that
 * reach a destination, show nothing about the others. A new problem is reported at once.
 */
function keeps(known: Pick<Condition, 'status' | 'reason'>, found: Finding): boolean {
  return found.status !== 'False' || (known.status === 'False' && known.reason === found.reason)
}

export class SinkReach {
  readonly #context: OperatorContext
  readonly #texts: HeldTexts
  /** The conditions of objects at the first look of this process. */
  readonly #inherited = new Map<string, string>()
  readonly #pipelines: Cache<Pipeline>
  readonly #clusterPipelines: Cache<Pipeline>
  readonly #sinks: readonly { readonly kind: ResourceKind; readonly cache: Cache }[]

  constructor(context: OperatorContext, texts: HeldTexts) {
    const { caches } = context
    this.#context = context
    this.#texts = texts
    this.#pipelines = caches.cache<Pipeline>(pipelineKind)
    this.#clusterPipelines = caches.cache<Pipeline>(clusterPipelineKind)
    this.#sinks = [
      { kind: sinkKind, cache: caches.cache(sinkKind) },
      { kind: clusterSinkKind, cache: caches.cache(clusterSinkKind) },
    ]
  }

  /** Forgets deleted objects. */
  keep(has: (key: string) => boolean): void {
    for (const key of this.#inherited.keys()) if (!has(key)) this.#inherited.delete(key)
  }

  /** Whether the condition of an object is the result of an earlier process. */
  #isInherited(key: string, known: Condition | undefined): boolean {
    const text = `${known?.status} ${known?.reason} ${known?.message}`
    if (!this.#inherited.has(key)) this.#inherited.set(key, text)
    return known !== undefined && this.#inherited.get(key) === text
  }

  /**
   * Reports the shared sinks.
   * @param isEarly see `keeps`
   */
  report(reaches: ReadonlyMap<string, Reach>, now: number, isEarly: boolean): void {
    for (const { kind, cache } of this.#sinks) {
      for (const object of cache.values()) {
        const key = `${kind.kind}/${keyOf(object)}`
        const { conditions } = (object as SinkResource).status ?? {}
        const generation = object.metadata.generation ?? 0
        const known = conditionOf(conditions, 'Reachable')
        const isEarlier = this.#isInherited(key, known)
        const found = reaches.get(key)?.finding((refusal) => this.#destinationsOf(refusal))
        if (found === undefined) continue // nothing new: the condition stays
        if (isEarly && isEarlier && known?.observedGeneration === generation && keeps(known, found)) continue
        const finding = this.#texts.finding(key, conditions, found, now)
        this.#context.status.report(kind, object, 'rollout', { generation, findings: [finding] })
      }
    }
  }

  /** Result for a Pipeline's own sinks. It stays for this generation until there is a new one. @param isEarly see `keeps` */
  ofPipeline(
    id: string,
    { metadata, spec, status }: Pipeline,
    reaches: ReadonlyMap<string, Reach>,
    isEarly: boolean,
  ): Finding | undefined {
    const findings = new Map<string, Finding>()
    for (const { name, ref } of spec.sinks) {
      if (ref !== undefined) continue
      const finding = reaches.get(`${id}/${name}`)?.finding((refusal) => this.#destinationsOf(refusal))
      if (finding !== undefined) findings.set(name, finding)
    }
    const found = ownSinksFinding(findings)
    const known = conditionOf(status?.conditions, 'Reachable')
    const isEarlier = this.#isInherited(id, known)
    if (known === undefined || known.observedGeneration !== metadata.generation) return found
    if (found !== undefined && !(isEarly && isEarlier && keeps(known, found))) return found
    return { type: 'Reachable', status: known.status, reason: known.reason as Reason, message: known.message }
  }

  /** Hosts and ports in the options of a sink; an address in a Secret is not shown. */
  #destinationsOf({ pipeline, component }: DestinationRefusal): string[] {
    const options = this.#context.artifacts.get(pipeline)?.sinks[`${pipeline}/${component}`]
    if (options === undefined) return []
    const named = authoritiesIn('sink', options).map(({ host, port }) =>
      port === undefined ? host : `${host}:${port}`,
    )
    return [...new Set(named)].slice(0, maxDestinations)
  }

  /** The Sink that each component was created from, by pipeline and component. */
  #sinkOf(pipelineId: string): ReadonlyMap<string, string> {
    const [namespace, name] = pipelineId.split('/') as [string, string]
    const pipeline =
      namespace === '_cluster' ? this.#clusterPipelines.get(undefined, name) : this.#pipelines.get(namespace, name)
    const sinks = new Map<string, string>()
    for (const { name: component, ref } of pipeline?.spec.sinks ?? []) {
      if (ref === undefined) continue
      const where = ref.kind === 'ClusterSink' ? ref.name : objectKey(namespace, ref.name)
      sinks.set(component, `${ref.kind}/${where}`)
    }
    return sinks
  }

  reachesOf(live: readonly Report[]): Map<string, Reach> {
    const sinks = new Map<string, ReadonlyMap<string, string>>()
    const targetOf = (pipeline: string, component: string) => {
      let known = sinks.get(pipeline)
      if (known === undefined) {
        known = this.#sinkOf(pipeline)
        sinks.set(pipeline, known)
      }
      return known.get(component) ?? `${pipeline}/${component}`
    }
    return reachesOf(live, targetOf)
  }
}
