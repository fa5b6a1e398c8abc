// The authors of ClusterPipelines, and whether they may collect the logs of all namespaces, for `--authorize-cluster-pipelines`.
// Admission records the authors that it has admitted; reconciles only trust these records. A record is for one object and one content
// of its spec, so it does not cover changes that are applied while admission is down. Records are in the operator's namespace, where
// authors have no write access, and not in the object, which stays as its author wrote it.

import { createHash } from 'node:crypto'
import { canonicalJson } from '@penstock/agent/bundle'
import { clusterPipelineKind } from '../api/kinds.ts'
import { group, type KubeObject } from '../api/object.ts'
import type { OperatorContext } from '../context.ts'
import type { Cache } from '../kube/cache.ts'
import type { KubeClient, KubeRequestOptions } from '../kube/client.ts'
import { monotonicNow } from '../kube/clock.ts'
import { configMapType } from '../kube/resource-types.ts'
import { mayDo, selfOf, type User } from '../kube/reviews.ts'

/** Label whose value is the uid of the ClusterPipeline. */
const label = 'penstock.dev/author-of'
const annotations = { user: 'penstock.dev/author', pipeline: 'penstock.dev/pipeline' } as const
/** How long an answer about a user is valid, and how long until a ClusterPipeline is checked again. */
const answerMs = 60_000
export const reviewAgainMs = 300_000
/** Records for other contents: one of them may be of a write that has not arrived yet. */
const keptMs = 600_000

interface Following {
  readonly records: Cache
  readonly pipelines: Cache
}

export interface Author {
  /** Undefined if the author is unknown. */
  readonly name: string | undefined
  /** Why it must not run. */
  readonly problem: string | undefined
}

export class Authors {
  readonly #kube: KubeClient
  readonly #namespace: string
  readonly #following: Following | undefined
  #sweptAt = Number.NEGATIVE_INFINITY
  readonly #answers = new Map<string, { readonly allowed: boolean; readonly at: number }>()

  private constructor(kube: KubeClient, namespace: string, following?: Following) {
    this.#kube = kube
    this.#namespace = namespace
    this.#following = following
  }

  /** Undefined if authors need no authorization. */
  static of({ kube, settings }: OperatorContext, client: string): Authors | undefined {
    return settings.authorizeClusterPipelines ? new Authors(kube.as(client), settings.namespace) : undefined
  }

  /** The same with the records already read, for callers that check repeatedly. */
  static following({ kube, settings, caches }: OperatorContext, client: string): Authors | undefined {
    if (!settings.authorizeClusterPipelines) return undefined
    const { namespace } = settings
    const records = caches.cache(configMapType, { metadataOnly: true, namespaces: [namespace], labelSelector: label })
    return new Authors(kube.as(client), namespace, { records, pipelines: caches.cache(clusterPipelineKind) })
  }

  /** Receives the names of ClusterPipelines whose records have changed. */
  subscribe(handler: (name: string) => void): Disposable {
    const subscription = this.#following?.records.subscribe(({ type, object }) => {
      const name = object.metadata.annotations?.[annotations.pipeline]
      if (type !== 'deleted' && name !== undefined) handler(name)
    })
    return { [Symbol.dispose]: () => subscription?.[Symbol.dispose]() }
  }

  mayCollect(user: User): Promise<boolean> {
    return mayDo(this.#kube, user, { resourceAttributes: { group, resource: 'logs', verb: 'collect' } })
  }

  /** Whether a known author applied this content and was permitted to. */
  async knows(pipeline: KubeObject): Promise<boolean> {
    return (await this.#userOf(pipeline, { urgent: 'connection' })) !== undefined
  }

  /**
   * Records who applies this content. The record has no owner reference: as the object is not stored yet, garbage
   * collection would delete the record.
   */
  async record(pipeline: KubeObject, user: User): Promise<void> {
    const { name, uid = '' } = pipeline.metadata
    const record = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: recordName(pipeline),
        namespace: this.#namespace,
        labels: { 'app.kubernetes.io/managed-by': 'penstock', [label]: uid },
        annotations: { [annotations.user]: canonicalJson(user), [annotations.pipeline]: name },
      },
    }
    await this.#kube.apply(configMapType, record, { urgent: 'connection' })
  }

  /** Records that the operator itself applied an object, if the content is the operator's and no other client has added to it. */
  async recordOwn(applied: KubeObject, wanted: KubeObject): Promise<void> {
    if (contentOf(applied) === contentOf(wanted) && !(await this.knows(applied)))
      await this.record(applied, await selfOf(this.#kube))
  }

  async look(pipeline: KubeObject, signal: AbortSignal): Promise<Author> {
    await this.#sweep(signal)
    const user = await this.#userOf(pipeline, { signal })
    if (user === undefined) {
      const again = `kubectl annotate clusterpipeline ${pipeline.metadata.name} penstock.dev/retry="$(date)" --overwrite`
      const problem = `The author of this version is unknown: no webhook answered, or authorization was disabled at the time. A user who may \`collect\` logs.${group} has to apply it again, or run: ${again}`
      return { name: undefined, problem }
    }
    const name = user.username ?? ''
    if (await this.#isAllowed(user)) return { name, problem: undefined }
    const problem = `"${name}", who applied it, may not \`collect\` logs.${group} in all namespaces: grant the permission with a ClusterRoleBinding, or have a user with this permission apply it`
    return { name, problem }
  }

  async #isAllowed(user: User): Promise<boolean> {
    const key = canonicalJson(user)
    const known = this.#answers.get(key)
    if (known !== undefined && monotonicNow() - known.at < answerMs) return known.allowed
    const allowed = await this.mayCollect(user)
    this.#answers.set(key, { allowed, at: monotonicNow() })
    return allowed
  }

  async #userOf(pipeline: KubeObject, options: KubeRequestOptions): Promise<User | undefined> {
    const name = recordName(pipeline)
    // The event of a record may arrive after that of its object.
    const found =
      this.#following?.records.get(this.#namespace, name) ??
      (await this.#kube.get(configMapType, this.#namespace, name, options))
    const text = found?.metadata.annotations?.[annotations.user]
    return text === undefined ? undefined : (JSON.parse(text) as User)
  }

  /** Deletes records whose content no longer exists. */
  async #sweep(signal: AbortSignal): Promise<void> {
    if (this.#following === undefined || monotonicNow() - this.#sweptAt < keptMs) return
    this.#sweptAt = monotonicNow()
    const { records, pipelines } = this.#following
    for (const { metadata } of [...records.values()]) {
      const { name, annotations: own, creationTimestamp = '' } = metadata
      const pipeline = pipelines.get(undefined, own?.[annotations.pipeline] ?? '')
      if (pipeline !== undefined && recordName(pipeline) === name) continue
      if (Date.now() - Date.parse(creationTimestamp) > keptMs)
        await this.#kube.delete(configMapType, this.#namespace, name, { signal })
    }
  }
}

/** The identity of an author, in a comparable form. */
export const contentOf = (object: KubeObject) => canonicalJson((object as { readonly spec?: unknown }).spec ?? null)

function recordName(pipeline: KubeObject): string {
  const digest = createHash('sha256')
    .update(`${pipeline.metadata.uid}\n${contentOf(pipeline)}`)
    .digest('hex')
  return `penstock-author-${digest.slice(0, 32)}`
}
