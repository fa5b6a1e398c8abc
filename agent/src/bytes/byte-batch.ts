// A batch of log events that are still bytes: lines, and the changes that programs have made to them. The batch creates objects only
// for components that read the events; writing their JSON needs none. Some events of a batch may be objects, if the kernel does not
// accept their text.

import { type Holders, type LogBatch, shareBetween } from '../event/batch.ts'
import type { Body } from '../event/body.ts'
import { type Deferral, DeferredEvent } from '../event/deferred.ts'
import type { Finalizer } from '../event/finalizer.ts'
import type { EventMetadata, LogEvent } from '../event/log.ts'
import { copyObject, setField, type Value, type ValueObject } from '../event/value.ts'
import { isFailedJson, parseJson, writeJsonTo } from '../formats/json.ts'
import { type BatchParts, type EventGroups, measure, sumOf } from './batch-parts.ts'
import type { ByteLines, LineLikeness, LineTimes } from './byte-lines.ts'
import type { ByteTarget, EntryRun } from './byte-target.ts'
import { type Chosen, chosenOf } from './chosen.ts'
import { type Column, noColumns, noValue, splitBy, untouched } from './columns.ts'
import { Computation, runs, stays } from './computation.ts'
import { allFields, type ByteEdit, type ByteEdits, type FieldSelection, Form } from './form.ts'
import type { Kernel } from './kernel.ts'
import type { Plan } from './plan.ts'

export class ByteBatch implements LogBatch, Deferral<number> {
  readonly type = 'log'
  readonly hides = true
  readonly count: number
  readonly bytes: number
  readonly finalizer: Finalizer
  shared = false
  holders: Holders | undefined
  readonly lines: ByteLines
  readonly form: Form
  /** For each event, its line, or -1 minus the index of its object; undefined if the events are consecutive lines. */
  readonly #items: Int32Array | undefined
  /** The first line, if there are no items. */
  readonly #first: number
  readonly #objects: readonly LogEvent[]
  /** Values computed by programs, by column number. */
  columns: readonly Column[]
  /** The size of each event; undefined until requested. */
  #sizes: Int32Array | undefined
  #events: LogEvent[] | undefined
  #groups: EventGroups | undefined
  #isDone = false

  private constructor(parts: BatchParts, finalizer: Finalizer) {
    this.lines = parts.lines
    this.form = parts.form
    this.#items = parts.items
    this.#first = parts.first
    this.#objects = parts.objects
    this.columns = parts.columns
    const { sizes } = parts
    this.count = parts.count
    this.#sizes = typeof sizes === 'number' ? undefined : sizes
    this.bytes = typeof sizes === 'number' ? sizes : sumOf(sizes)
    this.finalizer = finalizer
    parts.lines.hold(this)
  }

  /**
   * A batch of the events of lines, with other events among them. @param lines of an origin that has a plan @param
   * items for each event, its line, or -1 minus the index of its object; undefined: all events are lines @param form of
   * the events, which has no columns
   */
  static ofLines(
    lines: ByteLines,
    items: Int32Array | undefined,
    objects: readonly LogEvent[],
    finalizer: Finalizer,
    form = Form.asRead,
  ): ByteBatch {
    const plan = lines.origin.plan(lines.enterFor(form), form)
    const kernel = lines.enterFor(form)
    const parts = { lines, form, items, first: 0, count: items?.length ?? lines.count, objects, columns: noColumns }
    return new ByteBatch({ ...parts, sizes: measure(kernel, plan, parts) }, finalizer)
  }

  /** Number of events that are lines. */
  get lineCount(): number {
    if (this.#items === undefined) return this.count
    let count = 0
    for (const item of this.#items) if (item >= 0) count++
    return count
  }

  /** Size of an event. */
  size(index: number): number {
    return this.#events === undefined ? (this.#allSizes()[index] as number) : (this.#events[index] as LogEvent).size
  }

  /** Sizes of single events are rarely needed, so they are measured again on request. */
  #allSizes(): Int32Array {
    const from = this.#first
    const to = from + this.count
    this.#sizes ??= this.count === 0 ? new Int32Array(0) : this.#enterMeasured(from, to).sizes.slice(from, to)
    return this.#sizes
  }

  /** Loads the lines `[from, to)` with their sizes into the kernel. */
  #enterMeasured(from: number, to: number): Kernel {
    const kernel = this.lines.enterFor(this.form)
    const plan = this.#planOf(kernel, this.form)
    if (plan === undefined) throw new Error('The kernel cannot write lines of this form.')
    plan.enter(kernel, this.columns)
    kernel.call.measure(from, to, plan.count, plan.mode)
    return kernel
  }

  get events(): LogEvent[] {
    if (this.#events === undefined) {
      const events = new Array<LogEvent>(this.count)
      this.#allSizes()
      for (let index = 0; index < this.count; index++) events[index] = this.#event(index)
      this.#events = events
    }
    return this.#events
  }

  #line(index: number): number {
    return this.#items === undefined ? this.#first + index : (this.#items[index] as number)
  }

  #event(index: number): LogEvent {
    const line = this.#line(index)
    if (line < 0) return this.#objects[-1 - line] as LogEvent
    const size = this.#sizes?.[index] ?? (this.#enterMeasured(line, line + 1).sizes[line] as number)
    return new DeferredEvent(line, this.lines.origin.metadata, this, size)
  }

  /** The fields of a line's event. */
  make(line: number): ValueObject {
    const event = this.lines.event(line)
    for (const edits of this.form.edits) edits.apply(event)
    return event.fields
  }

  /** Writes a line's event as JSON. */
  writeJson(line: number, body: Body, hidden: readonly string[]): void {
    if (this.writeChosen(line, body, hidden, allFields, false)) return
    const fields = copyObject(this.make(line))
    for (const name of hidden) setField(fields, name, undefined)
    writeJsonTo(body, fields)
  }

  writeChosen(line: number, body: Body, hidden: readonly string[], choice: FieldSelection, isQuoted: boolean): boolean {
    const chosen = chosenOf(this.lines, this.form, this.columns, choice, hidden)
    const entered = chosen && this.#enterChosen(chosen)
    if (entered === undefined) return false
    const { kernel, plan } = entered
    const { call } = kernel
    const output = kernel.at('output')
    let end = 0
    if (isQuoted) end = call.writeQuoted(line, plan.count, plan.mode)
    else if (call.write(line, line + 1, plan.count, plan.mode, 0, 0) === 1) end = kernel.writtenEnds[0] as number
    if (end === 0) return false
    const length = end - output
    body.reserve(length)
    kernel.memory.copy(body.buffer, body.length, output, end)
    body.length += length
    return true
  }

  /** Loads the lines in the form to be written into the kernel; undefined if the kernel cannot write it. */
  #enterChosen({ form, columns }: Chosen): { kernel: Kernel; plan: Plan } | undefined {
    const kernel = this.lines.enterFor(form)
    const plan = this.#planOf(kernel, form)
    plan?.enter(kernel, columns)
    return plan && { kernel, plan }
  }

  /** The plan of a form whose lines are in the kernel; undefined if the kernel does not support it. */
  #planOf(kernel: Kernel, form: Form): Plan | undefined {
    const lines = this.lines
    const plan = lines.origin.plan(kernel, form)
    if (!plan.isPossible) return undefined
    // The plan may have loaded other names, or those of another source.
    lines.enterFor(form)
    return plan
  }

  /** A field of a line's event. */
  fieldOf(line: number, name: string): Value | undefined {
    const member = this.form.members.get(name)
    if (member === undefined) return this.#unchanged(line, name)
    if (member.is !== 'computed') return this.#edited(line, member)
    const { places, values } = this.columns[member.column] as Column
    const place = places[line] as number
    if (place !== untouched) return place === noValue ? undefined : values[place]
    return member.under === undefined ? this.#unchanged(line, name) : this.#edited(line, member.under)
  }

  #edited(line: number, edit: ByteEdit): Value | undefined {
    if (edit.is === 'moved') return this.#unchanged(line, edit.from) ?? null
    return edit.is === 'constant' ? edit.value : undefined
  }

  /** A field as the message or the source contains it. */
  #unchanged(line: number, name: string): Value | undefined {
    const lines = this.lines
    const { hasOrigin, parsing, spreads } = this.form
    if (name === parsing?.under) return this.#object(line, parsing.field)
    const value = spreads ? lines.member(line, name) : undefined
    return value === undefined && hasOrigin ? lines.field(line, name) : value
  }

  /** The object in the message of a line that the kernel has read. */
  #object(line: number, field: string): Value {
    const text = this.lines.field(line, field)
    const value = typeof text === 'string' ? parseJson(text) : null
    return isFailedJson(value) ? null : value
  }

  slice(from: number, to: number): LogBatch {
    const part = new ByteBatch(
      {
        ...this.#parts,
        items: this.#items?.subarray(from, to),
        first: this.#first + from,
        count: to - from,
        sizes: this.#allSizes().subarray(from, to),
      },
      this.finalizer,
    )
    part.shared = this.shared
    part.#events = this.#events?.slice(from, to)
    return part
  }

  get #parts(): BatchParts {
    return {
      lines: this.lines,
      form: this.form,
      items: this.#items,
      first: this.#first,
      objects: this.#objects,
      columns: this.columns,
      count: this.count,
      sizes: this.#sizes ?? this.bytes,
    }
  }

  /** The same events with another finalizer. Do not use the batch itself afterwards. */
  under(finalizer: Finalizer): ByteBatch {
    const other = new ByteBatch(this.#parts, finalizer)
    other.shared = this.shared
    other.#events = this.#events
    this.done()
    return other
  }

  share(): LogBatch {
    const other = new ByteBatch(this.#parts, this.finalizer)
    other.#events = this.#events
    shareBetween(this, other)
    return other
  }

  /**
   * The events after a program. Do not use the batch itself afterwards. @param one runs the program on an object event
   * that only the batch holds, and adds the result @param ended records how the program ends for an event; false: `one`
   * must run it @returns undefined if the program is not supported; the batch is then unchanged
   */
  through(
    edits: ByteEdits,
    one: (event: LogEvent, kept: LogEvent[]) => void,
    ended: (end: object) => boolean,
  ): ByteBatch | undefined {
    if (this.#events !== undefined) return undefined
    const form = this.form.after(edits)
    if (form === undefined) return undefined
    const lines = this.lines
    const kernel = lines.enterFor(form)
    const plan = this.#planOf(kernel, form)
    if (plan === undefined) return undefined
    let columns = this.columns
    let items = this.#items
    let first = this.#first
    const objects: LogEvent[] = []
    if (!this.#allStay(edits, form)) {
      const fates = this.#fatesOf(kernel, form)
      columns = this.#compute(kernel, edits, form, fates, ended)
      if (items !== undefined || fates.some((fate) => fate !== stays)) {
        items = this.#through(fates, objects, one)
        first = 0
      }
    }
    const parts = { lines, form, items, first, count: items?.length ?? this.count, objects, columns }
    const next = new ByteBatch({ ...parts, sizes: measure(lines.enterFor(form), plan, parts) }, this.finalizer)
    next.shared = false
    this.done()
    if (next.count === 0) next.done()
    return next
  }

  /** Whether all events are lines and certainly stay lines, which is the usual case. */
  #allStay({ units }: ByteEdits, { parses, newColumns }: Form): boolean {
    if (this.#items !== undefined || units.length > 0 || newColumns.length > 0) return false
    return !parses || this.form.parses || !this.lines.hasOdd
  }

  /** The fate of each event by its text. The lines must be in the kernel. */
  #fatesOf(kernel: Kernel, form: Form): Uint8Array {
    const isOdd = kernel.at('isOdd')
    const parses = form.parses && !this.form.parses
    const fates = new Uint8Array(this.count)
    for (let index = 0; index < this.count; index++) {
      const line = this.#line(index)
      if (line < 0 || (parses && ((kernel.flags[line] as number) & isOdd) !== 0)) fates[index] = runs
    }
    return fates
  }

  /** Runs the units of a program for events that would stay lines; returns the columns of the resulting form. */
  #compute(
    kernel: Kernel,
    { units, bare }: ByteEdits,
    { newColumns }: Form,
    fates: Uint8Array,
    ended: (end: object) => boolean,
  ): readonly Column[] {
    if (units.length === 0 && newColumns.length === 0) return this.columns
    const before = new ByteBatch({ ...this.#parts, form: this.form.after(bare) ?? this.form }, this.finalizer)
    const computation = new Computation(kernel, this.lines.count, before, this.columns, newColumns)
    const columns = computation.run(units, fates, ended)
    before.done()
    return columns
  }

  /** The results of single events: lines that stay lines, and objects that need the program. */
  #through(fates: Uint8Array, objects: LogEvent[], one: (event: LogEvent, kept: LogEvent[]) => void): Int32Array {
    const items: number[] = []
    // Measuring all at once costs less than each line that must run.
    this.#allSizes()
    for (let index = 0; index < this.count; index++) {
      const line = this.#line(index)
      if (fates[index] === stays) items.push(line)
      if (fates[index] !== runs) continue
      const event = this.#event(index)
      const before = objects.length
      one(this.shared && line < 0 ? event.measuredCopy() : event, objects)
      for (let place = before; place < objects.length; place++) items.push(-1 - place)
    }
    return Int32Array.from(items)
  }

  /** Writes events `[from, to)` as JSON. */
  write(from: number, to: number, target: ByteTarget): void {
    if (this.#events !== undefined) {
      for (let index = from; index < to; index++) target.object(this.#events[index] as LogEvent)
      return
    }
    let index = from
    while (index < to) {
      const line = this.#line(index)
      if (line < 0) {
        target.object(this.#objects[-1 - line] as LogEvent)
        index++
        continue
      }
      let end = index + 1
      while (end < to && this.#line(end) === line + end - index) end++
      this.#writeLines(index, line, end - index, target)
      index = end
    }
  }

  #writeLines(index: number, first: number, count: number, target: ByteTarget): void {
    const { body, prefix, suffix } = target
    const chosen = chosenOf(this.lines, this.form, this.columns, target.fields, [])
    if (chosen === undefined) {
      for (let at = index; at < index + count; at++) target.object(this.#event(at))
      return
    }
    let done = 0
    while (done < count) {
      const entered = this.#enterChosen(chosen)
      if (entered === undefined) throw new Error('The kernel cannot write lines of this form.')
      const { kernel, plan } = entered
      if (prefix !== undefined) kernel.memory.set(prefix, kernel.at('prefix'))
      const from = first + done
      const written = kernel.call.write(from, first + count, plan.count, plan.mode, prefix?.length ?? 0, suffix)
      if (written === 0) {
        // This single event is larger than the kernel's buffer.
        target.object(this.#event(index + done))
        done++
        continue
      }
      const output = kernel.at('output')
      const length = (kernel.writtenEnds[written - 1] as number) + (suffix === 0 ? 0 : 1) - output
      target.begin()
      body.reserve(length)
      const start = body.length
      kernel.memory.copy(body.buffer, start, output, output + length)
      body.length = start + length
      target.written(start, kernel.writtenEnds, written, output)
      done += written
    }
  }

  /**
   * For each event, the line of the first equal event, or -1 for objects; undefined if no two are equal, or if that is
   * unknown. Do not change the result: other batches may share it. @param fields root fields to compare @param second the
   * field whose times count as equal within a second
   */
  groups(fields: readonly string[], second?: string): Int32Array | undefined {
    if (this.#events !== undefined) return undefined
    const known = this.#groups
    if (known?.fields === fields && known.second === second) return known.groups
    const likeness = this.#likenessOf(fields, second)
    const columns = this.#columnsOf(fields)
    const unsplit = likeness === undefined ? undefined : this.#byEvent(this.lines.groups(likeness))
    const groups =
      unsplit === undefined || columns.length === 0 ? unsplit : splitBy(unsplit, columns, (index) => this.#line(index))
    this.#groups = { fields, second, groups, likeness: columns.length === 0 ? likeness : undefined }
    return groups
  }

  /**
   * Text that identifies the fields by which the events of the batch were grouped last. If two events of one form and one origin have
   * the same text, they have the same fields. Undefined if it is not known.
   */
  groupText(index: number): string | undefined {
    const likeness = this.#groups?.likeness
    return likeness && this.lines.likeText(this.#line(index), likeness)
  }

  /** The parts of lines that determine equality, not counting columns; undefined if no two events are equal. */
  #likenessOf(fields: readonly string[], second: string | undefined): LineLikeness | undefined {
    const { parsing, spreads, hasOrigin } = this.form
    const names: string[] = []
    let byStream = false
    let bySecond = false
    for (const field of fields) {
      const name = this.#unchangedIn(field)
      if (name === undefined) continue
      if (name === parsing?.under) return undefined
      if (spreads) names.push(name)
      if (!hasOrigin) continue
      const part = this.lines.origin.partOf(name)
      if (part === 'stream') byStream = true
      else if (part === 'time' && field === second) bySecond = true
      else if (part !== undefined) return undefined
    }
    return { members: names, stream: byStream, second: bySecond }
  }

  /** The field of the message or source that a field may be; undefined if it is neither. */
  #unchangedIn(field: string): string | undefined {
    const member = this.form.members.get(field)
    const edit = member?.is === 'computed' ? member.under : member
    if (edit === undefined) return field
    return edit.is === 'moved' ? edit.from : undefined
  }

  #byEvent(groups: Int32Array | undefined): Int32Array | undefined {
    if (groups === undefined) return undefined
    const items = this.#items
    if (items === undefined) return groups.subarray(this.#first, this.#first + this.count)
    return items.map((item) => (item < 0 ? -1 : (groups[item] as number)))
  }

  /** The columns with values of these fields. */
  #columnsOf(fields: readonly string[]): Column[] {
    const columns: Column[] = []
    for (const field of fields) {
      const member = this.form.members.get(field)
      if (member?.is === 'computed') columns.push(this.columns[member.column] as Column)
    }
    return columns
  }

  /**
   * Location of the time of events that have none in their message: in the line, or nowhere. Undefined if another field of the source
   * has that name.
   */
  timesForField(field: string): LineTimes | 'none' | undefined {
    if (this.#events !== undefined) return undefined
    const { members, hasOrigin } = this.form
    const member = members.get(field)
    // Some lines may have a time of their own there, and others another value.
    if (member?.is === 'computed') return undefined
    if (member !== undefined || !hasOrigin || !this.lines.origin.has(field)) return 'none'
    return this.lines.origin.partOf(field) === 'time' ? this.lines.times() : undefined
  }

  /** A field set by a program or the message. */
  memberOf(index: number, field: string): Value | undefined {
    const { members, spreads } = this.form
    if (members.has(field)) return this.fieldOf(this.#line(index), field)
    return spreads ? this.lines.member(this.#line(index), field) : undefined
  }

  /** Metadata of the line events. */
  get metadata(): EventMetadata {
    return this.lines.origin.metadata
  }

  /** Whether all events are still lines and no objects have been created. */
  get isLines(): boolean {
    return this.#events === undefined
  }

  /** The fields with these names that an event has. */
  fieldsOf(index: number, names: readonly string[]): ValueObject {
    const event = this.eventAt(index)
    const fields: ValueObject = {}
    for (const name of names) {
      const value = event.field(name)
      if (value !== undefined) setField(fields, name, value)
    }
    return fields
  }

  /** The events at these indices, in this order. Do not use the batch itself afterwards. */
  select(places: Int32Array): ByteBatch {
    const all = this.#allSizes()
    const sizes = places.map((place) => all[place] as number)
    const items = places.map((place) => this.#line(place))
    const part = new ByteBatch({ ...this.#parts, items, first: 0, count: items.length, sizes }, this.finalizer)
    part.shared = this.shared
    this.done()
    return part
  }

  /** The line of an event; negative if the event is an object. */
  lineOf(index: number): number {
    return this.#line(index)
  }

  /** Creates an event, which the batch does not keep. */
  eventAt(index: number): LogEvent {
    return this.#events?.[index] ?? this.#event(index)
  }

  /** Whether a program or some message may have set a field. */
  mayHaveMember(field: string): boolean {
    const { members, parses } = this.form
    return members.has(field) || (parses && this.lines.mayHaveMember(field))
  }

  /**
   * Writes events from `first` on as log aggregator entries: `,["<nanoseconds>",<a string with the JSON>` and a tail. The events
   * must be lines. @param hidden fields omitted from the JSON, in addition to those that the selection omits @param tail at most
   * `maxAffix` bytes @param ends receives the end of each entry in the body @returns the number of entries written; 0 if the kernel
   * cannot write the first one
   */
  writeEntries(
    run: EntryRun,
    first: number,
    hidden: readonly string[],
    choice: FieldSelection,
    tail: Uint8Array,
    body: Body,
    ends: Int32Array,
  ): number {
    const chosen = this.isLines ? chosenOf(this.lines, this.form, this.columns, choice, hidden) : undefined
    const entered = chosen && this.#enterChosen(chosen)
    if (entered === undefined) return 0
    const { kernel, plan } = entered
    const { count } = run
    kernel.selected.set(run.lines.subarray(0, count))
    kernel.timeMs.set(run.ms.subarray(0, count))
    kernel.timeNs.set(run.ns.subarray(0, count))
    kernel.memory.set(tail, kernel.at('tail'))
    const written = kernel.call.writeEntries(first, count, plan.count, plan.mode, tail.length)
    if (written === 0) return 0
    const output = kernel.at('output')
    const { writtenEnds } = kernel
    const length = (writtenEnds[written - 1] as number) - output
    body.reserve(length)
    const shift = body.length - output
    kernel.memory.copy(body.buffer, body.length, output, output + length)
    body.length += length
    for (let index = 0; index < written; index++) ends[index] = (writtenEnds[index] as number) + shift
    return written
  }

  /**
   * The lines will have to wait. If the batch needs few of them, its events become objects: batches that wait by the thousand must not
   * keep far more memory than their events.
   */
  settle(): void {
    if (!this.lines.isMuchFor(this.count, (index) => this.#line(index))) return
    // Each event creates its fields.
    for (const event of this.events) void event.fields
    this.columns = noColumns
    this.#groups = undefined
    this.done()
  }

  /** Marks all events as written or not needed. */
  done(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.lines.release(this)
  }
}
