// The CPU time and memory of running processes, from /proc.

import { readFileSync } from 'node:fs'

/** CPU time (user and system) of a running process in seconds. */
export function processCpu(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** A field of the process's memory in MiB, such as `VmRSS`, or `VmHWM` for its peak; NaN if the process has ended but was not reaped. */
export function memoryMiB(pid: number, field: 'VmRSS' | 'VmHWM' | 'RssFile'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024
}
