// The events that a source makes of the lines of a file, by its option `multiline`.

import { compileMultiline, MultilineAggregator, type MultilineOptions } from '../tailing/multiline.ts'

/** @param options undefined if each line is an event */
export function joinedLines(options: MultilineOptions | undefined, lines: readonly string[]): string[] {
  if (options === undefined) return [...lines]
  const events: string[] = []
  const aggregator = new MultilineAggregator<undefined>(compileMultiline(options), (text) => events.push(String(text)))
  for (const [position, line] of lines.entries()) aggregator.add(line, position, undefined, 0)
  aggregator.flush()
  return events
}
