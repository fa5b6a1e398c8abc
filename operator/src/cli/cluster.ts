// How sub-commands connect to a cluster: like kubectl, with kubeconfig, context and namespace.

import { PenstockError } from '@penstock/agent/errors'
import type { Flags } from '@penstock/agent/program'
import { kindOf } from '../api/kinds.ts'
import type { ResourceType } from '../api/object.ts'
import { createKubeClient, type KubeClient } from '../kube/client.ts'
import { KubeConnection } from '../kube/connection.ts'

/** Flags of every command that accesses a cluster. */
export const connectionOptions = {
  kubeconfig: { type: 'string', value: 'FILE', help: 'Kubeconfig, as for kubectl.' },
  context: { type: 'string', value: 'NAME', help: 'Context of the kubeconfig, as in kubectl.' },
  as: { type: 'string', value: 'USER', help: 'User to impersonate, as in kubectl.' },
  'as-group': {
    type: 'string',
    multiple: true,
    value: 'GROUP',
    help: 'With --as: group to impersonate, as in kubectl. May be repeated.',
  },
} as const satisfies Flags

/** @param what is in the namespace */
export function namespaceOption(what: string) {
  return {
    namespace: { type: 'string', short: 'n', value: 'NS', help: `Namespace ${what} (that of the context).` },
  } as const satisfies Flags
}

export interface ClusterFlags {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly as?: string | undefined
  readonly 'as-group'?: readonly string[] | undefined
  readonly namespace?: string | undefined
  readonly 'all-namespaces'?: boolean | undefined
}

export interface ClusterAccess {
  readonly client: KubeClient
  /** Undefined: all of them. */
  readonly namespace: string | undefined
}

export async function openConnection(flags: ClusterFlags): Promise<KubeConnection> {
  const { kubeconfig, context, as, 'as-group': asGroups } = flags
  if (as === undefined && asGroups !== undefined && asGroups.length > 0)
    throw new PenstockError('PEN_USAGE', '`--as-group` needs `--as USER`.')
  return KubeConnection.open({ kubeconfig, context, as, asGroups })
}

export async function connect(flags: ClusterFlags): Promise<ClusterAccess> {
  if (flags['all-namespaces'] === true && flags.namespace !== undefined) {
    throw new PenstockError('PEN_USAGE', 'Give `-n NAMESPACE` or `-A`, not both.')
  }
  const connection = await openConnection(flags)
  const namespace =
    flags['all-namespaces'] === true ? undefined : (flags.namespace ?? connection.namespace ?? 'default')
  return { client: createKubeClient(connection), namespace }
}

/** The type of a kind of ours. */
export function typeOf(kind: string): ResourceType {
  const found = kindOf(kind)
  if (found === undefined) throw new Error(`There is no kind ${kind}.`)
  return found
}
