// Variables of autodiscovery, such as `${data.kubernetes.namespace}`, as values of the pod's metadata.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isList, isMap, type Tree, textOf } from '../loki/tree.ts'

const values: Readonly<Record<string, string>> = {
  namespace: 'pod_namespace',
  'pod.name': 'pod_name',
  'pod.uid': 'pod_uid',
  'pod.ip': 'pod_ip',
  'node.name': 'pod_node_name',
  'container.name': 'container_name',
  'container.image': 'container_image',
}

/** Variables of autodiscovery in a text. */
export const podVariable = /(\$\{data\.[^}]*\})/

/** The parts of a variable such as `${data.kubernetes.labels.app:none}`: the name, and the default for a missing value. */
function partsOf(variable: string): { readonly name: string; readonly byDefault: string | undefined } {
  const [, name = '', byDefault] = /^\$\{data\.(?:kubernetes\.)?([^:}]*)(?::([^}]*))?\}$/.exec(variable) ?? []
  return { name, byDefault }
}

/** An expression for a label or an annotation, which is null if the pod does not have it; undefined for other names. */
function metadataOf(name: string): string | undefined {
  const [, kind, key] = /^(labels|annotations)\.(.+)$/.exec(name) ?? []
  if (kind === undefined || key === undefined) return undefined
  const table = `%orchestrator.pod_${kind}`
  // Filebeat writes dots of these names as underscores.
  return key.includes('_')
    ? `get(map_keys(object(${table}) ?? {}) -> |key| { replace(key, ".", "_") }, [${textLiteral(key)}]) ?? null`
    : `${table}${fieldLiteral([key])}`
}

/** An expression for a variable; undefined if events do not have its value. */
export function podValue(variable: string): string | undefined {
  const { name, byDefault = '' } = partsOf(variable)
  const missing = textLiteral(byDefault)
  const at = Object.hasOwn(values, name) ? values[name] : undefined
  if (at !== undefined) return `(string(%orchestrator.${at}) ?? ${missing})`
  if (name === 'container.id') return `(replace(string(%orchestrator.container_id) ?? ${missing}, r'^.*://', ""))`
  const found = metadataOf(name)
  return found === undefined ? undefined : `(string(${found}) ?? ${missing})`
}

/** Conditions for the labels and annotations in a configuration that have no default. Filebeat reads no pod without them. */
export function neededIn(tree: Tree | undefined): readonly string[] {
  if (isMap(tree)) return [...new Set([...tree.value.values()].flatMap(neededIn))]
  if (isList(tree)) return [...new Set(tree.value.flatMap(neededIn))]
  return [...(textOf(tree) ?? '').matchAll(new RegExp(podVariable, 'g'))].flatMap(([variable]) => {
    const { name, byDefault } = partsOf(variable)
    const found = byDefault === undefined ? metadataOf(name) : undefined
    return found === undefined ? [] : [`is_string(${found})`]
  })
}
