// One process at a time in the folder of a buffer. Node offers no file locks, but the SQLite that comes with it takes them from
// the kernel: an open exclusive transaction on an empty file is a lock that ends with the process, however it ends, and that
// other containers on the machine see as well. Nothing is ever written into the file.

import { closeSync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { PenstockError } from '../../errors.ts'

export const lockName = 'buffer.lock'

const lockedBySqlite = 5 // SQLITE_BUSY

/** @param patienceMs how long to wait for another holder, who may just be ending */
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
      const message = `The disk buffer is in use: another agent holds the lock ${path}. Stop it, or give this one another \`data_dir\`.`
      throw new PenstockError('PEN_IO', message, { cause: error })
    }
    throw error
  }
  const held = database
  return { [Symbol.dispose]: () => held.close() }
}

/** SQLite would make the file readable for all. An existing file is not opened: closing it would release a lock of this process. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Whether somebody holds the lock; looks without taking it for longer than a moment. */
export function isLocked(path: string): boolean {
  try {
    lockFolder(path, 0)[Symbol.dispose]()
    return false
  } catch (error) {
    return error instanceof PenstockError
  }
}
