// Errors that may occur for every event and always have the same cause. Each is counted, but only the first is logged as a warning.

import type { ComponentEvents, ErrorReport } from './component-events.ts'

/** Returns a function that reports a number of such errors. */
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
