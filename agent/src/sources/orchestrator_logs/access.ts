// The source's requests to the Kubernetes API: it follows the pods of its node, their namespaces and the node, and looks up single pods
// that the selectors of the watch may have left out.

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
  /** Only these namespaces may be requested, one by one, and no cluster-wide objects. All if omitted. */
  readonly within?: readonly string[] | undefined
  /** Where the pods that are left out are remembered. */
  readonly leftOutFile: string
  /** Where it is kept what is known of pods. */
  readonly keptPodsDir: string
  /** Asked for the pods in place of the API server, as long as it answers. */
  readonly kubelet?: ApiServerClient | undefined
}

/** How long nothing is read while the API has not answered at all. */
const initialListLimitMs = 60_000
/** A folder may exist before the watch reports its pod. */
const lookUpAfterMs = 500
const lookUpLimitMs = 30_000

/** The agent logs this many namespaces whose pods it keeps only in part; others are only counted. */
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
  /** Folders whose pod the watch does not know. */
  readonly #verdicts = new Map<string, Verdict>()
  readonly #lookUps = new Set<Promise<void>>()
  readonly #leftOut: ExcludedPods
  readonly #kept: PodCache
  readonly #kubelet: KubeletPods | undefined
  #signal: AbortSignal | undefined
  #ready = () => {}

  /** @param changed called when another folder may have to be read: the one it names, or any */
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

  /** Follows until the signal aborts. `listed` resolves when all first lists are read, or when waiting makes no sense any more. */
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
          'The Kubernetes API did not answer; reading logs with what was known of their pods before the start.',
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

  /** Follows one namespace by its name: a Role in it grants no list of all. */
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
      // No Role grants a look at the node: it is one without labels.
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
      this.#logger.warn({ error }, 'The kubelet does not list its pods; following them at the API server instead.')
      return fromApi()
    })
  }

  /** Counts pods that are kept only in part, and logs the first of each namespace. */
  #reportReduced(): void {
    for (const [namespace, count] of this.#metadata.takeReduced()) {
      this.#events.count('k8s_pod_metadata_reduced_total', count)
      if (this.#reportedNamespaces.has(namespace) || this.#reportedNamespaces.size >= maxReportedNamespaces) continue
      this.#reportedNamespaces.add(namespace)
      this.#logger.warn(
        { namespace },
        'The pods of a namespace have more labels and annotations than the agent keeps; events of further pods lack annotations, or all metadata but names.',
      )
    }
  }

  /** As the watch reports them: without pods that ask to be excluded. */
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

  /** Whether the logs of a pod are to be read. A no may become a yes: `changed` is called then. */
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
      // A namespace that is not known is one that the selectors leave out.
      this.#leftOut.add(folder)
      return false
    }
    const parts = parseFolder(folder)
    if (parts === undefined || this.#options.within?.includes(parts.namespace) === false) return false
    const verdict = this.#verdicts.get(folder)
    if (verdict !== undefined) return verdict === 'gone'
    // The API has never answered: only its answers from before the start are available.
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

  /** Whether the first list with this namespace's objects is still missing. */
  #waits(what: 'pods' | 'namespace', namespace: string): boolean {
    if (this.#options.within === undefined) return this.#waiting.has(what === 'pods' ? 'pods' : 'namespaces')
    return this.#waiting.has(what === 'pods' ? `pods in ${namespace}` : `namespace ${namespace}`)
  }

  /** Takes the stored data of a pod from before the start; false if there are none. */
  #restore(folder: string): boolean {
    const kept = this.#kept.get(folder)
    if (kept !== undefined) this.#metadata.restorePod(folder, kept)
    return kept !== undefined
  }

  /** A pod whose logs are read has left the watch: calls `excluded` if the pod still exists, because it was then excluded. */
  recheck(folder: string, excluded: () => void): void {
    const parts = parseFolder(folder)
    if (parts === undefined || this.#signal?.aborted !== false) return
    this.#startLookUp(folder, parts, excluded)
  }

  #startLookUp(folder: string, parts: { namespace: string; name: string }, excluded?: () => void): void {
    const lookUp = this.#lookUp(folder, parts, excluded).finally(() => this.#lookUps.delete(lookUp))
    this.#lookUps.add(lookUp)
  }

  /** Forgets findings about folders that no longer exist. */
  forget(isPresent: (folder: string) => boolean): void {
    for (const [folder, verdict] of this.#verdicts) {
      if (verdict !== 'wait' && !isPresent(folder)) this.#verdicts.delete(folder)
    }
    this.#leftOut.prune(isPresent)
    this.#kept.prune(isPresent)
  }

  /** A pod that the watch does not know: left out by the selectors, or not there any more? */
  async #lookUp(folder: string, parts: { namespace: string; name: string }, excluded?: () => void): Promise<void> {
    const signal = this.#signal as AbortSignal
    const { fieldSelector, labelSelector, namespaceLabelSelector } = this.#options
    // Whether the user's selectors match a pod cannot be checked when it is gone. Kept pods have matched them.
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
        // Not allowed to ask: what the watch leaves out stays out.
        else if (status === 401 || status === 403) verdict = 'excluded'
      } catch {
        // The watches report that the API cannot be reached.
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
        this.#logger.warn({ folder }, 'The pod of a log folder is not known; reading it without metadata.')
      }
      this.#changed(folder)
    }
  }
}

const isPods = (followed: string) => followed === 'pods' || followed.startsWith('pods in ')

function joined(first: string, second: string | undefined): string {
  return second ? `${first},${second}` : first
}
