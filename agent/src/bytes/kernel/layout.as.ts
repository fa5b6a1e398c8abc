// The memory layout of the kernel: offsets and capacities. The rest of the agent reads these numbers from the compiled kernel.

/** Capacities: lines, numbers and sizes. `kernel.ts` reads these. */
export const maxInput: i32 = 0x40000
export const maxLines: i32 = 8192
export const maxMembers: i32 = 0x10000
export const maxLineMembers: i32 = 96
export const maxKeys: i32 = 1024
export const maxName: i32 = 120
export const keyStride: i32 = 160
export const hashSlots: i32 = 4096
/** Number of slots where a name may be. */
export const maxProbes: i32 = 32
export const maxOutside: i32 = 96
export const maxLiterals: i32 = 0x40000
export const maxOutput: i32 = 0x80000
export const maxRecodes: i32 = 4096
export const maxAffix: i32 = 0x4000
/** Maximum number of members by which lines are compared. Both areas of this length are a page: copies cost more at other offsets. */
export const maxLikeKeys: i32 = 512
/** Limits for the columns of a batch, their values, and the bytes of these. */
export const maxColumns: i32 = 16
export const maxValues: i32 = 0x8000
export const maxValueBytes: i32 = 0x80000
/** Bytes of a chunk, the distance between chunks, and their number. */
export const chunkBytes: i32 = 0x20000
export const chunkStride: i32 = chunkBytes + 4096
export const maxChunks: i32 = 32
const room: i32 = 256

// Line data: each area holds an integer per line.
export const starts: i32 = 0x4000
export const ends: i32 = starts + maxLines * 4
/** Start of the message. */
export const messages: i32 = ends + maxLines * 4
/** Flag bits, see below. */
export const flags: i32 = messages + maxLines * 4
/** Number of fraction digits, in the input and in the output. */
export const digits: i32 = flags + maxLines * 4
/** Members of the object in the message: the index of the first, and their number. */
export const firsts: i32 = digits + maxLines * 4
export const counts: i32 = firsts + maxLines * 4
/** Estimated size of all members, with their names. */
export const totals: i32 = counts + maxLines * 4
/** Lines with the same shape number have members of the same names in the same order. */
export const shapes: i32 = totals + maxLines * 4
/** Estimated size of the event. */
export const sizes: i32 = shapes + maxLines * 4
/** The end of each event in the output. */
export const writtenEnds: i32 = sizes + maxLines * 4
/** For the last grouped member: the first line with the same value, -1 if the line has no such member. */
export const groups: i32 = writtenEnds + maxLines * 4
/** The number of that member. */
export const grouped: i32 = groups + maxLines * 4
/** After a comparison of several members: for each line, the first equal line. */
export const joined: i32 = grouped + maxLines * 4
/** During the comparison: for each line, the first line of its run with the same second. */
export const seconds: i32 = groups
/** The time of an event: milliseconds since 1970 as f64, and nanoseconds beside them. */
export const timeMs: i32 = joined + maxLines * 4
export const timeNs: i32 = timeMs + maxLines * 8
/** Lines to be written, in the caller's order. */
export const selected: i32 = timeNs + maxLines * 4
/** The keys of the members by which lines are compared, and the position of each member in the previous line. */
export const likeKeys: i32 = selected + maxLines * 4
export const likeGuesses: i32 = likeKeys + maxLikeKeys * 4
export const recodes: i32 = likeGuesses + maxLikeKeys * 4 + room
export const members: i32 = recodes + maxRecodes * 8 + room
export const keys: i32 = members + maxMembers * 16 + room
export const slots: i32 = keys + maxKeys * keyStride + room
/** For each key, whether the plan sets or removes it. */
export const edited: i32 = slots + hashSlots * 2 + room
/** Members that do not come from the message, sorted by name. */
export const outside: i32 = edited + maxKeys + room
export const literals: i32 = outside + maxOutside * 32 + room
/** By column and line, the number of a value, or one of the two constants below. */
export const columns: i32 = literals + maxLiterals + room
/** For each value: the offset and length of its JSON, and its estimated size. */
export const values: i32 = columns + maxColumns * maxLines * 4 + room
export const valueBytes: i32 = values + maxValues * 12 + room
/** The texts written before and after each event. */
export const prefix: i32 = valueBytes + maxValueBytes + room
export const tail: i32 = prefix + maxAffix + room
/** For the members of a line: their ranks and numbers in name order, and the numbers of those that the plan edits. */
export const order: i32 = tail + maxAffix + room
export const editedPlaces: i32 = order + maxLineMembers * 4 + room
/** By rank, a bit and a number, used to sort members. The bits are 0 between lines. */
export const rankBits: i32 = editedPlaces + maxLineMembers * 4 + room
export const rankPlaces: i32 = rankBits + maxKeys / 8 + room
/**
 * How events of one shape are written. A step has the number of a member and the length of its name with the text around it, or -1 and
 * the offset and length of literals.
 */
export const stepStride: i32 = 12
export const steps: i32 = rankPlaces + maxKeys * 2 + room
export const input: i32 = steps + (maxLineMembers + maxOutside) * stepStride + room
/** Strings and values converted to their final form. */
export const recoded: i32 = input + maxInput + room
export const output: i32 = recoded + maxInput + room
/** For each combination of eight bits, the source indices of sixteen bytes. Computed once, then constant. */
export const shuffles: i32 = output + maxOutput + room
/** Chunks of files, whose lines are read in place. Each begins a page. */
export const chunks: i32 = (shuffles + 4096 + room + 4095) & ~4095
export const memoryEnd: i32 = chunks + maxChunks * chunkStride

// Bits of `flags`.
export const isError: i32 = 1
/** The line is not a complete line in the usual format of the runtime. */
export const isUnusual: i32 = 2
/** The message is not an accepted object. */
export const isOdd: i32 = 4

// Kinds of members that a plan adds.
export const kindLiteral: i32 = 0
export const kindMessage: i32 = 1
export const kindStream: i32 = 2
export const kindTime: i32 = 3
/** A value of a column. */
export const kindColumn: i32 = 4
/** A message member under another name; it is written only if the message has it. */
export const kindMember: i32 = 5
/** The object in the message. */
export const kindObject: i32 = 6
/** Added to a kind: the member is written only if the message lacks a certain member. */
export const weak: i32 = 16

// The entry of a line in a column without a value number: no member, or the member that exists without the column.
export const noValue: i32 = -1
export const untouched: i32 = -2

// How the object in a message is used: not at all, its members become event members, or it becomes the value of a
// member.
export const apart: i32 = 0
export const spread: i32 = 1
export const nested: i32 = 2

/** Added to the column number in `edited`: the message member stays where the column leaves it. */
export const byColumn: i32 = 2

// An entry of `outside`: key, kind, offset and length of a literal, size, rank, the key of the message member that decides whether it is
// written, and the column that must leave it (-1: none). For a column: offset of its first value, length of its longest value, and the
// column number as the key. For all others, the serialised name directly precedes the literal, and they are contiguous.
export const outsideStride: i32 = 32
