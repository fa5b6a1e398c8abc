/**
 * Milliseconds since the epoch as of a clock that only goes forward, and evenly: when somebody sets the machine's clock, no agent has
 * been silent for an hour and no reflector is stuck.
 */
export function monotonicNow(): number {
  return performance.timeOrigin + performance.now()
}
