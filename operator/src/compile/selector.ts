// Kubernetes label selectors as text, in the form of `labelSelector` in list requests.

import type { LabelSelector } from '../api/selector.ts'

/** Text of a selector; requirements are in a fixed order, so that equal selectors have equal text. */
export function selectorText(selector: LabelSelector): string {
  const terms = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const set = `(${[...values].sort().join(',')})`
    if (operator === 'In') terms.push(`${key} in ${set}`)
    else if (operator === 'NotIn') terms.push(`${key} notin ${set}`)
    else terms.push(operator === 'Exists' ? key : `!${key}`)
  }
  return terms.sort().join(',')
}
