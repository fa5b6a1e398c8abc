// Allows one process at a time in the folder of a buffer. Node has no file locks, but its built-in SQLite uses the kernel's: an
// open exclusive transaction on an empty file is a lock that ends with the process in any case, and that other containers on
// the machine respect too. The file always stays empty.

import { closeSync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { PenstockError } from '../../errors.ts'

export const lockName = 'buffer.lock'

const lockedBySqlite = 5 // SQLITE_BUSY

/** @param patienceMs how long to wait for another holder, which may be about to stop */
export function lockFolder(path: string, patienceMs = 1000): Disposable {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  let database: DatabaseSync | undefined
  try {
    makePrivate(path)
    database = new DatabaseSync(path, { timeout: patienceMs })
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    if ((error as { errcode?: number }).errcode === lockedBySqlite) {
      const message = `The disk buffer is in use: another agent holds the lock ${path}. Stop that agent, or use another \`data_dir\` for this one.`
      throw new PenstockError('PEN_IO', message, { cause: error })
    }
    throw error
  }
  const held = database
  return { [Symbol.dispose]: () => held.close() }
}

/**
 * SQLite would make the file world-readable. An existing file is not opened, because closing it would release a lock of this
 * process.
 */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Whether another process holds the lock; takes the lock only for a moment. */
export function isLocked(path: string): boolean {
  try {
    lockFolder(path, 0)[Symbol.dispose]()
    return false
  } catch (error) {
    return error instanceof PenstockError
  }
}
