// The environment of a source of pod logs. A standalone source has its own connection and memory; in a bundle, many sources share a
// hub, and a subscription limits what each may read.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CurrentKeys } from '../../bytes/current-keys.ts'
import type { SourceContext, Subscription } from '../../component.ts'
import { PenstockError } from '../../errors.ts'
import { ApiServerClient } from '../../kube/client.ts'
import { inClusterTarget, kubeConfigTarget } from '../../kube/config.ts'
import { chunkPool } from '../../tailing/slab.ts'
import type { Tailer } from '../../tailing/tail.ts'
import type { TailOptions } from '../../tailing/tailed-file.ts'
import { untilAborted } from '../../timing/wait.ts'
import { version } from '../../version.ts'
import { KubeAccess } from './access.ts'
import { PodLogHub, type Selection } from './hub.ts'
import type { PodLogOptions } from './options.ts'
import type { PodFile } from './pod-file.ts'
import { PodMetadata } from './pod-metadata.ts'
import type { ThrottleLimits } from './throttle.ts'

export interface PodLogEnvironment {
  readonly node: string
  /** The parent folder of the pod folders. */
  readonly root: string
  readonly metadata: PodMetadata
  readonly limits: ThrottleLimits
  /** Interns names of members in lines. */
  readonly keys: CurrentKeys
  /** Whether an operator manages the agent. */
  readonly isManaged: boolean
  readonly tailing: Pick<
    TailOptions,
    'dataDir' | 'componentId' | 'find' | 'files' | 'pool' | 'reads' | 'turns' | 'maxRotatedFiles' | 'isDiskFull'
  >
  wantsPod(folder: string): boolean
  wantsContainer(folder: string, name: string): boolean
  /** Runs the tailer and informs it about pods until the source stops. */
  run(tailer: Tailer<PodFile>): Promise<void>
  /** The status of the API's answer to a version request. */
  probe(signal: AbortSignal): Promise<number>
}

type Context = Pick<
  SourceContext,
  'id' | 'globals' | 'logger' | 'events' | 'stopping' | 'hub' | 'subscription' | 'turns'
>

/** @param nodeLabels whether events include the labels of the node */
export async function environmentOf(
  options: PodLogOptions,
  context: Context,
  nodeLabels: boolean,
): Promise<PodLogEnvironment> {
  const { hub, subscription, turns } = context
  if (hub === undefined && subscription === undefined && turns === undefined) {
    const node = nodeName(options.self_node_name)
    const { kube_config_file } = options
    const target = await (kube_config_file === undefined ? inClusterTarget() : kubeConfigTarget(kube_config_file))
    return new Standalone(node, new ApiServerClient(target, `Penstock/${version}`), options, context, nodeLabels)
  }
  // Without this check, a pipeline of a bundle without a subscription would read the pods of all namespaces.
  if (!(hub instanceof PodLogHub) || subscription === undefined) {
    throw new PenstockError('PEN_INTERNAL', `The bundle does not list the pods that the source ${context.id} may read.`)
  }
  hub.metadata.keepFor(options.delay_deletion_ms)
  return new Subscribed(hub, subscription, context)
}

class Standalone implements PodLogEnvironment {
  readonly keys = new CurrentKeys()
  readonly node: string
  readonly root: string
  readonly metadata: PodMetadata
  readonly limits: ThrottleLimits = { perContainer: undefined, pipeline: undefined, shared: [] }
  readonly isManaged = false
  readonly tailing: PodLogEnvironment['tailing']
  readonly #client: ApiServerClient
  readonly #access: KubeAccess
  readonly #stopping: AbortSignal
  #tailer: Tailer<PodFile> | undefined

  constructor(node: string, client: ApiServerClient, options: PodLogOptions, context: Context, nodeLabels: boolean) {
    const dataDir = options.data_dir ?? context.globals.dataDir
    this.node = node
    this.root = resolve(options.logs_dir)
    this.metadata = new PodMetadata()
    this.metadata.keepFor(options.delay_deletion_ms)
    this.tailing = { dataDir, componentId: context.id, pool: chunkPool() }
    this.#client = client
    this.#stopping = context.stopping
    this.#access = new KubeAccess(
      client,
      {
        node,
        namespaces: options.insert_namespace_fields,
        nodeLabels,
        fromCache: options.use_apiserver_cache,
        fieldSelector: options.extra_field_selector,
        labelSelector: options.extra_label_selector,
        namespaceLabelSelector: options.extra_namespace_label_selector,
        leftOutFile: join(dataDir, context.id, 'left-out.json'),
        keptPodsDir: join(dataDir, context.id, 'pods'),
      },
      this.metadata,
      context,
      () => this.#tailer?.reconsider(),
    )
  }

  wantsPod(folder: string): boolean {
    return this.#access.wants(folder)
  }

  wantsContainer(folder: string, name: string): boolean {
    return this.metadata.pod(folder)?.excludedContainers.has(name) !== true
  }

  async run(tailer: Tailer<PodFile>): Promise<void> {
    this.#tailer = tailer
    const { root } = this
    const access = this.#access
    const ending = new AbortController()
    const { listed, ended } = access.start(AbortSignal.any([this.#stopping, ending.signal]))
    const forget = setInterval(() => {
      for (const folder of this.metadata.expire(Date.now())) {
        if (existsSync(`${root}/${folder}`)) access.recheck(folder, () => tailer.leave(`${root}/${folder}`))
      }
      access.forget((folder) => existsSync(`${root}/${folder}`))
    }, 1000)
    try {
      await listed
      await tailer.run()
    } finally {
      this.keys.close()
      clearInterval(forget)
      ending.abort()
      await this.#client.close()
      await ended
    }
  }

  async probe(signal: AbortSignal): Promise<number> {
    try {
      return (await this.#client.json('/version', signal)).status
    } finally {
      if (this.#tailer === undefined) await this.#client.disconnect()
    }
  }
}

class Subscribed implements PodLogEnvironment {
  readonly node: string
  readonly root: string
  readonly metadata: PodMetadata
  readonly limits: ThrottleLimits
  readonly keys: CurrentKeys
  readonly isManaged = true
  readonly tailing: PodLogEnvironment['tailing']
  readonly #hub: PodLogHub
  readonly #subscription: Subscription
  readonly #selection: Selection
  readonly #stopping: AbortSignal

  constructor(hub: PodLogHub, subscription: Subscription, context: Context) {
    this.node = hub.node
    this.root = hub.root
    this.metadata = hub.metadata
    this.#hub = hub
    this.#subscription = subscription
    this.#selection = hub.select(subscription)
    this.#stopping = context.stopping
    const { perContainer, pipeline, shared = [] } = subscription.limits ?? {}
    const pipelineUid = subscription.cursor.split('/')[0] ?? ''
    this.limits = {
      perContainer,
      pipeline: pipeline === undefined ? undefined : hub.limiter(pipelineUid, pipeline),
      shared: shared.map(({ key, bytes }) => hub.limiter(key, { bytes, onLimit: 'lag' })),
    }
    this.keys = hub.keys(subscription)
    this.tailing = {
      dataDir: hub.cursorsDir,
      componentId: subscription.cursor,
      find: (rules, hooks) => hub.find(rules, hooks),
      pool: hub.pool,
      reads: hub.reads,
      files: hub.files,
      turns: context.turns,
      maxRotatedFiles: hub.maxRotatedFiles,
      isDiskFull: () => hub.isDiskFull,
    }
  }

  wantsPod(folder: string): boolean {
    return this.#selection.pod(folder)
  }

  wantsContainer(folder: string, name: string): boolean {
    return this.#selection.container(folder, name)
  }

  async run(tailer: Tailer<PodFile>): Promise<void> {
    const { root } = this
    const unfollow = this.#hub.follow(this.#subscription, (folder) => {
      if (folder !== undefined && this.#selection.excludes(folder)) tailer.leave(`${root}/${folder}`)
      tailer.reconsider(folder === undefined ? undefined : `${root}/${folder}`)
    })
    try {
      await untilAborted(this.#hub.listed(), this.#stopping)
      await tailer.run()
    } finally {
      unfollow()
      this.keys.close()
    }
  }

  async probe(signal: AbortSignal): Promise<number> {
    return (await this.#hub.client.json('/version', signal)).status
  }
}

function nodeName(option: string | undefined): string {
  // An unset variable leaves its placeholder, which is not a valid node name.
  if (option !== undefined && option !== '' && !/^\$\{.*\}$/.test(option)) return option
  const name = process.env['AGENT_SELF_NODE_NAME'] || process.env['VECTOR_SELF_NODE_NAME']
  if (name) return name
  throw new PenstockError(
    'PEN_NODE_NAME',
    'self_node_name config value or AGENT_SELF_NODE_NAME env var is not set. Set the variable from `spec.nodeName` by the downward API.',
  )
}
