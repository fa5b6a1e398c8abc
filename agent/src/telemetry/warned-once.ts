// Errors that each of many events may have, and that say the same of all: every one is counted, and the first is logged as a warning.

import type { ComponentEvents, ErrorReport } from './component-events.ts'

/** Returns the function that reports how many there were. */
export function warnedOnce(
  events: ComponentEvents,
  report: Omit<ErrorReport, 'count' | 'level'>,
): (count: number) => void {
  let isLogged = false
  return (count) => {
    if (count === 0) return
    events.error({ ...report, count, level: isLogged ? 'debug' : 'warn' })
    isLogged = true
  }
}
