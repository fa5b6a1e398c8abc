// The event fields for the state that Promtail and Alloy keep beside a line: `.labels` of the stream, `.metadata` (structured
// metadata), and `.extracted`, the values that stages exchange. `.message` is the line, `.timestamp` its time. All values of these
// objects are texts; in `.extracted` null marks a value that a stage looked for and did not find.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isList, isMap, type Tree, textOf } from './tree.ts'

export const lineText = 'string!(.message)'
export const label = (name: string): string => fieldLiteral(['labels', name])
export const metadata = (name: string): string => fieldLiteral(['metadata', name])
export const extracted = (name: string): string => fieldLiteral(['extracted', name])
/** The value of a label; empty if there is none, as in selectors. */
export const labelText = (name: string): string => `string!(${label(name)} || "")`

/** Variables of the environment that hold the name of the node, as charts set them. */
const nodeVariable =
  /\$\{(?:HOSTNAME|NODE_NAME|NODENAME|NODE|K8S_NODE_NAME|KUBERNETES_NODE_NAME|HOST_NAME|NODE_HOSTNAME)\}/
const variable = /\$\{([A-Z_][A-Z0-9_]*)(?::-?([^}]*))?\}/g

/** A text as an expression; variables with the name of the node are replaced by it. */
export function textExpression(text: string): string {
  const parts = text.split(new RegExp(`(${nodeVariable.source})`)).filter((part) => part !== '')
  if (parts.length === 0) return '""'
  return parts.map((part) => (nodeVariable.test(part) ? 'string!(%node_name || "")' : textLiteral(part))).join(' + ')
}

/** Whether a setting has the name of the node, out of the environment. */
export function asksForNode(tree: Tree): boolean {
  if (isMap(tree)) return [...tree.value.values()].some(asksForNode)
  if (isList(tree)) return tree.value.some(asksForNode)
  return nodeVariable.test(textOf(tree) ?? '')
}

/** A text without the name of the node. */
export function withoutNode(text: string): string {
  return text.replaceAll(new RegExp(nodeVariable.source, 'g'), '')
}

/** Variables of the environment that have no value in a program. */
export function unknownVariables(text: string): readonly string[] {
  return [...withoutNode(text).matchAll(variable)].map(([whole]) => whole)
}

/** Variables of the environment as references to a Secret, and their defaults. */
export function secretText(text: string): { readonly text: string; readonly defaults: readonly string[] } {
  const defaults: string[] = []
  const replaced = text.replace(variable, (_, name: string, byDefault?: string) => {
    if (byDefault !== undefined && byDefault !== '') defaults.push(`${name} is \`${byDefault}\``)
    return `SECRET[env.${name}]`
  })
  return { text: replaced, defaults }
}
