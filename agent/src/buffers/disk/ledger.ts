// The ledger records how far a buffer is written and synced, and how far its events are finished. Writes alternate between two slots
// with a number and a checksum, so a torn write leaves the other slot intact. The ledger may lag behind the segments but must never be
// ahead of them: a position is written only when everything before it is no longer needed.

import { crc32c } from '../../formats/crc32c.ts'
import { type DiskFiles, diskFiles } from './files.ts'

export const ledgerName = 'buffer.db'
const magic = 0x314c5350 // "PSL1"
const ledgerVersion = 1
const slotBytes = 64

export interface Position {
  /** Sequence number of a segment. */
  readonly segment: number
  readonly offset: number
}

export function isBefore(one: Position, other: Position): boolean {
  return one.segment < other.segment || (one.segment === other.segment && one.offset < other.offset)
}

export interface LedgerState {
  /** Where the reader continues: everything before is finished. */
  readonly read: Position
  /** Id of the first unfinished event. */
  readonly readId: number
  /** Position up to which the data is known to be on the disk. */
  readonly synced: Position
  /** Id of the first event after that position. */
  readonly syncedId: number
  /** Id that the next event gets. */
  readonly nextId: number
  /**
   * Whether a sync of the data after `synced` has failed: the kernel considers that data written, so a later sync does not
   * report the failure.
   */
  readonly unsafe: boolean
}

export class Ledger {
  readonly #files: DiskFiles
  readonly #file: number
  #sequence: number

  private constructor(files: DiskFiles, file: number, sequence: number) {
    this.#files = files
    this.#file = file
    this.#sequence = sequence
  }

  /** Opens the ledger, or creates it. `state` is undefined if neither slot is valid. */
  static open(
    path: string,
    files: DiskFiles = diskFiles,
  ): { ledger: Ledger; state: LedgerState | undefined; damaged: boolean } {
    const file = files.openSync(path, 'a+', 0o600)
    files.closeSync(file) // `a+` creates the file; only `r+` can write at positions
    const opened = files.openSync(path, 'r+')
    const { state, sequence, damaged } = readSlots(files, opened)
    return { ledger: new Ledger(files, opened, sequence), state, damaged }
  }

  /** Reads a ledger without changing it; throws if there is no such file. */
  static read(path: string, files: DiskFiles = diskFiles): { state: LedgerState | undefined; damaged: boolean } {
    const file = files.openSync(path, 'r')
    try {
      return readSlots(files, file)
    } finally {
      files.closeSync(file)
    }
  }

  /** Writes the state; throws if the disk refuses it. It survives a process crash at once, and a machine crash after `sync`. */
  write(state: LedgerState): void {
    const slot = Buffer.alloc(slotBytes)
    const sequence = (this.#sequence + 1) >>> 0
    slot.writeUInt32LE(magic, 0)
    slot.writeUInt32LE(ledgerVersion, 8)
    slot.writeUInt32LE(sequence, 12)
    slot.writeUInt32LE(state.read.segment, 16)
    slot.writeUInt32LE(state.read.offset, 20)
    slot.writeBigUInt64LE(BigInt(state.readId), 24)
    slot.writeUInt32LE(state.synced.segment, 32)
    slot.writeUInt32LE(state.synced.offset, 36)
    slot.writeBigUInt64LE(BigInt(state.nextId), 40)
    slot.writeBigUInt64LE(BigInt(state.syncedId), 48)
    slot.writeUInt32LE(state.unsafe ? 1 : 0, 56)
    slot.writeUInt32LE(crc32c(slot.subarray(8)), 4)
    this.#files.writeSync(this.#file, slot, 0, slotBytes, (sequence & 1) * slotBytes)
    this.#sequence = sequence // a failed write is retried in the same slot, because the other slot is intact
  }

  sync(): Promise<void> {
    return this.#files.fdatasync(this.#file)
  }

  close(): void {
    this.#files.closeSync(this.#file)
  }
}

function readSlots(
  files: DiskFiles,
  file: number,
): { state: LedgerState | undefined; sequence: number; damaged: boolean } {
  const bytes = Buffer.alloc(2 * slotBytes)
  const length = files.readSync(file, bytes, 0, bytes.length, 0)
  let state: LedgerState | undefined
  let sequence = 0
  for (let at = 0; at + slotBytes <= length; at += slotBytes) {
    const slot = bytes.subarray(at, at + slotBytes)
    if (slot.readUInt32LE(0) !== magic || slot.readUInt32LE(4) !== crc32c(slot.subarray(8))) continue
    const number = slot.readUInt32LE(12)
    // The numbers wrap around after 32 bits.
    if (slot.readUInt32LE(8) !== ledgerVersion || (state !== undefined && ((number - sequence) | 0) <= 0)) continue
    sequence = number
    state = {
      read: { segment: slot.readUInt32LE(16), offset: slot.readUInt32LE(20) },
      readId: Number(slot.readBigUInt64LE(24)),
      synced: { segment: slot.readUInt32LE(32), offset: slot.readUInt32LE(36) },
      nextId: Number(slot.readBigUInt64LE(40)),
      syncedId: Number(slot.readBigUInt64LE(48)),
      unsafe: slot.readUInt32LE(56) !== 0,
    }
  }
  return { state, sequence, damaged: length > 0 && state === undefined }
}
