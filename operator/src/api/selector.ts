// Label selectors: their schema, and whether labels match.

import { list, map, object, oneOf, required, text, type ValueOf } from './schema.ts'

export const labelSelector = (description: string) =>
  object(
    {
      matchLabels: map(text('Value of the label.', { maxLength: 63 }), 'Required labels and their values.'),
      matchExpressions: list(
        object(
          {
            key: required(text('Key of the label.', { maxLength: 317 })),
            operator: required(oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'], 'How the label is compared.')),
            values: list(text('A value.', { maxLength: 63 }), 'Values for In and NotIn.', { maxItems: 64 }),
          },
          'A requirement.',
        ),
        'Requirements, all of which must be met.',
        { maxItems: 64 },
      ),
    },
    description,
  )

export type LabelSelector = ValueOf<ReturnType<typeof labelSelector>>

/** Whether labels match; an empty selector matches everything, an absent one matches nothing. */
export function selects(selector: LabelSelector | undefined, labels: Readonly<Record<string, string>> = {}): boolean {
  if (selector === undefined) return false
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels[key] !== value) return false
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const value = labels[key]
    if (operator === 'Exists' ? value === undefined : operator === 'DoesNotExist' ? value !== undefined : false)
      return false
    if (operator === 'In' && (value === undefined || !values.includes(value))) return false
    if (operator === 'NotIn' && value !== undefined && values.includes(value)) return false
  }
  return true
}
