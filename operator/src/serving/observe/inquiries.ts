// Requests of observers to agents. Agents never accept connections, so each holds a request open here, which is answered when an
// observer arrives. The agent's output then goes to that observer while it listens. Only the leader keeps this state.

import { holdMs, type Inquiry } from '@penstock/agent/bundle'

/** An agent's pod, from its token. */
export interface Asked {
  /** The Agent, as `namespace/name`. */
  readonly agent: string
  readonly pod: string
  readonly podUid: string
  readonly node: string
}

/** An observer of Pipelines. */
export interface Look {
  readonly id: string
  /** The request to an agent; undefined if the agent is not concerned. */
  inquiry(asked: Asked): Inquiry | undefined
  /** The answer of an agent to its request. */
  take(asked: Asked, body: Buffer): void
}

interface Held {
  readonly asked: Asked
  readonly serving: ReadonlySet<string>
  readonly answer: (inquiries: readonly Inquiry[]) => void
}

/**
 * Maximum number of held requests; each costs a connection, some 80 KB with TLS. Further agents ask again within a minute, and are
 * answered at once while an observer watches.
 */
const maxHeld = 500

export class Inquiries {
  readonly #looks = new Map<string, Look>()
  /** By uid of the pod. */
  readonly #held = new Map<string, Held>()

  /** Requests for an agent; waits for the first one, up to a limit. Undefined: too many agents wait. */
  async next(asked: Asked, serving: ReadonlySet<string>, gone: AbortSignal): Promise<readonly Inquiry[] | undefined> {
    const now = this.#of(asked, serving)
    if (now.length > 0 || gone.aborted) return now
    // The agent connects again: its previous request was lost.
    this.#held.get(asked.podUid)?.answer([])
    if (this.#held.size >= maxHeld) return undefined
    return new Promise((resolve) => {
      const held: Held = {
        asked,
        serving,
        answer: (inquiries) => {
          clearTimeout(late)
          gone.removeEventListener('abort', end)
          if (this.#held.get(asked.podUid) === held) this.#held.delete(asked.podUid)
          resolve(inquiries)
        },
      }
      const end = () => held.answer([])
      const late = setTimeout(end, holdMs)
      gone.addEventListener('abort', end)
      this.#held.set(asked.podUid, held)
    })
  }

  /** Handles an agent's answer; false if its request has ended. */
  take(id: string, asked: Asked, body: Buffer): boolean {
    const look = this.#looks.get(id)
    if (look?.inquiry(asked) === undefined) return false
    look.take(asked, body)
    return true
  }

  /** Sends requests to the concerned agents until it is disposed. */
  open(look: Look): Disposable {
    this.#looks.set(look.id, look)
    for (const { asked, serving, answer } of [...this.#held.values()]) {
      if (look.inquiry(asked) !== undefined) answer(this.#of(asked, serving))
    }
    return { [Symbol.dispose]: () => void this.#looks.delete(look.id) }
  }

  #of(asked: Asked, serving: ReadonlySet<string>): Inquiry[] {
    return [...this.#looks.values()].flatMap((look) => (serving.has(look.id) ? [] : (look.inquiry(asked) ?? [])))
  }
}
