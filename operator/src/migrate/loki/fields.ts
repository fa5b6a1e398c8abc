// The event fields for the state that Promtail and Alloy keep with a line: `.labels` of the stream, `.metadata` (structured
// metadata), and `.extracted`, the values that stages exchange. `.message` is the line, `.timestamp` its time. All values of these
// objects are texts. In `.extracted`, null marks a value that a stage did not find.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { variableRead } from '../environment.ts'
import { isList, isMap, type Tree, textOf } from './tree.ts'

export const lineText = 'string!(.message)'
export const label = (name: string): string => fieldLiteral(['labels', name])
export const metadata = (name: string): string => fieldLiteral(['metadata', name])
export const extracted = (name: string): string => fieldLiteral(['extracted', name])
/** The value of a label; as in selectors, empty if there is none. */
export const labelText = (name: string): string => `string!(${label(name)} || "")`

/** Environment variables in which charts put the name of the node. It is always known, so a default has no effect. */
const nodeVariable =
  /\$\{(?:HOSTNAME|NODE_NAME|NODENAME|NODE|K8S_NODE_NAME|KUBERNETES_NODE_NAME|HOST_NAME|NODE_HOSTNAME)(?::?-[^}]*)?\}/
const variable = /\$\{([A-Z_][A-Z0-9_]*)(?::-?([^}]*))?\}/g

/** Whether a text is one of these variables. */
export const isNodeVariable = (text: string): boolean => new RegExp(`^${nodeVariable.source}$`).test(text)

/** Splits a text into environment variables and the pieces between them. */
export function piecesOf(text: string): readonly string[] {
  const all = new RegExp(`(${nodeVariable.source}|\\$\\{[A-Z_][A-Z0-9_]*(?::-?[^}]*)?\\})`)
  return text.split(all).filter((part) => part !== '')
}

/**
 * A text as an expression, with variables for the node replaced by its name.
 * @param readsEnvironment whether the program may read the other variables from the environment of the agent
 * @param literal how a piece between variables is written
 * @param node an expression for the name of the node
 */
export function textExpression(
  text: string,
  readsEnvironment: boolean,
  literal = textLiteral,
  node = 'string!(%node_name || "")',
): string {
  const parts = piecesOf(text)
  if (parts.length === 0) return literal('')
  return parts
    .map((part) => {
      if (nodeVariable.test(part)) return node
      const [, name, byDefault = ''] = /^\$\{([A-Z_][A-Z0-9_]*)(?::-?([^}]*))?\}$/.exec(part) ?? []
      const isRead = name !== undefined && readsEnvironment
      return isRead ? variableRead(name, byDefault) : literal(part)
    })
    .join(' + ')
}

/** Whether a setting contains a variable with the name of the node. */
export function asksForNode(tree: Tree): boolean {
  if (isMap(tree)) return [...tree.value.values()].some(asksForNode)
  if (isList(tree)) return tree.value.some(asksForNode)
  return nodeVariable.test(textOf(tree) ?? '')
}

/** A text with the node variable removed. */
function withoutNode(text: string): string {
  return text.replaceAll(new RegExp(nodeVariable.source, 'g'), '')
}

/** Environment variables that have no value in a program. */
export function unknownVariables(text: string): readonly string[] {
  return [...withoutNode(text).matchAll(variable)].map(([whole]) => whole)
}

/** Environment variables as references to a Secret, and their defaults. */
export function secretText(text: string): { readonly text: string; readonly defaults: readonly string[] } {
  const defaults: string[] = []
  const replaced = text.replace(variable, (_, name: string, byDefault?: string) => {
    if (byDefault !== undefined && byDefault !== '') defaults.push(`${name} is \`${byDefault}\``)
    return `SECRET[env.${name}]`
  })
  return { text: replaced, defaults }
}
