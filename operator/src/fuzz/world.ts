// The cluster of a hostile tenant: another tenant with a Pipeline and secrets, a ClusterSink that all tenants may use, one that no tenant
// may use, and the tenant's namespace. It never changes, so all cases share it.

import type { KubeObject } from '../api/object.ts'
import type { CompileJob } from '../compile/job.ts'
import { referredObjects } from '../compile/secrets.ts'

type Table = Record<string, unknown>

/** The hostile tenant's namespace and Pipeline. */
export const tenant = { namespace: 'evil', pipeline: 'p', id: 'evil/p' }
export const victim = { namespace: 'shop', pipeline: 'checkout', id: 'shop/checkout' }
/** The namespace of the secrets of ClusterSinks. */
export const platform = 'platform'

/** Text that only the victim's resources contain. The tenant's agents must never receive it. */
export const victimText = 'victims-own.internal'

export function object(kind: string, name: string, spec: unknown, namespace?: string): KubeObject {
  return {
    apiVersion: 'penstock.dev/v1alpha1',
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: `uid-${namespace}-${name}`,
      generation: 1,
    },
    spec,
  } as KubeObject
}

const secret = (name: string, key: string, extra: Table = {}) => ({
  valueFrom: { secretKeyRef: { name, key, ...extra } },
})

/** The fields that the owner of the ClusterSink `store` has set. Tenants may override only `labels`. */
export const storeSpec = {
  type: 'log_aggregator',
  allowedNamespaces: { from: 'All' },
  overridable: ['labels'],
  enforced: { tenant_id: '{{ orchestrator.pod_namespace }}', labels: { cluster: 'prod' } },
  config: {
    endpoint: 'http://store.platform.internal/',
    labels: { team: 'none' },
    encoding: { codec: 'json' },
    auth: { strategy: 'bearer', token: secret('store', 'token', { namespace: platform }) },
  },
}

const closedSpec = {
  type: 'http',
  allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team: 'platform' } } },
  config: {
    uri: `http://${victimText}/closed`,
    encoding: { codec: 'json' },
    auth: { strategy: 'bearer', token: secret('closed', 'token', { namespace: platform }) },
  },
}

const victimSink = {
  type: 'http',
  config: {
    uri: `http://${victimText}/`,
    encoding: { codec: 'json' },
    auth: { strategy: 'bearer', token: secret('creds', 'token') },
  },
}

export const victimPipeline = object(
  'Pipeline',
  victim.pipeline,
  {
    secrets: [{ alias: 'own', secretName: 'creds' }],
    sources: [{ name: 'app', type: 'orchestrator_logs' }],
    transforms: [{ name: 'parse', type: 'remap', config: { source: `.at = "${victimText}"` } }],
    sinks: [
      { name: 'out', ref: { kind: 'Sink', name: 'out' } },
      {
        name: 'copy',
        type: 'http',
        config: {
          uri: 'http://x.example/',
          encoding: { codec: 'json' },
          request: { headers: { t: 'SECRET[own.token]' } },
        },
      },
      { name: 'store', ref: { kind: 'ClusterSink', name: 'store' } },
    ],
  },
  victim.namespace,
)

/** All resources except the tenant's own. A compile receives all of them, although the operator passes fewer. */
export const otherResources: readonly KubeObject[] = [
  object('ClusterSink', 'store', storeSpec),
  object('ClusterSink', 'closed', closedSpec),
  object('ClusterSource', 'store', { type: 'orchestrator_logs', allowedNamespaces: { from: 'All' } }),
  object('Sink', 'out', victimSink, victim.namespace),
  object('Source', 'logs', { type: 'orchestrator_logs', config: { max_line_bytes: 4321 } }, victim.namespace),
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: tenant.namespace, labels: { team: 'evil' } } } as KubeObject,
]

const keysOfObjects: Readonly<Record<string, readonly string[]>> = {
  'Secret shop/creds': ['token'],
  'Secret shop/other': ['token', 'key'],
  'Secret platform/store': ['token'],
  'Secret platform/closed': ['token'],
  'Secret evil/creds': ['token', 'url', 'user'],
  'ConfigMap evil/settings': ['token', 'url'],
}

/** A compile job as the operator creates it, with the keys of all referenced objects. */
export function jobOf(pipeline: KubeObject, own: readonly KubeObject[], policy: CompileJob['policy']): CompileJob {
  const resources = [...otherResources, ...own]
  const keys: Record<string, readonly string[] | null> = { ...keysOfObjects }
  for (const each of [pipeline, ...resources]) {
    for (const { kind, namespace, name } of referredObjects(
      (each as { spec?: unknown }).spec,
      each.metadata.namespace,
    )) {
      keys[`${kind} ${namespace}/${name}`] ??= null
    }
  }
  return {
    pipeline: pipeline as CompileJob['pipeline'],
    resources,
    policy,
    keys,
    apiHosts: ['10.96.0.1', 'kubernetes.default.svc'],
    clusterName: 'prod',
  }
}
