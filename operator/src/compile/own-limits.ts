// Limits that a compile process sets for itself before it receives any tenant data. The kernel enforces them: Node's flags only limit
// its heap, not the buffers outside it.

import { readFileSync } from 'node:fs'

/** `RLIMIT_DATA` and `RLIMIT_CORE` of `setrlimit(2)`, and `PR_SET_PDEATHSIG` of `prctl(2)`, the same on every Linux that Node runs on. */
const [limitOfData, limitOfCore, signalOfParent] = [2, 4, 1]
const sigkill = 9n

/**
 * From now on the process may use this much more memory of any kind; further allocations in it fail. It writes no core file, and does
 * not outlive its parent. If this cannot be set, as on systems other than Linux, only the parent's monitor protects.
 */
export function limitOwnProcess(bytes: number): void {
  if (process.platform !== 'linux') return
  const { dlopen } = process.getBuiltinModule('node:ffi')
  using system = dlopen(null, {
    setrlimit: { arguments: ['int32', 'buffer'], return: 'int32' },
    prctl: { arguments: ['int32', 'uint64', 'uint64', 'uint64', 'uint64'], return: 'int32' },
  })
  const { setrlimit, prctl } = system.functions
  const data = 1024 * Number(/^VmData:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1])
  const limit = BigInt(data + bytes)
  setrlimit(limitOfData, new BigUint64Array([limit, limit]))
  setrlimit(limitOfCore, new BigUint64Array([0n, 0n]))
  prctl(signalOfParent, sigkill, 0n, 0n, 0n)
}
