// Compiles field selectors of pods, such as `metadata.namespace=shop,spec.restartPolicy!=Always`, into predicates. It follows the
// grammar of the Kubernetes API and supports its fields for pods.

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

/** Values by field name; a missing field is an empty text. */
export type PodFields = Readonly<Record<FieldName, string>>

export function podFields(pod: PodObject): PodFields {
  const fields = Object.entries(values).map(([name, read]) => [name, read(pod) ?? ''])
  return Object.fromEntries(fields) as PodFields
}

export type FieldTest = (fields: PodFields) => boolean

/** Throws PEN_CONFIG_INVALID for an invalid field selector of pods. An empty text selects everything. */
export function compileFieldSelector(text: string): FieldTest {
  const terms = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '')
  const tests = terms.map((term): FieldTest => {
    const [, field = '', operator, value = ''] = /^([^=!]+?)\s*(==|=|!=)\s*([^=!]*)$/.exec(term) ?? []
    if (operator === undefined) throw invalid(text, `"${term}" does not have the form field=value or field!=value`)
    if (!Object.hasOwn(values, field)) {
      throw invalid(
        text,
        `pods cannot be selected by field "${field}"; the known fields are ${Object.keys(values).join(', ')}`,
      )
    }
    const name = field as FieldName
    return operator === '!=' ? (fields) => fields[name] !== value : (fields) => fields[name] === value
  })
  return (fields) => tests.every((test) => test(fields))
}

function invalid(text: string, why: string): PenstockError {
  return new PenstockError('PEN_CONFIG_INVALID', `"${text}" is not a valid field selector of pods: ${why}.`)
}
