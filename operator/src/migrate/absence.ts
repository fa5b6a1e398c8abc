// Decides whether a part of an old configuration exists here. It does, unless a refusal names it without giving another way to write it.
// A part that no mapping and no refusal knows may exist.

import type { Gap } from './draft.ts'
import type { Refusal } from './page.ts'

interface Place {
  readonly file: string
  readonly line: number
}

/**
 * The gap that replaces a part without a mapping.
 * @param refusal why Penstock has no equivalent; undefined if the part is unknown
 * @param kind used for an unknown part, such as `plugin`
 * @param nearest used for an unknown part
 */
export function missingPart(
  { file, line }: Place,
  subject: string,
  refusal: Omit<Refusal, 'name'> | undefined,
  kind: string,
  nearest = 'See `penstock-agent list` for components.',
): Gap {
  if (refusal === undefined) return { file, line, subject, reason: `the ${kind} is unknown`, nearest }
  const gap = { file, line, subject, reason: refusal.reason, nearest: refusal.nearest }
  return refusal.isHere === true ? gap : { ...gap, isAbsent: true }
}

/** Whether all parts of a configuration exist here, judged by the gaps of its conversion. */
export const existsHere = (gaps: readonly Gap[]): boolean => !gaps.some(({ isAbsent }) => isAbsent === true)
