// The pods of a node from its kubelet: one response with all of them, requested periodically, and soon after a pod is
// found missing. This needs neither the API server nor an open watch.

import { pause } from '../../clock.ts'
import { PenstockError } from '../../errors.ts'
import type { ApiServerClient } from '../../kube/client.ts'
import type { FollowHooks } from '../../kube/watch.ts'
import { folderOf, type PodObject } from './pod-metadata.ts'

const pollMs = 10_000
/** Minimum time between two requests, however many pods are missing. */
const minPauseMs = 250
const answerLimitMs = 10_000
/** After this many failures in a row, the API server is used instead. */
const maxFailures = 3
const retryMs = 1000

export class KubeletPods {
  readonly #client: ApiServerClient
  #poke = () => {}
  #stamps: Map<string, string> | undefined

  constructor(client: ApiServerClient) {
    this.#client = client
  }

  /** Requests the list soon, because a pod is missing. */
  poke(): void {
    this.#poke()
  }

  /** Polls until the signal aborts; rejects when the kubelet does not answer, or refuses. */
  async follow(hooks: FollowHooks<PodObject>, signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      let pauseMs = pollMs
      try {
        this.#take(await this.#ask(signal), hooks)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        failures++
        if (failures >= maxFailures || isRefusal(error)) throw error
        pauseMs = retryMs
      }
      await this.#pause(pauseMs, signal)
    }
  }

  async #ask(signal: AbortSignal): Promise<readonly PodObject[]> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(answerLimitMs)])
    const { status, body } = await this.#client.json('/pods', limit)
    if (status !== 200) {
      throw new PenstockError(
        'PEN_KUBERNETES',
        `The kubelet answered a request for its pods with status a request for its pods with status ${status}.`,
        {
          cause: status,
        },
      )
    }
    const { items } = (body ?? {}) as { items?: readonly PodObject[] | null }
    return items ?? []
  }

  /** Reports only differences from the last response, so that unchanged pods cost nothing. */
  #take(pods: readonly PodObject[], hooks: FollowHooks<PodObject>): void {
    const before = this.#stamps
    const stamps = new Map(pods.map((pod) => [folderOf(pod), JSON.stringify([pod.metadata, pod.spec, pod.status])]))
    this.#stamps = stamps
    if (before === undefined) {
      hooks.listed()
      hooks.replaced(pods)
      return
    }
    for (const pod of pods) {
      const folder = folderOf(pod)
      if (before.get(folder) !== stamps.get(folder)) hooks.changed(pod)
    }
    for (const [folder, stamp] of before) {
      if (stamps.has(folder)) continue
      const [metadata] = JSON.parse(stamp) as [PodObject['metadata']]
      hooks.removed({ metadata })
    }
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const poked = new AbortController()
    this.#poke = () => poked.abort()
    await pause(minPauseMs, signal) // the loop condition checks the signal
    await pause(ms - minPauseMs, AbortSignal.any([signal, poked.signal]))
  }
}

/** Whether a retry would fail too. */
function isRefusal(error: unknown): boolean {
  return error instanceof PenstockError && [401, 403, 404].includes(Number(error.cause))
}
