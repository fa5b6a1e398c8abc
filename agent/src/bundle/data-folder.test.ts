import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { unwritable } from './data-folder.ts'

test('a folder that exists or can be created is writable; a folder below a file is not', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-data-'))
  expect(unwritable(folder.path)).toBeUndefined()
  expect(unwritable(join(folder.path, 'not/there/yet'))).toBeUndefined()
  await writeFile(join(folder.path, 'file'), '')
  const below = join(folder.path, 'file/data')
  expect(unwritable(below)).toContain(`Cannot write to the data folder ${below} (ENOTDIR)`)
})
