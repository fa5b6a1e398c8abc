import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { makeDirectory } from './data-dir.ts'

test.each([
  { what: 'a whole path', of: (folder: string) => join(folder, 'a/b') },
  { what: 'a path that ends in a slash', of: (folder: string) => `${join(folder, 'a/b')}/` },
  { what: 'a relative path', of: (folder: string) => relative(process.cwd(), join(folder, 'a/b')) },
])('$what is made with all levels, and stays', ({ of }) => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  try {
    makeDirectory(of(folder))
    expect(existsSync(join(folder, 'a/b'))).toBe(true)
    makeDirectory(of(folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
