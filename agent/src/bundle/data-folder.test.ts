import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { unwritable } from './data-folder.ts'

test('a folder that is there, or can be made, can be written; one below a file cannot', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-data-'))
  expect(unwritable(folder.path)).toBeUndefined()
  expect(unwritable(join(folder.path, 'not/there/yet'))).toBeUndefined()
  await writeFile(join(folder.path, 'file'), '')
  const below = join(folder.path, 'file/data')
  expect(unwritable(below)).toContain(`Cannot write to the data folder ${below} (ENOTDIR)`)
})
