// The address of a broker, `amqp[s]://user:password@host:port/vhost?timeout=seconds`. Messages about it never contain the password.

export interface AmqpAddress {
  readonly secure: boolean
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly vhost: string
  readonly timeoutMs: number
  /** Seconds; undefined for the broker's default. */
  readonly heartbeat: number | undefined
  readonly frameMax: number | undefined
  readonly channelMax: number | undefined
}

const defaultTimeoutMs = 10_000
/** Names of the parameters, and those that other clients know. */
const parameters = new Map([
  ['timeout', 'timeout'],
  ['connection_timeout', 'timeout'],
  ['heartbeat', 'heartbeat'],
  ['frame_max', 'frame_max'],
  ['frameMax', 'frame_max'],
  ['channel_max', 'channel_max'],
  ['channelMax', 'channel_max'],
])

/** Returns the parts of an address, or a text that describes what is wrong with it. */
export function parseAddress(text: string): AmqpAddress | string {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'amqp:' && url.protocol !== 'amqps:')) {
    return 'must be an address such as `amqp://user:password@host:5672/%2f`, with scheme amqp or amqps'
  }
  if (url.hostname === '') return 'names no host'
  const numbers = new Map<string, number>()
  for (const [name, value] of url.searchParams) {
    const known = parameters.get(name)
    if (known === undefined) {
      return `has the unknown parameter \`${name}\`, expected one of \`timeout\`, \`heartbeat\`, \`frame_max\`, \`channel_max\``
    }
    if (!/^\d{1,9}$/.test(value)) return `has the parameter \`${name}\`, which must be a whole number`
    numbers.set(known, Number(value))
  }
  const frameMax = numbers.get('frame_max')
  if (frameMax !== undefined && frameMax !== 0 && frameMax < 4096) return 'has a `frame_max` below 4096'
  const secure = url.protocol === 'amqps:'
  const anonymous = url.username === '' && url.password === ''
  const timeout = numbers.get('timeout')
  try {
    const path = decodeURIComponent(url.pathname.slice(1))
    return {
      secure,
      host: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : decodeURIComponent(url.hostname),
      port: url.port === '' ? (secure ? 5671 : 5672) : Number(url.port),
      user: anonymous ? 'guest' : decodeURIComponent(url.username),
      password: anonymous ? 'guest' : decodeURIComponent(url.password),
      vhost: path === '' ? '/' : path,
      timeoutMs: timeout === undefined || timeout === 0 ? defaultTimeoutMs : timeout * 1000,
      heartbeat: numbers.get('heartbeat'),
      frameMax,
      channelMax: numbers.get('channel_max'),
    }
  } catch {
    return 'has a percent sign that does not start an escape; write it as `%25`'
  }
}

/** The broker and its virtual host for messages. */
export function shownAddress({ secure, host, port, vhost }: AmqpAddress): string {
  const bracketed = host.includes(':') ? `[${host}]` : host
  return `${secure ? 'amqps' : 'amqp'}://${bracketed}:${port}/${encodeURIComponent(vhost)}`
}
