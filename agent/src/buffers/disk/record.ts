// A record is the unit of writing: a header and up to 256 KiB of packed events. The header has a separate checksum, so a flipped bit
// in the events loses only these events, and a reader finds the next record after a damaged range. Records begin at multiples of eight
// bytes.

import { crc32c } from '../../formats/crc32c.ts'

const recordMagic = 0x31425350 // "PSB1", little-endian
export const headerBytes = 56
const alignment = 8

/** Version of header and packing together; a change needs another magic number or version. */
export const recordFormat = 2
/** The oldest readable version; later versions add lines to the packed values. */
const oldestFormat = 1

/** Whether records of a format can be read. */
export function isReadable(format: number): boolean {
  return format >= oldestFormat && format <= recordFormat
}

export type RecordKind = 'log' | 'metric'

export interface RecordHeader {
  readonly kind: RecordKind
  /** Sequence number of the segment, which distinguishes records from remains of an earlier use of the file. */
  readonly segment: number
  /** Id of the first event; ids increase by one for each event. */
  readonly firstId: number
  readonly events: number
  /** Estimated JSON size of the events. */
  readonly eventBytes: number
  /** Length of the packed values, and of the following blocks of text. */
  readonly valueBytes: number
  readonly textBytes: number
  readonly checksum: number
  /** Milliseconds since the epoch. */
  readonly writtenAt: number
  readonly format: number
}

/** Size of a record in its segment. */
export function recordBytes({ valueBytes, textBytes }: Pick<RecordHeader, 'valueBytes' | 'textBytes'>): number {
  return aligned(headerBytes + valueBytes + textBytes)
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment
}

export function writeHeader(header: Omit<RecordHeader, 'format'>, into: Buffer): void {
  into.writeUInt32LE(recordMagic, 0)
  into.writeUInt32LE(header.checksum, 8)
  into.writeUInt32LE(header.valueBytes, 12)
  into.writeUInt32LE(header.textBytes, 16)
  into.writeUInt32LE(header.segment, 20)
  into.writeBigUInt64LE(BigInt(header.firstId), 24)
  into.writeUInt32LE(header.events, 32)
  into.writeUInt8(header.kind === 'log' ? 1 : 2, 36)
  into.writeUInt8(recordFormat, 37)
  into.writeUInt16LE(0, 38)
  into.writeDoubleLE(header.eventBytes, 40)
  into.writeDoubleLE(header.writtenAt, 48)
  into.writeUInt32LE(crc32c(into.subarray(8, headerBytes)), 4)
}

/** Reads the header at an offset; undefined if there is no intact header. */
export function readHeader(bytes: Buffer, offset: number): RecordHeader | undefined {
  const kind = isReadable(formatAt(bytes, offset) ?? 0) ? bytes.readUInt8(offset + 36) : 0
  if (kind !== 1 && kind !== 2) return undefined
  return {
    checksum: bytes.readUInt32LE(offset + 8),
    valueBytes: bytes.readUInt32LE(offset + 12),
    textBytes: bytes.readUInt32LE(offset + 16),
    segment: bytes.readUInt32LE(offset + 20),
    firstId: Number(bytes.readBigUInt64LE(offset + 24)),
    events: bytes.readUInt32LE(offset + 32),
    kind: kind === 1 ? 'log' : 'metric',
    eventBytes: bytes.readDoubleLE(offset + 40),
    writtenAt: bytes.readDoubleLE(offset + 48),
    format: bytes.readUInt8(offset + 37),
  }
}

/** The format of the record at an offset, if it has a header with a valid checksum. */
export function formatAt(bytes: Buffer, offset: number): number | undefined {
  if (offset + headerBytes > bytes.length || bytes.readUInt32LE(offset) !== recordMagic) return undefined
  if (bytes.readUInt32LE(offset + 4) !== crc32c(bytes.subarray(offset + 8, offset + headerBytes))) return undefined
  return bytes.readUInt8(offset + 37)
}

/** Whether the events after a header match their checksum. */
export function isWhole(bytes: Buffer, offset: number, header: RecordHeader): boolean {
  const start = offset + headerBytes
  return crc32c(bytes.subarray(start, start + header.valueBytes + header.textBytes)) === header.checksum
}

/** The offset of the segment's next header, at or after `offset`; undefined if these bytes contain none. */
export function findHeader(bytes: Buffer, offset: number, segment: number): number | undefined {
  for (let at = aligned(offset); at + headerBytes <= bytes.length; at += alignment) {
    if (bytes.readUInt32LE(at) === recordMagic && readHeader(bytes, at)?.segment === segment) return at
  }
  return undefined
}
