// All inputs for compiling one Pipeline, collected from caches: its references, the policy of its namespace, and the key names in its
// Secrets. Values of Secrets are read only to list their keys.

import type { Urgency } from '@penstock/agent/program'
import {
  clusterPipelineKind,
  clusterSinkKind,
  clusterSourceKind,
  pipelineKind,
  sinkKind,
  sourceKind,
  tenantPolicyKind,
} from '../api/kinds.ts'
import { type KubeObject, objectKey } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { SourceResource } from '../api/source.ts'
import type { TenantPolicy } from '../api/tenant-policy.ts'
import type { CompileJob } from '../compile/job.ts'
import { referredObjects } from '../compile/secrets.ts'
import type { OperatorContext } from '../context.ts'
import type { Cache } from '../kube/cache.ts'
import { KubeError } from '../kube/client.ts'
import { configMapType, namespaceType, secretType } from '../kube/resource-types.ts'
import type { ApiAddresses } from './api-addresses.ts'
import { isAllowed } from './secret-access.ts'
import { Policies } from './tenant-policies.ts'

export class Gatherer implements Disposable {
  readonly pipelines: ReadonlyMap<string, Cache<Pipeline>>
  readonly shared: ReadonlyMap<string, Cache<SourceResource>>
  readonly namespaces: Cache<KubeObject>
  /** Undefined if Secrets cannot be watched. */
  readonly secrets: Readonly<Record<'Secret' | 'ConfigMap', Cache<KubeObject>>> | undefined
  readonly policies: Policies
  readonly #context: OperatorContext
  readonly #apiAddresses: ApiAddresses
  /** Keys of Secrets and ConfigMaps, by version. */
  readonly #keys = new Map<string, { readonly version: string; readonly keys: Promise<readonly string[] | null> }>()

  constructor(context: OperatorContext, apiAddresses: ApiAddresses) {
    this.#context = context
    this.#apiAddresses = apiAddresses
    const { caches, settings } = context
    const cluster = settings.watchNamespaces === undefined
    this.pipelines = new Map(
      [pipelineKind, ...(cluster ? [clusterPipelineKind] : [])].map((kind) => [
        kind.kind,
        caches.cache<Pipeline>(kind),
      ]),
    )
    this.shared = new Map(
      [sourceKind, sinkKind, ...(cluster ? [clusterSourceKind, clusterSinkKind] : [])].map((kind) => [
        kind.kind,
        caches.cache<SourceResource>(kind),
      ]),
    )
    this.namespaces = caches.cache(namespaceType, { metadataOnly: true })
    this.secrets =
      settings.secretsMode === 'Namespaced'
        ? undefined
        : {
            Secret: caches.cache(secretType, { metadataOnly: true }),
            ConfigMap: caches.cache(configMapType, { metadataOnly: true }),
          }
    this.policies = new Policies(cluster ? caches.cache<TenantPolicy>(tenantPolicyKind) : undefined, this.namespaces)
  }

  [Symbol.dispose](): void {
    this.policies[Symbol.dispose]()
  }

  /** Forgets the keys of a removed object. */
  forget(name: string): void {
    this.#keys.delete(name)
  }

  /** @param urgent why someone waits for the job */
  async jobOf(pipeline: Pipeline, signal: AbortSignal, urgent?: Urgency): Promise<CompileJob> {
    const { namespace } = pipeline.metadata
    const resources: KubeObject[] = []
    for (const reference of referencesOf(pipeline)) {
      const [kind = '', key = ''] = reference.split(' ')
      const found = objectOf(this.shared.get(kind), key)
      if (found !== undefined) resources.push(plain(found))
    }
    const own = namespace === undefined ? undefined : this.namespaces.get(undefined, namespace)
    if (own !== undefined) resources.push(plain(own))
    const names = new Set([...secretsOf(pipeline), ...resources.flatMap((object) => secretsOf(object))])
    const keys: Record<string, readonly string[] | null> = {}
    await Promise.all(
      [...names].map(async (name) => {
        keys[name] = await this.keysIn(name, signal, urgent)
      }),
    )
    const policy = namespace === undefined ? undefined : this.policies.of(namespace)?.spec
    const { clusterName, watchNamespaces, rolesOnly } = this.#context.settings
    const unseen = { clusterKinds: watchNamespaces !== undefined, nodeLabels: rolesOnly }
    const { status: _, ...rest } = pipeline
    return { pipeline: rest, resources, policy, keys, apiHosts: this.#apiAddresses.current(), clusterName, unseen }
  }

  /** Names of the keys of a Secret or ConfigMap. Values are not kept. */
  async keysIn(name: string, signal: AbortSignal, urgent?: Urgency): Promise<readonly string[] | null> {
    const [kind, key = ''] = name.split(' ') as ['Secret' | 'ConfigMap', string]
    const [namespace, own] = key.split('/') as [string, string]
    const metadata = this.secrets?.[kind].get(namespace, own)
    if (this.secrets !== undefined && metadata === undefined) return null
    if (kind === 'Secret' && !isAllowed(this.#context.settings, metadata)) return null
    const version = metadata?.metadata.resourceVersion
    const known = this.#keys.get(name)
    if (known !== undefined && known.version === version) return known.keys
    const type = kind === 'Secret' ? secretType : configMapType
    const keys = this.#context.kube
      .as('pipeline')
      .get<KubeObject & { data?: object; binaryData?: object }>(type, namespace, own, { signal, urgent })
      .then((object) =>
        object === undefined
          ? null
          : [...Object.keys(object.data ?? {}), ...Object.keys(object.binaryData ?? {})].sort(),
      )
      .catch((error: unknown) => {
        this.#keys.delete(name)
        // In mode Namespaced, a Secret in a namespace that does not grant access is treated as missing.
        if (error instanceof KubeError && error.status === 403) return null
        throw error
      })
    if (version !== undefined) this.#keys.set(name, { version, keys })
    return keys
  }
}

/** The object of a key such as `shop/checkout`. */
export function objectOf<T extends KubeObject>(cache: Cache<T> | undefined, key: string): T | undefined {
  const [namespace, name] = key.includes('/') ? (key.split('/') as [string, string]) : [undefined, key]
  return cache?.get(namespace, name)
}

/** The parts of an object that affect compilation: without status and irrelevant metadata. */
export function plain<T extends KubeObject>(object: T): T {
  const { status: _, ...rest } = object as T & { status?: unknown }
  const { name, namespace, uid, generation, labels } = object.metadata
  const metadata = Object.fromEntries(
    Object.entries({ name, namespace, uid, generation, labels }).filter(([, value]) => value !== undefined),
  )
  return { ...rest, metadata } as unknown as T
}

/** `Sink shop/loki`, `ClusterSink loki` */
export function referencesOf(pipeline: Pipeline): string[] {
  const { namespace } = pipeline.metadata
  const entries = [...(pipeline.spec?.sources ?? []), ...(pipeline.spec?.sinks ?? [])]
  const names = entries.flatMap(({ ref }) => {
    if (ref === undefined) return []
    return `${ref.kind} ${ref.kind.startsWith('Cluster') ? ref.name : objectKey(namespace, ref.name)}`
  })
  return [...new Set(names)]
}

/** `Secret shop/creds`, `ConfigMap shop/ca` */
export function secretsOf(object: KubeObject): string[] {
  const { spec } = object as { spec?: unknown }
  return referredObjects(spec, object.metadata.namespace).map(
    ({ kind, namespace, name }) => `${kind} ${namespace}/${name}`,
  )
}
