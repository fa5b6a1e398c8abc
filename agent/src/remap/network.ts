// What functions ask of the network: a helper thread does it, and the program waits for it with a time limit. Answers are kept
// for a while, since a program asks the same for many events. The thread starts with the first request and holds up no exit.

import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { CallSite } from './function.ts'

export type NetworkRequest =
  | {
      readonly kind: 'dns'
      readonly query: Uint8Array
      /** Those of the system if there are none. */
      readonly servers: readonly string[]
      readonly attempts: number
      readonly timeoutMs: number
      readonly tcp: boolean
    }
  | { readonly kind: 'reverse'; readonly address: string; readonly timeoutMs: number }
  | {
      readonly kind: 'http'
      readonly url: string
      readonly method: string
      readonly headers: readonly (readonly [string, string])[]
      readonly body: string
      readonly httpProxy: string | undefined
      readonly httpsProxy: string | undefined
      readonly timeoutMs: number
    }

export interface NetworkAnswer {
  readonly data?: Uint8Array
  readonly text?: string
  readonly problem?: string
}

export interface NetworkCall {
  readonly id: number
  readonly request: NetworkRequest
  readonly signal: Int32Array
}

const mostKept = 1000
const keptAfterProblemMs = 2000
const kept = new Map<string, { readonly answer: NetworkAnswer; readonly until: number }>()
let helper: Helper | undefined

/** Refuses a call where programs may not use the network. */
export function needsNetwork(call: CallSite, name: string): void {
  if (call.runtime.network) return
  call.reject(
    `${name} needs the network, which programs may not use; \`remap.network: true\` at the top level allows it`,
  )
}

/**
 * The answer to a request; waits for it.
 * @param key under which the answer is kept; the same request has the same; undefined: it is not kept
 * @param patienceMs how long to wait at most
 * @param keptMs how long a good answer is kept
 */
export function askNetwork(
  request: NetworkRequest,
  key: string | undefined,
  patienceMs: number,
  keptMs: (answer: NetworkAnswer) => number,
): NetworkAnswer {
  const before = key === undefined ? undefined : kept.get(key)
  const now = performance.now()
  if (before !== undefined && before.until > now) return before.answer
  helper ??= new Helper()
  const answer = helper.ask(request, patienceMs)
  if (key !== undefined) {
    if (kept.size >= mostKept) kept.clear()
    const duration = answer.problem === undefined ? keptMs(answer) : keptAfterProblemMs
    kept.set(key, { answer, until: performance.now() + duration })
  }
  return answer
}

class Helper {
  readonly #worker: Worker
  readonly #port: MessagePort
  #id = 0

  constructor() {
    // The compiled file stands beside this one under the same ending.
    this.#worker = new Worker(new URL(import.meta.url.replace(/network(\.[jt]s)(?:\?.*)?$/, 'network-worker$1')), {
      stdout: false,
      stderr: false,
    })
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    this.#worker.postMessage({ port: port2 }, [port2])
    this.#worker.unref()
    this.#worker.on('error', () => {
      // The next request starts another one.
      helper = undefined
    })
    this.#port.unref()
  }

  ask(request: NetworkRequest, patienceMs: number): NetworkAnswer {
    const id = ++this.#id
    const signal = new Int32Array(new SharedArrayBuffer(4))
    this.#port.postMessage({ id, request, signal } satisfies NetworkCall)
    if (Atomics.wait(signal, 0, 0, patienceMs) === 'timed-out') return { problem: 'no answer in time' }
    // Answers to requests that were given up come before.
    for (;;) {
      const message = receiveMessageOnPort(this.#port)?.message as { id: number; result: NetworkAnswer } | undefined
      if (message === undefined) return { problem: 'the helper thread gave no answer' }
      if (message.id === id) return message.result
    }
  }
}
