import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readCpuLimit } from './cpu-limit.ts'

const status = 'Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t0-5,8,10-10\n'

test.each([
  { what: 'the cores that the kernel allows', files: {}, limit: 8 },
  { what: 'no limit', files: { 'sys/fs/cgroup/cpu.max': 'max 100000\n' }, limit: 8 },
  { what: 'a limit of the container', files: { 'sys/fs/cgroup/cpu.max': '150000 100000\n' }, limit: 1.5 },
  {
    what: 'a limit of a parent group',
    cgroup: '0::/pods/one\n',
    files: {
      'sys/fs/cgroup/pods/one/cpu.max': '400000 100000\n',
      'sys/fs/cgroup/pods/cpu.max': '50000 100000\n',
      'sys/fs/cgroup/cpu.max': 'max 100000\n',
    },
    limit: 0.5,
  },
  {
    what: 'a weight, which is not a limit',
    files: { 'sys/fs/cgroup/cpu.max': 'max 100000\n', 'sys/fs/cgroup/cpu.weight': '4\n' },
    limit: 8,
  },
  {
    what: 'a limit of cgroup v1',
    cgroup: '4:memory:/pods\n3:cpu,cpuacct:/pods/one\n',
    files: {
      'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '200000\n',
      'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
      'sys/fs/cgroup/cpu,cpuacct/pods/cpu.cfs_quota_us': '-1\n',
      'sys/fs/cgroup/cpu,cpuacct/pods/cpu.cfs_period_us': '100000\n',
    },
    limit: 2,
  },
])('the CPU limit of a process: $what', ({ cgroup = '0::/\n', files, limit }) => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'penstock-cpu-'))
  const all = { 'proc/self/status': status, 'proc/self/cgroup': cgroup, ...files }
  for (const [path, text] of Object.entries(all)) {
    const file = join(folder.path, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  expect(readCpuLimit(folder.path)).toBe(limit)
})

test('if nothing can be read, the platform determines the number', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'penstock-cpu-'))
  expect(readCpuLimit(folder.path)).toBeGreaterThanOrEqual(1)
})
