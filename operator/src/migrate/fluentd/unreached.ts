// Reports matches that no events reach.

import type { Context } from '../fluent-bit/plugin.ts'
import { childrenOf, type Plugged, parameter } from './element.ts'

/** Matches that keep all events and send them to one place. Others come after them, and are reported themselves. */
const onTheWay: ReadonlySet<string> = new Set(['relabel', 'label_router', 'tag_normaliser', 'detect_exceptions'])

/**
 * @param sections those without events
 * @param labels filters and matches by label
 */
export function reportUnreached(
  sections: readonly Plugged[],
  labels: ReadonlyMap<string, readonly Plugged[]>,
  errorLabel: string,
  context: Context,
): void {
  const isIn = (label: string, section: Plugged) => labels.get(label)?.includes(section) === true
  const retried = new Set([...labels.values()].flat().flatMap(retryTags))
  for (const section of sections) {
    if (section.kind !== 'match' || onTheWay.has(section.type)) continue
    if (/^fluent\b/.test(section.pattern) || isIn('@FLUENT_LOG', section)) continue
    if (isIn(errorLabel, section) && ['null', 'stdout', 'file'].includes(section.type)) {
      const reason = 'the agent counts and logs events that a step or a sink rejects'
      const nearest = 'See the metrics of discarded events, and the log of the agent.'
      context.replaced(section, `label ${errorLabel}`, reason, nearest)
      continue
    }
    const subject = `match ${section.pattern}`
    if (retried.has(section.pattern)) {
      const reason = 'it receives events that another output sends again, and the sink of that output retries itself'
      context.replaced(section, subject, reason, 'Nothing.')
      continue
    }
    if ([...labels.values()].some((all) => isShadowed(section, all))) {
      const reason = 'an earlier match consumes all events that match it, so it receives nothing in Fluentd either'
      const nearest = 'To send events to both, put both into a match of type `copy`.'
      context.replaced(section, subject, reason, nearest)
      continue
    }
    const nearest = 'The output is left out, because it receives nothing.'
    context.gap(section, subject, 'the tag of no source reaches it', nearest)
  }
}

/** The tags with which an output, or its stores, emits events again that a server has rejected. */
const retryTags = (section: Plugged): readonly string[] =>
  [section.element, ...childrenOf(section.element, 'store')].flatMap((each) => parameter(each, 'retry_tag') ?? [])

/** Whether a match before it in its label has the same pattern, or one for all tags. */
function isShadowed(section: Plugged, all: readonly Plugged[]): boolean {
  return all
    .slice(0, Math.max(0, all.indexOf(section)))
    .some(({ kind, pattern }) => kind === 'match' && (pattern === '**' || pattern === section.pattern))
}
