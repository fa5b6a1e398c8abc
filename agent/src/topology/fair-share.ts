// Divides thread time among pipelines with data to read. Each turn goes to the pipeline with the least time relative to its weight;
// the time of all its components counts. An idle pipeline saves up no time. A program that costs more than its share delays only its
// own pipeline. No pipeline waits while the thread is free.

export class CpuAccount {
  /** Share of the time, relative to other active pipelines. */
  weight: number
  /** Time used since the start. */
  usedMs = 0
  /** Time used, divided by the weight; an account that becomes active again starts level with the others. */
  virtualMs = 0
  readonly waiting: (() => void)[] = []

  constructor(weight: number) {
    this.weight = weight
  }

  charge(ms: number): void {
    this.usedMs += ms
    this.virtualMs += ms / this.weight
  }
}

export class FairShare {
  readonly #accounts = new Map<string, CpuAccount>()
  /** Accounts with waiting sources. */
  readonly #active: CpuAccount[] = []
  /** Virtual time of the account that had the last turn. */
  #nowMs = 0
  #due = false

  /** The account of a pipeline, with its new weight. */
  open(pipeline: string, weight: number): CpuAccount {
    const known = this.#accounts.get(pipeline)
    if (known !== undefined) {
      known.weight = weight
      return known
    }
    const account = new CpuAccount(weight)
    account.virtualMs = this.#nowMs
    this.#accounts.set(pipeline, account)
    return account
  }

  get(pipeline: string): CpuAccount | undefined {
    return this.#accounts.get(pipeline)
  }

  /** Forgets a pipeline; its pending work continues. */
  close(pipeline: string): void {
    this.#accounts.delete(pipeline)
  }

  /** Resolves when it is the account's turn, after the event loop has served all other work once. */
  turn(account: CpuAccount): Promise<void> {
    return new Promise((resolve) => {
      if (account.waiting.length === 0) {
        account.virtualMs = Math.max(account.virtualMs, this.#nowMs)
        this.#active.push(account)
      }
      account.waiting.push(resolve)
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#due) return
    this.#due = true
    setImmediate(this.#grant)
  }

  readonly #grant = (): void => {
    this.#due = false
    const active = this.#active
    let at = 0
    for (let index = 1; index < active.length; index++) {
      if ((active[index] as CpuAccount).virtualMs < (active[at] as CpuAccount).virtualMs) at = index
    }
    const chosen = active[at]
    if (chosen === undefined) return
    this.#nowMs = chosen.virtualMs
    active.splice(at, 1)
    const go = chosen.waiting.shift()
    // Further sources of the same pipeline follow after pipelines with the same virtual time.
    if (chosen.waiting.length > 0) active.push(chosen)
    go?.()
    if (active.length > 0) this.#schedule()
  }
}
