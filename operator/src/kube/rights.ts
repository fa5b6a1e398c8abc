// Compares the rights of this process in a namespace with the required ones, before the first reflector starts. So missing rights are
// reported once, with the commands that grant them, rather than as an error of each request.

import type { KubeClient } from './client.ts'
import { pathOf } from './client.ts'
import { selfSubjectAccessReviewType, selfSubjectRulesReviewType } from './resource-types.ts'

/** A rule in the form of a Role. */
export interface NeededRule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** Missing verbs on resources of one group. */
export interface MissingRight {
  readonly verbs: readonly string[]
  /** `pods`, `pipelines.penstock.dev` */
  readonly resource: string
  /** Names of the objects concerned; all if there are none. */
  readonly names: readonly string[]
}

interface Granted {
  readonly verbs?: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** The required rules that this process lacks in a namespace. */
export async function missingRights(
  kube: KubeClient,
  namespace: string,
  needed: readonly NeededRule[],
  signal: AbortSignal,
): Promise<readonly MissingRight[]> {
  const { status } = await kube.request<{ status: { resourceRules?: readonly Granted[]; incomplete?: boolean } }>(
    'POST',
    pathOf(selfSubjectRulesReviewType),
    { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
    { signal },
  )
  const granted = status.resourceRules ?? []
  const missing = new Map<string, MissingRight & { readonly names: string[] }>()
  for (const { apiGroups = [], resources = [], resourceNames = [undefined], verbs } of needed) {
    for (const question of questions(apiGroups, resources, resourceNames)) {
      const lacking: string[] = []
      for (const verb of verbs) {
        if (granted.some((rule) => covers(rule, question, verb))) continue
        // Not every authorizer can list its rules, but each can answer a single review.
        if (status.incomplete === true && (await isAllowed(kube, namespace, question, verb, signal))) continue
        lacking.push(verb)
      }
      if (lacking.length === 0) continue
      const { group, name } = question
      const resource = group === '' ? question.resource : `${question.resource}.${group}`
      const key = `${lacking.join()} ${resource} ${name === undefined}`
      const known = missing.get(key) ?? { verbs: lacking, resource, names: [] }
      missing.set(key, known)
      if (name !== undefined) known.names.push(name)
    }
  }
  return [...missing.values()]
}

interface Question {
  readonly group: string
  readonly resource: string
  readonly name: string | undefined
}

function* questions(
  groups: readonly string[],
  resources: readonly string[],
  names: readonly (string | undefined)[],
): Iterable<Question> {
  for (const group of groups)
    for (const resource of resources) for (const name of names) yield { group, resource, name }
}

function covers(rule: Granted, { group, resource, name }: Question, verb: string): boolean {
  const has = (list: readonly string[] | undefined, wanted: string) =>
    list?.includes(wanted) === true || list?.includes('*') === true
  const { resourceNames = [] } = rule
  return (
    has(rule.verbs, verb) &&
    has(rule.apiGroups, group) &&
    has(rule.resources, resource) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  )
}

async function isAllowed(
  kube: KubeClient,
  namespace: string,
  { group, resource, name }: Question,
  verb: string,
  signal: AbortSignal,
): Promise<boolean> {
  const [plural, subresource] = resource.split('/')
  const resourceAttributes = { namespace, group, resource: plural, subresource, name, verb }
  const { status } = await kube.request<{ status: { allowed: boolean } }>(
    'POST',
    pathOf(selfSubjectAccessReviewType),
    { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } },
    { signal },
  )
  return status.allowed
}

/** kubectl commands that grant an account its missing rights in a namespace. */
export function grantsOf(namespace: string, account: string, missing: readonly MissingRight[]): string[] {
  const bySet = new Map<string, { readonly verbs: string; readonly names: readonly string[]; resources: string[] }>()
  for (const { verbs, resource, names } of missing) {
    const key = `${verbs.join()} ${names.join()}`
    const known = bySet.get(key) ?? { verbs: verbs.join(), names, resources: [] }
    bySet.set(key, known)
    known.resources.push(resource)
  }
  return [...bySet.values()].flatMap(({ verbs, names, resources }, index) => {
    const role = `penstock-operator-missing-${index + 1}`
    const named = names.map((name) => ` --resource-name=${name}`).join('')
    return [
      `kubectl create role ${role} -n ${namespace} --verb=${verbs} --resource=${resources.map(asArgument).join()}${named}`,
      `kubectl create rolebinding ${role} -n ${namespace} --role=${role} --serviceaccount=${account}`,
    ]
  })
}

/** kubectl expects a subresource after the group: `pipelines.penstock.dev/status`. */
const asArgument = (resource: string) => resource.replace(/^([a-z]+)\/([a-z]+)(\..*)?$/, '$1$3/$2')
