// An agent that reads pod logs in a separate folder and sends them to a receiver, for scenarios that measure over time.

import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { containerOf, cpuToFirstLine, place, type Receiver, startAgent, startReceiver } from './agent-process.ts'
import type { Place } from './scenarios.ts'

export class OneAgent implements AsyncDisposable {
  readonly receiver: Receiver
  readonly where: Place
  readonly process: ChildProcess
  readonly #folder: string

  /** @param prepare creates the log files that exist when the agent starts; by default, an empty one */
  static async start(
    config: (where: Place) => object,
    prepare: (where: Place) => void = (where) => writeFileSync(logOf(where), ''),
  ): Promise<OneAgent> {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
    const receiver = await startReceiver()
    const where = place(folder, receiver.url, '')
    prepare(where)
    return new OneAgent(folder, receiver, where, startAgent(folder, config(where)))
  }

  private constructor(folder: string, receiver: Receiver, where: Place, process: ChildProcess) {
    this.#folder = folder
    this.receiver = receiver
    this.where = where
    this.process = process
  }

  get pid(): number {
    return this.process.pid as number
  }

  /** The log of the only container. */
  get log(): string {
    return logOf(this.where)
  }

  /** Waits for the first delivered line, and returns the CPU time until then. */
  cpuToFirstLine(): Promise<number> {
    return cpuToFirstLine(this.receiver, this.process)
  }

  async [Symbol.asyncDispose]() {
    this.process.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
    await this.receiver[Symbol.asyncDispose]()
  }
}

const logOf = (where: Place) => join(containerOf(where), '0.log')
