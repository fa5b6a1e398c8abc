// Limits that a compile process sets for itself before it has seen anything of a tenant. The kernel keeps them: the flags of Node limit
// its heap alone, and not the buffers beside it.

import { readFileSync } from 'node:fs'

/** `RLIMIT_DATA` and `RLIMIT_CORE` of `setrlimit(2)`, and `PR_SET_PDEATHSIG` of `prctl(2)`, the same on every Linux that Node runs on. */
const [limitOfData, limitOfCore, signalOfParent] = [2, 4, 1]
const sigkill = 9n

/**
 * From now on the process may take so much more memory, of whatever kind; an allocation beyond that fails in this process. It leaves no
 * core file, and does not outlive its parent. Where this cannot be set, as on other systems than Linux, the parent's watch must do.
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
