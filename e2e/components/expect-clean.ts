// The expectations of component tests for a run of the agent without complaints.

import { expect } from 'vitest'
import type { CommandResult } from '../command.ts'

/** The agent exited with 0 and logged no error. */
export function expectClean(result: CommandResult): void {
  expect(result.code, result.stderr).toBe(0)
  expect(result.stdout + result.stderr).not.toContain('ERROR')
}

/** No warnings either, such as that of a repeated request. A warning that the process stood still on a busy machine is ignored. */
export function expectNoWarning(result: CommandResult): void {
  expectClean(result)
  const said = (result.stdout + result.stderr)
    .split('\n')
    .filter((line) => !line.includes('The event loop was blocked'))
  expect(said.join('\n')).not.toContain('WARN')
}
