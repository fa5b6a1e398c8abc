// The brokers behind a service address: finds the broker of each topic, and keeps one connection to each needed broker.

import { pause } from '../../clock.ts'
import { doubledMs, jittered } from '../../timing/backoff.ts'
import { Connection, type ConnectionSettings } from './connection.ts'
import { BrokerFailure, failureOf } from './failure.ts'
import { type BrokerAddress, parseServiceAddress, placeOf } from './routing.ts'
import { command } from './wire.ts'

/** Maximum number of redirects before a broker serves the topic. */
const maxRedirects = 20

const lookupType = { redirect: 0, connect: 1 } as const

export class Cluster {
  readonly #services: readonly BrokerAddress[]
  readonly #settings: ConnectionSettings
  readonly #connections = new Map<string, Promise<Connection>>()
  readonly #closing = new AbortController()
  #service = 0

  constructor(services: readonly BrokerAddress[], settings: ConnectionSettings) {
    this.#services = services
    this.#settings = settings
  }

  /** Connects to a broker of the service address. */
  async connect(): Promise<void> {
    await this.#serviceConnection()
  }

  /** Number of partitions of a topic; 0 for an unpartitioned topic. Throws a `BrokerFailure`, like all methods here. */
  async partitions(topic: string): Promise<number> {
    const connection = await this.#serviceConnection()
    const answer = await connection.ask(command.partitionedMetadata, 'a partition query for a topic', (fields, id) => {
      fields.text(1, topic)
      fields.integer(2, id)
    })
    return answer.number(1)
  }

  /** A connection to the broker that serves the topic. */
  async brokerOf(topic: string): Promise<Connection> {
    let connection = await this.#serviceConnection()
    let authoritative = false
    for (let redirects = 0; redirects < maxRedirects; redirects++) {
      const answer = await connection.ask(command.lookup, 'the look-up of a topic', (fields, id) => {
        fields.text(1, topic)
        fields.integer(2, id)
        if (authoritative) fields.integer(3, 1)
      })
      const broker = this.#brokerIn(answer.text(this.#secure ? 2 : 1) ?? '')
      const proxied = answer.number(8) === 1
      connection = await this.#connect(proxied ? connection.address : broker, proxied ? broker : undefined)
      if (answer.number(3) === lookupType.connect) return connection
      authoritative = answer.number(5) === 1
    }
    throw failureOf(new Error(`The look-up of the topic was redirected ${maxRedirects} times.`))
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('The sink was closed.'))
    const connections = [...this.#connections.values()]
    this.#connections.clear()
    for (const connecting of connections) {
      // A connection that failed to open needs no close.
      const connection = await connecting.catch(() => undefined)
      connection?.close()
    }
  }

  get #secure(): boolean {
    return this.#services[0]?.secure === true
  }

  #brokerIn(url: string): BrokerAddress {
    const parsed = parseServiceAddress(url)
    const broker = typeof parsed === 'string' ? undefined : parsed[0]
    if (broker !== undefined && broker.secure === this.#secure) return broker
    throw new BrokerFailure(
      `The look-up of the topic returned no broker address with${this.#secure ? '' : 'out'} TLS.`,
      { type: 'request_failed', code: 'broker_no_address', fields: { tls: this.#secure } },
      'retry',
    )
  }

  async #serviceConnection(): Promise<Connection> {
    const address = this.#services[this.#service % this.#services.length] as BrokerAddress
    try {
      return await this.#connect(address, undefined)
    } catch (error) {
      this.#service++ // tries the next service address
      throw error
    }
  }

  async #connect(address: BrokerAddress, broker: BrokerAddress | undefined): Promise<Connection> {
    const key = broker === undefined ? placeOf(address) : `${placeOf(address)} ${placeOf(broker)}`
    const known = this.#connections.get(key)
    if (known !== undefined) return known
    const forget = () => {
      if (this.#connections.get(key) === connecting) this.#connections.delete(key)
    }
    const connecting: Promise<Connection> = Connection.open(
      address,
      broker,
      this.#settings,
      forget,
      this.#closing.signal,
    ).catch((error: unknown) => {
      forget()
      throw failureOf(error)
    })
    this.#connections.set(key, connecting)
    return connecting
  }
}

export interface ConnectionRetries {
  readonly min_backoff_ms: number
  readonly max_backoff_secs: number
  readonly max_retries: number
}

/** Retries with exponential backoff while no broker is reachable. */
export async function reaching<T>(
  attempt: () => Promise<T>,
  retries: ConnectionRetries,
  report: (failure: BrokerFailure, delayMs: number) => void,
  signal: AbortSignal,
): Promise<T> {
  for (let tried = 0; ; tried++) {
    try {
      return await attempt()
    } catch (error) {
      const failure = failureOf(error)
      if (signal.aborted || !failure.unreached || tried >= retries.max_retries) throw failure
      const delay = jittered(doubledMs(tried, retries.min_backoff_ms, retries.max_backoff_secs * 1000), 'half')
      report(failure, delay)
      await pause(delay, signal)
    }
  }
}
