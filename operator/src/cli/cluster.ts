// How sub-commands that look at a cluster reach it: as kubectl does, by kubeconfig, context and namespace.

import { PenstockError } from '@penstock/agent/errors'
import { kindOf } from '../api/kinds.ts'
import type { ResourceType } from '../api/object.ts'
import { createKubeClient, type KubeClient } from '../kube/client.ts'
import { KubeConnection } from '../kube/connection.ts'

export const clusterOptions = {
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  namespace: { type: 'string', short: 'n' },
  'all-namespaces': { type: 'boolean', short: 'A', default: false },
} as const

export interface ClusterFlags {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly namespace?: string | undefined
  readonly 'all-namespaces'?: boolean | undefined
}

export interface ClusterAccess {
  readonly client: KubeClient
  /** Undefined: all of them. */
  readonly namespace: string | undefined
}

export async function connect(flags: ClusterFlags): Promise<ClusterAccess> {
  if (flags['all-namespaces'] === true && flags.namespace !== undefined) {
    throw new PenstockError('PEN_USAGE', 'Give `-n NAMESPACE` or `-A`, not both.')
  }
  const connection = await KubeConnection.open({ kubeconfig: flags.kubeconfig, context: flags.context })
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
