// The shutdown of the operator: waits for the signal, and then for its parts, with a time limit.

import { errorText } from '@penstock/agent/errors'
import type { Logger } from '@penstock/agent/telemetry'

/** Time limit for work in progress. */
const drainMs = 25_000

/** Waits for an end, with a time limit. */
export async function limited(ending: Promise<void>, logger: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      logger.warn({ wait_ms: drainMs }, 'A part of the operator did not stop in time.')
      resolve()
    }, drainMs)
  })
  try {
    await Promise.race([ending, late])
  } catch (error) {
    logger.warn({ error: errorText(error) }, 'A part of the operator did not stop cleanly.')
  } finally {
    clearTimeout(timer)
  }
}
