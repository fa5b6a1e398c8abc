// The memory that a core dump of this process may contain.

import { writeFileSync } from 'node:fs'

/**
 * Secrets are in the memory of agents and operators, and a user who may read the core dumps of a node should not get them. Kubernetes
 * has no field for it, and Node cannot set limits of its process; but Linux asks each process which kinds of its memory belong
 * into a dump: none. Processes that it starts inherit that. Without `/proc` there is nobody to ask.
 */
export function leaveMemoryOutOfDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Another system, or a sandbox that hides it: there it is up to the platform.
  }
}
