// Writes events whose members have the same names as those of the previous event, if the output contains only these members and
// literals: the steps for each member are computed once.

import { edited, keyStride, keys, order, outside, outsideStride, stepStride, steps } from './layout.as'
import { closed, copy, copyMembers, writeName } from './members.as'

/** End of the last computed steps. */
let stepsEnd: i32 = 0

/** Computes the steps for events of the current shape from the order of their members: literals, and message members that stay. */
export function findSteps(first: i32, count: i32, outsideEnd: i32): void {
  let step = steps
  let other = outside
  for (let place = order; place <= order + count * 4; place += 4) {
    const isLast = place === order + count * 4
    const word = load<u32>(place)
    const member = <i32>(word & 0xffff) * 16
    const begin = other
    while (other < outsideEnd && (isLast || load<u32>(other + 20) < word >>> 16)) other += outsideStride
    if (other > begin) {
      const last = other - outsideStride
      const from = load<i32>(begin + 8) - <i32>load<u16>(keys + load<i32>(begin) * keyStride) - 4
      store<i32>(step, -1)
      store<i32>(step + 4, from)
      store<i32>(step + 8, load<i32>(last + 8) + load<i32>(last + 12) - from)
      step += stepStride
    }
    if (isLast) break
    const key = load<i32>(first + member)
    if (load<u8>(edited + key) !== 0) continue
    store<i32>(step, member)
    store<i32>(step + 4, <i32>load<u16>(keys + key * keyStride) + 4)
    step += stepStride
  }
  stepsEnd = step
}

/** Writes an event by its steps; returns its end. */
export function writeSteps(from: i32, first: i32): i32 {
  let at = from
  // The pending range to copy: members adjacent in the message are one range.
  let start: i32 = 0
  let end: i32 = 0
  for (let step = steps; step < stepsEnd; step += stepStride) {
    const place = load<i32>(step)
    if (place < 0) {
      if (end !== 0) at = copyMembers(at, start, end)
      end = 0
      at = copy(at, load<i32>(step + 4), load<i32>(step + 8))
      continue
    }
    const value = load<i32>(first + place + 4)
    const valueEnd = load<i32>(first + place + 8)
    // If the serialised name directly precedes the value, the copy starts at the byte before the name.
    const isInPlace = load<u16>(value - 2) === 0x3a22
    const begin = value - load<i32>(step + 4)
    if (isInPlace && begin === end) {
      end = valueEnd
      continue
    }
    if (end !== 0) at = copyMembers(at, start, end)
    start = begin
    end = isInPlace ? valueEnd : 0
    if (!isInPlace) at = copy(writeName(at, load<i32>(first + place)), value, valueEnd - value)
  }
  if (end !== 0) at = copyMembers(at, start, end)
  return closed(from, at)
}
