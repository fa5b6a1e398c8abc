// Sets of networks. They also match an IPv6 address that embeds an IPv4 address of the set: RFC 4291 (mapped, compatible), 6052 and 8215
// (NAT64), 7915 (translated), 3056 (6to4), 4380 (Teredo), 5214 (ISATAP).

import { BlockList, isIP } from 'node:net'

export class Networks {
  readonly #list = new BlockList()

  /** @param networks networks such as `169.254.0.0/16`, or single addresses; other texts are ignored */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = '', bits] = network.split('/')
      const version = isIP(address)
      if (version === 0) continue
      const family = version === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(bits), family)
    }
  }

  has(address: string): boolean {
    // A zone names the interface, not the address: fe80::1%eth0.
    const plain = address.replace(/%.*$/, '')
    const version = isIP(plain)
    if (version === 0) return false
    if (this.#list.check(plain, version === 6 ? 'ipv6' : 'ipv4')) return true
    return version === 6 && carriedAddresses(plain).some((carried) => this.#list.check(carried, 'ipv4'))
  }
}

/** IPv4 addresses embedded in an IPv6 address, in all forms that a router or host may translate. */
function carriedAddresses(address: string): string[] {
  const groups = groupsOf(address)
  const at = (index: number): number => groups[index] as number
  const dotted = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')
  const isZero = (from: number, to: number): boolean => groups.slice(from, to).every((group) => group === 0)
  const last = dotted(at(6), at(7))
  const found: string[] = []
  if (isZero(0, 6)) found.push(last) // compatible
  if (isZero(0, 5) && at(5) === 0xffff) found.push(last) // mapped
  if (isZero(0, 4) && at(4) === 0xffff && at(5) === 0) found.push(last) // translated
  if (at(0) === 0x64 && at(1) === 0xff9b) {
    found.push(last) // prefix of 96 bits, which both prefixes of NAT64 allow
    // The local prefix may be shorter: 48, 56 or 64 bits, with eight zero bits after bit 64.
    if (at(2) === 1) {
      found.push(dotted(at(3), ((at(4) & 255) << 8) | (at(5) >> 8)))
      found.push(dotted(((at(3) & 255) << 8) | (at(4) & 255), at(5)))
      found.push(dotted(((at(4) & 255) << 8) | (at(5) >> 8), ((at(5) & 255) << 8) | (at(6) >> 8)))
    }
  }
  if (at(0) === 0x2002) found.push(dotted(at(1), at(2))) // 6to4
  if (at(0) === 0x2001 && at(1) === 0) {
    found.push(dotted(at(2), at(3)), dotted(at(6) ^ 0xffff, at(7) ^ 0xffff)) // Teredo: its server, its client
  }
  if ((at(4) === 0 || at(4) === 0x200) && at(5) === 0x5efe) found.push(last) // ISATAP
  return found
}

/** The eight groups of a valid IPv6 address. */
function groupsOf(address: string): number[] {
  const text = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number)
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  })
  const [before = '', after] = text.split('::')
  const parse = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const head = parse(before)
  if (after === undefined) return head
  const tail = parse(after)
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}
