// The identity of the agent and its machine: its environment, its files, and the services on the node that give credentials out. This is
// the only place from which components get it, and a component of a tenant gets none.

import type { Environment } from '../environment.ts'
import type { EgressOptions } from '../net/egress.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { HttpClient } from './client.ts'

export interface Identity {
  readonly env: Environment
  /** For services at addresses that are closed to the component's own client; undefined where they are not. */
  readonly nodeClient?: HttpClient | undefined
}

/** Undefined for a component of a tenant, unless its TenantPolicy says `implicitCredentials: Allow` (T5). */
export function identityFor(
  proxy: ProxyOptions & { readonly egress?: EgressOptions | undefined },
): Identity | undefined {
  const { egress, ...open } = proxy
  if (egress === undefined) return { env: process.env }
  if (egress.implicitCredentials !== true) return undefined
  // Idle connections of it end by themselves.
  return { env: process.env, nodeClient: new HttpClient({ tls: compileTls(defaultTls), proxy: compileProxy(open) }) }
}

/** Why a tenant's component that names no credentials has none. */
export const noIdentity =
  'A namespaced resource does not use the identity of the agent and its node (T5), unless its TenantPolicy says `implicitCredentials: Allow`.'
