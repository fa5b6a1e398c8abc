// The memory of packed records. It is used again, by all buffers of the process: new memory costs as much as packing into it.

/** The bytes of a record: its values, and behind them its text. */
export interface PackedRecord {
  readonly values: Buffer
  readonly texts: Buffer
}

const defaultValues = 1 << 17
const defaultTexts = 1 << 18
/** Memory of records that are done. */
const spares: PackedRecord[] = []
const maxSpares = 12
const largestSpare = 1 << 20

/** Memory for the next record, whose content is undefined. */
export function recordMemory(): PackedRecord {
  const spare = spares.pop()
  if (spare !== undefined) return spare
  return { values: Buffer.allocUnsafeSlow(defaultValues), texts: Buffer.allocUnsafeSlow(defaultTexts) }
}

/** The bytes of this record are not used any more. */
export function recycle({ values, texts }: PackedRecord): void {
  const [whole, wholeTexts] = [Buffer.from(values.buffer), Buffer.from(texts.buffer)]
  if (spares.length === maxSpares || whole.length + wholeTexts.length > largestSpare) return
  spares.push({ values: whole, texts: wholeTexts })
}

/** A larger buffer with the bytes that are used so far. */
export function grown(buffer: Buffer, used: number, needed: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(needed, buffer.length * 2))
  buffer.copy(larger, 0, 0, used)
  return larger
}

/** The same memory, for numbers of eight bytes. */
export function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
}
