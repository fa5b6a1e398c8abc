import { watch } from 'node:fs'
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { watchFiles } from './watch.ts'

test('other files in the folder do not trigger a reload, but new configuration files do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-watch-'))
  const file = join(folder, 'agent.yaml')
  await writeFile(file, 'a: 1')
  let changes = 0
  const unwatch = watchFiles([file], { method: 'recommended', pollSecs: 600, quietMs: 0 }, () => changes++)
  let heard = 0
  const control = watch(folder, () => heard++)
  try {
    // The agent's own log often shares that directory, and a reload writes to it.
    await vi.waitFor(
      async () => {
        await appendFile(join(folder, 'agent.log'), 'Penstock has started.\n')
        expect(heard).toBeGreaterThan(3)
      },
      { timeout: 5000 },
    )
    expect(changes).toBe(0)
    await writeFile(join(folder, 'more.yaml'), 'b: 1')
    await vi.waitFor(() => expect(changes).toBeGreaterThan(0), { timeout: 5000 })
  } finally {
    unwatch()
    control.close()
    await rm(folder, { recursive: true })
  }
})
