// Health checks at start and after a reload: each runs once, and none blocks the others.

import { timerMs } from '../clock.ts'
import { counted } from '../counted.ts'
import { PenstockError } from '../errors.ts'
import type { SinkNode, SourceNode } from './build.ts'

const defaultTimeoutSecs = 10

/** The outcome of a check: `skipped` if the component has none, `disabled` if the user disabled it. */
export type Health = 'healthy' | 'unhealthy' | 'skipped' | 'disabled'

export interface CheckedHealth {
  readonly id: string
  readonly health: Health
  readonly error?: unknown
}

/** Checks sinks and those sources that support it; never rejects. Logs each outcome. */
export function checkHealth(
  nodes: readonly (SinkNode | SourceNode)[],
  enabled: boolean,
  signal: AbortSignal,
): Promise<CheckedHealth[]> {
  return Promise.all(nodes.map((node) => checkOne(node, enabled, signal)))
}

/**
 * Runs all checks until one fails; then resolves at once with the unhealthy components and cancels the other checks. Empty if
 * all are healthy.
 */
export async function firstUnhealthy(
  nodes: readonly (SinkNode | SourceNode)[],
  enabled: boolean,
  signal: AbortSignal,
): Promise<readonly CheckedHealth[]> {
  const enough = new AbortController()
  const either = AbortSignal.any([signal, enough.signal])
  const unhealthy: CheckedHealth[] = []
  await Promise.all(
    nodes.map(async (node) => {
      const checked = await checkOne(node, enabled, either)
      if (checked.health !== 'unhealthy' || enough.signal.aborted) return
      unhealthy.push(checked)
      // Checks that fail in the same turn are reported together.
      setImmediate(() => enough.abort())
    }),
  )
  return unhealthy
}

async function checkOne(node: SinkNode | SourceNode, enabled: boolean, signal: AbortSignal): Promise<CheckedHealth> {
  const { id } = node.config
  const { logger } = node
  const { wanted, timeoutSecs } = settings(node)
  if (!enabled || !wanted) {
    logger.info('Healthcheck disabled.')
    return { id, health: 'disabled' }
  }
  const component = node.kind === 'sink' ? node.sink : node.source
  if (component.healthcheck === undefined) return { id, health: 'skipped' }
  // Uses a separate timer, because AbortSignal.timeout would not end a check that ignores its signal.
  const { promise: late, reject } = Promise.withResolvers<never>()
  const ending = new AbortController()
  const timer = setTimeout(
    () => {
      const message = `No answer within ${counted(timeoutSecs, 'second')}.`
      const error = new PenstockError('PEN_HEALTHCHECK', message, { kind: 'connection' })
      ending.abort(error)
      reject(error)
    },
    timerMs(timeoutSecs * 1000),
  )
  const stopped = () => {
    const error = new PenstockError('PEN_HEALTHCHECK', 'The check was cancelled.')
    ending.abort(error)
    reject(error)
  }
  signal.addEventListener('abort', stopped, { once: true })
  late.catch(() => {}) // reported through the race below
  try {
    await Promise.race([component.healthcheck(ending.signal), late])
    logger.info('Healthcheck passed.')
    return { id, health: 'healthy' }
  } catch (error) {
    if (!signal.aborted) logger.error({ error }, 'Healthcheck failed.')
    return { id, health: 'unhealthy', error }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stopped)
  }
}

function settings(node: SinkNode | SourceNode): { wanted: boolean; timeoutSecs: number } {
  if (node.kind === 'source') return { wanted: true, timeoutSecs: defaultTimeoutSecs }
  const option = node.config.envelope.healthcheck
  if (typeof option === 'boolean') return { wanted: option, timeoutSecs: defaultTimeoutSecs }
  return { wanted: option.enabled, timeoutSecs: option.timeout }
}
