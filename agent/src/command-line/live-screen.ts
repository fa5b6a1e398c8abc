// The terminal of a command that redraws its output in place: the alternate screen, without a cursor, with each key as it is pressed.

import { emitKeypressEvents, type Key } from 'node:readline'
import { type Sheet, sheetOf } from '../terminal.ts'

export interface ScreenSize extends Sheet {
  readonly columns: number
  readonly rows: number
}

/** The content of a screen. */
export interface Drawing {
  /** The whole screen: no line is wider, and there are no more lines than the size allows. */
  text(size: ScreenSize): string
  /** Applies a key; true if the person wants to quit. */
  press(text: string | undefined, key: Key): boolean
}

/** Bytes, because the process prints no control codes as text except colours. */
const enter = Buffer.from('\u001b[?1049h\u001b[?25l')
const leave = Buffer.from('\u001b[?25h\u001b[?1049l')

export class LiveScreen implements Disposable {
  readonly #drawing: Drawing
  readonly #quit = new AbortController()
  #isEntered = false
  readonly #redraw = () => {
    // A terminal that does not know its size gives 0.
    const size = { color: sheetOf(process.stdout).color, columns: process.stdout.columns || 80 }
    const text = this.#drawing.text({ ...size, rows: process.stdout.rows || 24 })
    process.stdout.write(`\u001b[H\u001b[2J${text}`)
  }
  readonly #press = (text: string | undefined, key: Key) => {
    if (this.#drawing.press(text, key)) this.#quit.abort()
    else this.#redraw()
  }

  constructor(drawing: Drawing) {
    this.#drawing = drawing
  }

  /** Aborted when the person quits by a key. */
  get quit(): AbortSignal {
    return this.#quit.signal
  }

  /** Draws. The first call takes the terminal: errors of the connection before it stay in sight. */
  draw(): void {
    if (!this.#isEntered) this.#enter()
    this.#redraw()
  }

  #enter(): void {
    this.#isEntered = true
    process.stdout.write(enter)
    process.stdout.on('resize', this.#redraw)
    if (!process.stdin.isTTY) return
    emitKeypressEvents(process.stdin)
    process.stdin.setRawMode(true).on('keypress', this.#press).resume()
  }

  [Symbol.dispose](): void {
    if (!this.#isEntered) return
    process.stdout.off('resize', this.#redraw)
    if (process.stdin.isTTY) process.stdin.off('keypress', this.#press).setRawMode(false).pause()
    process.stdout.write(leave)
  }
}
