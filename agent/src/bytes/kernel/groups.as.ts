// Finds lines whose members of one name have the same value, so that the value is made for one of them only.

import { counts, firsts, flags, grouped, groups, isOdd, isUnusual, members, output } from './layout.as'

/** Places of a table of lines, which lies where events are written. */
const tableSize: u32 = 1024
const maxProbes: u32 = 8

/** Groups lines `[0, count)` by the value of a member: `groups` and `grouped`. A line may be left a group of its own. */
export function group(key: i32, count: i32): void {
  memory.fill(output, 0, tableSize * 4)
  for (let line = 0; line < count; line++) {
    const member = memberOf(line, key)
    store<i32>(grouped + line * 4, member)
    store<i32>(groups + line * 4, member < 0 ? -1 : groupOf(line, member))
  }
}

/** The number of the member of this name; negative if the line has none. */
function memberOf(line: i32, key: i32): i32 {
  if ((load<i32>(flags + line * 4) & (isUnusual | isOdd)) !== 0) return -1
  const first = load<i32>(firsts + line * 4)
  const end = first + load<i32>(counts + line * 4)
  for (let member = first; member < end; member++) if (load<i32>(members + member * 16) === key) return member
  return -1
}

function groupOf(line: i32, member: i32): i32 {
  const from = load<i32>(members + member * 16 + 4)
  const length = load<i32>(members + member * 16 + 8) - from
  let hash: u32 = <u32>length
  const looked = min(length, 32)
  for (let at = from; at < from + looked; at++) hash = (hash ^ load<u8>(at)) * 0x01000193
  hash ^= hash >>> 15
  for (let probe: u32 = 0; probe < maxProbes; probe++) {
    const slot = output + ((hash + probe) & (tableSize - 1)) * 4
    const known = load<i32>(slot) - 1
    if (known < 0) {
      store<i32>(slot, line + 1)
      return line
    }
    const other = members + load<i32>(grouped + known * 4) * 16
    const place = load<i32>(other + 4)
    if (load<i32>(other + 8) - place === length && isSame(from, place, length)) return known
  }
  return line
}

function isSame(left: i32, right: i32, length: i32): bool {
  for (let at: i32 = 0; at < length; at++) if (load<u8>(left + at) !== load<u8>(right + at)) return false
  return true
}
