// Packs a workspace for tests as an image contains it: with the same command, and in the same place relative to libraries that are loaded
// lazily.

import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')

/** The path of a workspace's packed files below a folder. */
export const packedIn = (folder: string, workspace: 'agent' | 'operator'): string => join(folder, workspace, 'packed')

/** Packs a workspace into an empty folder, and returns the folder with the packed files. Throws if packing fails. */
export function pack(folder: string, workspace: 'agent' | 'operator'): string {
  const packed = packedIn(folder, workspace)
  mkdirSync(join(folder, workspace), { recursive: true })
  symlinkSync(join(root, workspace, 'package.json'), join(folder, workspace, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const build = ['run', '--silent', 'build:image', '--workspace', workspace, '--', '--dir', packed]
  execFileSync('npm', build, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] }) // the error contains its messages
  return packed
}
