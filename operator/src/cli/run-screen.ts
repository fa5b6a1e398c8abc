// The display of `penstock run`: events as short lines, after the pod's line that produced them, messages of the agent, and on a
// terminal a hint at the bottom.

import { isFailedJson, isObject, parseJson, prettyValue } from '@penstock/agent/events'
import { prettyLog, type Screen, styled } from '@penstock/agent/output'
import { columnsOf, isRedrawn, printable, printableWithColours } from '@penstock/agent/program'
import type { SampleLine } from './sample-cluster/pods.ts'

/** How many pod lines are shown together with their events. */
const pairCount = 3

/** Columns of the words before both. */
const pairIndent = 5

/** Pod lines that wait for their events. */
const maxWaiting = 100

export interface Terminal {
  readonly out: NodeJS.WriteStream
  readonly err: NodeJS.WriteStream
  readonly color: boolean
}

export class RunScreen {
  readonly #terminal: Terminal
  readonly #isLive: boolean
  readonly #inputs = new Inputs()
  #pairsLeft: number
  #hint = ''

  /** @param isPaired whether one sink is shown, so that a line without an event was filtered */
  constructor(terminal: Terminal, isPaired: boolean) {
    this.#terminal = terminal
    this.#isLive = isRedrawn(terminal.out) && isRedrawn(terminal.err)
    this.#pairsLeft = isPaired ? pairCount : 0
  }

  /** Keeps a line at the bottom of a terminal. */
  stay(hint: string): void {
    this.#hint = hint
    if (this.#isLive) this.#write('err', '')
  }

  /** A pod has written a line. */
  input(line: SampleLine): void {
    if (this.#pairsLeft > 0) this.#inputs.add(line)
  }

  /** An event in the format of codec `native_json`. */
  event(json: string): void {
    const read = parseJson(json)
    const event = !isFailedJson(read) && isObject(read) ? read : {}
    const log = event['log']
    if (log === undefined || !isObject(log)) {
      this.#write('out', prettyValue(event['metric'] ?? json, this.#screen(0)))
      return
    }
    if (this.#pairsLeft === 0) {
      this.#write('out', prettyLog(log, this.#screen(0)))
      return
    }
    const { color } = this.#terminal
    const made = typeof log['timestamp'] === 'string' ? this.#inputs.until(log['timestamp']) : undefined
    if (made === undefined) {
      // The program changes event times, so lines cannot be matched with events.
      this.#pairsLeft = 0
      this.#write('out', prettyLog(log, this.#screen(0)))
      return
    }
    for (const line of made.slice(0, -1)) {
      if (this.#pairsLeft > 0) this.#pair(line, styled('nothing: it was filtered', 'dim', color))
    }
    if (this.#pairsLeft > 0) this.#pair(made.at(-1) as SampleLine, prettyLog(log, this.#screen(pairIndent)))
    else this.#write('out', prettyLog(log, this.#screen(0)))
  }

  #pair(line: SampleLine, became: string): void {
    const { color } = this.#terminal
    this.#write('out', `${styled('in ', 'dim', color)}  ${this.#cut(line.text)}`)
    this.#write('out', `${styled('out', 'dim', color)}  ${became}`)
    this.#pairsLeft--
    if (this.#pairsLeft === 0) this.#write('err', styled('From here on, events only.', 'dim', color))
  }

  /** A message from the agent or this command. */
  note(text: string): void {
    this.#write('err', printableWithColours(text))
  }

  /** Removes the hint. */
  close(): void {
    this.#hint = ''
    if (this.#isLive) this.#terminal.err.write('\r\u001b[K')
  }

  #screen(indent: number): Screen {
    const { out, color } = this.#terminal
    const columns = columnsOf(out)
    return { color, columns: columns === undefined ? undefined : columns - indent }
  }

  #cut(text: string): string {
    const shown = printable(text)
    const { columns = Number.POSITIVE_INFINITY } = this.#screen(pairIndent)
    return shown.length <= columns ? shown : `${shown.slice(0, columns - 1)}…`
  }

  #write(to: 'out' | 'err', line: string): void {
    const { out, err } = this.#terminal
    if (!this.#isLive) {
      ;(to === 'out' ? out : err).write(`${line}\n`)
      return
    }
    const hint = fittingSentences(this.#hint, err.columns - 1)
    err.write('\r\u001b[K')
    if (line !== '') (to === 'out' ? out : err).write(`${line}\n`)
    if (hint !== '') err.write(styled(hint, 'dim', this.#terminal.color))
  }
}

/** A hint without its last sentences, if they do not fit: half a command helps nobody. */
function fittingSentences(hint: string, columns: number): string {
  const [first = '', ...more] = hint.split(/(?<=\.) /)
  let fitting = first.slice(0, columns)
  for (const sentence of more) {
    const longer = `${fitting} ${sentence}`
    if (longer.length > columns) break
    fitting = longer
  }
  return fitting
}

/** Pod lines, by pod, until their events arrive. */
class Inputs {
  readonly #pods = new Map<string, SampleLine[]>()

  add(line: SampleLine): void {
    const pod = `${line.namespace}/${line.pod}`
    const lines = this.#pods.get(pod) ?? []
    if (lines.length === 0) this.#pods.set(pod, lines)
    if (lines.length < maxWaiting) lines.push(line)
  }

  /** The line of this event time, preceded by the pod's lines without an event: events of a pod stay in order. */
  until(time: string): readonly SampleLine[] | undefined {
    for (const lines of this.#pods.values()) {
      const index = lines.findIndex((line) => isSameTime(line.time, time))
      if (index >= 0) return lines.splice(0, index + 1)
    }
    return undefined
  }
}

/** Whether a time with nine fraction digits equals one that may have fewer. */
function isSameTime(full: string, short: string): boolean {
  return full.slice(0, -1).startsWith(short.slice(0, -1)) && /^\.?0*Z$/.test(full.slice(short.length - 1))
}
