// A folder that reads must not leave, even through links: an application beside a sidecar may create any link in the volume of its
// logs, and replace it at any time. So the check examines the open file, not a path resolved earlier.

import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

/** Decides which files may be read, and which may be removed. */
export interface Confined {
  /** Whether an open file may be read. */
  holds(descriptor: number): boolean
  /** Whether a path may be removed: its folder must be inside. If the path is a link, the link itself is removed. */
  mayRemove(path: string): boolean
}

export class Confinement implements Confined {
  readonly #root: string

  constructor(root: string) {
    this.#root = root.replace(/\/+$/, '')
  }

  /** Whether an open file is a regular file below the folder, on the same mount. */
  holds(descriptor: number): boolean {
    if (!fstatSync(descriptor).isFile()) return false
    let folder: number | undefined
    try {
      folder = openSync(this.#root, constants.O_RDONLY | constants.O_DIRECTORY)
      const root = pathOf(folder)
      // A mount below the folder, such as the agent's own secrets, does not belong to the volume.
      return isBelow(pathOf(descriptor), root) && mountOf(descriptor) === mountOf(folder)
    } catch {
      return false // no such folder, or no /proc: the check fails
    } finally {
      if (folder !== undefined) closeSync(folder)
    }
  }

  /** Whether a folder is inside; used by walks, which open no files. */
  leadsInside(folder: string): boolean {
    try {
      const root = realpathSync(this.#root)
      const path = realpathSync(folder)
      return path === root || isBelow(path, root)
    } catch {
      return true // missing so far; each file is checked when it is opened
    }
  }

  /** Whether a path may be removed: its folder must be inside. If the path is a link, the link itself is removed. */
  mayRemove(path: string): boolean {
    return this.leadsInside(dirname(path))
  }
}

/** The path of a container log kept by Docker: runtimes that use it create links to it in the pod folders. */
const dockerLog = /\/([0-9a-f]{64})\/\1-json\.log[^/]*$/

/**
 * The folders of pods. Only the kubelet and the runtime write there. But a user who mounts the node's log folder may add links,
 * which could lead to files of the agent.
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

  /** Nothing there may be removed. */
  mayRemove(): boolean {
    return false
  }
}

const isBelow = (path: string, root: string) => path.startsWith(root === '/' ? '/' : `${root}/`)

const pathOf = (descriptor: number) => readlinkSync(`/proc/self/fd/${descriptor}`)

function mountOf(descriptor: number): string | undefined {
  return /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1]
}
