// Function `ipv6_to_ipv4`.

import { ipText, parseIp } from '../../formats/ip.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipv6ToIpv4 = defineFunction({
  name: 'ipv6_to_ipv4',
  category: 'IP',
  summary: 'Returns the IPv4 address mapped in an IPv6 address.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The address.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The address does not contain an IPv4 address.', 'The text is not an address.'],
  pure: true,
  examples: [
    { source: 'ipv6_to_ipv4!("::ffff:192.168.0.1")', result: '"192.168.0.1"' },
    { source: 'ipv6_to_ipv4!("10.0.0.1")', result: '"10.0.0.1"' },
    { source: 'ipv6_to_ipv4("2001:db8::1") ?? "none"', result: '"none"' },
  ],
  compile:
    () =>
    (value: string): Result => {
      const bytes = parseIp(value)
      if (bytes === undefined) return failure('unable to parse IP address: invalid IP address syntax')
      if (bytes.length === 4) return ipText(bytes)
      const zeros = bytes.subarray(0, 10).every((byte) => byte === 0)
      const mapped = zeros && bytes[10] === 255 && bytes[11] === 255
      const compatible = zeros && bytes[10] === 0 && bytes[11] === 0
      return mapped || compatible
        ? ipText(bytes.subarray(12))
        : failure(`IPV6 address ${ipText(bytes)} is not compatible with IPV4`)
    },
})
