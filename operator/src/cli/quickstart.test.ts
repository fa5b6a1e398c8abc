// The commands that `penstock run` suggests to a new user must work as printed.

import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { run as lint } from './lint.ts'
import { next } from './run.ts'

test('the quickstart passes the check that it recommends', async () => {
  const quickstart = join(import.meta.dirname, '../../../examples/quickstart')
  const command = /^ {2}npx penstock lint (.*)$/m.exec(next('127.0.0.1:1', [quickstart]))?.[1]
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    expect(await lint(command?.split(' ') ?? [])).toBe(0)
    expect(printed).toHaveBeenCalledWith(`1 Pipeline in ${quickstart}: no problems.`)
  } finally {
    printed.mockRestore()
  }
})
