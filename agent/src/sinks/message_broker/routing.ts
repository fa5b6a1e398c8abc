// Topic names, broker addresses, and the partition of a key.

/** The full name of a topic: `t` becomes `persistent://public/default/t`; undefined if the name is invalid. */
export function fullTopicName(text: string): string | undefined {
  const match = /^(?:(persistent|non-persistent):\/\/)?(.+)$/s.exec(text)
  if (match === null) return undefined
  const [, domain, rest = ''] = match
  const parts = rest.split('/')
  if (parts.some((part) => part === '') || /[\p{Cc}]/u.test(rest)) return undefined
  if (parts.length === 1 && domain === undefined) return `persistent://public/default/${rest}`
  return parts.length === 3 ? `${domain ?? 'persistent'}://${rest}` : undefined
}

/** The topic name of one partition. */
export function partitionTopic(topic: string, partition: number): string {
  return `${topic}-partition-${partition}`
}

/** The partition of a key: the Java hash of its text, as all clients of this broker compute it. */
export function partitionOf(key: string, partitions: number): number {
  let hash = 0
  for (let index = 0; index < key.length; index++) hash = (Math.imul(hash, 31) + key.charCodeAt(index)) | 0
  return (hash & 0x7fffffff) % partitions
}

export interface BrokerAddress {
  readonly host: string
  readonly port: number
  readonly secure: boolean
}

/** The brokers of a service address, such as `pulsar://a:6650,b:6650`; a sentence if it is invalid. */
export function parseServiceAddress(text: string): readonly BrokerAddress[] | string {
  const match = /^(pulsar|pulsar\+ssl):\/\/([^/?#@]+)\/?$/.exec(text)
  if (match === null) {
    return 'must be an address of the form `pulsar://host:port` or `pulsar+ssl://host:port`, with several hosts separated by commas'
  }
  const secure = match[1] === 'pulsar+ssl'
  const addresses: BrokerAddress[] = []
  for (const part of (match[2] as string).split(',')) {
    const place = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(part.trim())
    const port = Number(place?.[3] ?? (secure ? 6651 : 6650))
    if (place === null || port === 0 || port > 65_535) {
      return `must name hosts as \`host:port\`, found ${JSON.stringify(part)}`
    }
    addresses.push({ host: place[1] ?? (place[2] as string), port, secure })
  }
  return addresses
}

/** `host:port`, as brokers write it. */
export function placeOf({ host, port }: BrokerAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
