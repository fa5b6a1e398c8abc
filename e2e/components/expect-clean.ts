// Assertions for component tests that expect a run of the agent without errors.

import { expect } from 'vitest'
import type { CommandResult } from '../command.ts'

/** The agent exited with 0 and logged no error. */
export function expectClean(result: CommandResult): void {
  expect(result.code, result.stderr).toBe(0)
  expect(result.stdout + result.stderr).not.toContain('ERROR')
}

/** Also no warnings, such as for a retried request. Ignores the warning about a blocked event loop, which occurs on busy machines. */
export function expectNoWarning(result: CommandResult): void {
  expectClean(result)
  const printed = (result.stdout + result.stderr)
    .split('\n')
    .filter((line) => !line.includes('The event loop was blocked'))
  expect(printed.join('\n')).not.toContain('WARN')
}
