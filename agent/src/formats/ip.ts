// IP addresses and address blocks as text and as bytes. The grammar is strict: no leading zeros, no zone.

/** The four bytes of an IPv4 address, most significant first; undefined if the text is not one. */
export function parseIpv4(text: string): Uint8Array | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (match === null) return undefined
  const bytes = new Uint8Array(4)
  for (let index = 0; index < 4; index++) {
    const part = match[index + 1] as string
    if ((part.length > 1 && part[0] === '0') || Number(part) > 255) return undefined
    bytes[index] = Number(part)
  }
  return bytes
}

/** The sixteen bytes of an IPv6 address; undefined if the text is not one. */
export function parseIpv6(text: string): Uint8Array | undefined {
  let hex = text
  const last = text.lastIndexOf(':')
  if (text.includes('.')) {
    const ipv4 = parseIpv4(text.slice(last + 1))
    if (last < 0 || ipv4 === undefined) return undefined
    const [a = 0, b = 0, c = 0, d = 0] = ipv4
    hex = `${text.slice(0, last + 1)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  }
  const halves = hex.split('::')
  if (halves.length > 2) return undefined
  const groups = (half: string): string[] => (half === '' ? [] : half.split(':'))
  const left = groups(halves[0] as string)
  const right = halves.length === 2 ? groups(halves[1] as string) : []
  const missing = 8 - left.length - right.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const bytes = new Uint8Array(16)
  const all = [...left, ...Array<string>(halves.length === 2 ? missing : 0).fill('0'), ...right]
  for (let index = 0; index < 8; index++) {
    const group = all[index] as string
    if (!/^[0-9A-Fa-f]{1,4}$/.test(group)) return undefined
    const value = Number.parseInt(group, 16)
    bytes[index * 2] = value >> 8
    bytes[index * 2 + 1] = value & 255
  }
  return bytes
}

/** Four or sixteen bytes. */
export function parseIp(text: string): Uint8Array | undefined {
  return parseIpv4(text) ?? parseIpv6(text)
}

/** Formats four or sixteen bytes; IPv6 by RFC 5952. */
export function ipText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255) {
    return `::ffff:${bytes.subarray(12).join('.')}`
  }
  const groups: number[] = []
  for (let index = 0; index < 16; index += 2)
    groups.push(((bytes[index] as number) << 8) | (bytes[index + 1] as number))
  let start = -1
  let length = 1
  for (let index = 0; index < 8; index++) {
    let run = 0
    while (groups[index + run] === 0) run++
    if (run > length) {
      start = index
      length = run
    }
  }
  const text = (part: number[]): string => part.map((group) => group.toString(16)).join(':')
  return start < 0 ? text(groups) : `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`
}

/** A block of addresses. */
export interface Cidr {
  readonly address: Uint8Array
  readonly prefix: number
}

/** A block such as `10.0.0.0/8`; a single address counts as one. Undefined if the text is not one. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/')
  const address = parseIp(slash < 0 ? text : text.slice(0, slash))
  if (address === undefined) return undefined
  if (slash < 0) return { address, prefix: address.length * 8 }
  const prefix = parsePrefix(text.slice(slash), address.length)
  return prefix === undefined ? undefined : { address, prefix }
}

/** The length of a prefix such as `/24` for addresses of this size. */
function parsePrefix(text: string, bytes: number): number | undefined {
  if (!/^\/\d{1,3}$/.test(text)) return undefined
  const prefix = Number(text.slice(1))
  return prefix <= bytes * 8 ? prefix : undefined
}

export function inCidr(address: Uint8Array, block: Cidr): boolean {
  if (address.length !== block.address.length) return false
  const whole = block.prefix >> 3
  for (let index = 0; index < whole; index++) if (address[index] !== block.address[index]) return false
  const bits = block.prefix & 7
  if (bits === 0) return true
  const mask = (0xff << (8 - bits)) & 0xff
  return ((address[whole] as number) & mask) === ((block.address[whole] as number) & mask)
}
