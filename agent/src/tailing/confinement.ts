// A folder that reading must not leave, whatever links lead elsewhere: an application beside a sidecar may write any link into the
// volume of its logs, and exchange it at any time. So the check judges the opened file, not an earlier path.

import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

/** The files that may be read, and removed. */
export interface Confined {
  /** Whether an open file may be read. */
  holds(descriptor: number): boolean
  /** Whether a path may be removed: its folder is inside, and a link at its end is removed itself. */
  mayRemove(path: string): boolean
}

export class Confinement implements Confined {
  readonly #root: string

  constructor(root: string) {
    this.#root = root.replace(/\/+$/, '')
  }

  /** Whether an open file is a regular one below the folder, on the same mount. */
  holds(descriptor: number): boolean {
    if (!fstatSync(descriptor).isFile()) return false
    let folder: number | undefined
    try {
      folder = openSync(this.#root, constants.O_RDONLY | constants.O_DIRECTORY)
      const root = pathOf(folder)
      // A mount below the folder, such as the agent's own secrets, is not part of the volume.
      return isBelow(pathOf(descriptor), root) && mountOf(descriptor) === mountOf(folder)
    } catch {
      return false // no folder, or a system without /proc: nothing is known to be inside
    } finally {
      if (folder !== undefined) closeSync(folder)
    }
  }

  /** Whether a folder lies below: for walks, which open nothing. */
  leadsInside(folder: string): boolean {
    try {
      const root = realpathSync(this.#root)
      const path = realpathSync(folder)
      return path === root || isBelow(path, root)
    } catch {
      return true // not there yet; each file is judged when it is opened
    }
  }

  /** Whether a path may be removed: its folder is inside, and a link at its end is removed itself. */
  mayRemove(path: string): boolean {
    return this.leadsInside(dirname(path))
  }
}

/** The log of a container as Docker keeps it: a runtime that uses it writes links to it into the folders of pods. */
const dockerLog = /\/([0-9a-f]{64})\/\1-json\.log[^/]*$/

/**
 * The folders of pods. The kubelet and the runtime write them, pods do not; but a user who mounts the folder of the node's logs may
 * put links there, which would lead to files of the agent.
 */
export class PodLogConfinement implements Confined {
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  holds(descriptor: number): boolean {
    if (!fstatSync(descriptor).isFile()) return false
    const path = pathOf(descriptor)
    return isBelow(path, realpathSync(this.#root)) || dockerLog.test(path)
  }

  /** Nothing is removed there. */
  mayRemove(): boolean {
    return false
  }
}

const isBelow = (path: string, root: string) => path.startsWith(root === '/' ? '/' : `${root}/`)

const pathOf = (descriptor: number) => readlinkSync(`/proc/self/fd/${descriptor}`)

function mountOf(descriptor: number): string | undefined {
  return /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1]
}
