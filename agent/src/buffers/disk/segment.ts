// The files that hold the records of a buffer, oldest first: `buffer-data-<n>.dat`, where n is the sequence number modulo 65536.
// Segments are looked at here without a change; the code that opens a buffer decides about the findings.

import { join } from 'node:path'
import { PenstockError } from '../../errors.ts'
import type { DiskFiles } from './files.ts'
import {
  findHeader,
  formatAt,
  headerBytes,
  isReadable,
  isWhole,
  type RecordHeader,
  readHeader,
  recordBytes,
  recordFormat,
} from './record.ts'

/** A segment takes at most this many bytes. */
export const defaultSegmentLimit = 128 * 1024 * 1024
export const maxSegments = 65_536
export const spareName = 'buffer-spare.dat'

/** A segment of a buffer that is open. */
export interface Segment {
  readonly sequence: number
  readonly path: string
  /** Bytes of the file. */
  size: number
  /** Where its records end; undefined if only reading can find out. */
  end: number | undefined
  /** The format of its first record, if that was found by an earlier run: records of another one do not follow. */
  readonly format?: number | undefined
}

export function segmentName(sequence: number): string {
  return `buffer-data-${sequence % maxSegments}.dat`
}

export interface FoundSegment extends Segment {
  /** Id of the first event in it; undefined if it holds no record that is whole. */
  readonly firstId: number | undefined
}

/**
 * The segments of a folder in order. Reads no more than the beginning of each.
 * @param near sequence number of a segment that is or was there, for files without a readable one
 */
export function findSegments(files: DiskFiles, folder: string, near: number): FoundSegment[] {
  const found: FoundSegment[] = []
  for (const name of files.readdirSync(folder)) {
    const number = /^buffer-data-(\d{1,5})\.dat$/.exec(name)?.[1]
    if (number === undefined || Number(number) >= maxSegments) continue
    const path = join(folder, name)
    const file = openIfThere(files, path)
    if (file === undefined) continue
    try {
      const size = files.sizeSync(file)
      const first = firstRecord(files, file, path, Number(number))
      const sequence = first?.segment ?? nearest(Number(number), near)
      found.push({ sequence, path, size, end: undefined, firstId: first?.firstId, format: first?.format })
    } finally {
      files.closeSync(file)
    }
  }
  return found.sort((left, right) => left.sequence - right.sequence)
}

/** Opens a segment; undefined if it is gone: a running agent gives segments back at any time. */
export function openIfThere(files: DiskFiles, path: string, mode = 'r'): number | undefined {
  try {
    return files.openSync(path, mode)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The sequence number of this remainder that is nearest to another one. */
function nearest(remainder: number, near: number): number {
  const base = near - (near % maxSegments) + remainder
  const candidates = [base - maxSegments, base, base + maxSegments].filter((sequence) => sequence >= 0)
  return candidates.reduce((best, sequence) => (Math.abs(sequence - near) < Math.abs(best - near) ? sequence : best))
}

const peekBytes = 1 << 20

/** The first header of a file whose segment fits its name; undefined also where the disk does not give it back. */
function firstRecord(files: DiskFiles, file: number, path: string, remainder: number): RecordHeader | undefined {
  try {
    return firstHeader(files, file, path, remainder)
  } catch (error) {
    if (isUnreadable(error)) return undefined
    throw error
  }
}

/** Whether the disk did not give back what is on it. */
export function isUnreadable(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EIO'
}

function firstHeader(files: DiskFiles, file: number, path: string, remainder: number): RecordHeader | undefined {
  const start = Buffer.alloc(headerBytes)
  if (files.readSync(file, start, 0, headerBytes, 0) < headerBytes) return undefined
  const format = formatAt(start, 0)
  if (format !== undefined && !isReadable(format)) {
    const message = `The disk buffer's file ${path} is of format ${format}; this version of Penstock reads formats up to ${recordFormat}. Let the version that wrote it deliver what is inside, or move the folder away.`
    throw new PenstockError('PEN_IO', message)
  }
  const header = readHeader(start, 0)
  if (header !== undefined && header.segment % maxSegments === remainder) return header
  const bytes = Buffer.alloc(peekBytes)
  const length = files.readSync(file, bytes, 0, peekBytes, 0)
  for (let at = 0; at + headerBytes <= length; at += 8) {
    const other = readHeader(bytes, at)
    if (other !== undefined && other.segment % maxSegments === remainder) return other
  }
  return undefined
}

/** A record as it was found in a segment. */
export interface FoundRecord {
  readonly header: RecordHeader
  readonly offset: number
  /** False if its events are not as they were written. */
  readonly whole: boolean
}

/**
 * The records of a segment from an offset on, with what is damaged between them left out.
 * @param check whether the events are read and compared with their checksum
 */
export function* recordsIn(files: DiskFiles, segment: Segment, from: number, check: boolean): Generator<FoundRecord> {
  const file = openIfThere(files, segment.path)
  if (file === undefined) return
  try {
    const size = files.sizeSync(file)
    const start = Buffer.alloc(headerBytes)
    let offset = from
    while (offset + headerBytes <= size) {
      files.readSync(file, start, 0, headerBytes, offset)
      const header = readHeader(start, 0)
      const end = header === undefined ? 0 : offset + recordBytes(header)
      if (header === undefined || header.segment !== segment.sequence || end > size) {
        const next = searchHeader(files, file, offset + 8, size, segment.sequence)
        if (next === undefined) return
        offset = next
        continue
      }
      let whole = true
      if (check) {
        const bytes = Buffer.allocUnsafe(end - offset)
        files.readSync(file, bytes, 0, bytes.length, offset)
        whole = isWhole(bytes, 0, header)
      }
      yield { header, offset, whole }
      offset = end
    }
  } finally {
    files.closeSync(file)
  }
}

function searchHeader(
  files: DiskFiles,
  file: number,
  from: number,
  size: number,
  sequence: number,
): number | undefined {
  const bytes = Buffer.allocUnsafe(peekBytes)
  for (let offset = from; offset + headerBytes <= size; offset += peekBytes - headerBytes) {
    const length = files.readSync(file, bytes, 0, peekBytes, offset)
    const at = findHeader(bytes.subarray(0, length), 0, sequence)
    if (at !== undefined) return offset + at
  }
  return undefined
}
