// The files with the records of a buffer, oldest first: `buffer-data-<n>.dat`, where n is the sequence number modulo 65536. The
// functions here examine segments without changing them; the code that opens a buffer handles the results.

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

/** Maximum size of a segment. */
export const defaultSegmentLimit = 128 * 1024 * 1024
export const maxSegments = 65_536
export const spareName = 'buffer-spare.dat'

/** A segment of an open buffer. */
export interface Segment {
  readonly sequence: number
  readonly path: string
  /** Size of the file. */
  size: number
  /** End of its records; undefined if only reading can determine it. */
  end: number | undefined
  /** The format of its first record, if an earlier run wrote it: records of another format must not follow. */
  readonly format?: number | undefined
}

export function segmentName(sequence: number): string {
  return `buffer-data-${sequence % maxSegments}.dat`
}

export interface FoundSegment extends Segment {
  /** Id of its first event; undefined if it contains no intact record. */
  readonly firstId: number | undefined
}

/**
 * The segments of a folder in order. Reads only the beginning of each. @param near sequence number of a current or
 * former segment, for files without a readable one
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

/** Opens a segment; undefined if it was removed, because a running agent may release segments at any time. */
export function openIfThere(files: DiskFiles, path: string, mode = 'r'): number | undefined {
  try {
    return files.openSync(path, mode)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The sequence number with this remainder that is nearest to another one. */
function nearest(remainder: number, near: number): number {
  const base = near - (near % maxSegments) + remainder
  const candidates = [base - maxSegments, base, base + maxSegments].filter((sequence) => sequence >= 0)
  return candidates.reduce((best, sequence) => (Math.abs(sequence - near) < Math.abs(best - near) ? sequence : best))
}

const peekBytes = 1 << 20

/** The first header of a file whose segment number matches the file name; undefined also if the disk cannot read it. */
function firstRecord(files: DiskFiles, file: number, path: string, remainder: number): RecordHeader | undefined {
  try {
    return firstHeader(files, file, path, remainder)
  } catch (error) {
    if (isUnreadable(error)) return undefined
    throw error
  }
}

/** Whether the disk could not read the data. */
export function isUnreadable(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EIO'
}

function firstHeader(files: DiskFiles, file: number, path: string, remainder: number): RecordHeader | undefined {
  const start = Buffer.alloc(headerBytes)
  if (files.readSync(file, start, 0, headerBytes, 0) < headerBytes) return undefined
  const format = formatAt(start, 0)
  if (format !== undefined && !isReadable(format)) {
    const message = `The file ${path} of the disk buffer has format ${format}; this version of Penstock reads formats up to ${recordFormat}. Let the version that wrote it deliver its events, or move the folder away.`
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

/** A record found in a segment. */
export interface FoundRecord {
  readonly header: RecordHeader
  readonly offset: number
  /** False if its events do not match their checksum. */
  readonly whole: boolean
}

/**
 * The records of a segment from an offset on, without damaged data between them. @param check whether to read the
 * events and compare them with their checksum
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
