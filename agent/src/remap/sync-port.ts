// Synchronous requests between threads: a message with the request, and a flag that the other side sets once its response is in
// the port. The requesting thread is blocked meanwhile, so it is never the agent's main thread.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

interface Question<Q> {
  readonly id: number
  readonly question: Q
  readonly signal: Int32Array
}

export class SyncPort<Q, A> {
  readonly #port: MessagePort
  #id = 0

  constructor(port: MessagePort) {
    this.#port = port
    port.unref()
  }

  /** Returns the response; undefined if none arrived in time. @param patienceMs undefined: unlimited */
  ask(question: Q, patienceMs?: number): A | undefined {
    const id = ++this.#id
    const signal = new Int32Array(new SharedArrayBuffer(4))
    this.#port.postMessage({ id, question, signal } satisfies Question<Q>)
    if (Atomics.wait(signal, 0, 0, patienceMs) === 'timed-out') return undefined
    // Skips responses to abandoned requests.
    for (;;) {
      const message = receiveMessageOnPort(this.#port)?.message as { id: number; answer: A } | undefined
      if (message === undefined) return undefined
      if (message.id === id) return message.answer
    }
  }
}

/** Handles requests from the other end of a port. The handler must not reject. */
export function answerAt<Q, A>(port: MessagePort, answer: (question: Q) => A | Promise<A>): void {
  port.on('message', ({ id, question, signal }: Question<Q>) => {
    void Promise.try(() => answer(question)).then((given) => {
      port.postMessage({ id, answer: given })
      Atomics.store(signal, 0, 1)
      Atomics.notify(signal, 0)
    })
  })
}
