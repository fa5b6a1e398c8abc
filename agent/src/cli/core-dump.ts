// Keeps the memory of this process out of core dumps.

import { writeFileSync } from 'node:fs'

/**
 * The memory of agents and operators contains secrets, which users with access to a node's core dumps must not get. Kubernetes has no
 * field for this, and Node cannot set process limits. But Linux lets each process select the kinds of memory that its dump includes;
 * this selects none. Child processes inherit the setting. Without `/proc` it cannot be set.
 */
export function leaveMemoryOutOfDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // On another system, or in a sandbox that hides the file, the platform must handle this.
  }
}
