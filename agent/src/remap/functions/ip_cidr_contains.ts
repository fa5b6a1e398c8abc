// Function `ip_cidr_contains`.

import { Bytes, type Value } from '../../event/value.ts'
import { type Cidr, inCidr, parseCidr, parseIp } from '../../formats/ip.ts'
import { type CallSite, defineFunction, failure, isFailure, type RemapError, type Result } from '../function.ts'
import { isOfKind, kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

const blocks = kinds.string.or(kinds.array)

export const ipCidrContains = defineFunction({
  name: 'ip_cidr_contains',
  category: 'IP',
  summary: 'Returns whether an IP address is in an address block, or in one of several.',
  parameters: [
    {
      name: 'cidr',
      kind: blocks,
      ownCheck: true,
      description: 'The block, or an array of blocks.',
    },
    { name: 'value', kind: kinds.string, description: 'The address.' },
  ],
  returns: kinds.boolean,
  fallible: 'always',
  errors: ['A block is invalid, or its address is not the first one of the block.', 'The text is not an address.'],
  pure: true,
  examples: [
    { source: 'ip_cidr_contains!("192.168.0.0/16", "192.168.10.32")', result: 'true' },
    { source: 'ip_cidr_contains!("192.168.0.0/16", "10.0.0.1")', result: 'false' },
    {
      source: '.block = "192.168.0.1/16"\nip_cidr_contains(.block, "192.168.0.1") ?? "no block"',
      result: '"no block"',
    },
    { source: 'ip_cidr_contains!(["10.0.0.0/8", "2001:db8::/32"], "2001:db8::1")', result: 'true' },
  ],
  compile(call: CallSite) {
    const given = call.constant('cidr')
    const known = given === undefined ? undefined : itemsOf(given).map(blockOf)
    for (const block of known ?? []) if (isFailure(block)) call.reject(block.message)
    return (cidr: Value, value: string): Result => {
      const address = parseIp(value)
      if (address === undefined) return failure('unable to parse IP address: invalid IP address syntax')
      if (known === undefined && !isOfKind(cidr, blocks)) return failure(`expected ${blocks}, got ${textOfKind(cidr)}`)
      for (const item of known ?? itemsOf(cidr)) {
        const block = known === undefined ? blockOf(item as Value) : (item as Cidr)
        if (isFailure(block)) return block
        if (inCidr(address, block)) return true
      }
      return false
    }
  },
})

function itemsOf(value: Value): readonly Value[] {
  return Array.isArray(value) ? value : [value]
}

function blockOf(item: Value): Cidr | RemapError {
  if (typeof item !== 'string' && !(item instanceof Bytes)) return failure(`expected string, got ${textOfKind(item)}`)
  const block = parseCidr(String(item))
  if (block === undefined) return failure(`unable to parse CIDR: ${problemOf(String(item))}`)
  return startsAtItself(block) ? block : failure('unable to parse CIDR: host part of address was not zero')
}

function problemOf(text: string): string {
  const slash = text.lastIndexOf('/')
  const address = parseIp(slash < 0 ? text : text.slice(0, slash))
  if (address === undefined) return "couldn't parse address in network: invalid IP address syntax"
  const length = text.slice(slash + 1)
  const unreadable = "couldn't parse length in network:"
  if (length === '') return `${unreadable} cannot parse integer from empty string`
  if (!/^\d+$/.test(length)) return `${unreadable} invalid digit found in string`
  if (Number(length) > 255) return `${unreadable} number too large to fit in target type`
  const [family, max] = address.length === 4 ? ['Ipv4', 32] : ['Ipv6', 128]
  return `invalid length for network: Network length ${Number(length)} is too long for ${family} (maximum: ${max})`
}

/** Whether the address of a block is its first one. */
function startsAtItself({ address, prefix }: Cidr): boolean {
  return address.every((byte, index) => (byte & (0xff >> Math.max(0, Math.min(8, prefix - index * 8)))) === 0)
}
