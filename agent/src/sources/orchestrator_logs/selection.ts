// Decides which pods and containers a subscription reads. The hub uses it to read them, and diagnostics use it to explain why a pod
// is not read.

import { compileSelector, type LabelTest } from '../../kube/labels.ts'
import { compileFieldSelector, type PodFields } from './field-selector.ts'

/** Selects the pods and namespaces that may be read at all. */
export const notExcluded = 'penstock.dev/exclude!=true,vector.dev/exclude!=true'
/** If a subscription requires consent, pods without this label are not read. */
export const consentLabel = 'penstock.dev/collect'

/** Containers that a pod's annotation excludes. */
export function excludedContainers(annotations: Readonly<Record<string, string>>): ReadonlySet<string> {
  const text = annotations['penstock.dev/exclude-containers'] ?? annotations['vector.dev/exclude-containers'] ?? ''
  const names = text.split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== ''))
}

/** The options by which a subscription selects pods. */
export interface SelectionOptions {
  readonly namespaces?: readonly string[] | undefined
  readonly namespaceSelector?: string | undefined
  readonly podSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly optIn?: boolean | undefined
  readonly includeContainers?: readonly string[] | undefined
  readonly excludeContainers?: readonly string[] | undefined
}

/** The facts about a pod that selectors use. */
export interface SelectedPod {
  /** Undefined: the labels are unknown. */
  readonly labels: Readonly<Record<string, unknown>> | undefined
  /** Undefined: the fields are unknown. */
  readonly fields?: PodFields | undefined
}

export interface PodSelection {
  /** Tests the labels of a namespace; undefined labels are unknown. */
  namespace(name: string, labels: Readonly<Record<string, unknown>> | undefined): boolean
  /** Undefined: the pod is unknown. */
  pod(pod: SelectedPod | undefined): boolean
  container(name: string, excluded: ReadonlySet<string> | undefined): boolean
}

export function compileSelection(subscription: SelectionOptions): PodSelection {
  const { namespaces, namespaceSelector, podSelector, fieldSelector, optIn, includeContainers, excludeContainers } =
    subscription
  const names = namespaces === undefined ? undefined : new Set(namespaces)
  const namespaceTest = compiled(namespaceSelector)
  const podTest = compiled(podSelector)
  const fieldTest = fieldSelector === undefined ? undefined : compileFieldSelector(fieldSelector)
  const consentTest = optIn === true ? compileSelector(`${consentLabel}=true`) : undefined
  const included = includeContainers === undefined ? undefined : new Set(includeContainers)
  const left = new Set(excludeContainers ?? [])
  // A selector cannot be evaluated for an unknown pod.
  const takes = (test: LabelTest | undefined, labels: Readonly<Record<string, unknown>> | undefined) =>
    test === undefined || (labels !== undefined && test(labels))
  return {
    namespace: (name, labels) => (names === undefined || names.has(name)) && takes(namespaceTest, labels),
    pod: (pod) =>
      takes(podTest, pod?.labels) &&
      takes(consentTest, pod?.labels) &&
      (fieldTest === undefined || (pod?.fields !== undefined && fieldTest(pod.fields))),
    container: (name, excluded) =>
      excluded?.has(name) !== true && !left.has(name) && (included === undefined || included.has(name)),
  }
}

function compiled(selector: string | undefined): LabelTest | undefined {
  return selector === undefined ? undefined : compileSelector(selector)
}
