// Loaded before each test file. A wait of a test ends with its condition, so its limit is for what never comes: a second, which is
// the default, is short on a busy machine. The limit of the test as a whole is longer than this one.

import { vi } from 'vitest'

const patienceMs = 120_000
const waitFor = vi.waitFor

vi.waitFor = (callback, options) => {
  const given = typeof options === 'number' ? { timeout: options } : options
  return waitFor(callback, { ...given, timeout: Math.max(patienceMs, given?.timeout ?? 0) })
}
