// Network access for functions: a helper thread sends the request, and the program waits for it with a time limit. Responses are
// cached for a while, because programs repeat requests for many events. The thread starts with the first request and does not keep the
// process alive. In the agent such programs run in a separate worker (`remote.ts`), so only that worker waits.

import { MessageChannel, Worker } from 'node:worker_threads'
import { BoundedMap } from '../bounded-map.ts'
import type { CallSite } from './function.ts'
import { SyncPort } from './sync-port.ts'
import { workerFile } from './worker-file.ts'

export type NetworkRequest =
  | {
      readonly kind: 'dns'
      readonly query: Uint8Array
      /** Uses the system's servers if empty. */
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

const keptAfterProblemMs = 2000

interface Kept {
  readonly answer: NetworkAnswer
  readonly until: number
}

const kept = new BoundedMap<Kept>({
  maxEntries: 1000,
  maxBytes: 16 << 20,
  sizeOf: ({ answer: { data, text, problem } }) => 200 + (data?.length ?? 0) + 2 * ((text ?? problem)?.length ?? 0),
})
let helper: Helper | undefined

/** Rejects a call if programs may not use the network; records it if they may. */
export function needsNetwork(call: CallSite, name: string): void {
  call.runtime.networkUsed = true
  if (call.runtime.network) return
  call.reject(
    `${name} needs the network, which programs may not use; \`remap.network: true\` at the top level allows it`,
  )
}

/**
 * Sends a request and waits for the response. @param key cache key of the response, equal for equal requests;
 * undefined: it is not cached @param patienceMs maximum wait @param keptMs how long a successful response is cached
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
    const duration = answer.problem === undefined ? keptMs(answer) : keptAfterProblemMs
    kept.set(key, { answer, until: performance.now() + duration })
  }
  return answer
}

class Helper {
  readonly #requests: SyncPort<NetworkRequest, NetworkAnswer>

  constructor() {
    const worker = new Worker(workerFile('network-worker', import.meta.url), {
      stdout: false,
      stderr: false,
    })
    const { port1, port2 } = new MessageChannel()
    this.#requests = new SyncPort(port1)
    worker.postMessage({ port: port2 }, [port2])
    worker.unref()
    worker.on('error', () => {
      // The next request starts a new thread.
      helper = undefined
    })
  }

  ask(request: NetworkRequest, patienceMs: number): NetworkAnswer {
    return this.#requests.ask(request, patienceMs) ?? { problem: 'no answer in time' }
  }
}
