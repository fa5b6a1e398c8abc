// The kernel's state for the current lines and names, beside its memory.

/** Number of known names, and the last event that was looked at: both belong to the names. */
export let keyCount: i32 = 0
export let stamp: u32 = 0
/** Bytes of `recoded` that are used. */
export let recodedLength: i32 = 0
/** Members of `members` that are used. */
export let memberCount: i32 = 0
/** Whether all bytes are ASCII: then no character has to be counted. */
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

/** The next event is looked at. */
export function nextStamp(): u32 {
  return ++stamp
}

/** Takes a number for one more name. */
export function nextKey(): i32 {
  return keyCount++
}

/** Begins with other input. */
export function begin(ascii: bool): void {
  isAscii = ascii
  recodedLength = 0
  memberCount = 0
}
