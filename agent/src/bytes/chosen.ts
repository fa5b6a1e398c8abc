// The parts of line events that a sink writes: the form without unwanted fields, and columns with the sink's time format.

import { Timestamp } from '../event/timestamp.ts'
import type { Value } from '../event/value.ts'
import type { ByteLines } from './byte-lines.ts'
import { type Column, NewColumn, ValueRoom } from './columns.ts'
import type { ByteEdit, FieldSelection, Form, Member } from './form.ts'
import { type Kernel, theKernel } from './kernel.ts'
import type { LineOrigin } from './line-origin.ts'

/** The form and columns in which lines are written. */
export interface Chosen {
  readonly form: Form
  readonly columns: readonly Column[]
}

/**
 * The written parts of events. @param hidden additional fields to omit @returns undefined if the kernel does not
 * support them
 */
export function chosenOf(
  lines: ByteLines,
  form: Form,
  columns: readonly Column[],
  choice: FieldSelection,
  hidden: readonly string[],
): Chosen | undefined {
  const selected = form.selected(choice)
  const rest = hidden.length === 0 ? selected : selected.without(hidden)
  if (rest === form) return { form, columns }
  const chosen = choice.converted === undefined ? { form: rest, columns } : withTimes(lines, rest, columns, choice)
  if (chosen === undefined || (rest.only !== undefined && rest.parses && lines.hasPlaces)) return undefined
  const isPossible = lines.origin.plan(lines.enterFor(chosen.form), chosen.form).isPossible
  return isPossible ? chosen : undefined
}

/**
 * How a column is built: from a column of the batch, from that column with the lines' times where it leaves the field, or from
 * these times alone.
 */
interface ColumnPlan {
  readonly from: number | undefined
  readonly times: boolean
}

/** A form with converted times; undefined if it has times other than those of lines, programs and constants. */
interface Layout {
  readonly form: Form
  readonly columns: readonly ColumnPlan[]
}

const layouts = new WeakMap<LineOrigin, WeakMap<Form, Layout | 'impossible'>>()

/** Returns the layout for a form and a selection. */
function layoutOf(origin: LineOrigin, form: Form, converted: (value: Value) => Value): Layout | 'impossible' {
  let known = layouts.get(origin)
  if (known === undefined) {
    known = new WeakMap()
    layouts.set(origin, known)
  }
  let layout = known.get(form)
  if (layout === undefined) {
    layout = newLayout(origin, form, converted)
    known.set(form, layout)
  }
  return layout
}

function newLayout(origin: LineOrigin, form: Form, converted: (value: Value) => Value): Layout | 'impossible' {
  const fields = form.hasOrigin ? origin.fields : []
  // A field that the message may replace cannot be constant.
  if (fields.some((field) => 'value' in field && converted(field.value) !== field.value)) return 'impossible'
  const under = form.parsing?.under
  const times = fields.flatMap((field) => ('part' in field && field.part === 'time' ? [field.name] : []))
  const isTime = (name: string) => name !== under && times.includes(name)
  const members = new Map<string, Member>()
  const columns: ColumnPlan[] = Array.from({ length: form.columnCount }, (_, from) => ({ from, times: false }))
  let ofTimes: number | undefined
  const timesColumn = () => {
    ofTimes ??= columns.push({ from: undefined, times: true }) - 1
    return ofTimes
  }
  const edited = (edit: ByteEdit): ByteEdit =>
    edit.is === 'constant' ? { is: 'constant', value: converted(edit.value) } : edit
  for (const [name, member] of form.members) {
    if (member.is === 'computed') {
      const base = member.under === undefined ? undefined : edited(member.under)
      const isOfTime = base === undefined ? isTime(name) : base.is === 'moved' && isTime(base.from)
      if (isOfTime) columns[member.column] = { from: member.column, times: true }
      members.set(name, { ...member, under: base })
    } else if (member.is === 'moved' && isTime(member.from)) {
      members.set(name, { is: 'computed', column: timesColumn(), under: member })
    } else members.set(name, edited(member))
  }
  for (const name of times) {
    const isWritten = form.only?.has(name) !== false && !members.has(name)
    if (isWritten && isTime(name)) members.set(name, { is: 'computed', column: timesColumn(), under: undefined })
  }
  return { form: form.withMembers(members, columns.length), columns }
}

/** The last form for the lines of a chunk, because slices of a batch come one after the other. */
const last = new WeakMap<
  ByteLines,
  { readonly rest: Form; readonly columns: readonly Column[]; readonly chosen: Chosen | undefined }
>()

function withTimes(
  lines: ByteLines,
  rest: Form,
  columns: readonly Column[],
  { converted }: FieldSelection,
): Chosen | undefined {
  if (converted === undefined) return { form: rest, columns }
  const known = last.get(lines)
  if (known !== undefined && known.rest === rest && known.columns === columns) return known.chosen
  const layout = layoutOf(lines.origin, rest, converted)
  const made = layout === 'impossible' ? undefined : columnsOf(lines, layout, columns, converted)
  const chosen = layout === 'impossible' || made === undefined ? undefined : { form: layout.form, columns: made }
  last.set(lines, { rest, columns, chosen })
  return chosen
}

/** Undefined if they do not fit in the kernel. */
function columnsOf(
  lines: ByteLines,
  layout: Layout,
  columns: readonly Column[],
  converted: (value: Value) => Value,
): readonly Column[] | undefined {
  const kernel = theKernel()
  const needsTimes = layout.columns.some((plan) => plan.times)
  const times = needsTimes ? timesOf(lines, layout.form.spreads, converted) : undefined
  if (needsTimes && times === undefined) return undefined
  const made: Column[] = []
  for (const { from, times: hasTimes } of layout.columns) {
    const own = from === undefined ? times : convertedColumn(kernel, columns[from] as Column, converted)
    const column = from !== undefined && hasTimes && own !== undefined ? joined(own, times as Column, kernel) : own
    if (column === undefined) return undefined
    made.push(column)
  }
  const room = new ValueRoom(kernel, [])
  return made.every(({ values, json }) => room.take(values.length, json.length)) ? made : undefined
}

/** Combines two columns: the second fills the gaps of the first. */
function joined(over: Column, under: Column, kernel: Kernel): Column | undefined {
  const room = new ValueRoom(kernel, [])
  const column = new NewColumn(over.places.length)
  return column.putUnder(over, room) && column.putUnder(under, room) ? column : undefined
}

/** A column with its times converted; the column itself if it has none. */
function convertedColumn(kernel: Kernel, column: Column, converted: (value: Value) => Value): Column | undefined {
  const values = column.values.map(converted)
  if (values.every((value, index) => value === column.values[index])) return column
  const room = new ValueRoom(kernel, [])
  const made = new NewColumn(column.places.length)
  made.places.set(column.places)
  return values.every((value) => made.add(value, room) !== undefined) ? made : undefined
}

/** The times of lines, except lines whose message has that field; undefined if they do not fit. */
function timesOf(lines: ByteLines, spreads: boolean, converted: (value: Value) => Value): Column | undefined {
  const { ms, ns } = lines.times()
  const name = lines.origin.fields.find((field) => 'part' in field && field.part === 'time')?.name
  const own = spreads && name !== undefined ? lines.linesWith(name) : undefined
  const kernel = lines.enter()
  const isUnusual = kernel.at('isUnusual')
  const room = new ValueRoom(kernel, [])
  const column = new NewColumn(lines.count)
  let before: Value | undefined
  let place = 0
  for (let line = 0; line < lines.count; line++) {
    // A rejected line has no valid time entry.
    if (((kernel.flags[line] as number) & isUnusual) !== 0 || (own !== undefined && (own[line] as number) >= 0))
      continue
    const value = converted(new Timestamp(ms[line] as number, ns[line] as number))
    if (value !== before) {
      const added = column.add(value, room)
      if (added === undefined) return undefined
      place = added
      before = value
    }
    column.places[line] = place
  }
  return column
}
