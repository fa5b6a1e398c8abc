// The text of a path, as a program would write it.

import type { PathSegment } from '../../event/path.ts'
import { fieldText } from '../kind.ts'

export function pathOf(root: 'event' | 'metadata', segments: readonly PathSegment[]): string {
  let text = root === 'event' ? '.' : '%'
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`
    else text += `${text.length > 1 ? '.' : ''}${fieldText(segment)}`
  }
  return text
}
