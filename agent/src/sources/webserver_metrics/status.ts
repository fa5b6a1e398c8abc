// The page `/server-status?auto` of mod_status: lines of `Name: value`. Known names become metrics.

import type { Timestamp } from '../../event/timestamp.ts'
import { type Reading, Readings, type ScrapeOutcome } from '../../intake/scrape.ts'

interface Known {
  readonly type: 'counter' | 'gauge'
  readonly name: string
  readonly state?: string
  /** Factor applied to a value. */
  readonly scale?: number
}

const cpu = (state: string): Known => ({ type: 'counter', name: 'cpu_seconds_total', state })
const gauge = (name: string, state?: string): Known => ({
  type: 'gauge',
  name,
  ...(state === undefined ? {} : { state }),
})

const known = new Map<string, Known>([
  ['ServerUptimeSeconds', { type: 'counter', name: 'uptime_seconds_total' }],
  ['Total Accesses', { type: 'counter', name: 'access_total' }],
  ['Total kBytes', { type: 'counter', name: 'sent_bytes_total', scale: 1024 }],
  // The page reports milliseconds.
  ['Total Duration', { type: 'counter', name: 'duration_seconds_total', scale: 0.001 }],
  ['CPUUser', cpu('user')],
  ['CPUSystem', cpu('system')],
  ['CPUChildrenUser', cpu('children_user')],
  ['CPUChildrenSystem', cpu('children_system')],
  ['CPULoad', gauge('cpu_load')],
  ['IdleWorkers', gauge('workers', 'idle')],
  ['BusyWorkers', gauge('workers', 'busy')],
  ['ConnsTotal', gauge('connections', 'total')],
  ['ConnsAsyncWriting', gauge('connections', 'writing')],
  ['ConnsAsyncKeepAlive', gauge('connections', 'keepalive')],
  ['ConnsAsyncClosing', gauge('connections', 'closing')],
])

const workerStates: Readonly<Record<string, string>> = {
  _: 'waiting',
  S: 'starting',
  R: 'reading',
  W: 'sending',
  K: 'keepalive',
  D: 'dnslookup',
  C: 'closing',
  L: 'logging',
  G: 'finishing',
  I: 'idle_cleanup',
  '.': 'open',
}

const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/** Metrics of a server: whether it answered, and the values of its page. */
export function readStatus(outcome: ScrapeOutcome, endpoint: string, namespace: string, time: Timestamp): Reading {
  const tags = [
    ['endpoint', endpoint],
    ['host', new URL(endpoint).host],
  ] as const
  const readings = new Readings(namespace, tags, time)
  readings.add('gauge', 'up', outcome === 'unreachable' ? 0 : 1)
  if (typeof outcome === 'string') return readings
  for (const line of outcome.text.split(/\r?\n/)) {
    const at = line.indexOf(': ')
    if (at < 0) continue
    const key = line.slice(0, at)
    const value = line.slice(at + 2).trim()
    if (key === 'Scoreboard') {
      addScoreboard(readings, value)
      continue
    }
    const metric = known.get(key)
    if (metric === undefined) continue
    if (!number.test(value)) {
      readings.failures.push(`\`${key}\` is not a number`)
      continue
    }
    const state = metric.state === undefined ? [] : [['state', metric.state] as const]
    readings.add(metric.type, metric.name, Number(value) * (metric.scale ?? 1), ...state)
  }
  return readings
}

function addScoreboard(readings: Readings, board: string): void {
  const counts = new Map(Object.values(workerStates).map((state) => [state, 0]))
  for (const letter of board) {
    const state = workerStates[letter]
    if (state !== undefined) counts.set(state, (counts.get(state) ?? 0) + 1)
  }
  for (const [state, count] of counts) readings.add('gauge', 'scoreboard', count, ['state', state])
}
