// The rules for namespaced resources, by the numbers in messages, and the conditions with their reasons. Each entry gives the meaning and
// the fix.

import type { ConditionType, Reason } from './conditions.ts'

export interface ExplainedRule {
  readonly meaning: string
  readonly fix: string
}

export const tenantRules: Readonly<Record<string, ExplainedRule>> = {
  T1: {
    meaning: 'Component ids start with the namespace and name of their Pipeline, so no two Pipelines share one.',
    fix: 'Nothing: names cannot break this rule.',
  },
  T2: {
    meaning: '`inputs` name components of the same Pipeline. Wildcards only match within it.',
    fix: 'Name a source or transform of this Pipeline; share a Sink instead of a stream.',
  },
  T3: {
    meaning: 'A Pipeline reads the logs of pods in its own namespace, and no other data of the node.',
    fix: 'Omit the option. A ClusterPipeline of the platform team may read other namespaces.',
  },
  T4: {
    meaning: 'Options and arguments must not name files of the agent or the node.',
    fix: 'Set the content itself, or use `valueFrom` with a Secret or ConfigMap.',
  },
  T5: {
    meaning: 'Credentials must be explicit; the identity of the agent or its node is not available.',
    fix: 'Set the keys with `valueFrom`, or ask for `implicitCredentials: Allow` in the TenantPolicy.',
  },
  T6: {
    meaning:
      'Programs must not call functions that access the environment, the host, the network or the metrics of the agent.',
    fix: 'Use another function, or a field that the source adds.',
  },
  T7: {
    meaning: 'Destinations must not be addresses of the node, of metadata services or of the API server.',
    fix: 'Use the address of a Service or of a host outside the cluster.',
  },
  T8: {
    meaning: "Secrets and ConfigMaps must be in the Pipeline's namespace.",
    fix: 'Copy the Secret, or use a ClusterSource or ClusterSink that its owner shares with the namespace.',
  },
  T9: {
    meaning: 'A namespace may only use some component types; those that access the agent or its node are excluded.',
    fix: 'Use another type, or ask for `allowedSources` or `allowedSinks` in the TenantPolicy. `penstock run` allows all types.',
  },
  T10: {
    meaning: 'Disk buffers must fit into the budget of the Agent and of the TenantPolicy.',
    fix: 'Lower `buffer.max_size`, or ask for a larger budget.',
  },
  T11: {
    meaning: 'The memory of a component and the work of a program for one event are limited.',
    fix: 'Lower the option to the limit in the message, or ask for a higher one in the TenantPolicy.',
  },
  T12: {
    meaning: "Lines that a program writes with `log()` appear in the report of its Pipeline, not in the agent's log.",
    fix: 'Use `log()` to find faults; the agent only keeps the last lines.',
  },
  T13: {
    meaning: 'Values that the owner of a shared Sink enforces override options and programs.',
    fix: 'Omit the option, or ask the owner to list it in `overridable`.',
  },
  T14: {
    meaning:
      'If a shared limit is reached, the youngest Pipelines are excluded; among Pipelines of the same age, the last by name.',
    fix: 'Remove or shrink a Pipeline, or ask for a higher quota or another Agent.',
  },
}

/** Reasons that require an action. For all others, the state is good or the operator is working on it. */
export const reasonTexts: Partial<Readonly<Record<Reason, ExplainedRule>>> = {
  InvalidConfig: {
    meaning: 'An option is invalid; the message names the component.',
    fix: '`penstock explain TYPE` lists its options.',
  },
  CompileFailed: {
    meaning: 'A program does not compile; the message contains the line, column and code.',
    fix: '`penstock explain E103` explains a code.',
  },
  TestsFailed: { meaning: 'Tests in the resource fail.', fix: '`penstock test -f FILE` shows the actual results.' },
  ForbiddenOption: {
    meaning: "The option violates a rule for namespaces; the message contains the rule's number.",
    fix: '`penstock explain T7` explains a rule.',
  },
  QuotaExceeded: {
    meaning: "The Pipeline exceeds the TenantPolicy's quota, or the disk budget of the Agent.",
    fix: 'Remove something, or ask for a higher quota.',
  },
  NoMatchingAgent: {
    meaning: 'No Agent selects the Pipeline.',
    fix: 'Check `pipelines` and `mode` of the Agents: `kubectl get agents.penstock.dev -A`.',
  },
  NameConflict: {
    meaning:
      'An older resource has the same name or port, or an object that Penstock does not own has a name that an Agent needs.',
    fix: 'Rename it; the message names the object.',
  },
  AuthorNotAllowed: {
    meaning: 'With `authorizeClusterPipelines`: the author of the ClusterPipeline may not collect logs, or is unknown.',
    fix: 'Have a user with this permission apply it.',
  },
  InternalError: {
    meaning:
      'The operator failed to process the object because of an internal error. It retries, and the running version continues.',
    fix: "Report the message and the operator's log.",
  },
  SourceNotFound: { meaning: 'A `ref` names a Source that does not exist.', fix: 'Create that object.' },
  SinkNotFound: { meaning: 'A `ref` names a Sink that does not exist.', fix: 'Create that object.' },
  RefNotPermitted: {
    meaning: 'The owner has not shared the object with this namespace.',
    fix: 'Ask the owner to extend `allowedNamespaces`.',
  },
  SecretNotFound: { meaning: 'The Secret does not exist.', fix: 'Create it; the operator notices.' },
  SecretKeyNotFound: { meaning: 'The Secret has no such key.', fix: 'Add the key; the operator detects the change.' },
  Pending: {
    meaning: 'Some agents have not loaded it yet.',
    fix: 'Wait; `penstock rollout status AGENT` shows the progress.',
  },
  RollingOut: {
    meaning: 'Some agents have not loaded it yet.',
    fix: 'Wait; `penstock rollout status AGENT` shows the progress.',
  },
  NodesFailed: {
    meaning: 'Agents could not load it; `status.agents` lists the first five.',
    fix: 'Read their messages.',
  },
  RolledBack: {
    meaning: 'It caused problems on the first nodes, and the operator rolled it back.',
    fix: 'Fix it, or run `penstock rollout retry PIPELINE`.',
  },
  Undone: {
    meaning: 'A user returned the Agent to an earlier revision with `penstock rollout undo`.',
    fix: 'Change a Pipeline, or run `penstock rollout resume AGENT`.',
  },
  BundleTooLarge: { meaning: "The Agent's bundle has no space for it.", fix: 'Add another Agent.' },
  AllEventsDropped: { meaning: 'All events were lost.', fix: 'Read the last error in `status.components`.' },
  SomeEventsDropped: { meaning: 'Events were lost.', fix: 'Read the last error in `status.components`.' },
  NoEventsDelivered: { meaning: 'A sink delivers nothing.', fix: 'Check `Reachable` of the Sink.' },
  BufferFillingUp: {
    meaning: 'A sink is slower than its sources: more than three quarters of its buffer are full.',
    fix: 'Check the destination, and `resources` of the Agent.',
  },
  Lagging: {
    meaning: 'On the named node, the oldest unread log line is at least a minute old.',
    fix: 'Check limits, slow sinks and `resources` of the Agent; `penstock why POD` shows each file.',
  },
  Unauthorized: {
    meaning: 'The destination rejects the credentials.',
    fix: 'Check `auth` of the Sink and its Secret.',
  },
  ConnectFailed: {
    meaning: 'The destination does not accept connections.',
    fix: 'Check its address and the NetworkPolicies.',
  },
  TLSFailed: {
    meaning: 'The TLS connection to the destination failed.',
    fix: 'Check the certificates and `tls` of the Sink.',
  },
  Rejecting: { meaning: 'The destination refuses requests.', fix: 'Read the last error in `status.components`.' },
  Unreachable: { meaning: 'The destination does not answer.', fix: 'Check its address and the NetworkPolicies.' },
  PodsNotReady: {
    meaning: 'Pods of an Agent are not running.',
    fix: '`kubectl -n penstock-system describe pods` shows why.',
  },
  Unschedulable: {
    meaning: 'Kubernetes cannot schedule pods of an Agent.',
    fix: '`kubectl -n penstock-system describe pods` shows why.',
  },
  NamespaceNotAllowed: {
    meaning: "An Agent outside the platform's namespaces selects more than it receives.",
    fix: 'The message contains the command that allows it.',
  },
  ForeignManager: {
    meaning: 'Another client keeps changing objects of the operator.',
    fix: 'Stop this client; the message contains the name of its field manager.',
  },
}

/** Reasons for a good state, and for one that the operator is working on; `conditionTexts` has those with the name of a condition. */
const quietReasons: Partial<Readonly<Record<Reason, string>>> = {
  Valid: 'The resource has no error.',
  Resolved: 'Everything that the resource refers to exists.',
  PreviousGeneration: 'The last valid version runs; `Accepted` or `ResolvedRefs` gives the error of the newest one.',
  Suspended: 'No agent runs the Pipeline, because `spec.suspend` is true.',
  Stopped: 'The last valid version may no longer run; `Accepted` or `ResolvedRefs` gives the cause.',
  NoData: 'No agent has read any events; after five minutes the message states whether a selected pod has a log.',
  Unmanaged: 'The Agent has `managementState: Unmanaged`, so the operator changes none of its objects.',
  Progressing: 'The operator is processing the resource, or waiting for its agents.',
}

/** The meaning of each condition when it is true. */
const conditionTexts: Readonly<Record<ConditionType, string>> = {
  Accepted: 'The resource is valid and allowed; for a Pipeline also: an Agent selects it.',
  ResolvedRefs: 'The Sources, Sinks, Secrets and ConfigMaps that it refers to exist and may be used.',
  Programmed: 'The agents run the newest version.',
  Flowing: 'Events are being delivered. A Pipeline without traffic has the reason `NoData`, which is not an error.',
  Reachable: 'The destinations respond and accept the events.',
  Available: 'The pods of the Agent are ready.',
  Contended: 'Another client keeps changing objects of the operator. Present only while this lasts.',
  Narrowed: 'An Agent selects more than it receives. Present only while this lasts.',
  Ready:
    'Summarises `Accepted`, `ResolvedRefs` and `Programmed`, and for an Agent also `Available`: its reason is that of the first one that is not true.',
  Reconciling: 'The operator is processing the resource, or waiting for its agents. Present only while this lasts.',
  Stalled: 'The resource cannot become ready without a change. Present only while this lasts.',
}

/** All rules, conditions and reasons. */
export const ruleNames: readonly string[] = [tenantRules, conditionTexts, reasonTexts, quietReasons].flatMap((table) =>
  Object.keys(table),
)

/** The text for a rule, a condition or a reason, ignoring case; undefined for other words. */
export function ruleText(word: string): string | undefined {
  const explanationIn = (table: Readonly<Record<string, ExplainedRule | string | undefined>>, what: string) => {
    const name = Object.keys(table).find((each) => each.toLowerCase() === word.toLowerCase())
    const found = name === undefined ? undefined : table[name]
    if (found === undefined) return undefined
    if (typeof found === 'string') return `${name}  (${what})\n\n${found}\n`
    return `${name}  (${what})\n\n${found.meaning}\n\nFix: ${found.fix}\n`
  }
  return (
    explanationIn(tenantRules, 'rule for namespaced resources') ??
    explanationIn(conditionTexts, 'condition') ??
    explanationIn(reasonTexts, 'reason of a condition') ??
    explanationIn(quietReasons, 'reason of a condition, which needs no fix')
  )
}

/** The page with all rules and reasons. */
export function rulesPage(): string {
  const rows = (table: Readonly<Record<string, ExplainedRule | string | undefined>>) =>
    Object.entries(table).flatMap(([name, text]) => {
      if (text === undefined) return []
      return `- \`${name}\`: ${typeof text === 'string' ? text : `${text.meaning} ${text.fix}`}`
    })
  const parts = [
    '# Rules, conditions and reasons',
    'Messages about a refused resource contain the number of a rule; `penstock explain T7` prints the rule.',
    '## Rules for namespaced resources',
    rows(tenantRules).join('\n'),
    '## Reasons of conditions',
    rows(reasonTexts).join('\n'),
    'These need no fix:',
    rows(quietReasons).join('\n'),
    '## Conditions',
    'Each is true in a good state, except `Contended`, `Narrowed`, `Reconciling` and `Stalled`.',
    rows(conditionTexts).join('\n'),
  ]
  return `${parts.join('\n\n')}\n`
}
