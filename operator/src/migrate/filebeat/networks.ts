// Names of networks in conditions, as ranges of addresses.

const loopback = ['127.0.0.0/8', '::1/128']
const unspecified = ['0.0.0.0/32', '::/128']
const broadcast = ['255.255.255.255/32']
const multicast = ['224.0.0.0/4', 'ff00::/8']
const linkLocalUnicast = ['169.254.0.0/16', 'fe80::/10']
const privateOnes = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fd00::/8']
/** Multicast addresses of IPv6 with a scope, whatever their flags are. */
const ofScope = (scope: number) => Array.from({ length: 16 }, (_, flags) => `ff${flags.toString(16)}${scope}::/16`)
const linkLocalMulticast = ['224.0.0.0/24', ...ofScope(2)]
const interfaceLocalMulticast = ofScope(1)

const within: Readonly<Record<string, readonly string[]>> = {
  loopback,
  unspecified,
  multicast,
  private: privateOnes,
  link_local_unicast: linkLocalUnicast,
  link_local_multicast: linkLocalMulticast,
  interface_local_multicast: interfaceLocalMulticast,
}
const globalUnicast = [...broadcast, ...unspecified, ...loopback, ...multicast, ...linkLocalUnicast]
/** Networks that are all addresses except some. */
const outside: Readonly<Record<string, readonly string[]>> = {
  unicast: globalUnicast,
  global_unicast: globalUnicast,
  public: [
    ...privateOnes,
    ...loopback,
    ...unspecified,
    ...broadcast,
    ...linkLocalUnicast,
    ...linkLocalMulticast,
    ...interfaceLocalMulticast,
  ],
}

/**
 * A condition for an address in one of the networks; undefined if a name is unknown.
 * @param address the address, as an expression for a text
 */
export function networkTest(names: readonly string[], address: string): string | undefined {
  const ranges: string[] = []
  const others: string[] = []
  for (const name of names) {
    if (Object.hasOwn(within, name)) ranges.push(...(within[name] ?? []))
    else if (Object.hasOwn(outside, name))
      others.push(`!(ip_cidr_contains(${JSON.stringify(outside[name])}, ${address}) ?? true)`)
    else if (/^[\d.]+\/\d+$|^[\da-f:.]+\/\d+$/i.test(name)) ranges.push(name)
    else return undefined
  }
  if (ranges.length > 0) others.unshift(`(ip_cidr_contains(${JSON.stringify(ranges)}, ${address}) ?? false)`)
  return others.length === 0 ? undefined : others.length === 1 ? others[0] : `(${others.join(' || ')})`
}
