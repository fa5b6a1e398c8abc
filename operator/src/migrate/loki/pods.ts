// Builds the labels that discovery sets for a pod (`__meta_kubernetes_…`) from the metadata that the source adds to events. Only labels
// that a rule can read are built.

import { compileFieldSelector, fieldLiteral, textLiteral } from '@penstock/agent/config'
import { errorText } from '@penstock/agent/errors'
import { compileSelector } from '@penstock/agent/kube'
import { none } from '../page.ts'
import type { Report } from './context.ts'
import type { Rule } from './relabel.ts'
import { below, flagOf, type Tree, textOf } from './tree.ts'

const meta = '__meta_kubernetes_'

const facts: Readonly<Record<string, string>> = {
  __address__: '.orchestrator.pod_ip',
  [`${meta}namespace`]: '.orchestrator.pod_namespace',
  [`${meta}pod_name`]: '.orchestrator.pod_name',
  [`${meta}pod_ip`]: '.orchestrator.pod_ip',
  [`${meta}pod_uid`]: '.orchestrator.pod_uid',
  [`${meta}pod_node_name`]: '.orchestrator.pod_node_name',
  [`${meta}pod_container_name`]: '.orchestrator.container_name',
  [`${meta}pod_container_image`]: '.orchestrator.container_image',
  [`${meta}pod_container_id`]: '.orchestrator.container_id',
  [`${meta}pod_controller_kind`]: 'replace(string(.orchestrator.pod_owner) ?? "", r\'/.*$\', "")',
  [`${meta}pod_controller_name`]: 'replace(string(.orchestrator.pod_owner) ?? "", r\'^[^/]*/\', "")',
}

/** Labels whose names end in the name of a Kubernetes label or annotation. */
const families: readonly (readonly [string, readonly string[], boolean])[] = [
  [`${meta}pod_label_`, ['orchestrator', 'pod_labels'], false],
  [`${meta}pod_labelpresent_`, ['orchestrator', 'pod_labels'], true],
  [`${meta}pod_annotation_`, ['orchestrator', 'pod_annotations'], false],
  [`${meta}pod_annotationpresent_`, ['orchestrator', 'pod_annotations'], true],
  [`${meta}namespace_label_`, ['orchestrator', 'namespace_labels'], false],
  [`${meta}namespace_labelpresent_`, ['orchestrator', 'namespace_labels'], true],
  [`${meta}node_label_`, ['orchestrator', 'node_labels'], false],
  [`${meta}node_labelpresent_`, ['orchestrator', 'node_labels'], true],
]

/** Labels of other kinds of targets. Discovery of pods never sets them, so they are empty for the old agent, too. */
const ofOthers = /^__meta_kubernetes_(?:service|endpoint|endpoints|endpointslice|ingress)_/

/** Facts of pods that only targets have. */
const phase = /_pod_(?:phase|ready|container_init)$/

const familyOf = (name: string) => families.find(([prefix]) => name.startsWith(prefix))

/** Label names that the rules read. */
function namesIn(rules: readonly Rule[]): ReadonlySet<string> {
  return new Set(
    rules.flatMap(({ action, sources, target }) => (action.endsWith('equal') ? [...sources, target] : sources)),
  )
}

/**
 * Rules of pods to which discovery may add metadata of their nodes and namespaces. The label with the name of the node is then that of the
 * pod. Reports rules that read labels which discovery does not add, because the source always has them.
 */
export function withAttached(rules: readonly Rule[], attached: Tree | undefined, report: Report): readonly Rule[] {
  for (const kind of ['node', 'namespace']) {
    if (flagOf(below(attached, kind)) === true) continue
    const family = new RegExp(`^${meta}${kind}_label(?:present)?_`)
    for (const rule of rules.filter(({ sources }) => sources.some((name) => family.test(name)))) {
      const reason = `without \`attach_metadata\`, the old agent has no labels of the ${kind}, but the source has them`
      report.replaced(rule, `relabel rule on labels of the ${kind}`, reason, 'Remove the rule if it must do nothing.')
    }
  }
  if (flagOf(below(attached, 'node')) !== true) return rules
  const nameOf = (name: string) => (name === `${meta}node_name` ? `${meta}pod_node_name` : name)
  return rules.map((rule) => ({ ...rule, sources: rule.sources.map(nameOf) }))
}

/** Whether a name with this prefix can match an expression. */
function canMatch(regex: string, prefix: string): boolean {
  const start = /^\^?(?:\(\?:)?([\w]*)/.exec(regex)?.[1] ?? ''
  // A repeated part may occur zero times.
  const fixed = /^[*?{]/.test(regex.replace(/^\^?(?:\(\?:)?[\w]*/, '')) ? start.slice(0, -1) : start
  return hasAlternatives(regex) || fixed.startsWith(prefix) || prefix.startsWith(fixed)
}

/** Whether an expression has alternatives at its beginning. Those of a later group do not change the beginning. */
function hasAlternatives(regex: string): boolean {
  if (/^\^?\(/.test(regex)) return regex.includes('|')
  let rest = regex.replace(/\\.|\[\^?\]?[^\]]*\]/gs, '')
  for (let before = ''; rest !== before; ) {
    before = rest
    rest = rest.replace(/\([^()]*\)/g, '')
  }
  return rest.includes('|')
}

/**
 * Removes rules that read data unknown to the source, and reports them as gaps.
 * @param given labels that events have before the rules
 */
export function knownRules(rules: readonly Rule[], report: Report, given: ReadonlySet<string>): readonly Rule[] {
  return rules.filter((rule) => {
    const unknown = rule.sources.find(
      (name) =>
        name.startsWith(meta) &&
        facts[name] === undefined &&
        familyOf(name) === undefined &&
        !ofOthers.test(name) &&
        !given.has(name),
    )
    if (unknown === undefined) return true
    // The phase of a pod matters only to targets; the source reads all existing files.
    const isPhase =
      rule.sources.every((name) => phase.test(name)) && (/^(?:keep|drop)$/.test(rule.action) || /^__/.test(rule.target))
    const subject = `relabel rule on ${unknown}`
    const reason = 'the source does not have this label, so the rule is left out'
    if (isPhase) {
      report.replaced(rule, subject, reason, 'The source reads all containers of a pod as long as their files exist.')
    } else report.missing(rule, subject, none(unknown, reason, 'Use a label or an annotation of the pod.'), 'label')
    return false
  })
}

/** Lines that set the variable `labels`. */
export function discoveredLines(rules: readonly Rule[]): readonly string[] {
  const names = namesIn(rules)
  const maps = rules.filter(({ action }) => action === 'labelmap')
  const isRead = (name: string) => names.has(name) || maps.some(({ regex }) => canMatch(regex, name))
  const entries = Object.entries(facts)
    .filter(([name]) => isRead(name))
    .map(([name, expression]) => `  ${textLiteral(name)}: ${expression},`)
  const merged: string[] = []
  for (const [prefix, path, isPresence] of families) {
    const read = [...names].filter((name) => familyOf(name)?.[0] === prefix)
    // A name without `_` is unambiguous; each `_` may replace any other character.
    const isWhole =
      maps.some(({ regex }) => canMatch(regex, prefix)) || read.some((name) => name.slice(prefix.length).includes('_'))
    if (isWhole) {
      const object = `object(${fieldLiteral(path)}) ?? {}`
      const values = isPresence ? `map_values(${object}) -> |_value| { "true" }` : object
      merged.push(
        `found = ${values}`,
        `labels = merge(labels, map_keys(found) -> |name| { ${textLiteral(prefix)} + replace(name, r'[^a-zA-Z0-9_]', "_") })`,
      )
    } else {
      for (const name of read) {
        const field = fieldLiteral([...path, name.slice(prefix.length)])
        if (!isPresence) entries.push(`  ${textLiteral(name)}: ${field},`)
        else merged.push(`if exists(${field}) { labels.${textLiteral(name)} = "true" }`)
      }
    }
  }
  return [...(entries.length === 0 ? ['labels = {}'] : ['labels = {', ...entries, '}']), ...merged]
}

export interface Selection {
  readonly selectors: Readonly<Record<string, string>>
  readonly rules: readonly Rule[]
}

/** Literal names of fields or labels, without pattern syntax. */
const plainNames = /^\(?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\|[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\)?$/

/**
 * Converts rules that keep or drop pods by one label to selectors of the source, so that it does not read the files; other rules stay.
 * @param allowsFields whether field selectors are allowed, as in a ClusterPipeline
 */
export function selectionOf(rules: readonly Rule[], allowsFields: boolean): Selection {
  const fields: string[] = []
  const labels: string[] = []
  const written = new Set(rules.map(({ target }) => target))
  const mayGo = (name: string) =>
    rules.some(({ action, regex }) => action === 'labelkeep' || (action === 'labeldrop' && canMatch(regex, name)))
  const rest = rules.filter((rule) => {
    const { action, sources, regex } = rule
    const [name] = sources
    if (!['keep', 'drop'].includes(action) || sources.length !== 1 || name === undefined) return true
    if (mayGo(name) || written.has(name) || !plainNames.test(regex)) return true
    const values = regex.replace(/^\(|\)$/g, '').split('|')
    if (name === `${meta}namespace` && allowsFields) {
      if (action === 'keep' && values.length > 1) return true
      fields.push(...values.map((value) => `metadata.namespace${action === 'keep' ? '=' : '!='}${value}`))
      return false
    }
    const prefix = `${meta}pod_label_`
    const key = name.slice(prefix.length)
    if (!name.startsWith(prefix) || !/^[a-zA-Z0-9]{1,63}$/.test(key)) return true
    labels.push(`${key} ${action === 'keep' ? 'in' : 'notin'} (${values.join(',')})`)
    return false
  })
  return {
    selectors: {
      ...(fields.length > 0 ? { extra_field_selector: fields.join(',') } : {}),
      ...(labels.length > 0 ? { extra_label_selector: labels.join(',') } : {}),
    },
    rules: rest,
  }
}

/** The selectors of discovery as options of the source. They consist of a role, a label selector and a field selector. */
export function givenSelectors(items: readonly Tree[], report: Report): Readonly<Record<string, string>> {
  const selectors: Record<string, string> = {}
  const add = (option: string, text: string, compile: (text: string) => unknown, item: Tree): void => {
    if (text === '') return
    try {
      compile(text)
      selectors[option] = text
    } catch (error) {
      report.gap(item, `selector ${text}`, errorText(error), `Correct it, and set \`${option}\` of the source.`)
    }
  }
  for (const item of items) {
    if ((textOf(below(item, 'role')) ?? 'pod') !== 'pod') continue
    add('extra_label_selector', textOf(below(item, 'label')) ?? '', compileSelector, item)
    // The source reads only pods of its own node anyway, whose name is a variable.
    const fields = (textOf(below(item, 'field')) ?? '')
      .split(',')
      .filter((text) => !/^\s*spec\.nodeName\s*==?\s*(?:\$|$)/.test(text))
    add('extra_field_selector', fields.join(','), compileFieldSelector, item)
  }
  return selectors
}
