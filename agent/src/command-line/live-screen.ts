// The terminal of a command that redraws its output in place: it uses the alternate screen, hides the cursor, and reads individual keys.

import { emitKeypressEvents, type Key } from 'node:readline'
import { type Sheet, sheetOf } from '../terminal.ts'

export interface ScreenSize extends Sheet {
  readonly columns: number
  readonly rows: number
}

/** The content of a screen. */
export interface Drawing {
  /** The text of the whole screen, which must fit into the size. */
  text(size: ScreenSize): string
  /** Handles a key. Returns true if the user wants to quit. */
  press(text: string | undefined, key: Key): boolean
}

/** Bytes, because the process removes all control codes from text except colours. */
const enter = Buffer.from('\u001b[?1049h\u001b[?25l')
const leave = Buffer.from('\u001b[?25h\u001b[?1049l')

export class LiveScreen implements Disposable {
  readonly #drawing: Drawing
  readonly #quit = new AbortController()
  #isEntered = false
  readonly #redraw = () => {
    // A terminal that does not know its size reports 0.
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

  /** Aborts when the user presses a key to quit. */
  get quit(): AbortSignal {
    return this.#quit.signal
  }

  /** Draws the screen. Only the first call switches to the alternate screen, so that earlier connection errors stay visible. */
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
