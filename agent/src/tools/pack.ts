// The packed files of a workspace as an image contains them, for tests: the same command packs them, and they are in the same place
// beside the libraries that load late.

import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')

/** Where the packed files of a workspace lie below a folder. */
export const packedIn = (folder: string, workspace: 'agent' | 'operator'): string => join(folder, workspace, 'packed')

/** Packs a workspace into an empty folder, and returns the one in which the packed files lie; throws if that fails. */
export function pack(folder: string, workspace: 'agent' | 'operator'): string {
  const packed = packedIn(folder, workspace)
  mkdirSync(join(folder, workspace), { recursive: true })
  symlinkSync(join(root, workspace, 'package.json'), join(folder, workspace, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const build = ['run', '--silent', 'build:image', '--workspace', workspace, '--', '--dir', packed]
  execFileSync('npm', build, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] }) // what it says of a failure is in the error
  return packed
}
