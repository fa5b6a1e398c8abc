// The tags of packed values: one byte that gives the type of the value after it. FORMAT.md describes their positions; a change of them
// requires another `recordFormat`.

export const tag = {
  absent: 0,
  null: 1,
  false: 2,
  true: 3,
  /** A non-negative integer below 2^31, as a varint. */
  small: 4,
  /** Any other number that is an integer, as a double, which is exact. */
  integer: 5,
  /** A number with a fraction. */
  float: 6,
  /** A `Float`. */
  boxed: 7,
  /** A bigint of 64 bits. */
  big: 8,
  /** A bigint of more, as decimal text. */
  huge: 9,
  text: 10,
  bytes: 11,
  timestamp: 12,
  regex: 13,
  array: 14,
  /** An object of a shape that was seen before, by number. */
  object: 15,
  /** An object that defines the next shape: the names, then the members. */
  shape: 16,
  /** An object with the name before each member. */
  plain: 17,
  /** The value of the same member of the last object of this shape. */
  same: 18,
  /** Before an event: the text that follows is in the next block. */
  block: 19,
  event: 20,
  /** An event with metadata. */
  described: 21,
  /** Lines that stay bytes: the number of their kind, which is defined if it is new, their count, their lengths, and their bytes. */
  lines: 22,
  /** Texts of up to 191 UTF-16 units: the tag contains the length. */
  shortText: 64,
} as const

/** UTF-16 units of the longest text whose length the tag contains. */
export const longestShort = 255 - tag.shortText
/** A tag and a length behind it take at most this many bytes. */
export const headBytes = 6

/** UTF-16 units after which a new block of text begins: a string that outlives its event keeps no more than its block. */
export const blockUnits = 8192

/** How a field of stored lines comes about, and what their kind says of them. */
export const fieldParts = ['value', 'message', 'stream', 'time'] as const
export const kindFlags = { parses: 1, merges: 2, described: 4 } as const

/** How the text of a block is encoded. */
export const utf8Text = 0
export const utf16Text = 1
