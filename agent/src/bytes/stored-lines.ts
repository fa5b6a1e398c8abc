// Lines that outlast the agent. A line is stored with the other parts of its event, in the format of a line; data shared by all
// events is stored once. When read back, they are lines again, so neither direction creates objects.

import { isAscii } from 'node:buffer'
import { type LogBatch, logBatch } from '../event/batch.ts'
import type { Body } from '../event/body.ts'
import type { Finalizer } from '../event/finalizer.ts'
import { type EventMetadata, LogEvent } from '../event/log.ts'
import { copyObject, Float, isObject, mergeObjects, setField, type Value, type ValueObject } from '../event/value.ts'
import { parseRfc3339 } from '../formats/datetime.ts'
import { isFailedJson, parseJson } from '../formats/json.ts'
import { ByteBatch } from './byte-batch.ts'
import { ByteLines } from './byte-lines.ts'
import { type Column, noColumns } from './columns.ts'
import { type ByteEdit, type ByteEdits, type ByteParsing, Form, type Member } from './form.ts'
import { theKernel } from './kernel.ts'
import { KeyTable } from './key-table.ts'
import { LineOrigin } from './line-origin.ts'
import type { OriginField } from './plan.ts'

/** The data shared by stored lines. */
export interface LineKind {
  readonly fields: readonly OriginField[]
  readonly metadata: EventMetadata
  /** Whether the messages are parsed. */
  readonly parses: boolean
  readonly merges: boolean
  readonly members: ReadonlyMap<string, Value | undefined>
}

/**
 * The source data and program results that the line events still contain; data removed by a program is not stored. If a program has
 * moved or computed fields, the line contains the whole event.
 */
export function kindOf({ fields, metadata }: LineOrigin, form: Form): LineKind {
  const isMessage = (field: OriginField) => 'part' in field && field.part === 'message'
  if (!isSimple(form)) {
    return { fields: fields.filter(isMessage), metadata, parses: true, merges: false, members: new Map() }
  }
  const { hasOrigin, members, parses } = form
  return {
    fields: fields.filter((field) => isMessage(field) || (hasOrigin && !members.has(field.name))),
    metadata,
    parses,
    merges: hasOrigin,
    members: new Map([...members].map(([name, member]) => [name, member.is === 'constant' ? member.value : undefined])),
  }
}

/** Whether programs have only parsed the message, and then set fields to constants or removed fields. */
function isSimple({ parses, spreads, members }: Form): boolean {
  if (parses && !spreads) return false
  for (const { is } of members.values()) if (is !== 'constant' && is !== 'removed') return false
  return true
}

/** Whether the line events of a batch may be stored as lines. */
export function canStore(batch: ByteBatch): boolean {
  return batch.isLines && (isSimple(batch.form) || isJson(batch))
}

/** Whether the JSON of an event preserves the types of its values; times would be read back as text. */
function isJson({ lines: { origin }, form, columns }: ByteBatch): boolean {
  const { hasOrigin, members } = form
  for (const { name, ...field } of hasOrigin ? origin.fields : []) {
    const isTime = 'part' in field && field.part === 'time'
    const isSeen = !members.has(name) || members.get(name)?.is === 'computed'
    const isMoved = [...members.values()].some((member) => movedFrom(member) === name)
    if (isTime && (isSeen || isMoved)) return false
    if ('value' in field && !isJsonValue(field.value)) return false
  }
  for (const member of members.values()) {
    const edit = member.is === 'computed' ? member.under : member
    if (edit?.is === 'constant' && !isJsonValue(edit.value)) return false
  }
  return columns.every(({ values }) => values.every(isJsonValue))
}

function movedFrom(member: Member): string | undefined {
  const edit = member.is === 'computed' ? member.under : member
  return edit?.is === 'moved' ? edit.from : undefined
}

function isJsonValue(value: Value): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  if (value instanceof Float) return Number.isFinite(value.value)
  if (Array.isArray(value)) return value.every(isJsonValue)
  return isObject(value) && Object.values(value).every((each) => each === undefined || isJsonValue(each))
}

const newline = 0x0a

/**
 * Stores consecutive lines of a batch for which `canStore` is true, from `first` on: as many as possible at once. @param lengths
 * receives the length of each, without its newline @returns the number of lines; 0 if the first must be stored as an object
 */
export function storeLines(batch: ByteBatch, first: number, count: number, body: Body, lengths: number[]): number {
  const { lines, form, columns } = batch
  if (!isSimple(form)) return writeLines(lines, form, columns, first, count, body, lengths)
  const name = messageName(lines.origin)
  const isHidden = name === undefined || form.members.has(name)
  if (!form.parses) return copyLines(lines, first, count, isHidden, body, lengths)
  if (!form.hasOrigin || isHidden) return writeLines(lines, form.bare, noColumns, first, count, body, lengths)
  // If a message member replaces the message, the event no longer has the text.
  const replaced = lines.linesWith(name)
  const isReplaced = (replaced[first] as number) >= 0
  let same = 1
  while (same < count && (replaced[first + same] as number) >= 0 === isReplaced) same++
  return isReplaced
    ? writeLines(lines, form.bare, noColumns, first, same, body, lengths)
    : copyLines(lines, first, same, false, body, lengths)
}

function messageName(origin: LineOrigin): string | undefined {
  return origin.fields.find((field) => 'part' in field && field.part === 'message')?.name
}

/** Copies whole lines, or only the part before their messages. */
function copyLines(
  lines: ByteLines,
  first: number,
  count: number,
  isHidden: boolean,
  body: Body,
  lengths: number[],
): number {
  const { starts, ends, messages, memory } = lines.enter()
  for (let line = first; line < first + count; line++) {
    const start = starts[line] as number
    const end = (isHidden ? messages[line] : ends[line]) as number
    const length = end - start
    body.reserve(length + 1)
    memory.copy(body.buffer, body.length, start, end)
    body.length += length
    body.writeByte(newline)
    lengths.push(length)
  }
  return count
}

/** The text before the messages, and the events of a form as messages. */
function writeLines(
  lines: ByteLines,
  form: Form,
  columns: readonly Column[],
  first: number,
  count: number,
  body: Body,
  lengths: number[],
): number {
  const plan = lines.origin.plan(lines.enterFor(form), form)
  if (!plan.isPossible) return 0
  // The plan may have loaded other names into the kernel.
  const kernel = lines.enterFor(form)
  plan.enter(kernel, columns)
  const written = kernel.call.write(first, first + count, plan.count, plan.mode, 0, 0)
  const { starts, messages, memory, writtenEnds } = kernel
  let from = kernel.at('output')
  for (let index = 0; index < written; index++) {
    const start = starts[first + index] as number
    const message = messages[first + index] as number
    const end = writtenEnds[index] as number
    const length = message - start + end - from
    body.reserve(length + 1)
    memory.copy(body.buffer, body.length, start, message)
    memory.copy(body.buffer, body.length + message - start, from, end)
    body.length += length
    body.writeByte(newline)
    lengths.push(length)
    from = end
  }
  return written
}

/** Lines read back, and the events among them. */
export interface StoredLines {
  readonly kind: LineKind
  readonly bytes: Buffer
  /** Offsets of the lines in the bytes; a newline follows each. */
  readonly starts: readonly number[]
  readonly ends: readonly number[]
  /** For each event, its line, or -1 minus the index of its object. */
  readonly items: readonly number[]
  readonly objects: readonly LogEvent[]
}

/** Whether this many lines and bytes may be read back as one batch. */
export function fitsStored(count: number, from: number, to: number): boolean {
  return ByteLines.fits(count, from, to)
}

/** Restores lines as batches. */
export class LineRestorer {
  readonly #asObjects: boolean
  #keys = new KeyTable()
  /** Each batch has plans of its own. */
  readonly #owner = { names: 0 }

  /** @param asObjects whether all lines become objects, for a configuration without the byte lane */
  constructor(asObjects: boolean) {
    this.#asObjects = asObjects
  }

  /** Returns the events; the bytes belong to the caller again. */
  batch(stored: StoredLines, finalizer: Finalizer): LogBatch {
    const { kind, bytes, starts, ends } = stored
    const count = starts.length
    if (this.#keys.lacksNames(theKernel())) this.#keys = new KeyTable()
    const origin = new LineOrigin(kind.fields, kind.metadata, this.#keys, this.#owner, (source, start, end) =>
      eventOf(kind, source, start, end),
    )
    const from = starts[0] as number
    const to = ends[count - 1] as number
    const form = Form.asRead.after(new StoredEdits(kind)) ?? Form.asRead
    const lines = new ByteLines(
      origin,
      bytes,
      Int32Array.from(starts),
      Int32Array.from(ends),
      count,
      isAscii(bytes.subarray(from, to)),
    )
    if (this.#asObjects || !fitsStored(count, from, to) || !origin.plan(lines.enterFor(form), form).isPossible) {
      return logBatch(
        stored.items.map((item) => (item < 0 ? (stored.objects[-1 - item] as LogEvent) : made(lines, form, item))),
        finalizer,
      )
    }
    const { items, objects } = readable(stored, lines, form)
    const batch = ByteBatch.ofLines(lines, items, objects, finalizer, form)
    lines.keep()
    return batch
  }
}

/** The items and objects, including objects for lines that the kernel rejects. */
function readable(stored: StoredLines, lines: ByteLines, form: Form): { items: Int32Array; objects: LogEvent[] } {
  const kernel = lines.enterFor(form)
  const isRefused = kernel.at('isUnusual') | (form.parses ? kernel.at('isOdd') : 0)
  const refused = kernel.flags.slice(0, lines.count).map((flags) => flags & isRefused)
  const objects = [...stored.objects]
  const items = Int32Array.from(stored.items, (item) =>
    item < 0 || refused[item] === 0 ? item : -objects.push(made(lines, form, item)),
  )
  return { items, objects }
}

function made(lines: ByteLines, form: Form, line: number): LogEvent {
  const event = lines.event(line)
  for (const edits of form.edits) edits.apply(event)
  return event
}

/** A line's event before its message is parsed. */
function eventOf({ fields, metadata }: LineKind, bytes: Buffer, start: number, end: number): LogEvent {
  const space = bytes.indexOf(0x20, start)
  // ` stdout F`, and a space before the message, if there is one.
  const message = Math.min(end, space + 10)
  const root: ValueObject = {}
  for (const field of fields) {
    let value: Value | undefined
    if ('value' in field) value = field.value
    else if (field.part === 'message') value = bytes.toString('utf8', message, end)
    else if (field.part === 'stream') value = bytes.toString('latin1', space + 1, space + 7)
    else value = parseRfc3339(bytes.toString('latin1', start, space))
    setField(root, field.name, value)
  }
  return new LogEvent(root, metadata)
}

/** The changes that programs made before the lines were stored. */
class StoredEdits implements ByteEdits {
  readonly units = []
  readonly bare = this
  readonly parsing: ByteParsing | undefined
  readonly edits: ReadonlyMap<string, ByteEdit>
  readonly #message: string

  constructor({ fields, parses, merges, members }: LineKind) {
    this.#message = fields.find((field) => 'part' in field && field.part === 'message')?.name ?? 'message'
    this.parsing = parses ? { field: this.#message, merges, under: undefined } : undefined
    this.edits = new Map(
      [...members].map(([name, value]) => [name, value === undefined ? { is: 'removed' } : { is: 'constant', value }]),
    )
  }

  apply(event: LogEvent): void {
    let fields = event.fields
    if (this.parsing !== undefined) {
      const parsed = parseJson(String(event.field(this.#message)))
      if (isFailedJson(parsed) || !isObject(parsed)) throw new TypeError('A stored line has no object in its message.')
      fields = this.parsing.merges ? mergeObjects(fields, parsed) : parsed
    }
    fields = copyObject(fields)
    for (const [name, edit] of this.edits) setField(fields, name, edit.is === 'constant' ? edit.value : undefined)
    event.fields = fields
    event.changed()
  }
}
