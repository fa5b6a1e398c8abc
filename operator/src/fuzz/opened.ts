// Records the resources that a process opens during a case: calls of `node:fs` with a path, sockets, name look-ups and started programs.
// Reading the repository's own modules and packages is allowed, because libraries are loaded at first use.

import childProcess from 'node:child_process'
import dns from 'node:dns'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const ownFolders = ['agent', 'operator', 'node_modules'].map((name) => join(root, name) + sep)

/** Functions without a path parameter. */
const withoutPath = /^(f[a-z]+|close|read|readv|write|writev|_toUnixTimestamp)(Sync)?$/

type Functions = Record<string, unknown>

/** Starts recording until the process ends. `reported` returns the resources opened since its last call. */
export function watchOpened(): { reported(): string[] } {
  let found: string[] = []
  const note = (what: string) => {
    if (found.length < 20) found.push(what)
  }
  const wrap = (library: object, name: string, describe: (args: readonly unknown[]) => string | undefined) => {
    const functions = library as Functions
    const original = functions[name]
    if (typeof original !== 'function') return
    const watched = function (this: unknown, ...args: unknown[]): unknown {
      const what = describe(args)
      if (what !== undefined) note(what)
      return Reflect.apply(original, this, args)
    }
    functions[name] = Object.assign(watched, original)
  }
  const pathCall = (name: string) => (args: readonly unknown[]) => {
    const [path] = args
    if (typeof path !== 'string' && !(path instanceof URL) && !Buffer.isBuffer(path)) return undefined
    const text = path instanceof URL && path.protocol === 'file:' ? fileURLToPath(path) : String(path)
    return ownFolders.some((folder) => text.startsWith(folder)) || text === 'package.json'
      ? undefined
      : `${name}(${JSON.stringify(text.slice(0, 200))})`
  }
  for (const library of [fs, fs.promises]) {
    for (const name of Object.keys(library)) {
      if (!/^[a-z]/.test(name) || withoutPath.test(name) || name === 'promises') continue
      wrap(library, name, pathCall(name))
    }
  }
  wrap(net.Socket.prototype, 'connect', ([to]) => `connect(${JSON.stringify(to)?.slice(0, 200)})`)
  for (const library of [dns, dns.promises]) {
    for (const name of ['lookup', 'resolve', 'resolve4', 'resolve6', 'reverse'])
      wrap(library, name, ([host]) => `${name}(${JSON.stringify(host)})`)
  }
  for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'])
    wrap(childProcess, name, ([command]) => `${name}(${JSON.stringify(command)})`)
  syncBuiltinESMExports()
  return {
    reported() {
      const all = found
      found = []
      return all
    },
  }
}
