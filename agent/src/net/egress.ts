// Where connections of a tenant's component may go: addresses are looked at after names have been resolved, so that a name which
// leads to the node, to the metadata service of a cloud or to the API server is refused like the address itself.

import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { PenstockError } from '../errors.ts'

export interface EgressOptions {
  /** Refused networks, as `169.254.0.0/16`, and single addresses. */
  readonly deny: readonly string[]
}

export class Egress {
  readonly #denied = new BlockList()

  constructor(options: EgressOptions) {
    for (const network of options.deny) {
      const [address = '', bits] = network.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.#denied.addAddress(address, family)
      else this.#denied.addSubnet(address, Number(bits), family)
    }
  }

  /** Throws PEN_EGRESS_DENIED if an address is refused. */
  check(address: string, host: string): void {
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
    const plain = mapped ?? address
    if (!this.#denied.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')) return
    const leads = host === address ? '' : `, to which "${host}" leads,`
    throw new PenstockError(
      'PEN_EGRESS_DENIED',
      `The address ${address}${leads} is closed to namespaced resources (rule T7): it belongs to the node, the cluster or its provider. Use an address of a service, or have the platform offer the destination as a ClusterSink.`,
    )
  }

  /** Resolves a name for a socket; a refused address fails it, even among others. */
  readonly lookup: LookupFunction = (host, options: LookupOptions, callback) => {
    lookup(host, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error !== null) return callback(error, [])
      try {
        for (const { address } of addresses) this.check(address, host)
      } catch (refused) {
        return callback(refused as Error, [])
      }
      const [first] = addresses
      if (options.all === true || first === undefined) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}
