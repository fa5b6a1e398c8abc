// Decides which hosts need no proxy: `name`, `.domain` with its subdomains, an IP address, a CIDR block, `host:port` or `*`.

import { BlockList, isIP } from 'node:net'

export type NoProxy = (host: string, port: number) => boolean

export function compileNoProxy(patterns: readonly string[]): NoProxy {
  const rules = patterns.map((pattern) => compileRule(pattern.trim().toLowerCase()))
  return (host, port) => {
    const name = bareHost(host)
    return rules.some((rule) => rule(name, port))
  }
}

/** Normalizes a host name for comparison: lowercase, without brackets, and without a trailing dot. */
function bareHost(host: string): string {
  const lower = host.toLowerCase()
  if (lower.startsWith('[') && lower.endsWith(']')) return lower.slice(1, -1)
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

function compileRule(pattern: string): NoProxy {
  if (pattern === '') return () => false
  if (pattern === '*') return () => true
  const block = cidrBlock(pattern)
  if (block !== undefined) return (host) => isIP(host) !== 0 && block.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
  if (isIP(bareHost(pattern)) !== 0) {
    const same = new BlockList()
    same.addAddress(bareHost(pattern), isIP(bareHost(pattern)) === 6 ? 'ipv6' : 'ipv4')
    return (host) => isIP(host) !== 0 && same.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
  }
  const withPort = /^(.+):(\d+)$/.exec(pattern)
  if (withPort !== null) {
    const inner = compileRule(withPort[1] as string)
    const only = Number(withPort[2])
    return (host, port) => port === only && inner(host, port)
  }
  // `*.domain`, which other programs use, means the same as `.domain`.
  const domain = pattern.startsWith('*.') ? pattern.slice(1) : pattern
  if (domain.startsWith('.')) return (host) => host === domain.slice(1) || host.endsWith(domain)
  const name = bareHost(domain)
  return (host) => host === name
}

function cidrBlock(pattern: string): BlockList | undefined {
  const parts = /^([^/]+)\/(\d{1,3})$/.exec(pattern)
  if (parts === null) return undefined
  const family = isIP(parts[1] as string)
  const bits = Number(parts[2])
  if (family === 0 || bits > (family === 6 ? 128 : 32)) return undefined
  const block = new BlockList()
  block.addSubnet(parts[1] as string, bits, family === 6 ? 'ipv6' : 'ipv4')
  return block
}
