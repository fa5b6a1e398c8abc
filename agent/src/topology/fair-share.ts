// Shares the thread among pipelines with something to read. Each turn goes to the pipeline that has had the least time for its weight;
// the time of all its components is measured. An idle pipeline saves no time up, so a program that costs more than its share delays
// only its own pipeline. No pipeline waits while the thread is free.

export class CpuAccount {
  /** Share of the time, against the others that want some. */
  weight: number
  /** Time taken since the start. */
  usedMs = 0
  /** Time taken for the weight; where it was behind the others when it began again, it is level with them. */
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
  /** Accounts that have waiting sources. */
  readonly #active: CpuAccount[] = []
  /** Where the account stood that had the last turn. */
  #nowMs = 0
  #due = false

  /** The account of a pipeline, with its weight from now on. */
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

  /** Resolves when it is the account's turn, after the loop has served everybody else once. */
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
    // Others of the same pipeline come after those of pipelines that have had as much.
    if (chosen.waiting.length > 0) active.push(chosen)
    go?.()
    if (active.length > 0) this.#schedule()
  }
}
