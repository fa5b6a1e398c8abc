// Function `ip_cidr_contains`.

import type { Value } from '../../event/value.ts'
import { type Cidr, inCidr, parseCidr, parseIp } from '../../formats/ip.ts'
import { type CallSite, defineFunction, failure, isFailure, type RemapError, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const ipCidrContains = defineFunction({
  name: 'ip_cidr_contains',
  category: 'IP',
  summary: 'Tells whether an IP address lies in a block, or in one of several.',
  parameters: [
    { name: 'cidr', kind: kinds.string.or(kinds.array), description: 'The block, or an array of blocks.' },
    { name: 'value', kind: kinds.string, description: 'The address.' },
  ],
  returns: kinds.boolean,
  fallible: 'always',
  errors: ['A block is not valid.', 'The text is not an address.'],
  pure: true,
  examples: [
    { source: 'ip_cidr_contains!("192.168.0.0/16", "192.168.10.32")', result: 'true' },
    { source: 'ip_cidr_contains!("192.168.0.0/16", "10.0.0.1")', result: 'false' },
    { source: 'ip_cidr_contains!(["10.0.0.0/8", "2001:db8::/32"], "2001:db8::1")', result: 'true' },
  ],
  compile(call: CallSite) {
    const given = call.constant('cidr')
    const known = given === undefined ? undefined : blocksOf(given)
    if (isFailure(known)) call.reject(known.message)
    return (cidr: Value, value: string): Result => {
      const blocks = known ?? blocksOf(cidr)
      if (isFailure(blocks)) return blocks
      const address = parseIp(value)
      if (address === undefined) return failure(`unable to parse IP address: ${value}`)
      return blocks.some((block) => inCidr(address, block))
    }
  },
})

function blocksOf(value: Value): Cidr[] | RemapError {
  const blocks: Cidr[] = []
  for (const item of Array.isArray(value) ? value : [value]) {
    const block = typeof item === 'string' ? parseCidr(item) : undefined
    if (block === undefined) return failure(`unable to parse CIDR: ${valueText(item)}`)
    blocks.push(block)
  }
  return blocks
}
