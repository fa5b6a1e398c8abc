// The kernel's state for the current lines and names, in addition to its memory.

/** Number of known names, number of the last examined event, and whether there was no room for a name: they belong to the names. */
export let keyCount: i32 = 0
export let stamp: u32 = 0
export let lacksNames: bool = false
/** Bytes used in `recoded`. */
export let recodedLength: i32 = 0
/** Entries used in `members`. */
export let memberCount: i32 = 0
/** Whether all bytes are ASCII, so that characters need not be counted. */
export let isAscii: bool = false

export function setKeys(count: i32, lastStamp: u32, lacks: bool): void {
  keyCount = count
  stamp = lastStamp
  lacksNames = lacks
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

/** Records that there is no room for a name. */
export function refuseName(): void {
  lacksNames = true
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
