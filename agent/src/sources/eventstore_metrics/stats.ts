// The document `/stats`: the resource usage of the node's process and its machine. Absent members are skipped; a member that is not
// a number is an error.

import type { Timestamp } from '../../event/timestamp.ts'
import { Float, getField, isObject, type Value } from '../../event/value.ts'
import { isFailedJson, parseJson } from '../../formats/json.ts'
import { type Reading, Readings } from '../../intake/scrape.ts'

/** @param endpoint the address, if it is needed to distinguish nodes */
export function readStats(text: string, namespace: string, endpoint: string | undefined, time: Timestamp): Reading {
  const document = parseJson(text)
  if (isFailedJson(document)) return { metrics: [], failures: ['the answer is not JSON'] }
  const proc = member(document, 'proc')
  const sys = member(document, 'sys')
  if (proc === undefined && sys === undefined) {
    return { metrics: [], failures: ['the answer has neither `proc` nor `sys`'] }
  }
  const id = member(proc, 'id')
  const readings = new Readings(
    namespace,
    [
      ...(endpoint === undefined ? [] : [['endpoint', endpoint] as const]),
      ...(typeof id === 'number' || typeof id === 'string' ? [['id', String(id)] as const] : []),
    ],
    time,
  )
  const add = (
    type: 'counter' | 'gauge',
    name: string,
    holder: Value | undefined,
    key: string,
    ...tags: (readonly [string, string])[]
  ) => {
    const value = member(holder, key)
    const number = value instanceof Float ? value.value : typeof value === 'bigint' ? Number(value) : value
    if (typeof number === 'number') readings.add(type, name, number, ...tags)
    else if (value !== undefined && value !== null) readings.failures.push(`\`${key}\` is not a number`)
  }
  const io = member(proc, 'diskIo')
  add('gauge', 'process_memory_used_bytes', proc, 'mem')
  add('counter', 'disk_read_bytes_total', io, 'readBytes')
  add('counter', 'disk_written_bytes_total', io, 'writtenBytes')
  add('counter', 'disk_read_ops_total', io, 'readOps')
  add('counter', 'disk_write_ops_total', io, 'writeOps')
  add('gauge', 'memory_free_bytes', sys, 'freeMem')
  const drives = member(sys, 'drive')
  if (isObject(drives)) {
    for (const [path, drive] of Object.entries(drives)) {
      add('gauge', 'disk_total_bytes', drive, 'totalBytes', ['path', path])
      add('gauge', 'disk_free_bytes', drive, 'availableBytes', ['path', path])
      add('gauge', 'disk_used_bytes', drive, 'usedBytes', ['path', path])
    }
  }
  return readings
}

function member(holder: Value | undefined, key: string): Value | undefined {
  return isObject(holder) ? getField(holder, key) : undefined
}
