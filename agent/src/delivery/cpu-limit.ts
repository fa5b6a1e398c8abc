// The number of cores that this process may use: its CPU affinity, or fewer if a cgroup limits its CPU time. The platform's number
// also takes the weight of a cgroup into account, which is only a share under contention and not a limit.

import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'

let known: number | undefined

/** The limit at the first call. Later changes have no effect. */
export function cpuLimit(): number {
  known ??= readCpuLimit('/')
  return known
}

/** @param root the directory that contains `proc` and `sys` */
export function readCpuLimit(root: string): number {
  const text = (path: string) => {
    try {
      return readFileSync(join(root, path), 'utf8')
    } catch {
      return undefined // another system, or another version of cgroups
    }
  }
  const allowed = /^Cpus_allowed_list:\s*(\S+)/m.exec(text('proc/self/status') ?? '')?.[1]
  let limit = allowed === undefined ? Math.min(cpus().length, availableParallelism()) : countOf(allowed)
  for (const line of (text('proc/self/cgroup') ?? '').split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    const isSecond = controllers === ''
    if (!isSecond && !controllers.split(',').includes('cpu')) continue
    // A limit applies to all nested cgroups. Inside a container, the path may be that of the host; then only the root exists.
    for (let folder = path; ; folder = join(folder, '..')) {
      const quota = isSecond
        ? secondQuota(text(join('sys/fs/cgroup', folder, 'cpu.max')))
        : firstQuota((file) => text(join('sys/fs/cgroup', controllers, folder, file)))
      if (quota !== undefined) limit = Math.min(limit, quota)
      if (folder === '/' || folder === '.' || folder === '') break
    }
  }
  return limit
}

/** Counts the numbers in a list such as `0-3,8`. */
function countOf(list: string): number {
  let count = 0
  for (const range of list.split(',')) {
    const [from = 0, to = from] = range.split('-').map(Number)
    count += to - from + 1
  }
  return count
}

/** Parses `cpu.max`: quota and period in microseconds; `max` means no limit. */
function secondQuota(text: string | undefined): number | undefined {
  const [quota, period] = (text ?? '').split(' ').map(Number)
  return quotient(quota, period)
}

function firstQuota(text: (file: string) => string | undefined): number | undefined {
  const [quota, period] = ['cpu.cfs_quota_us', 'cpu.cfs_period_us'].map((file) => Number(text(file)))
  return quotient(quota, period)
}

/** If there is no limit, the quota is -1 or not a number. */
function quotient(quota: number | undefined, period: number | undefined): number | undefined {
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return undefined
  return quota / period
}
