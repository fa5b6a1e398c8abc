// Whether a stream takes colours: it is a terminal that has them, and nobody asked for none (`NO_COLOR`, `TERM=dumb`, `--color`).

import type { Writable } from 'node:stream'

export const colorChoices = ['auto', 'always', 'never'] as const
export type ColorChoice = (typeof colorChoices)[number]

interface MaybeTerminal extends Writable {
  readonly isTTY?: boolean
  hasColors?(): boolean
}

/** `auto` follows what the environment says of the terminal, as Node reads it. */
export function takesColors(stream: MaybeTerminal, choice: ColorChoice = 'auto'): boolean {
  if (choice !== 'auto') return choice === 'always'
  return stream.isTTY === true && stream.hasColors?.() === true
}

/** Whether lines of the stream can be written anew. */
export function isRedrawn(stream: MaybeTerminal): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb'
}
