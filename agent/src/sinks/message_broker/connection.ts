// One connection to a broker: the handshake, requests and their responses, keep-alive, and the broker's messages to
// producers. A failed connection is closed; its user is notified and opens another.

import type { Socket } from 'node:net'
import { timeoutSignal, timerMs } from '../../clock.ts'
import type { ProtobufWriter } from '../../formats/protobuf.ts'
import { openConnection } from '../../net/connect.ts'
import type { Egress } from '../../net/egress.ts'
import type { TlsSettings } from '../../net/tls.ts'
import type { BrokerCredentials } from './auth.ts'
import { BrokerFailure, brokerFailure, failureOf, timedOut } from './failure.ts'
import { type BrokerAddress, placeOf } from './routing.ts'
import { command, commandFrame, type Fields, frameSlack, protocolVersion, type Received, readCommand } from './wire.ts'

/** Maximum message size of a broker that does not announce one. */
const defaultMessageBytes = 5 << 20

/** Maximum frame size read: brokers send far smaller frames to producers. */
const maxFrameBytes = defaultMessageBytes + frameSlack

export interface ConnectionSettings {
  readonly tls: TlsSettings
  /** Restricts the addresses that may be dialled, including those that brokers redirect to. */
  readonly egress?: Egress | undefined
  readonly credentials: BrokerCredentials
  readonly clientVersion: string
  readonly connectTimeoutMs: number
  /** Timeout of a request. */
  readonly answerTimeoutMs: number
  /** Pings an idle connection after this time, and closes it after the same time again without an answer. */
  readonly keepAliveMs: number
}

/** The broker's messages to one producer. */
export interface ProducerListener {
  /** The messages of a send are stored. */
  received(sequence: bigint): void
  /** The messages of a send are refused. */
  refused(sequence: bigint, error: number, text: string): void
  /** The broker closed the producer; the failure gives the reason, which may be a move to another broker. */
  ended(failure: BrokerFailure): void
}

interface Question {
  readonly resolve: (answer: Received) => void
  readonly reject: (failure: BrokerFailure) => void
  readonly cancel: () => void
}

export class Connection {
  /** The dialled address. */
  readonly address: BrokerAddress
  maxMessageBytes = defaultMessageBytes
  /** Tags of the metric for sent bytes. */
  readonly tags: Readonly<Record<string, string>>
  /** Why the connection ended; undefined while it is open. */
  failure: BrokerFailure | undefined
  readonly #socket: Socket
  readonly #settings: ConnectionSettings
  readonly #questions = new Map<number, Question>()
  readonly #producers = new Map<number, ProducerListener>()
  readonly #whenEnded: () => void
  #handshake: Question | undefined
  #nextQuestion = 0
  #unread: Buffer[] = []
  #unreadBytes = 0
  /** Minimum number of buffered bytes before a read can make progress. */
  #neededBytes = 4
  /** Whether data arrived since the last keep-alive check. */
  #heard = true
  #asked = false
  #keepAlive: NodeJS.Timeout | undefined

  private constructor(address: BrokerAddress, socket: Socket, settings: ConnectionSettings, whenEnded: () => void) {
    this.address = address
    this.tags = { protocol: 'tcp', endpoint: placeOf(address) }
    this.#socket = socket
    this.#settings = settings
    this.#whenEnded = whenEnded
    socket.on('data', this.#read)
    socket.on('error', (error) => this.end(failureOf(error)))
    socket.on('close', () => this.end(failureOf(new Error('The broker closed the connection.'))))
  }

  /**
   * Connects and authenticates. @param broker the broker behind a proxy, in which case the proxy is dialled @param
   * whenEnded called once, when the connection ends
   */
  static async open(
    address: BrokerAddress,
    broker: BrokerAddress | undefined,
    settings: ConnectionSettings,
    whenEnded: () => void,
    signal: AbortSignal,
  ): Promise<Connection> {
    const { method, data } = await settings.credentials.get(signal)
    const limit = AbortSignal.any([signal, timeoutSignal(settings.connectTimeoutMs)])
    const socket = await openConnection(address, undefined, settings.tls, limit, settings.egress)
    const connection = new Connection(address, socket, settings, whenEnded)
    const connected = new Promise<Received>((resolve, reject) => {
      const timer = setTimeout(
        () => connection.end(timedOut('the handshake', settings.connectTimeoutMs)),
        timerMs(settings.connectTimeoutMs),
      )
      connection.#handshake = { resolve, reject, cancel: () => clearTimeout(timer) }
    })
    connection.#write(
      commandFrame(command.connect, (fields) => {
        fields.text(1, settings.clientVersion)
        if (data !== undefined) fields.bytes(3, data)
        fields.integer(4, protocolVersion)
        if (method !== undefined) fields.text(5, method)
        if (broker !== undefined) fields.text(6, placeOf(broker))
        // Our feature flags: we support repeated authentication.
        const flags = fields.begin(10)
        fields.integer(1, 1)
        fields.end(flags)
      }),
    )
    const abort = () => connection.end(failureOf(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
    try {
      const { fields } = await connected
      const max = fields.number(3)
      if (max > 0) connection.maxMessageBytes = max
    } catch (error) {
      if (error instanceof BrokerFailure && error.failure.type === 'authentication_failed') {
        settings.credentials.refused()
      }
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
    connection.#keepAlive = setInterval(connection.#look, timerMs(settings.keepAliveMs))
    return connection
  }

  /** Sends a request and waits for its response; rejects with a `BrokerFailure`. */
  ask(type: number, what: string, write: (fields: ProtobufWriter, id: number) => void): Promise<Fields> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    const id = this.#nextQuestion++
    return new Promise<Received>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#questions.delete(id)
        reject(timedOut(what, this.#settings.answerTimeoutMs))
      }, timerMs(this.#settings.answerTimeoutMs))
      this.#questions.set(id, { resolve, reject, cancel: () => clearTimeout(timer) })
      this.#write(commandFrame(type, (fields) => write(fields, id)))
    }).then(({ fields }) => fields)
  }

  /** Forwards the broker's messages about the producer to the listener. */
  attach(producerId: number, listener: ProducerListener): void {
    this.#producers.set(producerId, listener)
    if (this.failure !== undefined) this.#notify(producerId, this.failure)
  }

  detach(producerId: number): void {
    this.#producers.delete(producerId)
  }

  /** Closes a producer at the broker, without waiting for the response. */
  release(producerId: number): void {
    this.detach(producerId)
    if (this.failure !== undefined) return
    const id = this.#nextQuestion++
    this.#write(
      commandFrame(command.closeProducer, (fields) => {
        fields.integer(1, producerId)
        fields.integer(2, id)
      }),
    )
  }

  /** @param written called when the connection no longer reads the payload, because it has sent it or has ended */
  send(head: Buffer, payload: Buffer, written: () => void): void {
    this.#socket.cork()
    this.#socket.write(head)
    this.#socket.write(payload, written)
    this.#socket.uncork()
  }

  /** Closes the connection. Written data is still sent if the broker reads it. */
  close(): void {
    this.#socket.end()
    this.end(failureOf(new Error('The connection was closed.')), false)
  }

  /** The connection has ended. */
  end(failure: BrokerFailure, destroy = true): void {
    if (this.failure !== undefined) return
    this.failure = failure
    clearInterval(this.#keepAlive)
    if (destroy) this.#socket.destroy()
    else this.#socket.setTimeout(1000, () => this.#socket.destroy())
    this.#whenEnded()
    this.#handshake?.cancel()
    this.#handshake?.reject(failure)
    for (const question of this.#questions.values()) {
      question.cancel()
      question.reject(failure)
    }
    this.#questions.clear()
    for (const id of [...this.#producers.keys()]) this.#notify(id, failure)
  }

  #notify(producerId: number, failure: BrokerFailure): void {
    const listener = this.#producers.get(producerId)
    this.#producers.delete(producerId)
    listener?.ended(failure)
  }

  #write(frame: Buffer): void {
    this.#socket.write(frame)
  }

  readonly #look = (): void => {
    if (this.#heard) {
      this.#heard = false
      this.#asked = false
    } else if (this.#asked) {
      this.end(timedOut('a ping', this.#settings.keepAliveMs))
    } else {
      this.#asked = true
      this.#write(commandFrame(command.ping))
    }
  }

  readonly #read = (chunk: Buffer): void => {
    this.#heard = true
    this.#unread.push(chunk)
    this.#unreadBytes += chunk.length
    // A frame that arrives in small pieces is assembled once, not for each piece.
    if (this.#unreadBytes < this.#neededBytes) return
    this.#neededBytes = 4
    while (this.failure === undefined && this.#unreadBytes >= 4) {
      const bytes = this.#unread.length === 1 ? (this.#unread[0] as Buffer) : Buffer.concat(this.#unread)
      this.#unread = [bytes]
      const size = bytes.readUInt32BE(0)
      if (size > maxFrameBytes) {
        this.end(failureOf(new Error('The peer does not use the protocol of the broker.')))
        return
      }
      if (bytes.length < 4 + size) {
        this.#neededBytes = 4 + size
        return
      }
      this.#unread = [bytes.subarray(4 + size)]
      this.#unreadBytes -= 4 + size
      try {
        this.#take(readCommand(bytes.subarray(4, 4 + size)))
      } catch (error) {
        this.end(failureOf(error))
      }
    }
  }

  #take(received: Received): void {
    const { type, fields } = received
    switch (type) {
      case command.ping:
        this.#write(commandFrame(command.pong))
        return
      case command.connected: {
        const handshake = this.#handshake
        this.#handshake = undefined
        handshake?.cancel()
        handshake?.resolve(received)
        return
      }
      case command.error: {
        const failure = brokerFailure(fields.number(2), this.#settings.credentials.hidden(fields.text(3) ?? ''))
        // During the handshake, an error belongs to no request and ends the connection.
        if (this.#handshake !== undefined) this.end(failure)
        else this.#answer(fields.number(1))?.reject(failure)
        return
      }
      case command.success:
        this.#answer(fields.number(1))?.resolve(received)
        return
      case command.producerSuccess:
        // The producer is not ready: it waits for its turn, and a second response follows.
        if (fields.integer(6) !== 0n) this.#answer(fields.number(1))?.resolve(received)
        return
      case command.partitionedMetadataResponse:
        this.#judged(received, fields.number(2), fields.number(3) === 1, fields.number(4), fields.text(5))
        return
      case command.lookupResponse:
        this.#judged(received, fields.number(4), fields.number(3) === 2, fields.number(6), fields.text(7))
        return
      case command.sendReceipt:
        this.#producers.get(fields.number(1))?.received(fields.integer(2) ?? 0n)
        return
      case command.sendError: {
        const text = this.#settings.credentials.hidden(fields.text(4) ?? '')
        this.#producers.get(fields.number(1))?.refused(fields.integer(2) ?? 0n, fields.number(3), text)
        return
      }
      case command.closeProducer:
        this.#notify(fields.number(1), closedByBroker)
        return
      case command.authChallenge:
        void this.#authenticate()
        return
      default:
        return // pongs and commands for consumers
    }
  }

  #answer(id: number): Question | undefined {
    const question = this.#questions.get(id)
    this.#questions.delete(id)
    question?.cancel()
    return question
  }

  #judged(received: Received, id: number, failed: boolean, error: number, text = ''): void {
    const question = this.#answer(id)
    if (failed) question?.reject(brokerFailure(error, this.#settings.credentials.hidden(text)))
    else question?.resolve(received)
  }

  /** Authenticates again when the broker asks because a token expires. */
  async #authenticate(): Promise<void> {
    const { credentials, clientVersion } = this.#settings
    try {
      credentials.refused()
      const { method, data } = await credentials.get(timeoutSignal(this.#settings.answerTimeoutMs))
      if (this.failure !== undefined) return
      this.#write(
        commandFrame(command.authResponse, (fields) => {
          fields.text(1, clientVersion)
          const response = fields.begin(2)
          if (method !== undefined) fields.text(1, method)
          if (data !== undefined) fields.bytes(2, data)
          fields.end(response)
          fields.integer(3, protocolVersion)
        }),
      )
    } catch (error) {
      this.end(failureOf(error))
    }
  }
}

/** A broker that hands over a topic, or stops, makes producers look up the topic again. */
const closedByBroker = new BrokerFailure(
  'The broker closed the producer.',
  { type: 'connection_failed', code: 'broker_producer_closed' },
  'unreached',
)
