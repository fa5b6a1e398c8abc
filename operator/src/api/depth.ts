// The nesting depth of user input. All code that reads trees is recursive, so the operator first refuses trees that are too deep.

export const maxDepth = 100

/** Whether a value has more nested lists and tables than the operator accepts. */
export function isTooDeep(value: unknown, max = maxDepth): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > max) return true
    const next: unknown[] = []
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue
      for (const member of Object.values(each)) if (typeof member === 'object' && member !== null) next.push(member)
    }
    level = next
  }
  return false
}
