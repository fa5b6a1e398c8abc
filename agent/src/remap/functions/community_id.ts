// Function `community_id`. ICMP types replace ports: the response type of a type takes the place of the other side's
// port.

import { createHash } from 'node:crypto'
import { isInteger } from '../../event/value.ts'
import { parseIp } from '../../formats/ip.ts'
import { type CallSite, defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const icmp: ReadonlyMap<number, number> = new Map([
  [8, 0],
  [0, 8],
  [13, 14],
  [14, 13],
  [15, 16],
  [16, 15],
  [17, 18],
  [18, 17],
  [10, 9],
  [9, 10],
])
const icmp6: ReadonlyMap<number, number> = new Map([
  [128, 129],
  [129, 128],
  [133, 134],
  [134, 133],
  [135, 136],
  [136, 135],
  [130, 131],
  [131, 130],
  [144, 145],
  [145, 144],
  [139, 140],
  [140, 139],
])
const withPorts = new Set([6, 17, 132])
const outOfRange = 'out of range integral type conversion attempted'

export const communityId = defineFunction({
  name: 'community_id',
  category: 'String',
  summary: 'Returns the Community ID (version 1) of a network flow.',
  parameters: [
    { name: 'source_ip', kind: kinds.string, description: 'Source address.' },
    { name: 'destination_ip', kind: kinds.string, description: 'Destination address.' },
    { name: 'protocol', kind: kinds.integer, description: 'Protocol number, such as 6 for TCP.' },
    { name: 'source_port', kind: kinds.integer, required: false, description: 'Source port, or ICMP type.' },
    {
      name: 'destination_port',
      kind: kinds.integer,
      required: false,
      description: 'Destination port, or ICMP code.',
    },
    { name: 'seed', kind: kinds.integer, required: false, description: 'Seed of the hash.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: [
    'An address is invalid, or the address families differ.',
    'The protocol is not between 0 and 255, or a port or the seed is not between 0 and 65535.',
    'Ports are missing for a protocol that has ports.',
  ],
  pure: true,
  examples: [
    { source: 'community_id!("1.2.3.4", "1.2.3.5", 6, 1, 2)', result: '"1:iYkF+oxBbtUeQHUwAtbPURamv8w="' },
    { source: 'community_id!("1.2.3.5", "1.2.3.4", 6, 2, 1)', result: '"1:iYkF+oxBbtUeQHUwAtbPURamv8w="' },
    { source: 'community_id!("1.2.3.4", "5.6.7.8", 46)', result: '"1:ikv3kmf89luf73WPz1jOs49S768="' },
    { source: 'community_id("1.2.3.4", "5.6.7.8", 58, 128, 0) ?? "no flow"', result: '"no flow"' },
    { source: 'community_id!("1.2.3.4", "1.2.3.5", 6, 1, 2, seed: 7)', result: '"1:LHDgQ/d83Bbz6znVQVmow+VnE1g="' },
  ],
  compile(call: CallSite) {
    for (const [name, max] of [
      ['protocol', 255],
      ['source_port', 65535],
      ['destination_port', 65535],
      ['seed', 65535],
    ] as const) {
      const given = call.given(name) ? call.constant(name) : undefined
      if (isInteger(given) && (given < 0 || given > max)) call.reject(`${name} must be between 0 and ${max}`)
    }
    return (
      sourceIp: string,
      destinationIp: string,
      protocolNumber: number | bigint,
      sourcePort: number | bigint | undefined,
      destinationPort: number | bigint | undefined,
      seedNumber: number | bigint | undefined,
    ): Result => {
      const source = parseIp(sourceIp)
      const destination = parseIp(destinationIp)
      const protocol = Number(protocolNumber)
      const seed = Number(seedNumber ?? 0)
      if (source === undefined) return failure('unable to parse source IP address: invalid IP address syntax')
      if (destination === undefined) return failure('unable to parse destination IP address: invalid IP address syntax')
      if (protocol < 0 || protocol > 255) return failure(`protocol must be between 0 and 255: ${outOfRange}`)
      for (const [name, port] of [
        ['source', sourcePort],
        ['destination', destinationPort],
      ] as const) {
        if (port !== undefined && (port < 0 || port > 65535)) {
          return failure(`${name} port must be between 0 and 65535: ${outOfRange}`)
        }
      }
      if (seed < 0 || seed > 65535) return failure(`seed must be between 0 and 65535: ${outOfRange}`)
      const icmpFlow = protocol === 1 || protocol === 58
      const hasPorts = icmpFlow || (sourcePort !== undefined && destinationPort !== undefined)
      if (withPorts.has(protocol) && !hasPorts) {
        return failure('src port and dst port should be set when protocol is tcp/udp/sctp')
      }
      if (source.length !== destination.length) return failure('src ip and dst ip should be same version!')
      if (protocol === 58 && source.length === 4) return failure('icmpv6 can not over ipv4!')
      let from = Number(sourcePort ?? 0)
      let to = Number(destinationPort ?? 0)
      let oneWay = false
      if (icmpFlow) {
        const answer = (protocol === 1 ? icmp : icmp6).get(from)
        if (answer === undefined) oneWay = true
        else to = answer
      }
      let [left, right] = [Buffer.from(source), Buffer.from(destination)]
      const order = Buffer.compare(left, right)
      // Between the ports of one IPv4 address, the low byte decides first.
      const turned = source.length === 4 ? swapped(from) > swapped(to) : from > to
      if (!oneWay && (order > 0 || (order === 0 && turned))) {
        ;[left, right] = [right, left]
        ;[from, to] = [to, from]
      }
      const head = Buffer.alloc(2)
      head.writeUInt16BE(seed)
      const tail = Buffer.alloc(hasPorts ? 6 : 2)
      tail[0] = protocol
      if (hasPorts) {
        tail.writeUInt16BE(from, 2)
        tail.writeUInt16BE(to, 4)
      }
      return `1:${createHash('sha1')
        .update(Buffer.concat([head, left, right, tail]))
        .digest('base64')}`
    }
  },
})

/** A 16-bit number with its two bytes exchanged. */
function swapped(number: number): number {
  return ((number & 0xff) << 8) | (number >> 8)
}
