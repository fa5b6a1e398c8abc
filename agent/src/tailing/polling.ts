// Decides how often a tailer reads a file when inotify does not report its changes. These functions are pure: the tailer measures
// the last read, decides here, and sets its timer. It reads a slow file four times a second, and a fast file whenever about one
// chunk has arrived.

/** Longest time between two reads of a polled file, and so the maximum delay of a line. */
export const maxPollMs = 250
/**
 * Shortest time between two reads. A file that grows faster than one chunk per interval is read in full chunks anyway.
 */
const minPollMs = maxPollMs / 16
/** A timer may fire this much early. */
export const timerSlackMs = 2
/** Three quarters of a chunk: a read that aims at a whole chunk often needs a second one for the rest. */
const targetBytes = 48 * 1024
/** Above this number of writes a second, polling one file costs less than inotify, which reports each write. */
const busyEvents = 4

/**
 * Whether polling a folder costs less than watching it. Polling reads every file in it four times a second, so a folder with more files
 * needs more events to be worth it. @param events writes that inotify has reported in this second
 */
export function isWorthPolling(events: number, files: number): boolean {
  return events > busyEvents + files
}

/**
 * Milliseconds from this read, which has reached the end of the file, to the next one. @param bytes bytes read since
 * the end was last reached @param elapsedMs time since the end was last reached @param current the current interval
 */
export function pollIntervalMs(bytes: number, elapsedMs: number, current: number): number {
  // Writers pause, so after a read with little data the interval grows step by step.
  const maxMs = Math.min(maxPollMs, current * 2)
  if (bytes <= 0) return maxMs
  // Two reads at nearly the same time do not give a usable rate.
  const wanted = (targetBytes * Math.max(elapsedMs, minPollMs)) / bytes
  let interval = maxPollMs
  while (interval > minPollMs && interval > wanted) interval /= 2
  return Math.min(interval, maxMs)
}

/**
 * Time of the next read. All intervals lie on one grid and each is half of the next, so the tailer can read files that are due at about
 * the same time in one turn of the loop.
 */
export function nextPoll(now: number, intervalMs: number): number {
  return (Math.floor((now + timerSlackMs) / intervalMs) + 1) * intervalMs
}
