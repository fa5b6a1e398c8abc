// Field selectors of pods as text, `metadata.namespace=shop,spec.restartPolicy!=Always`, as predicates: the grammar of the Kubernetes
// API, and the fields that it knows of a pod.

import { PenstockError } from '../../errors.ts'
import type { PodObject } from './pod-metadata.ts'

const values = {
  'metadata.name': (pod: PodObject) => pod.metadata.name,
  'metadata.namespace': (pod: PodObject) => pod.metadata.namespace,
  'spec.nodeName': (pod: PodObject) => pod.spec?.nodeName,
  'spec.restartPolicy': (pod: PodObject) => pod.spec?.restartPolicy,
  'spec.schedulerName': (pod: PodObject) => pod.spec?.schedulerName,
  'spec.serviceAccountName': (pod: PodObject) => pod.spec?.serviceAccountName,
  'spec.hostNetwork': (pod: PodObject) => String(pod.spec?.hostNetwork ?? false),
  'status.phase': (pod: PodObject) => pod.status?.phase,
  'status.podIP': (pod: PodObject) => pod.status?.podIP,
  'status.nominatedNodeName': (pod: PodObject) => pod.status?.nominatedNodeName,
}

type FieldName = keyof typeof values

/** Values by the name of the field; one that a pod does not have is an empty text. */
export type PodFields = Readonly<Record<FieldName, string>>

export function podFields(pod: PodObject): PodFields {
  const fields = Object.entries(values).map(([name, read]) => [name, read(pod) ?? ''])
  return Object.fromEntries(fields) as PodFields
}

export type FieldTest = (fields: PodFields) => boolean

/** Throws PEN_CONFIG_INVALID for what is no field selector of pods. An empty text selects everything. */
export function compileFieldSelector(text: string): FieldTest {
  const terms = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '')
  const tests = terms.map((term): FieldTest => {
    const [, field = '', operator, value = ''] = /^([^=!]+?)\s*(==|=|!=)\s*([^=!]*)$/.exec(term) ?? []
    if (operator === undefined) throw invalid(text, `"${term}" is not of the form field=value or field!=value`)
    if (!Object.hasOwn(values, field)) {
      throw invalid(text, `pods have no field "${field}" to select by; there are ${Object.keys(values).join(', ')}`)
    }
    const name = field as FieldName
    return operator === '!=' ? (fields) => fields[name] !== value : (fields) => fields[name] === value
  })
  return (fields) => tests.every((test) => test(fields))
}

function invalid(text: string, why: string): PenstockError {
  return new PenstockError('PEN_CONFIG_INVALID', `"${text}" is not a field selector of pods: ${why}.`)
}
