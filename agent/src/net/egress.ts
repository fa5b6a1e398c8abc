// The addresses that a tenant's component may connect to. They are checked after name resolution, so a name that resolves to the node,
// to the metadata service of a cloud or to the API server is rejected like the address itself.

import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { PenstockError } from '../errors.ts'
import { Networks } from './networks.ts'

export interface EgressOptions {
  /** Denied networks such as `169.254.0.0/16`, single addresses, and names. */
  readonly deny: readonly string[]
  /** The only permitted hosts; `*.example.com` includes all subdomains. All hosts if empty. */
  readonly allowHosts?: readonly string[] | undefined
  /** Whether the component may use the credentials of the agent and its node, which a service at a denied address issues. */
  readonly implicitCredentials?: boolean | undefined
  /** Additional denied hosts that change while the agent runs, such as the endpoints of the API server. */
  readonly changing?: ChangingHosts | undefined
  /** Proxies from the agent's own environment, which may have any address. */
  readonly ownProxies?: readonly Origin[] | undefined
}

/** A changeable set of denied addresses and names. */
export class ChangingHosts {
  #networks = new Networks([])
  #names: ReadonlySet<string> = new Set()

  set(hosts: readonly string[]): void {
    this.#networks = new Networks(hosts)
    this.#names = new Set(hosts.map(bareName))
  }

  /** @param host a name or an address, normalized by `bareName` */
  has(host: string): boolean {
    return this.#names.has(host) || this.#networks.has(host)
  }
}

interface Origin {
  readonly host: string
  readonly port: number
}

/** Resolves a name to all of its addresses. */
export type ResolveAll = (
  host: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

export class Egress {
  readonly #denied: Networks
  readonly #changing: ChangingHosts | undefined
  readonly #deniedNames = new Set<string>()
  readonly #allowed: readonly string[]
  readonly #ownProxies: readonly Origin[]
  readonly #resolve: ResolveAll

  constructor(options: EgressOptions, resolve: ResolveAll = lookup) {
    this.#allowed = (options.allowHosts ?? []).map(bareName)
    this.#ownProxies = options.ownProxies ?? []
    this.#resolve = resolve
    this.#denied = new Networks(options.deny)
    this.#changing = options.changing
    for (const each of options.deny) {
      if (isIP(each.split('/')[0] ?? '') === 0) this.#deniedNames.add(bareName(each))
    }
  }

  /** Throws PEN_EGRESS_DENIED if a host is denied by its name alone. Call it before each connection. */
  check(host: string): void {
    const name = bareName(host)
    if (isIP(name) !== 0) this.#checkAddress(name, host)
    if (this.#deniedNames.has(name) || this.#changing?.has(name) === true) throw denied(`The host "${host}"`)
    if (this.#allowed.length === 0 || this.#allowed.some((each) => isBelow(name, each))) return
    const why = `is not among the hosts that the TenantPolicy permits for the namespace (rule T7): ${this.#allowed.join(', ')}. Use one of them, or ask the platform team to provide the destination as a ClusterSink.`
    throw new PenstockError('PEN_EGRESS_DENIED', `The host "${host}" ${why}`, { fact: `The host ${why}` })
  }

  #checkAddress(address: string, host: string): void {
    if (!this.#denied.has(address) && this.#changing?.has(address) !== true) return
    const leads = bareName(host) === address ? '' : `, to which "${host}" leads,`
    throw denied(`The address ${address}${leads}`)
  }

  /** Resolves a name for a socket. Fails if any of the addresses is denied. */
  readonly lookup: LookupFunction = (host, options: LookupOptions, callback) => {
    this.#resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      try {
        for (const { address } of addresses) this.#checkAddress(address, host)
      } catch (refused) {
        return callback(refused as Error, [])
      }
      const [first] = addresses
      if (options.all === true || first === undefined) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }

  isOwnProxy({ host, port }: Origin): boolean {
    return this.#ownProxies.some((own) => own.host === host && own.port === port)
  }

  /**
   * Rejects with PEN_EGRESS_DENIED if a connection to a host through a proxy is not permitted. The proxy resolves the name itself, so
   * the addresses that it has here are only a guess. A name that does not resolve here passes this check.
   */
  async checkBehindProxy(host: string): Promise<void> {
    this.check(host)
    if (isIP(bareName(host)) !== 0) return
    const addresses = await new Promise<readonly LookupAddress[]>((resolve) => {
      this.#resolve(host, { all: true }, (error, found) => resolve(error === null ? found : []))
    })
    for (const { address } of addresses) this.#checkAddress(address, host)
  }
}

function denied(what: string): PenstockError {
  const why = `is not accessible to namespaced resources (rule T7): it belongs to the node, the cluster or its provider, or the TenantPolicy denies it. Use the address of a service, or ask the platform team to provide the destination as a ClusterSink.`
  return new PenstockError('PEN_EGRESS_DENIED', `${what} ${why}`, { fact: `An address of the destination ${why}` })
}

/** Normalizes a host for comparison: lowercase, without brackets, and without a trailing dot. */
function bareName(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
}

function isBelow(name: string, pattern: string): boolean {
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern
}
