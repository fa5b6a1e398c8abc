// The kernel's state for the current lines and names, in addition to its memory.

/** Number of known names, and number of the last examined event: both belong to the names. */
export let keyCount: i32 = 0
export let stamp: u32 = 0
/** Bytes used in `recoded`. */
export let recodedLength: i32 = 0
/** Entries used in `members`. */
export let memberCount: i32 = 0
/** Whether all bytes are ASCII, so that characters need not be counted. */
export let isAscii: bool = false

export function setKeys(count: i32, lastStamp: u32): void {
  keyCount = count
  stamp = lastStamp
}

export function setRecodedLength(length: i32): void {
  recodedLength = length
}

export function setMemberCount(count: i32): void {
  memberCount = count
}

/** Starts the next event. */
export function nextStamp(): u32 {
  return ++stamp
}

/** Allocates the number of a new name. */
export function nextKey(): i32 {
  return keyCount++
}

/** Starts with new input. */
export function begin(ascii: bool): void {
  isAscii = ascii
  recodedLength = 0
  memberCount = 0
}
