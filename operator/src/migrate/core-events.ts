// Events of Kubernetes in the form of the core API, `v1`. The source `orchestrator_events` has them in that of `events.k8s.io/v1`.

/** Members in `v1`, with their names in `events.k8s.io/v1`. */
const oldMembers: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
]

/** Lines that give the members of the variable `event` their names in `v1`. */
export const coreEventLines: readonly string[] = oldMembers.map(
  ([to, from]) => `event.${to} = del(event.${from})\nif event.${to} == null { del(event.${to}) }`,
)
