// Sources for the lines that Promtail and Alloy read, and the first program after a source, which sets the labels of events.

import { compileGlob, fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isCharset } from '../charsets.ts'
import type { Component, Draft, Selector } from '../draft.ts'
import { none } from '../page.ts'
import type { Chain } from './chain.ts'
import type { Report } from './context.ts'
import { textExpression } from './fields.ts'
import { excludeLabel, foundPath, isConstant, pathLabel, readsPath } from './file-paths.ts'
import { fileMultiline, type Joined, podMultiline } from './joining.ts'
import { discoveredLines, knownRules, type Selection, selectionOf } from './pods.ts'
import { type Rule, ruleLines } from './relabel.ts'
import { type RuntimeForm, reportRuntime, runtimeLine } from './runtime.ts'
import type { Place, Tree } from './tree.ts'

export interface SourceLimits {
  readonly olderSecs?: number | undefined
  readonly bytes?: number
  readonly truncates?: boolean
}

export interface Pods {
  readonly rules: readonly Rule[]
  /** Labels of pods and namespaces, as a resource selected them. */
  readonly selector?: Selector | undefined
  /** Selectors of the old agent's discovery. */
  readonly selectors: Readonly<Record<string, string>>
  /** Namespaces to read; if empty, all. */
  readonly namespaces: readonly string[]
  readonly joined: Joined | undefined
  readonly limits: SourceLimits
  /** Labels that all events get before the rules. */
  readonly labels: readonly (readonly [string, string, Tree])[]
  /** The label `filename`, if the old agent read files and ignored targets without a path; undefined if it read from the API server. */
  readonly file: string | undefined
  /** Whether a label contains a variable with the name of the node. */
  readonly asksNode: boolean
  readonly readsFromEnd?: boolean
  /** Whether the old agent reads only files that a rule names. */
  readonly needsPath?: boolean
  /** The form in which the program writes lines again, because no stage parses those of the runtime. */
  readonly runtime?: RuntimeForm | undefined
  /** Statements after the rules. */
  readonly defaults?: readonly string[]
}

/** Adds the component, or returns an identical earlier one. */
export class SourceSet {
  readonly #draft: Draft
  readonly #known = new Map<string, string>()

  constructor(draft: Draft) {
    this.#draft = draft
  }

  add(wanted: string, component: Component): string {
    const key = JSON.stringify(component)
    const known = this.#known.get(key) ?? this.#draft.add('sources', wanted, component)
    this.#known.set(key, known)
    return known
  }

  /** Adds a source that reads nothing, to replace one without a counterpart. */
  addMissing(wanted: string, subject: string, place: Place): string {
    const comment = `GAP: \`${subject}\` (${place.file}:${place.line}) has no counterpart. This source reads nothing.`
    const name = wanted.toLowerCase().replace(/[^a-z0-9-]+/g, '-')
    return this.add(wanted, { type: 'file', config: { include: [`/var/empty/${name}`] }, comments: [comment] })
  }
}

function merged(
  one: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>>,
): Record<string, string> {
  const all: Record<string, string> = { ...one }
  for (const [name, text] of Object.entries(other)) all[name] = all[name] === undefined ? text : `${all[name]},${text}`
  return all
}

/** Labels that all pods have, so that a rule on them always sets a path. */
const always = new Set(
  ['pod_uid', 'pod_name', 'pod_container_name', 'namespace', 'pod_container_id'].map(
    (name) => `__meta_kubernetes_${name}`,
  ),
)

/** Removes rules that find the files and the node, which the source does itself. */
function withoutPaths(rules: readonly Rule[], report: Report): readonly Rule[] {
  const read = new Set(rules.flatMap(({ sources }) => sources))
  const paths = rules.filter(({ target }) => target === pathLabel)
  const isUsual = paths.some(
    ({ sources, regex, replacement }) =>
      regex === '(.*)' &&
      sources.every((name) => always.has(name)) &&
      /^\/var\/(log|lib\/docker)\/.*\$(?:1|\{1\})/.test(replacement),
  )
  for (const rule of paths.filter(({ replacement }) => !/\/(?:pods|containers)\/\*?/.test(replacement))) {
    report.gap(
      rule,
      'relabel rule on __path__',
      `the path \`${rule.replacement}\` selects files other than pod logs`,
      'Read these files with a `file` source.',
    )
  }
  // Rules before the files are found may read the pattern.
  const found = rules.findIndex(({ action }) => action === foundPath)
  const isRead = readsPath(found < 0 ? rules : rules.slice(0, found))
  return rules.filter(({ target }) => {
    if (target === pathLabel) return !isUsual || isRead
    return !(target === '__host__' && !read.has(target))
  })
}

/** Patterns of files of pods that rules exclude. */
function excludedBy(rules: readonly Rule[], report: Report): readonly string[] {
  const last = rules.findLast(({ target }) => target === excludeLabel)
  if (last === undefined) return []
  if (isConstant(last)) return [last.replacement]
  const reason = 'the source excludes the same files of all pods'
  const nearest = 'Set `exclude_paths_glob_patterns` of the source, or drop the events in the program.'
  report.gap(last, `relabel rule on ${excludeLabel}`, reason, nearest)
  return []
}

/** Removes rules that set a path which no other rule reads, because the API server provides pods, not files. */
function withoutUnreadPath(rules: readonly Rule[]): readonly Rule[] {
  return readsPath(rules) ? rules : rules.filter(({ target }) => target !== pathLabel)
}

/** Adds a source of pods, and the program with its labels to the chain. Returns the name of the source. */
export function addPods(
  set: SourceSet,
  chain: Chain,
  pods: Pods,
  draft: Draft,
  report: Report,
  wanted: string,
  place: Place,
): string {
  const isCluster = draft.namespace === undefined
  const nodeRules = withoutOwnNode(pods.rules)
  if (pods.needsPath === true && !nodeRules.some(({ target }) => target === pathLabel)) {
    const reason = 'no rule sets the path, so the old agent reads no files of these pods, but the source reads them'
    report.replaced(place, `label ${pathLabel}`, reason, 'Remove the job if it has no use.')
  }
  const rules = pods.file === undefined ? withoutUnreadPath(nodeRules) : withoutPaths(nodeRules, report)
  const excluded = pods.file === undefined ? [] : excludedBy(rules, report)
  const known = knownRules(rules, report, new Set(pods.labels.map(([name]) => name)))
  const selection: Selection = selectionOf(known, isCluster)
  const { extra_field_selector: refused, ...allowed } = pods.selectors
  if (!isCluster && refused !== undefined) {
    report.gap(
      place,
      `selector ${refused}`,
      'a Pipeline in a namespace cannot select pods by fields',
      'Omit `-n`, or drop events in the program.',
    )
  }
  const given = merged(isCluster ? pods.selectors : allowed, selection.selectors)
  const [namespace] = pods.namespaces
  const isSingle = pods.namespaces.length === 1 && isCluster && namespace !== undefined
  const fields = {
    ...given,
    ...(isSingle ? merged(given, { extra_field_selector: `metadata.namespace=${namespace}` }) : {}),
  }
  const { bytes, truncates, olderSecs } = pods.limits
  const config = {
    ...fields,
    ...(excluded.length > 0 ? { exclude_paths_glob_patterns: excluded } : {}),
    ...(pods.readsFromEnd === true ? { read_from: 'end' } : {}),
    ...(olderSecs === undefined ? {} : { ignore_older_secs: olderSecs }),
    ...(bytes === undefined ? {} : { max_merged_line_bytes: bytes }),
    ...(bytes === undefined || truncates !== true ? {} : { max_merged_line_action: 'truncate' }),
  }
  const source = set.add(wanted, {
    type: 'orchestrator_logs',
    ...selectorOf(pods.selector, isCluster, report, place),
    ...(Object.keys(config).length > 0 ? { config } : {}),
    ...(pods.joined === undefined ? {} : { multiline: podMultiline(pods.joined) }),
  })
  const hasPath = pods.file !== undefined && selection.rules.some(({ target }) => target === pathLabel)
  if (pods.runtime !== undefined) reportRuntime(pods.runtime, pods.joined !== undefined, report, place)
  chain.add('labels', place, [
    ...(pods.namespaces.length > 0 && !isSingle
      ? [`if !includes([${pods.namespaces.map(textLiteral).join(', ')}], .orchestrator.pod_namespace) { abort }`]
      : []),
    ...discoveredLines([...selection.rules]),
    ...staticLines(pods.labels, report),
    ...selection.rules.flatMap(
      (rule) => ruleLines(rule, report) ?? [`# GAP: the rule ${rule.action} (${rule.file}:${rule.line}) is left out.`],
    ),
    ...(hasPath ? ['if string!(labels.__path__ || "") == "" { abort }'] : []),
    ...(pods.defaults ?? []),
    ...(pods.asksNode ? ['%node_name = .orchestrator.pod_node_name'] : []),
    ...finishLines(pods.file, runtimeLine(pods.runtime), '"stream": .stream'),
  ])
  return source
}

/** A namespaced Pipeline has no `namespaceSelector`. */
function selectorOf(
  selector: Selector | undefined,
  isCluster: boolean,
  report: Report,
  place: Place,
): { readonly selector?: Selector } {
  if (selector === undefined) return {}
  const { namespaces, ...rest } = selector
  if (isCluster || namespaces === undefined) return { selector }
  const reason = 'a namespaced Pipeline reads only the pods of its namespace'
  report.gap(place, 'namespaceSelector', reason, 'Convert without `-n`.')
  return Object.keys(rest).length === 0 ? {} : { selector: rest }
}

/** Removes rules that only limit targets to pods of the own node, whose name is a variable. A rule with the names of nodes stays. */
function withoutOwnNode(rules: readonly Rule[]): readonly Rule[] {
  const rest = rules.filter(
    ({ action, sources: [name, ...more], regex }) =>
      !(
        action === 'keep' &&
        more.length === 0 &&
        (name === '__meta_kubernetes_pod_node_name' || name === '__host__') &&
        /\$[{(\w]/.test(regex)
      ),
  )
  const read = new Set(rest.flatMap(({ sources }) => sources))
  return rest.filter(({ target }) => target !== '__host__' || read.has(target))
}

function staticLines(labels: readonly (readonly [string, string, Tree])[], report: Report): string[] {
  return labels.map(([name, text, tree]) => {
    report.variables(tree, `label ${name}`, text)
    return `labels${fieldLiteral([name])} = ${textExpression(text, report.readsEnvironment)}`
  })
}

/** The event in the form that stages expect. */
function finishLines(file: string | undefined, line = '.message', ...more: readonly string[]): string[] {
  return [
    'labels = filter(labels) -> |name, value| { !starts_with(name, "__") && is_string(value) && value != "" }',
    ...(file === undefined ? [] : [`labels.filename = ${file}`]),
    `. = { "message": ${line}, "timestamp": timestamp(.timestamp) ?? now(), ${[...more, ''].join(', ')}"labels": labels, "metadata": {}, "extracted": labels }`,
  ]
}

export interface Files {
  readonly paths: readonly string[]
  readonly excluded: readonly string[]
  readonly labels: readonly (readonly [string, string, Tree])[]
  readonly rules: readonly Rule[]
  readonly joined: Joined | undefined
  readonly limits: SourceLimits
  readonly charset?: string | undefined
  readonly readsFromEnd?: boolean
  readonly asksNode: boolean
}

/** A character set; undefined if the source does not know it. */
function charsetOf(name: string | undefined, report: Report, place: Place): string | undefined {
  if (name === undefined || isCharset(name)) return name
  const reason = `the source does not know the character set \`${name}\``
  report.gap(
    place,
    'encoding',
    reason,
    'Set `encoding.charset` of the source, such as `utf-16le`, or let the program write UTF-8.',
  )
  return undefined
}

/** Whether a path begins with a drive letter or the name of a server. */
const isOfWindows = (path: string) => /^(?:[A-Za-z]:[\\/]|\\\\)/.test(path)
const windowsPath = none('', 'there is no agent for Windows nodes', 'Keep the old agent on these nodes.')

/** Adds a source of files, and the program with its labels. */
export function addFiles(
  set: SourceSet,
  chain: Chain,
  files: Files,
  report: Report,
  wanted: string,
  place: Place,
): string {
  const { bytes, olderSecs } = files.limits
  const isReadable = (path: string) => {
    report.literal(place, path, path)
    if (isOfWindows(path)) {
      report.missing(place, path, windowsPath, 'path')
      return false
    }
    if (compileGlob(path) !== undefined) return true
    report.gap(
      place,
      path,
      'a bracket or brace of the path is not closed, or the path expands to too many paths',
      'Set `include` of the source.',
    )
    return false
  }
  const { joined } = files
  if (joined?.isAfterRuntime === true) {
    report.gap(
      place,
      'stage multiline',
      'a `file` source joins lines before the stage of the container runtime parses them, so it joins none',
      'Read the pods with `orchestrator_logs`, which parses the lines first, and set its `multiline`.',
    )
  }
  const charset = charsetOf(files.charset, report, place)
  const paths = files.paths.filter(isReadable)
  const excluded = files.excluded.filter(isReadable)
  const config = {
    include: paths.length > 0 ? paths : [`/var/empty/${wanted.toLowerCase().replace(/[^a-z0-9-]+/g, '-')}`],
    ...(excluded.length > 0 ? { exclude: excluded } : {}),
    ...(files.readsFromEnd === true ? { read_from: 'end' } : {}),
    ...(olderSecs === undefined ? {} : { ignore_older_secs: olderSecs }),
    ...(charset === undefined ? {} : { encoding: { charset } }),
    ...(bytes === undefined ? {} : { max_line_bytes: bytes }),
    ...(joined === undefined || joined.isAfterRuntime ? {} : { multiline: fileMultiline(joined) }),
  }
  const source = set.add(wanted, { type: 'file', config })
  addLabels(chain, files.labels, files.rules, report, place, '.file', files.asksNode)
  return source
}

/** The program that sets the labels of events if discovery adds none. */
export function addLabels(
  chain: Chain,
  labels: readonly (readonly [string, string, Tree])[],
  rules: readonly Rule[],
  report: Report,
  place: Place,
  file?: string,
  asksNode = false,
): void {
  chain.add('labels', place, [
    ...(asksNode ? ['%node_name = get_env_var("AGENT_SELF_NODE_NAME") ?? ""'] : []),
    'labels = {}',
    ...staticLines(
      labels.filter(([name]) => name !== excludeLabel && (name !== pathLabel || readsPath(rules))),
      report,
    ),
    ...rules.flatMap(
      (rule) => ruleLines(rule, report) ?? [`# GAP: the rule ${rule.action} (${rule.file}:${rule.line}) is left out.`],
    ),
    ...finishLines(file),
  ])
}

/** Whether the files are pod logs, which `orchestrator_logs` reads together with the pod's metadata. */
export function isPodPath(path: string): boolean {
  return /^\/var\/log\/(?:pods|containers)\//.test(path)
}
