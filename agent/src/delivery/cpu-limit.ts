// The number of cores that this process may use: those that the kernel lets it run on, or fewer if a cgroup limits its time. The
// platform's number also includes the weight of a cgroup, which is only the share under contention, and limits nothing.

import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'

let known: number | undefined

/** The limit when it was first asked for: one that is changed later does not count. */
export function cpuLimit(): number {
  known ??= readCpuLimit('/')
  return known
}

/** @param root where `proc` and `sys` are found */
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
    // A limit holds for all below it. Inside a container the path may be that of the host, and then only the top is there.
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

/** How many numbers a list such as `0-3,8` holds. */
function countOf(list: string): number {
  let count = 0
  for (const range of list.split(',')) {
    const [from = 0, to = from] = range.split('-').map(Number)
    count += to - from + 1
  }
  return count
}

/** Of `cpu.max`: quota and period, in microseconds; `max` is none. */
function secondQuota(text: string | undefined): number | undefined {
  const [quota, period] = (text ?? '').split(' ').map(Number)
  return quotient(quota, period)
}

function firstQuota(text: (file: string) => string | undefined): number | undefined {
  const [quota, period] = ['cpu.cfs_quota_us', 'cpu.cfs_period_us'].map((file) => Number(text(file)))
  return quotient(quota, period)
}

/** Without a limit the quota is -1, or no number. */
function quotient(quota: number | undefined, period: number | undefined): number | undefined {
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return undefined
  return quota / period
}
