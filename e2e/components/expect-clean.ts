// What tests of components expect of a run of the agent that had nothing to complain of.

import { expect } from 'vitest'
import type { CommandResult } from '../command.ts'

/** The agent ended well and had no error to tell. */
export function expectClean(result: CommandResult): void {
  expect(result.code, result.stderr).toBe(0)
  expect(result.stdout + result.stderr).not.toContain('ERROR')
}
