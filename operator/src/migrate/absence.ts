// The one rule by which a part of an old configuration exists here or does not. It exists unless a refusal names it, and says nothing of
// another way to write it here. A part that nobody knows may exist.

import type { Gap } from './draft.ts'
import type { Refusal } from './page.ts'

interface Place {
  readonly file: string
  readonly line: number
}

/**
 * The gap in the place of a part that no mapping takes.
 * @param refusal says why nothing here does the same; undefined if the part is not known
 * @param kind such as `plugin`, for a part that is not known
 * @param nearest for a part that is not known
 */
export function missingPart(
  { file, line }: Place,
  subject: string,
  refusal: Omit<Refusal, 'name'> | undefined,
  kind: string,
  nearest = 'See `penstock-agent list` for components.',
): Gap {
  if (refusal === undefined) return { file, line, subject, reason: `the ${kind} is not known`, nearest }
  const gap = { file, line, subject, reason: refusal.reason, nearest: refusal.nearest }
  return refusal.isHere === true ? gap : { ...gap, isAbsent: true }
}

/** Whether all parts of a configuration exist here, by the gaps of its conversion. */
export const existsHere = (gaps: readonly Gap[]): boolean => !gaps.some(({ isAbsent }) => isAbsent === true)
