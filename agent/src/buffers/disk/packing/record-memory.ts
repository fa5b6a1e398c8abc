// The memory of packed records. All buffers of the process reuse it, because allocating memory costs as much as packing into
// it.

/** The bytes of a record: its values, followed by its text. */
export interface PackedRecord {
  readonly values: Buffer
  readonly texts: Buffer
}

const defaultValues = 1 << 17
const defaultTexts = 1 << 18
/** Memory of finished records. */
const spares: PackedRecord[] = []
const maxSpares = 12
const largestSpare = 1 << 20

/** Memory for the next record, with undefined content. */
export function recordMemory(): PackedRecord {
  const spare = spares.pop()
  if (spare !== undefined) return spare
  return { values: Buffer.allocUnsafeSlow(defaultValues), texts: Buffer.allocUnsafeSlow(defaultTexts) }
}

/** Returns the memory of a finished record. */
export function recycle({ values, texts }: PackedRecord): void {
  const [whole, wholeTexts] = [Buffer.from(values.buffer), Buffer.from(texts.buffer)]
  if (spares.length === maxSpares || whole.length + wholeTexts.length > largestSpare) return
  spares.push({ values: whole, texts: wholeTexts })
}

/** A larger buffer with a copy of the bytes in use. */
export function grown(buffer: Buffer, used: number, needed: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(needed, buffer.length * 2))
  buffer.copy(larger, 0, 0, used)
  return larger
}

/** A view of the same memory for eight-byte numbers. */
export function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
}
