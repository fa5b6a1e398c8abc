// What comes with an installation: the objects of ConfigMap `penstock-defaults`, applied once their kinds are served. A release
// cannot create objects of kinds that it brings itself, so it leaves them here. Removing the ConfigMap removes them.

import { setTimeout as wait } from 'node:timers/promises'
import { canonicalJson } from '@penstock/agent/config/canonical'
import { errorText } from '@penstock/agent/errors'
import { type Kind, kindOf } from '../api/kinds.ts'
import { type KubeObject, type OwnerReference, objectKey, type ResourceType } from '../api/object.ts'
import { configMapType } from '../kube/types.ts'
import { defaultsName, operatorName } from '../workloads/installation.ts'
import { holds } from './agent.ts'
import type { OperatorContext, OperatorPart } from './context.ts'

const fieldManager = 'penstock-defaults'
const label = 'penstock.dev/defaults'
const followMs = 10_000
const clusterRoleType: ResourceType = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
}
const allowedKinds = ['Agent', 'ClusterSink', 'ClusterPipeline', 'TenantPolicy']

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}

interface DefaultObject extends KubeObject {
  readonly spec?: unknown
}

export function defaultsPart(): OperatorPart {
  return {
    name: 'defaults',
    leaderOnly: true,
    async start(context) {
      const ending = new AbortController()
      const signal = AbortSignal.any([context.signal, ending.signal])
      const defaults = new Defaults(context)
      for (const name of allowedKinds) defaults.cacheOf(name)
      await context.caches.synced(signal)
      const run = async () => {
        let failures = 0
        while (!signal.aborted) {
          let delay = followMs
          try {
            await defaults.reconcile()
            failures = 0
          } catch (error) {
            if (signal.aborted) return
            delay = Math.min(30_000, 1000 * 2 ** failures++)
            context.logger.warn({ error: errorText(error) }, 'The defaults could not be applied; trying again.')
          }
          await wait(delay, undefined, { signal, ref: false }).catch(() => {}) // ended
        }
      }
      const running = run()
      return {
        async [Symbol.asyncDispose]() {
          ending.abort()
          await running
        },
      }
    },
  }
}

export class Defaults {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  cacheOf(name: string) {
    const kind = kindOf(name)
    if (kind === undefined) throw new Error(`There is no kind ${name}.`)
    return this.#context.caches.cache<DefaultObject>(kind)
  }

  async reconcile(): Promise<void> {
    const { kube, settings, logger } = this.#context
    const source = await kube.get<ConfigMap>(configMapType, settings.namespace, defaultsName)
    if (source === undefined || source.metadata.deletionTimestamp !== undefined) return
    const wanted = this.#parse(source)
    const role = await kube.get<KubeObject>(clusterRoleType, undefined, operatorName)

    const keys = new Set<string>()
    for (const { kind, object } of wanted) {
      const namespace = kind.namespaced ? (object.metadata.namespace ?? settings.namespace) : undefined
      keys.add(`${kind.kind} ${objectKey(namespace, object.metadata.name)}`)
      // A namespaced owner must be in the same namespace; elsewhere, and for objects of the cluster, it is the operator's role.
      const owner = kind.namespaced && namespace === settings.namespace ? source : role
      const desired: DefaultObject = {
        apiVersion: object.apiVersion,
        kind: object.kind,
        metadata: {
          name: object.metadata.name,
          ...(namespace === undefined ? {} : { namespace }),
          labels: { ...object.metadata.labels, [label]: 'true' },
          ...(object.metadata.annotations === undefined ? {} : { annotations: object.metadata.annotations }),
          ...(owner === undefined ? {} : { ownerReferences: [referenceTo(owner)] }),
        },
        spec: object.spec ?? {},
      }
      const live = this.cacheOf(kind.kind).get(namespace, object.metadata.name)
      if (live !== undefined && holds(live, desired)) continue
      await kube.apply<DefaultObject>(kind, desired, { fieldManager })
    }
    for (const name of allowedKinds) {
      const kind = kindOf(name)
      if (kind === undefined) continue
      for (const object of this.cacheOf(name).values()) {
        const key = `${name} ${objectKey(object.metadata.namespace, object.metadata.name)}`
        if (object.metadata.labels?.[label] !== 'true' || keys.has(key)) continue
        await kube.delete(kind, object.metadata.namespace, object.metadata.name)
        logger.info({ object: key }, 'An object that the defaults no longer hold was removed.')
      }
    }
  }

  #parse(source: ConfigMap): { readonly kind: Kind; readonly object: DefaultObject }[] {
    const text = source.data?.['resources.json'] ?? '[]'
    let list: unknown
    try {
      list = JSON.parse(text)
    } catch (error) {
      throw new Error(`ConfigMap ${defaultsName}: resources.json is no JSON`, { cause: error })
    }
    if (!Array.isArray(list)) throw new Error(`ConfigMap ${defaultsName}: resources.json must be a list of objects`)
    return (list as DefaultObject[]).map((object, index) => {
      const kind = allowedKinds.includes(object?.kind) ? kindOf(object.kind) : undefined
      if (kind === undefined || typeof object.metadata?.name !== 'string')
        throw new Error(
          `ConfigMap ${defaultsName}: object ${index} must be one of ${allowedKinds.join(', ')} with a name; found ${canonicalJson(object?.kind ?? null)}`,
        )
      return { kind, object }
    })
  }
}

const referenceTo = ({ apiVersion, kind, metadata }: KubeObject): OwnerReference => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
})
