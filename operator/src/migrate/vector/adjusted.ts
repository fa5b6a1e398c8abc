// Options of sinks that Vector takes and the agent would refuse, and references to the secrets of an agent: what stands for them.

import { isTable } from '@penstock/agent/schema'
import { merged } from './tables.ts'

/** Says what became of an option, by its path. */
type Note = (path: readonly string[], reason: string, nearest: string, isReplaced: boolean) => void

const smallestDisk = 268_435_488

/** Sizes of buffers in the bounds of the agent. */
export function adjustBuffer(config: Record<string, unknown>, note: Note): void {
  const { buffer } = config
  // A chain of one buffer is that buffer.
  if (Array.isArray(buffer) && buffer.length === 1 && isTable(buffer[0])) config['buffer'] = buffer[0]
  const own = config['buffer']
  if (!isTable(own) || !/^disk/.test(String(own['type'])) || typeof own['max_size'] !== 'number') return
  if (own['max_size'] >= smallestDisk) return
  config['buffer'] = merged(own, { max_size: smallestDisk })
  const reason = `a buffer on disk has at least ${smallestDisk} bytes; found ${own['max_size']}`
  note(['buffer', 'max_size'], reason, 'The smallest size stands in its place.', true)
}

/** References to secrets of the agent's backends as references to the Secret of the Pipeline. */
export function withoutBackends(value: unknown, backends: readonly string[], onKey: (key: string) => void): unknown {
  if (typeof value === 'string') {
    return value.replace(/SECRET\[(\w+)\.([\w./-]+)\]/g, (whole, backend: string, name: string) => {
      if (!backends.includes(backend)) return whole
      const key = `${backend}_${name.replace(/\W/g, '_')}`
      onKey(key)
      return `SECRET[env.${key}]`
    })
  }
  if (Array.isArray(value)) return value.map((item) => withoutBackends(item, backends, onKey))
  if (!isTable(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, below]) => [name, withoutBackends(below, backends, onKey)]),
  )
}
