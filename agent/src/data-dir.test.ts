import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, test, vi } from 'vitest'
import { componentDirectory, makeDirectory } from './data-dir.ts'

const disk = vi.hoisted(() => ({ fault: undefined as string | undefined }))

vi.mock('node:fs', async (original) => {
  const real = await original<typeof import('node:fs')>()
  const fsyncSync = (file: number) => {
    if (disk.fault !== undefined) throw Object.assign(new Error(`${disk.fault}: fsync`), { code: disk.fault })
    real.fsyncSync(file)
  }
  return { ...real, fsyncSync }
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

test('a file system that cannot sync folders is none the worse, and one that fails to is reported', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  try {
    disk.fault = 'EINVAL'
    makeDirectory(join(folder, 'a/b'))
    expect(existsSync(join(folder, 'a/b'))).toBe(true)
    disk.fault = 'EIO'
    expect(() => makeDirectory(join(folder, 'c'))).toThrow('EIO')
  } finally {
    disk.fault = undefined
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a folder where none can be made is refused at once', () => {
  expect(() => componentDirectory('/proc/penstock/data', 'in')).toThrowError(
    expect.objectContaining({ code: 'PEN_DATA_DIR', message: expect.stringContaining('"/proc/penstock/data"') }),
  )
})

test('a file in the place of the folder is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  try {
    writeFileSync(join(folder, 'in'), '')
    expect(() => componentDirectory(folder, 'in')).toThrowError(expect.objectContaining({ code: 'PEN_DATA_DIR' }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
