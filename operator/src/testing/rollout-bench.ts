// A simulated Agent with nodes, for tests of rollouts: real content, decisions and writes, a fake API server for Secrets, and fake time. The
// simulated agents read the manifest as real agents do, and report with heartbeats.

import { gunzipSync } from 'node:zlib'
import { type Bundle, type BundleManifest, candidateFor, type HeartbeatBody } from '@penstock/agent/bundle'
import { silentLogger } from '@penstock/agent/telemetry'
import type { Agent, AgentSpec } from '../api/agent.ts'
import { agentKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Artifact } from '../compile/artifact.ts'
import type { OperatorContext } from '../context.ts'
import { AgentBundles } from '../controllers/agent/bundle.ts'
import { AgentCaches } from '../controllers/agent/caches.ts'
import { type AgentMemory, newMemory } from '../controllers/agent/memory.ts'
import { Artifacts } from '../controllers/artifacts.ts'
import { type Delivered, FleetState } from '../fleet/state.ts'
import { daemonSetType, podType, secretType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { labels } from '../workloads/names.ts'
import { testContext } from './context.ts'

const key = 'system/node'

/**
 * The effect of a harmful content on an agent. `fails`: the agent runs the rest and reports the Pipeline. `crashes`: its container ends.
 * `waits`: it reports that it waits for parts. `hangs`: it does not report and continues with its current revision.
 */
export type Harm = 'fails' | 'crashes' | 'waits' | 'hangs'

interface BenchNode {
  revision: string | undefined
  restarts: number
  isSilent: boolean
  /** The agent does not report or load any revision. */
  isSlow: boolean
  /** Its pod is deleted, and its successor does not exist yet. */
  isGone: boolean
  /** Number of pods that it had before, and when the present one was made. */
  replaced: number
  createdAt: number
  /** When its container ended last, and when it starts again. */
  endedAt: number | undefined
  downUntil: number
  /** Ids of the Pipelines that read logs on it. */
  reads: readonly string[]
}

export class RolloutBench {
  readonly #clock: { now: number }
  readonly nodes = new Map<string, BenchNode>()
  /** Harms by content, such as `a2`. */
  readonly harms = new Map<string, Harm>()
  /** How long the kubelet waits before it starts a container again. */
  backoffMs = 0
  /** The write counts of Secrets. */
  writes = 0
  readonly events: string[] = []
  /** The content of all revisions offered so far: hashes by Pipeline id. */
  readonly contents = new Map<string, ReadonlyMap<string, string>>()
  readonly #secrets = new Map<string, KubeObject & { readonly data?: Readonly<Record<string, string>> }>()
  #versions = 0
  #desired: readonly string[] = []
  #rollout: AgentSpec['rollout']
  readonly #mode: AgentSpec['mode']
  #annotations: Readonly<Record<string, string>> = {}
  #retries = new Map<string, string>()
  #bundles!: AgentBundles
  #fleet!: FleetState
  #memory!: AgentMemory
  #artifacts!: Artifacts
  #agent!: Agent
  #stores!: Map<string, Store<KubeObject>>

  /** @param mode the pods of sidecars belong to users, and the operator knows only those that report */
  constructor(clock: { now: number }, nodes: number, rollout?: AgentSpec['rollout'], mode: AgentSpec['mode'] = 'Node') {
    this.#clock = clock
    this.#rollout = rollout
    this.#mode = mode
    for (let index = 0; index < nodes; index++) this.join(`n${index}`)
    this.restartOperator()
  }

  /** A restarted operator, which knows only the Secrets. @param idleMs how long the process existed before it leads */
  restartOperator(idleMs = 0): void {
    this.#stores = new Map()
    this.#artifacts = new Artifacts()
    const cache = (type: ResourceType, options: object = {}) => {
      const name = `${type.kind} ${JSON.stringify(options)}`
      const known = this.#stores.get(name) ?? new Store<KubeObject>(type, [''], silentLogger)
      this.#stores.set(name, known)
      return known
    }
    const context = testContext({
      ...{ kube: { as: () => this.#kube() }, logger: silentLogger, artifacts: this.#artifacts },
      events: { record: (_: unknown, ...event: string[]) => void this.events.push(event.slice(1).join(': ')) },
      caches: { cache },
      settings: { namespace: 'system', agentNamespaces: ['system'], secretsMode: 'All', rolesOnly: false },
    }) as OperatorContext
    const caches = new AgentCaches(context)
    this.#clock.now -= idleMs
    this.#fleet = new FleetState(undefined, () => this.#clock.now)
    this.#clock.now += idleMs
    this.#fleet.lead()
    this.#setAgent()
    this.#bundles = new AgentBundles(context, caches, this.#fleet)
    this.#memory = newMemory(this.#agent, context, caches.secrets)
    for (const secret of this.#secrets.values()) cache(secretType, { metadataOnly: true }).set(secret)
    this.#publish()
  }

  join(name: string): void {
    this.nodes.set(name, {
      ...{ revision: undefined, restarts: 0, isSilent: false, isSlow: false, reads: [] },
      ...{ isGone: false, replaced: 0, createdAt: this.#clock.now, endedAt: undefined, downUntil: 0 },
    })
  }

  /** The pod of a node is deleted; `join` with the same name would be another node. */
  remove(name: string): void {
    Object.assign(this.nodes.get(name) ?? {}, { isGone: true, revision: undefined })
    this.#pods()
  }

  /** The next pod of a node starts. */
  replace(name: string): void {
    const replaced = (this.nodes.get(name)?.replaced ?? 0) + 1
    const createdAt = this.#clock.now
    const pod = { isGone: false, revision: undefined, restarts: 0, endedAt: undefined, replaced, createdAt }
    Object.assign(this.nodes.get(name) ?? {}, pod)
    this.#pods()
  }

  /** The container of a node ends; with its next start, the agent reports again. */
  end(name: string): void {
    const node = this.nodes.get(name)
    if (node !== undefined) this.#ended(node)
    this.#pods()
  }

  /** `a1 b2`: Pipeline a with content 1, b with content 2. */
  want(...contents: readonly string[]): void {
    this.#desired = contents
    this.#publish()
  }

  get wanted(): readonly string[] {
    return this.#desired
  }

  set rollout(rollout: AgentSpec['rollout']) {
    this.#rollout = rollout
    this.#setAgent()
  }

  annotate(annotations: Readonly<Record<string, string>>): void {
    this.#annotations = annotations
    this.#setAgent()
  }

  /** Does the same as `penstock rollout retry`. */
  retry(id: string): void {
    this.#retries.set(id, String(this.#clock.now))
    this.#publish()
  }

  get delivered(): Delivered {
    const delivered = this.#fleet.get(key)
    if (delivered === undefined) throw new Error('The operator has not delivered anything yet.')
    return delivered
  }

  get rolledBack(): readonly string[] {
    return Object.values(this.delivered.record.rolledBack)
      .map(({ hash }) => hash)
      .sort()
  }

  /** Runs the operator and all agents until nothing changes except time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 30; turn++) {
      const before = this.writes
      const waitMs = await this.#bundles.deliver(key, this.#agent, this.#memory, AbortSignal.timeout(600_000))
      const moved = this.#agents()
      if (this.writes === before && !moved && waitMs !== 0) return
    }
    throw new Error(`The operator does not reach a stable state: ${JSON.stringify(this.delivered.record)}`)
  }

  async pass(seconds: number, each = 5): Promise<void> {
    for (let passed = 0; passed < seconds; passed += each) {
      this.#clock.now += each * 1000
      await this.settle()
    }
  }

  /** Seconds until a content runs on all nodes that are not lost; undefined if not within `max` seconds. */
  async until(content: string, max: number): Promise<number | undefined> {
    for (let passed = 0; passed <= max; passed += 5) {
      if (passed === 0) await this.settle()
      else await this.pass(5)
      if (this.count(content) === this.alive) return passed
    }
    return undefined
  }

  get alive(): number {
    return [...this.nodes.values()].filter(({ isSilent }) => !isSilent).length
  }

  /** The nodes, without lost ones, whose agents run this content. */
  count(content: string): number {
    return [...this.nodes.values()].filter(({ revision, isSilent }) => !isSilent && this.holds(revision, content))
      .length
  }

  /** Whether a revision contains a content. */
  holds(revision: string | undefined, content: string): boolean {
    return [...(this.contents.get(revision ?? '')?.values() ?? [])].includes(content)
  }

  /** Lets all agents load their revision, if possible, and report. Returns whether one has loaded another revision or ended. */
  #agents(): boolean {
    const manifest = this.#manifest()
    let moved = false
    for (const [name, node] of this.nodes) {
      if (node.isSilent || node.isGone || node.downUntil > this.#clock.now) continue
      if (node.downUntil > 0) {
        node.downUntil = 0
        node.restarts++
        moved = true
      }
      const rev = (candidateFor(manifest, name) ?? manifest.stable)?.rev
      const found = [...(this.contents.get(rev ?? '') ?? [])]
      // Agents load only the differences.
      const isNew = (hash: string) => !this.holds(node.revision, hash)
      const has = (harm: Harm) =>
        found.some(([, hash]) => this.harms.get(hash) === harm && (harm === 'crashes' || isNew(hash)))
      let state = 'Loaded'
      if (rev !== undefined && node.revision !== rev && !node.isSlow) {
        if (has('crashes')) {
          this.#ended(node)
          if (node.downUntil > 0) continue
        } else if (has('waits')) state = 'Waiting'
        else if (!has('hangs')) {
          node.revision = rev
          moved = true
        }
      } else if (has('crashes') && node.revision === rev) {
        this.#ended(node)
        if (node.downUntil > 0) continue
      }
      const runs = [...(this.contents.get(node.revision ?? '') ?? [])]
      this.#hear(name, node, {
        state,
        failed: runs.filter(([, hash]) => this.harms.get(hash) === 'fails').map(([id]) => id),
      })
    }
    this.#pods()
    return moved
  }

  #ended(node: BenchNode): void {
    node.endedAt = this.#clock.now
    if (this.backoffMs === 0) node.restarts++
    else node.downUntil = this.#clock.now + this.backoffMs
  }

  #hear(name: string, node: BenchNode, report: Pick<HeartbeatBody, 'state' | 'failed'>): void {
    const body: HeartbeatBody = {
      ...{ schema: 1, node: name, pod: name, namespace: 'system', version: '1', candidate: false },
      ...{
        startedAt: new Date((node.endedAt ?? node.createdAt) + node.restarts).toISOString(),
        secretsEpoch: '',
        pipelines: {},
        revision: node.revision,
        reason: undefined,
        reading: node.reads,
      },
      ...report,
      failures: report.failed.map((pipeline) => ({
        pipeline,
        component: 'out',
        reason: 'BuildFailed',
        message: 'EACCES',
      })),
    }
    this.#fleet.hear(key, { pod: name, podUid: uidOf(name, node), node: name }, body, this.#clock.now)
  }

  #pods(): void {
    const there = [...this.nodes].filter(([, { isGone }]) => !isGone)
    const pods = there.map(([name, node]) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName: name } },
      metadata: {
        name,
        namespace: 'system',
        uid: uidOf(name, node),
        creationTimestamp: new Date(node.createdAt).toISOString(),
        resourceVersion: `${node.replaced} ${node.restarts} ${node.downUntil}`,
        labels: { [labels.agent]: 'node' },
      },
      status: { phase: 'Running', containerStatuses: [statusOf(node)] },
    }))
    this.#storeOf(podType)?.replace(pods as KubeObject[], '', () => true)
    const daemonSet = {
      ...{ apiVersion: 'apps/v1', kind: 'DaemonSet' },
      metadata: { name: 'penstock-node', namespace: 'system', resourceVersion: String(this.nodes.size) },
      status: { observedGeneration: 1, desiredNumberScheduled: this.nodes.size },
    }
    this.#storeOf(daemonSetType)?.replace([daemonSet], '', () => true)
  }

  #storeOf(type: ResourceType): Store<KubeObject> | undefined {
    return this.#stores.get(`${type.kind} ${JSON.stringify({ labelSelector: labels.agent })}`)
  }

  #manifest(): BundleManifest {
    const files = new Map([...this.#secrets.values()].flatMap(({ data }) => Object.entries(data ?? {})))
    const text = files.get('manifest.json')
    const manifest = JSON.parse(Buffer.from(text ?? '', 'base64').toString() || '{}') as BundleManifest
    for (const revision of [manifest.stable, manifest.candidate, ...(manifest.later ?? [])]) {
      if (revision === undefined || this.contents.has(revision.rev)) continue
      const parts = revision.shards.map((shard) => gunzipSync(Buffer.from(files.get(shard.key) as string, 'base64')))
      const { pipelines } = JSON.parse(Buffer.concat(parts).toString()) as Bundle
      this.contents.set(revision.rev, new Map(Object.entries(pipelines).map(([id, { hash }]) => [id, hash])))
    }
    return manifest
  }

  /** The current manifest for agents. */
  get manifest(): BundleManifest {
    return this.#manifest()
  }

  #publish(): void {
    const ids = new Set(this.#desired.map((content) => idOf(content)))
    for (const { id } of [...this.#artifacts.values()]) if (!ids.has(id)) this.#artifacts.remove(id)
    for (const content of this.#desired)
      this.#artifacts.set({ ...artifactOf(content, this.#retries.get(idOf(content))), mode: this.#mode })
    this.#artifacts.markComplete()
    if (this.#stores.size > 0) this.#pods()
  }

  #setAgent(): void {
    this.#agent = {
      ...{ apiVersion: 'penstock.dev/v1alpha1', kind: agentKind.kind },
      metadata: {
        ...{ name: 'node', namespace: 'system', uid: 'a', generation: 1, resourceVersion: String(++this.#versions) },
        annotations: this.#annotations,
      },
      spec: {
        ...{ mode: this.#mode, pipelines: { clusterPipelines: { selector: {} } } },
        ...(this.#rollout === undefined ? {} : { rollout: this.#rollout }),
      },
    }
    this.#stores.get(`${agentKind.kind} {}`)?.set(this.#agent as KubeObject)
  }

  #kube() {
    return {
      get: async (_: ResourceType, __: string, name: string) => this.#secrets.get(name),
      apply: async (type: ResourceType, object: KubeObject) => {
        this.writes++
        const resourceVersion = String(++this.#versions)
        const next = { ...object, metadata: { ...object.metadata, resourceVersion } }
        this.#secrets.set(object.metadata.name, next)
        this.#stores.get(`${type.kind} ${JSON.stringify({ metadataOnly: true })}`)?.set(next)
        return next
      },
    }
  }
}

const uidOf = (name: string, { replaced }: BenchNode) => `${name} ${replaced}`

function statusOf({ restarts, endedAt, downUntil }: BenchNode) {
  const ended =
    endedAt === undefined ? {} : { terminated: { exitCode: 1, finishedAt: new Date(endedAt).toISOString() } }
  const state = downUntil === 0 ? {} : { waiting: { reason: 'CrashLoopBackOff' } }
  return { name: 'agent', restartCount: restarts, ready: downUntil === 0, state, lastState: ended }
}

/** `shop/a2` or `a2`: the id of the Pipeline without its content. */
export const idOf = (content: string): string => `_cluster/${content.replace(/\d+$/, '')}`

function artifactOf(content: string, retry: string | undefined): Artifact {
  const id = idOf(content)
  const name = id.replace('_cluster/', '')
  return {
    ...{ id, kind: 'ClusterPipeline', namespace: undefined, name, uid: name, generation: 1, createdAt: '' },
    ...{ hash: content, labels: {}, mode: 'Node', hub: { subscriptions: [] }, sources: {}, transforms: {}, sinks: {} },
    ...{ secretRefs: [], sourceTypes: [], diskBufferBytes: 0 },
    ...(retry === undefined ? {} : { retry }),
    tenancy: { restricted: false, denyCidrs: [], allowHosts: [], cpuShare: 100 },
  }
}
