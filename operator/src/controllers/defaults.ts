// The installation's resources: they are in the ConfigMap `penstock-defaults`, because a chart cannot contain objects of kinds that
// it installs itself. They are applied once those kinds are served. The ConfigMap, or the operator's ClusterRole, owns them, so they
// are deleted with it.

import { errorText } from '@penstock/agent/errors'
import { parseAllDocuments } from 'yaml'
import { clusterPipelineKind, kindOf } from '../api/kinds.ts'
import type { KubeObject, OwnerReference } from '../api/object.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { clusterRoleType, configMapType } from '../kube/resource-types.ts'
import { Authors } from '../policy/authors.ts'
import { defaultsName, operatorName } from '../workloads/installation-names.ts'
import { isApplied } from './applied.ts'
import { Controller, type ControllerMetrics } from './controller.ts'

const defaultsManager = 'penstock-defaults'

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}

export function defaultsPart(metrics: ControllerMetrics): OperatorPart {
  return {
    name: 'defaults',
    leaderOnly: true,
    async start(context) {
      const { caches, settings, logger, signal } = context
      const maps = caches.cache<KubeObject>(configMapType, { metadataOnly: true })
      /** Version of the applied ConfigMap. */
      let applied: string | undefined
      const controller = new Controller({
        name: 'defaults',
        logger,
        metrics,
        signal,
        workers: 1,
        async reconcile(_, limit) {
          const version = maps.get(settings.namespace, defaultsName)?.metadata.resourceVersion
          if (version === undefined || version === applied) return undefined
          await apply(context, limit)
          applied = version
          return undefined
        },
      })
      await caches.synced(signal)
      const subscription = maps.subscribe(({ object }) => {
        const { namespace, name } = object.metadata
        if (namespace === settings.namespace && name === defaultsName) controller.add(defaultsName)
      })
      controller.start(() => [defaultsName])
      return {
        async [Symbol.asyncDispose]() {
          subscription[Symbol.dispose]()
          await controller[Symbol.asyncDispose]()
        },
      }
    },
  }
}

async function apply(context: OperatorContext, signal: AbortSignal): Promise<void> {
  const kube = context.kube.as('defaults')
  const { settings, logger } = context
  const authors = Authors.of(context, 'defaults')
  const map = await kube.get<ConfigMap>(configMapType, settings.namespace, defaultsName, { signal })
  if (map === undefined) return
  const owner: OwnerReference = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: map.metadata.name,
    uid: map.metadata.uid ?? '',
  }
  let clusterOwner: OwnerReference | undefined
  for (const object of resourcesIn(map)) {
    const kind = kindOf(object.kind)
    if (kind === undefined) {
      logger.error(
        { kind: object.kind, config_map: defaultsName },
        'A default resource does not have a kind of Penstock.',
      )
      continue
    }
    if (!kind.namespaced && settings.rolesOnly) {
      logger.error(
        { kind: object.kind, name: object.metadata.name, config_map: defaultsName },
        'Skipping a default resource of a Cluster kind, because this operator only has Roles.',
      )
      continue
    }
    if (!kind.namespaced && clusterOwner === undefined) {
      const role = await kube.get(clusterRoleType, undefined, operatorName, { signal })
      if (role !== undefined) {
        const { name, uid = '' } = role.metadata
        clusterOwner = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name, uid }
      }
    }
    const namespace = kind.namespaced ? (object.metadata.namespace ?? settings.namespace) : undefined
    // An owner must be in the same namespace, or cluster-scoped.
    const own = kind.namespaced ? (namespace === settings.namespace ? owner : undefined) : clusterOwner
    const metadata = { ...object.metadata, ...(namespace === undefined ? {} : { namespace }) }
    const wanted = { ...object, metadata: own === undefined ? metadata : { ...metadata, ownerReferences: [own] } }
    try {
      // A restart finds the objects that an earlier process applied.
      const live = await kube.get(kind, namespace, object.metadata.name, { signal })
      const isThere = live !== undefined && isApplied(live, wanted, defaultsManager)
      const applied = isThere ? live : await kube.apply(kind, wanted, { fieldManager: defaultsManager, signal })
      // The operator's own webhook may not answer yet.
      if (kind === clusterPipelineKind) await authors?.recordOwn(applied, object)
    } catch (error) {
      logger.error(
        { error: errorText(error), kind: object.kind, name: object.metadata.name },
        'Could not apply a default resource.',
      )
      throw error
    }
  }
}

/** The resources in the values of a ConfigMap: JSON lists, or YAML documents. */
function resourcesIn(map: ConfigMap): readonly KubeObject[] {
  return Object.entries(map.data ?? {})
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as unknown))
    .flatMap((value) => (Array.isArray(value) ? value : [value]) as KubeObject[])
    .filter((value) => typeof value === 'object' && value !== null)
}
