// Function `ip_subnet`.

import { ipText, parseIp } from '../../formats/ip.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipSubnet = defineFunction({
  name: 'ip_subnet',
  category: 'IP',
  summary: 'Returns the network part of an IP address.',
  description: 'The prefix length `/0` leaves the address unchanged.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The address.' },
    { name: 'subnet', kind: kinds.string, description: 'A mask, or a prefix length such as `/24`.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: [
    'The address or the mask is invalid.',
    'Address and mask belong to different families.',
    'The prefix is too long.',
  ],
  pure: true,
  examples: [
    { source: 'ip_subnet!("192.168.10.32", "255.255.255.0")', result: '"192.168.10.0"' },
    { source: 'ip_subnet!("192.168.10.32", "/24")', result: '"192.168.10.0"' },
    { source: 'ip_subnet!("2001:db8::1", "/32")', result: '"2001:db8::"' },
    {
      source: '_, err = ip_subnet("::1", "255.0.0.0")\nerr',
      result:
        '"function call error for \\"ip_subnet\\" at (9:38): attempting to mask an ipv6 address with an ipv4 mask"',
    },
  ],
  compile:
    () =>
    (value: string, subnet: string): Result => {
      const address = parseIp(value)
      if (address === undefined) return failure('unable to parse IP address: invalid IP address syntax')
      const result = Uint8Array.from(address)
      if (subnet.startsWith('/')) {
        const prefix = /^\/\+?\d+$/.test(subnet) ? Number(subnet.slice(1)) : undefined
        if (prefix === undefined || prefix > 0xffffffff) return failure(`${subnet} is not a valid subnet`)
        const max = address.length * 8
        if (prefix > max) {
          const family = max === 32 ? 'ipv4' : 'ipv6'
          return failure(`subnet cannot be greater than ${max} for ${family} addresses`)
        }
        // `/0` leaves the address as it is.
        for (let index = 0; prefix > 0 && index < result.length; index++) {
          const bits = Math.max(0, Math.min(8, prefix - index * 8))
          result[index] = (result[index] as number) & (0xff << (8 - bits))
        }
        return ipText(result)
      }
      const mask = parseIp(subnet)
      if (mask === undefined) return failure('unable to parse mask: invalid IP address syntax')
      if (mask.length !== address.length) {
        const [one, other] = address.length === 4 ? ['ipv4', 'ipv6'] : ['ipv6', 'ipv4']
        return failure(`attempting to mask an ${one} address with an ${other} mask`)
      }
      for (let index = 0; index < result.length; index++)
        result[index] = (result[index] as number) & (mask[index] as number)
      return ipText(result)
    },
})
