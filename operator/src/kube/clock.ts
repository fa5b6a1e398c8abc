/**
 * Milliseconds since the epoch on a monotonic clock: a change of the machine's clock must not make agents appear silent or reflectors
 * stuck.
 */
export function monotonicNow(): number {
  return performance.timeOrigin + performance.now()
}
