// The identity of the agent and its machine: its environment, its files, and the services on the node that issue credentials. Components
// can get it only from here, and the components of tenants do not get it.

import type { Environment } from '../environment.ts'
import type { EgressOptions } from '../net/egress.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { HttpClient } from './client.ts'

export interface Identity {
  readonly env: Environment
  /** A client for services at addresses that the component's own client must not connect to; undefined if there are none. */
  readonly nodeClient?: HttpClient | undefined
}

/** Undefined for a component of a tenant, unless its TenantPolicy has `implicitCredentials: Allow` (T5). */
export function identityFor(
  proxy: ProxyOptions & { readonly egress?: EgressOptions | undefined },
): Identity | undefined {
  const { egress, ...open } = proxy
  if (egress === undefined) return { env: process.env }
  if (egress.implicitCredentials !== true) return undefined
  // It need not be closed, because its idle connections end by themselves.
  return { env: process.env, nodeClient: new HttpClient({ tls: compileTls(defaultTls), proxy: compileProxy(open) }) }
}

/** The message for a tenant's component without explicit credentials. */
export const noIdentity =
  'A namespaced resource cannot use the identity of the agent and its node (T5), unless its TenantPolicy has `implicitCredentials: Allow`. Configure explicit credentials.'
