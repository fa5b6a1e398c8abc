import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockFolder, lockName } from './lock.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-lock-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('the lock is readable for the user of the agent alone, and one holder does not take it from another', () => {
  const path = join(folder, lockName)
  const first = lockFolder(path)
  expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
  for (let attempt = 0; attempt < 2; attempt++) expect(() => lockFolder(path, 1)).toThrow('is in use')
  first[Symbol.dispose]()
  lockFolder(path, 1)[Symbol.dispose]()
})
