// Archives of images in the cache, which all checkouts on a machine share.

import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { removeUnused } from './image.ts'

const day = 86_400_000

test.each([
  { name: 'keeps a few recent ones of any checkout', ages: [0, 1, 13], left: [0, 1, 13] },
  { name: 'removes one that was not used for two weeks', ages: [0, 1, 15], left: [0, 1] },
  { name: 'removes the least recently used ones of many', ages: [7, 3, 0, 2, 5, 1, 4, 6], left: [0, 1, 2, 3, 4, 5] },
])('$name', async ({ ages, left }) => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-images-'))
  try {
    const now = Date.now()
    for (const age of ages) {
      const path = join(folder, `agent-${age}.tar`)
      await writeFile(path, '')
      await utimes(path, new Date(now - age * day), new Date(now - age * day))
    }
    await writeFile(join(folder, 'operator-0.tar'), '')
    await removeUnused(folder, 'agent', now)
    expect((await readdir(folder)).sort()).toEqual([...left.map((age) => `agent-${age}.tar`), 'operator-0.tar'])
  } finally {
    await rm(folder, { recursive: true })
  }
})
