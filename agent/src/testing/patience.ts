// Loaded before each test file. A wait ends when its condition is true, so its limit matters only if that never happens. The default of one
// second is too short on a busy machine. The limit of a whole test is longer than this one.

import { vi } from 'vitest'

const patienceMs = 120_000
const waitFor = vi.waitFor

vi.waitFor = (callback, options) => {
  const given = typeof options === 'number' ? { timeout: options } : options
  return waitFor(callback, { ...given, timeout: Math.max(patienceMs, given?.timeout ?? 0) })
}
