// Steps that apply only to some events; others pass unchanged.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import type { Section } from './sections.ts'

export const isOfNamespace = (namespace: string) => `%orchestrator.pod_namespace == ${textLiteral(namespace)}`

/** Steps for the logs of one namespace. */
export function inNamespace({ namespace }: Section, steps: readonly Step[]): readonly Step[] {
  return namespace === undefined ? steps : only(isOfNamespace(namespace), steps)
}

/** Steps for events that match a condition. */
export function only(test: string, steps: readonly Step[]): readonly Step[] {
  return steps.map((step) => ({
    ...step,
    text: `if ${test} {\n${step.text.replace(/^/gm, '  ')}\n}${step.type === 'filter' ? ' else { true }' : ''}`,
  }))
}
