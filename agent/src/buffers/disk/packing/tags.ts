// The tags of packed values: one byte with the type of the following value. FORMAT.md describes their positions; every change needs a
// new `recordFormat`.

export const tag = {
  absent: 0,
  null: 1,
  false: 2,
  true: 3,
  /** A non-negative integer below 2^31, as a varint. */
  small: 4,
  /** Any other integer number, as a double, which is exact. */
  integer: 5,
  /** A number with a fraction. */
  float: 6,
  /** A `Float`. */
  boxed: 7,
  /** A bigint within 64 bits. */
  big: 8,
  /** A larger bigint, as decimal text. */
  huge: 9,
  text: 10,
  bytes: 11,
  timestamp: 12,
  regex: 13,
  array: 14,
  /** An object of a known shape, by number. */
  object: 15,
  /** An object that defines the next shape: the names, then the members. */
  shape: 16,
  /** An object with the name before each member. */
  plain: 17,
  /** The same value as in the last object of this shape. */
  same: 18,
  /** Precedes an event: the following texts are in the next block. */
  block: 19,
  event: 20,
  /** An event with metadata. */
  described: 21,
  /** Byte lines: the number of their kind, with its definition if it is new, their count, their lengths, and their bytes. */
  lines: 22,
  /** Texts of up to 191 UTF-16 units: the tag contains the length. */
  shortText: 64,
} as const

/** UTF-16 units of the longest text whose tag contains its length. */
export const maxShortLength = 255 - tag.shortText
/** Maximum size of a tag and the following length. */
export const headBytes = 6

/**
 * UTF-16 units after which a new block of text begins: a string that outlives its event keeps only its block in memory.
 */
export const blockUnits = 8192

/** Sources of a field of stored lines, and the flags of their kind. */
export const fieldParts = ['value', 'message', 'stream', 'time'] as const
export const kindFlags = { parses: 1, merges: 2, described: 4 } as const

/** Encodings of the text of a block. */
export const utf8Text = 0
export const utf16Text = 1
