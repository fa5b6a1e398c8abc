// The rules for resources of namespaces, by the numbers that messages contain, and the conditions with their reasons, as people look them
// up: what each means and what to do about it.

import type { ConditionType, Reason } from './conditions.ts'

export interface ExplainedRule {
  readonly meaning: string
  readonly fix: string
}

export const tenantRules: Readonly<Record<string, ExplainedRule>> = {
  T1: {
    meaning:
      'Ids of components begin with the namespace and the name of their Pipeline, so no two Pipelines share one.',
    fix: 'Nothing: names cannot break this rule.',
  },
  T2: {
    meaning: '`inputs` name components of the same Pipeline. Wildcards match inside of it alone.',
    fix: 'Name a source or transform of this Pipeline; share a Sink, not a stream.',
  },
  T3: {
    meaning: 'A Pipeline reads the logs of the pods of its own namespace, and nothing else of the node.',
    fix: 'Leave the option out. A ClusterPipeline of the platform team may read other namespaces.',
  },
  T4: {
    meaning: 'Options and arguments name no files of the agent or the node.',
    fix: 'Give the content itself, or `valueFrom` with a Secret or ConfigMap.',
  },
  T5: {
    meaning: 'Credentials are explicit: the identity of the agent and its node is not used.',
    fix: 'Set the keys with `valueFrom`, or ask for `implicitCredentials: Allow` in the TenantPolicy.',
  },
  T6: {
    meaning:
      'Programs call no function that reaches the environment, the host, the network or the metrics of the agent.',
    fix: 'Use another function, or a field that the source adds.',
  },
  T7: {
    meaning: 'Destinations are not addresses of the node, of metadata services or of the API server.',
    fix: 'Use the address of a Service or of a host outside of the cluster.',
  },
  T8: {
    meaning: 'Secrets and ConfigMaps are those of the own namespace.',
    fix: 'Copy the Secret, or use a ClusterSource or ClusterSink whose owner grants it.',
  },
  T9: {
    meaning:
      'A namespace has some types of components alone; those that read or write the agent or its node are not among them.',
    fix: 'Use another type, or ask for `allowedSources` or `allowedSinks` in the TenantPolicy. `penstock run` has all types.',
  },
  T10: {
    meaning: 'Disk buffers fit into the budget of the Agent and of the TenantPolicy.',
    fix: 'Lower `buffer.max_size`, or ask for a larger budget.',
  },
  T11: {
    meaning: 'The memory of a component and the work of a program for one event have limits.',
    fix: 'Lower the option to the limit in the message, or ask for a higher one in the TenantPolicy.',
  },
  T12: {
    meaning: 'Lines that a program writes with `log()` go to the report of its Pipeline, not to the log of the agent.',
    fix: 'Use `log()` to find faults; the agent keeps the last lines alone.',
  },
  T13: {
    meaning: 'Values that the owner of a shared Sink enforces win over options and programs.',
    fix: 'Leave the option out, or ask the owner to list it in `overridable`.',
  },
  T14: {
    meaning: 'Where a shared limit is reached, the youngest Pipelines give way, then the last by name.',
    fix: 'Remove or shrink a Pipeline, or ask for a higher quota or another Agent.',
  },
}

/** Reasons that call for something; the others say that all is well, or that the operator works on it. */
export const reasonTexts: Partial<Readonly<Record<Reason, ExplainedRule>>> = {
  InvalidConfig: {
    meaning: 'An option is invalid; the message names the component.',
    fix: '`penstock explain TYPE` lists its options.',
  },
  CompileFailed: {
    meaning: 'A program does not compile; the message has line, column and code.',
    fix: '`penstock explain E103` explains a code.',
  },
  TestsFailed: { meaning: 'Tests in the resource fail.', fix: '`penstock test -f FILE` shows the actual results.' },
  ForbiddenOption: {
    meaning: 'The option breaks a rule for namespaces; the message has its number.',
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
      'An older resource has the name or port, or an object that Penstock does not own has a name that an Agent needs.',
    fix: 'Rename it; the message names the object.',
  },
  AuthorNotAllowed: {
    meaning: 'With `authorizeClusterPipelines`: the author of the ClusterPipeline may not collect logs, or is unknown.',
    fix: 'Let somebody with that right apply it.',
  },
  InternalError: {
    meaning:
      'The operator failed on the object because of a defect of its own. It tries again, and what runs continues.',
    fix: "Report the message and the operator's log.",
  },
  SourceNotFound: { meaning: 'A `ref` names a Source that does not exist.', fix: 'Create that object.' },
  SinkNotFound: { meaning: 'A `ref` names a Sink that does not exist.', fix: 'Create that object.' },
  RefNotPermitted: {
    meaning: 'The owner has not granted the object to this namespace.',
    fix: 'Ask the owner to extend `allowedNamespaces`.',
  },
  SecretNotFound: { meaning: 'The Secret does not exist.', fix: 'Create it; the operator notices.' },
  SecretKeyNotFound: { meaning: 'The Secret has no such key.', fix: 'Add the key; the operator notices.' },
  Pending: {
    meaning: 'Some agents have not loaded it yet.',
    fix: 'Wait; `penstock rollout status AGENT` shows how far it is.',
  },
  RollingOut: {
    meaning: 'Some agents have not loaded it yet.',
    fix: 'Wait; `penstock rollout status AGENT` shows how far it is.',
  },
  NodesFailed: {
    meaning: 'Agents could not load it; `status.agents` lists the first five.',
    fix: 'Read their messages.',
  },
  RolledBack: {
    meaning: 'It did harm on the first nodes, and the operator rolled it back.',
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
    fix: 'Check its destination, and `resources` of the Agent.',
  },
  Lagging: {
    meaning: 'On the named node, the oldest unread log line is at least a minute old.',
    fix: 'Check limits, slow sinks and `resources` of the Agent; `penstock why POD` shows each file.',
  },
  Unauthorized: {
    meaning: 'The destination refuses the credentials.',
    fix: 'Check `auth` of the Sink and its Secret.',
  },
  ConnectFailed: { meaning: 'The destination takes no connection.', fix: 'Check its address, and NetworkPolicies.' },
  TLSFailed: {
    meaning: 'The TLS connection to the destination fails.',
    fix: 'Check certificates and `tls` of the Sink.',
  },
  Rejecting: { meaning: 'The destination refuses requests.', fix: 'Read the last error in `status.components`.' },
  Unreachable: { meaning: 'The destination does not answer.', fix: 'Check its address, and NetworkPolicies.' },
  PodsNotReady: {
    meaning: 'Pods of an Agent are not running.',
    fix: '`kubectl -n penstock-system describe pods` shows why.',
  },
  Unschedulable: {
    meaning: 'Pods of an Agent find no node.',
    fix: '`kubectl -n penstock-system describe pods` shows why.',
  },
  NamespaceNotAllowed: {
    meaning: 'An Agent outside of the namespaces of the platform selects more than it receives.',
    fix: 'The message has the command that allows it.',
  },
  ForeignManager: {
    meaning: 'Another client keeps changing objects of the operator.',
    fix: 'Stop it; the message names the field manager.',
  },
}

/** Reasons that say that all is well, or that the operator works on it; those that a condition has as its name are in `conditionTexts`. */
const quietReasons: Partial<Readonly<Record<Reason, string>>> = {
  Valid: 'The resource has no error.',
  Resolved: 'All that the resource refers to is there.',
  PreviousGeneration: 'The last good version runs; `Accepted` or `ResolvedRefs` names the error of the newest.',
  Suspended: 'No agent runs the Pipeline, because `spec.suspend` is true.',
  Stopped: 'The last good version may not run any more; `Accepted` or `ResolvedRefs` names the cause.',
  NoData: 'No agent has read anything; after five minutes the message says whether there is a log of a selected pod.',
  Unmanaged: 'The Agent has `managementState: Unmanaged`, so the operator changes none of its objects.',
  Progressing: 'The operator works on the resource, or waits for its agents.',
}

/** The meaning of each condition when it is true. */
const conditionTexts: Readonly<Record<ConditionType, string>> = {
  Accepted: 'The resource is valid and allowed; of a Pipeline also, an Agent selects it.',
  ResolvedRefs: 'The Sources, Sinks, Secrets and ConfigMaps that it refers to are there and may be used.',
  Programmed: 'The agents run the newest version.',
  Flowing: 'Events are delivered. A Pipeline without traffic is not in trouble: its reason is `NoData`.',
  Reachable: 'The destinations answer and accept what is sent.',
  Available: 'The pods of the Agent are ready.',
  Contended: 'Another client keeps changing objects of the operator. There only while it is so.',
  Narrowed: 'An Agent selects more than it receives. There only while it is so.',
  Ready:
    'Summarises `Accepted`, `ResolvedRefs` and `Programmed`, of an Agent `Available` too: the first that is not true gives its reason.',
  Reconciling: 'The operator works on the resource, or waits for its agents. There only while it is so.',
  Stalled: 'The resource will not become ready without a change. There only while it is so.',
}

/** The text of a rule, a condition or a reason, in any case of letters; undefined for other words. */
export function ruleText(word: string): string | undefined {
  const said = (table: Readonly<Record<string, ExplainedRule | string | undefined>>, what: string) => {
    const name = Object.keys(table).find((each) => each.toLowerCase() === word.toLowerCase())
    const found = name === undefined ? undefined : table[name]
    if (found === undefined) return undefined
    if (typeof found === 'string') return `${name}  (${what})\n\n${found}\n`
    return `${name}  (${what})\n\n${found.meaning}\n\nFix: ${found.fix}\n`
  }
  return (
    said(tenantRules, 'A rule for resources of namespaces') ??
    said(conditionTexts, 'A condition') ??
    said(reasonTexts, 'A reason of a condition') ??
    said(quietReasons, 'A reason of a condition, which needs no fix')
  )
}

/** The page of all rules and reasons. */
export function rulesPage(): string {
  const rows = (table: Readonly<Record<string, ExplainedRule | string | undefined>>) =>
    Object.entries(table).flatMap(([name, text]) => {
      if (text === undefined) return []
      return `- \`${name}\`: ${typeof text === 'string' ? text : `${text.meaning} ${text.fix}`}`
    })
  const parts = [
    '# Rules, conditions and reasons',
    'Messages of a refused resource contain the number of a rule; `penstock explain T7` prints it.',
    '## Rules for resources of namespaces',
    rows(tenantRules).join('\n'),
    '## Reasons of conditions',
    rows(reasonTexts).join('\n'),
    'These need no fix:',
    rows(quietReasons).join('\n'),
    '## Conditions',
    'Each is true when all is well, but for `Contended`, `Narrowed`, `Reconciling` and `Stalled`.',
    rows(conditionTexts).join('\n'),
  ]
  return `${parts.join('\n\n')}\n`
}
