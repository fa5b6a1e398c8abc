// Provides a Go version that is new enough for the builds. Since 1.21, the go command downloads the version that a module requires. An older
// one, such as Debian 12's, can still download it as a module, verified with the checksum database. In this case, this module sets the file
// modes and names, which a newer command would do itself.

import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { arch } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from './cache.ts'
import { command, execute } from './command.ts'

const version = '1.26.8'

/** Puts a new enough Go first on PATH. Throws if there is none and it cannot be downloaded. */
export async function ensureGo(): Promise<void> {
  const fetched = join(cacheFolder, `go-${version}`)
  const found = await execute('go', ['env', 'GOVERSION'], { env: { GOTOOLCHAIN: 'local' } }).catch(() => undefined)
  const minor = Number(/^go1\.(\d+)/.exec(found?.stdout ?? '')?.[1] ?? 0)
  if (minor >= 21) return
  if (!existsSync(fetched)) {
    if (found === undefined) throw new Error('Go is missing. Install Go 1.21 or newer (Debian: golang-go).')
    await fetchGo(fetched)
  }
  process.env['PATH'] = `${join(fetched, 'bin')}:${process.env['PATH'] ?? ''}`
  process.env['GOROOT'] = fetched
}

async function fetchGo(target: string): Promise<void> {
  await mkdir(cacheFolder, { recursive: true })
  const work = await mkdtemp(join(cacheFolder, 'go-'))
  try {
    const name = `golang.org/toolchain@v0.0.1-go${version}.linux-${arch() === 'x64' ? 'amd64' : arch()}`
    const answer = JSON.parse(await command('go', ['mod', 'download', '-json', name], { cwd: work })) as { Dir: string }
    const copy = join(work, 'go')
    await cp(answer.Dir, copy, { recursive: true })
    await command('chmod', ['-R', 'u+w', copy])
    for (const entry of await readdir(copy, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      // A module's archive contains no file modes, and cannot contain the go.mod of another module.
      if (entry.isFile() && /\/(bin|pkg\/tool\/[^/]+)$/.test(entry.parentPath)) await chmod(path, 0o755)
      if (entry.name === '_go.mod') await rename(path, join(entry.parentPath, 'go.mod'))
    }
    await rename(copy, target)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
