// The services on a node that give out its identity are closed to the connections of tenants, but not where a TenantPolicy lets
// them use that identity: then the agent asks for it by a client of its own, whose addresses no option names.

import { HttpClient } from '../http/client.ts'
import type { EgressOptions } from '../net/egress.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import type { ProxyOptions } from '../schema/groups.ts'

/** Undefined where there is no need of one, or no permission. Idle connections of it end by themselves. */
export function nodeClientFor(
  proxy: ProxyOptions & { readonly egress?: EgressOptions | undefined },
): HttpClient | undefined {
  const { egress, ...open } = proxy
  if (egress?.implicitCredentials !== true) return undefined
  return new HttpClient({ tls: compileTls(defaultTls), proxy: compileProxy(open) })
}
