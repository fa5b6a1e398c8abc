import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { componentDirectory, type DirectoryFiles, directoryFiles, makeDirectory, spaceOf } from './data-dir.ts'

/** The real file operations, except that a folder cannot be synced. */
const failing = (code: string): DirectoryFiles => ({
  ...directoryFiles,
  fsyncSync() {
    throw Object.assign(new Error(`${code}: fsync`), { code })
  },
})

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

test('accepts a file system that cannot sync folders, and reports a failed sync', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  try {
    makeDirectory(join(folder, 'a/b'), 0o777, failing('EINVAL'))
    expect(existsSync(join(folder, 'a/b'))).toBe(true)
    expect(() => makeDirectory(join(folder, 'c'), 0o777, failing('EIO'))).toThrow('EIO')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a folder that cannot be created is refused immediately', () => {
  expect(() => componentDirectory('/proc/penstock/data', 'in')).toThrowError(
    expect.objectContaining({ code: 'PEN_DATA_DIR', message: expect.stringContaining('"/proc/penstock/data"') }),
  )
})

test('a file instead of the folder is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  try {
    writeFileSync(join(folder, 'in'), '')
    expect(() => componentDirectory(folder, 'in')).toThrowError(expect.objectContaining({ code: 'PEN_DATA_DIR' }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the space of a folder is that of its file system, and unknown for a missing folder', () => {
  const space = spaceOf(tmpdir())
  expect(space?.size).toBeGreaterThan(0)
  expect(space?.available).toBeLessThanOrEqual(space?.size ?? 0)
  expect(spaceOf(join(tmpdir(), 'penstock-is-not-here'))).toBeUndefined()
})
