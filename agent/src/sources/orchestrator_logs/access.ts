// The source's requests to the Kubernetes API: it watches the pods of its node, their namespaces and the node, and looks up single pods
// that the selectors of the watch may have excluded.

import { pause } from '../../clock.ts'
import type { ApiServerClient } from '../../kube/client.ts'
import { compileSelector } from '../../kube/labels.ts'
import { reportServerVersion } from '../../kube/server-version.ts'
import { type Followed, type FollowHooks, follow, followReports, type WatchedObject } from '../../kube/watch.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { ExcludedPods } from './excluded-pods.ts'
import { KubeletPods } from './kubelet.ts'
import { PodCache } from './pod-cache.ts'
import { folderOf, type PodMetadata, type PodObject, parseFolder } from './pod-metadata.ts'
import { notExcluded } from './selection.ts'

export interface AccessOptions {
  readonly node: string
  readonly namespaces: boolean
  readonly nodeLabels: boolean
  readonly fromCache: boolean
  readonly fieldSelector: string | undefined
  readonly labelSelector: string | undefined
  readonly namespaceLabelSelector: string | undefined
  /** The source may only read these namespaces, each by name, and no cluster-wide objects. All if omitted. */
  readonly within?: readonly string[] | undefined
  /** File with the excluded pods. */
  readonly leftOutFile: string
  /** Folder with the stored pod metadata. */
  readonly keptPodsDir: string
  /** Lists the pods in place of the API server, as long as it answers. */
  readonly kubelet?: ApiServerClient | undefined
}

/** How long nothing is read while the API has not answered yet. */
const initialListLimitMs = 60_000
/** A folder may exist before the watch reports its pod. */
const lookUpAfterMs = 500
const lookUpLimitMs = 30_000

/** The agent logs this many namespaces with reduced pod metadata; it only counts further ones. */
const maxReportedNamespaces = 100

type Verdict = 'wait' | 'excluded' | 'gone'

export class KubeAccess {
  readonly #client: ApiServerClient
  readonly #options: AccessOptions
  readonly #metadata: PodMetadata
  readonly #events: ComponentEvents
  readonly #logger: Logger
  readonly #changed: (folder?: string) => void
  readonly #waiting = new Set<string>()
  readonly #reportedNamespaces = new Set<string>()
  /** Folders whose pod is unknown to the watch. */
  readonly #verdicts = new Map<string, Verdict>()
  readonly #lookUps = new Set<Promise<void>>()
  readonly #leftOut: ExcludedPods
  readonly #kept: PodCache
  readonly #kubelet: KubeletPods | undefined
  #signal: AbortSignal | undefined
  #ready = () => {}

  /** @param changed called with the folder whose selection may have changed, or without one if any may have */
  constructor(
    client: ApiServerClient,
    options: AccessOptions,
    metadata: PodMetadata,
    context: { readonly events: ComponentEvents; readonly logger: Logger },
    changed: (folder?: string) => void,
  ) {
    this.#client = client
    this.#options = options
    this.#metadata = metadata
    this.#events = context.events
    this.#logger = context.logger
    this.#leftOut = new ExcludedPods(options.leftOutFile, context.logger)
    this.#kept = new PodCache(options.keptPodsDir, metadata, context.logger)
    this.#kubelet = options.kubelet === undefined ? undefined : new KubeletPods(options.kubelet)
    this.#changed = changed
  }

  /**
   * Watches until the signal aborts. `listed` resolves when all first lists are read, or when waiting for them no longer helps.
   */
  start(signal: AbortSignal): { readonly listed: Promise<void>; readonly ended: Promise<void> } {
    this.#signal = signal
    const listed = this.#firstLists(signal)
    const tasks = [
      reportServerVersion(this.#client, this.#logger, signal),
      ...this.#followPods(),
      ...this.#followNamespaces(),
      ...this.#followNode(),
    ]
    const ended = Promise.all(tasks).then(async () => {
      await Promise.all(this.#lookUps)
      await this.#leftOut.close()
      await this.#kept.close()
    })
    return { listed, ended }
  }

  /** Resolves when all first lists are read, when the source stops, or when the API server does not answer. */
  #firstLists(signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#logger.warn(
          {},
          'The Kubernetes API did not answer; reading logs with the pod metadata stored before the start.',
        )
        resolve()
      }, initialListLimitMs)
      this.#ready = () => {
        if (this.#waiting.size > 0 && !signal.aborted) return
        clearTimeout(timer)
        signal.removeEventListener('abort', this.#ready)
        resolve()
      }
      signal.addEventListener('abort', this.#ready)
    })
  }

  #followPods(): Promise<void>[] {
    const { node, fieldSelector, labelSelector, within } = this.#options
    const metadata = this.#metadata
    return (within ?? [undefined]).map((scope) =>
      this.#follow<PodObject>(
        {
          name: scope === undefined ? 'pods' : `pods in ${scope}`,
          path: scope === undefined ? '/api/v1/pods' : `/api/v1/namespaces/${encodeURIComponent(scope)}/pods`,
          fieldSelector: joined(`spec.nodeName=${node}`, fieldSelector),
          labelSelector: joined(notExcluded, labelSelector),
        },
        {
          replaced: (pods) => metadata.replacePods(pods, scope),
          changed: (pod) => metadata.setPod(pod),
          removed: (pod) => metadata.removePod(pod),
        },
      ),
    )
  }

  #followNamespaces(): Promise<void>[] {
    const { namespaces: wanted, within, namespaceLabelSelector } = this.#options
    if (!wanted) return []
    if (within !== undefined) return within.map((scope) => this.#followNamespace(scope))
    const metadata = this.#metadata
    return [
      this.#follow<WatchedObject>(
        {
          name: 'namespaces',
          path: '/api/v1/namespaces',
          labelSelector: joined(notExcluded, namespaceLabelSelector),
        },
        {
          replaced: (namespaces) => metadata.replaceLabels('namespaces', namespaces),
          changed: (namespace) => metadata.setLabels('namespaces', namespace),
          removed: (namespace) => metadata.removeLabels('namespaces', namespace),
        },
      ),
    ]
  }

  /** Watches one namespace by its name, because a Role in it does not grant a list of all. */
  #followNamespace(name: string): Promise<void> {
    const metadata = this.#metadata
    const isIncluded = compileSelector(notExcluded)
    const set = (namespace: WatchedObject) => {
      if (isIncluded(namespace.metadata.labels ?? {})) metadata.setLabels('namespaces', namespace)
      else metadata.removeLabels('namespaces', namespace)
    }
    return this.#follow<WatchedObject>(
      { name: `namespace ${name}`, path: `/api/v1/namespaces/${encodeURIComponent(name)}`, single: true },
      {
        replaced: (namespaces) => namespaces.forEach(set),
        changed: set,
        removed: (namespace) => metadata.removeLabels('namespaces', namespace),
      },
    )
  }

  #followNode(): Promise<void>[] {
    const { node, nodeLabels, within } = this.#options
    const metadata = this.#metadata
    if (within !== undefined) {
      // No Role grants access to the node, so it has no labels.
      metadata.setLabels('nodes', { metadata: { name: node } })
      return []
    }
    if (!nodeLabels) return []
    return [
      this.#follow<WatchedObject>(
        { name: 'nodes', path: '/api/v1/nodes', fieldSelector: `metadata.name=${node}` },
        {
          replaced: (nodes) => metadata.replaceLabels('nodes', nodes),
          changed: (object) => metadata.setLabels('nodes', object),
          removed: (object) => metadata.removeLabels('nodes', object),
        },
      ),
    ]
  }

  #follow<T extends WatchedObject>(
    followed: Followed,
    hooks: { replaced(objects: readonly T[]): void; changed(object: T): void; removed(object: T): void },
  ): Promise<void> {
    const signal = this.#signal as AbortSignal
    this.#waiting.add(followed.name)
    const all: FollowHooks<T> = {
      replaced: (objects) => {
        hooks.replaced(objects)
        this.#reportReduced()
        this.#kept.changed()
        this.#waiting.delete(followed.name)
        this.#ready()
        this.#changed()
      },
      changed: (object) => {
        hooks.changed(object)
        this.#reportReduced()
        this.#kept.changed()
        this.#changed(isPods(followed.name) ? folderOf(object) : undefined)
      },
      removed: (object) => hooks.removed(object),
      ...followReports(this.#events, followed.name),
    }
    const fromApi = () => follow<T>(this.#client, followed, all, { fromCache: this.#options.fromCache, signal })
    if (followed.name !== 'pods' || this.#kubelet === undefined) return fromApi()
    return this.#followKubelet(this.#kubelet, all as unknown as FollowHooks<PodObject>).catch((error: unknown) => {
      this.#logger.warn({ error }, 'The kubelet does not list its pods; watching them at the API server instead.')
      return fromApi()
    })
  }

  /** Counts pods with reduced metadata, and logs the first of each namespace. */
  #reportReduced(): void {
    for (const [namespace, count] of this.#metadata.takeReduced()) {
      this.#events.count('k8s_pod_metadata_reduced_total', count)
      if (this.#reportedNamespaces.has(namespace) || this.#reportedNamespaces.size >= maxReportedNamespaces) continue
      this.#reportedNamespaces.add(namespace)
      this.#logger.warn(
        { namespace },
        'The pods of a namespace have more labels and annotations than the agent keeps; events of further pods lack annotations, or have only names.',
      )
    }
  }

  /** Like the watch, this reports no pods that ask to be excluded. */
  #followKubelet(kubelet: KubeletPods, hooks: FollowHooks<PodObject>): Promise<void> {
    const wanted = compileSelector(notExcluded)
    const isWanted = (pod: PodObject): boolean => {
      if (wanted(pod.metadata.labels ?? {})) return true
      const folder = folderOf(pod)
      this.#verdicts.set(folder, 'excluded')
      this.#leftOut.add(folder)
      return false
    }
    return kubelet.follow(
      {
        ...hooks,
        replaced: (pods) => hooks.replaced(pods.filter(isWanted)),
        changed: (pod) => (isWanted(pod) ? hooks.changed(pod) : hooks.removed(pod)),
      },
      this.#signal as AbortSignal,
    )
  }

  /** Whether the logs of a pod are read. If the answer changes from no to yes, the source calls `changed`. */
  wants(folder: string): boolean {
    const pod = this.#metadata.pod(folder)
    if (pod !== undefined) {
      this.#verdicts.delete(folder)
      const labels = this.#metadata.namespaceLabels(pod.namespace) ?? pod.namespaceLabels
      if (!this.#options.namespaces || labels !== undefined) {
        this.#leftOut.remove(folder)
        return true
      }
      if (this.#waits('namespace', pod.namespace)) return !this.#leftOut.has(folder)
      // The selectors exclude an unknown namespace.
      this.#leftOut.add(folder)
      return false
    }
    const parts = parseFolder(folder)
    if (parts === undefined || this.#options.within?.includes(parts.namespace) === false) return false
    const verdict = this.#verdicts.get(folder)
    if (verdict !== undefined) return verdict === 'gone'
    // The API has never answered, so only data stored before the start is available.
    if (this.#waits('pods', parts.namespace)) {
      if (this.#leftOut.has(folder)) return false
      this.#restore(folder)
      return true
    }
    this.#verdicts.set(folder, 'wait')
    this.#kubelet?.poke()
    this.#startLookUp(folder, parts)
    return false
  }

  /** Whether the first list that covers this namespace is still missing. */
  #waits(what: 'pods' | 'namespace', namespace: string): boolean {
    if (this.#options.within === undefined) return this.#waiting.has(what === 'pods' ? 'pods' : 'namespaces')
    return this.#waiting.has(what === 'pods' ? `pods in ${namespace}` : `namespace ${namespace}`)
  }

  /** Loads the data of a pod stored before the start; false if there are none. */
  #restore(folder: string): boolean {
    const kept = this.#kept.get(folder)
    if (kept !== undefined) this.#metadata.restorePod(folder, kept)
    return kept !== undefined
  }

  /** The watch no longer reports a pod whose logs are read. If the pod still exists, it was excluded: calls `excluded`. */
  recheck(folder: string, excluded: () => void): void {
    const parts = parseFolder(folder)
    if (parts === undefined || this.#signal?.aborted !== false) return
    this.#startLookUp(folder, parts, excluded)
  }

  #startLookUp(folder: string, parts: { namespace: string; name: string }, excluded?: () => void): void {
    const lookUp = this.#lookUp(folder, parts, excluded).finally(() => this.#lookUps.delete(lookUp))
    this.#lookUps.add(lookUp)
  }

  /** Forgets results for folders that no longer exist. */
  forget(isPresent: (folder: string) => boolean): void {
    for (const [folder, verdict] of this.#verdicts) {
      if (verdict !== 'wait' && !isPresent(folder)) this.#verdicts.delete(folder)
    }
    this.#leftOut.prune(isPresent)
    this.#kept.prune(isPresent)
  }

  /** Finds out why the watch does not know a pod: because the selectors exclude it, or because it was deleted. */
  async #lookUp(folder: string, parts: { namespace: string; name: string }, excluded?: () => void): Promise<void> {
    const signal = this.#signal as AbortSignal
    const { fieldSelector, labelSelector, namespaceLabelSelector } = this.#options
    // The user's selectors cannot be checked for a deleted pod. Stored pods have matched them.
    const isSelected = fieldSelector || labelSelector || namespaceLabelSelector
    const gone: Verdict = isSelected && this.#kept.get(folder) === undefined ? 'excluded' : 'gone'
    const started = Date.now()
    let verdict: Verdict = 'wait'
    for (let delay = lookUpAfterMs; verdict === 'wait' && !signal.aborted; delay = 1000) {
      await pause(delay, signal)
      if (this.#metadata.pod(folder) !== undefined) break
      try {
        const path = `/api/v1/namespaces/${encodeURIComponent(parts.namespace)}/pods/${encodeURIComponent(parts.name)}`
        const { status, body } = await this.#client.json(path, signal)
        if (status === 200) {
          verdict = folderOf(body as WatchedObject) === folder ? 'excluded' : gone
          if (verdict === 'excluded') {
            this.#leftOut.add(folder)
            excluded?.()
          }
        } else if (status === 404) verdict = gone
        // Without the right to look up a pod, pods missing from the watch stay excluded.
        else if (status === 401 || status === 403) verdict = 'excluded'
      } catch {
        // The watches report an unreachable API.
      }
      if (verdict === 'wait' && Date.now() - started > lookUpLimitMs) verdict = gone
    }
    if (verdict === 'wait') {
      this.#verdicts.delete(folder)
      return
    }
    this.#verdicts.set(folder, verdict)
    if (verdict === 'gone' && excluded === undefined) {
      if (!this.#restore(folder)) {
        this.#logger.warn({ folder }, 'The pod of a log folder is unknown; reading it without metadata.')
      }
      this.#changed(folder)
    }
  }
}

const isPods = (followed: string) => followed === 'pods' || followed.startsWith('pods in ')

function joined(first: string, second: string | undefined): string {
  return second ? `${first},${second}` : first
}
