// Variables of autodiscovery, such as `${data.kubernetes.namespace}`, as values of the pod's metadata.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'

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

/** An expression for a variable; undefined if events do not have its value. */
export function podValue(variable: string): string | undefined {
  const name = /^\$\{data\.(?:kubernetes\.)?(.*)\}$/.exec(variable)?.[1] ?? ''
  const at = Object.hasOwn(values, name) ? values[name] : undefined
  if (at !== undefined) return `(string(%orchestrator.${at}) ?? "")`
  if (name === 'container.id') return '(replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', ""))'
  const [, kind, key] = /^(labels|annotations)\.(.+)$/.exec(name) ?? []
  if (kind === undefined || key === undefined) return undefined
  const table = `%orchestrator.pod_${kind}`
  // Filebeat writes dots of these names as underscores.
  return key.includes('_')
    ? `(string(get(map_keys(object(${table}) ?? {}) -> |key| { replace(key, ".", "_") }, [${textLiteral(key)}]) ?? null) ?? "")`
    : `(string(${table}${fieldLiteral([key])}) ?? "")`
}
