// Environment variables in values that a program assigns to fields. The program of a ClusterPipeline reads them from the environment of the
// agent. The program of a namespaced Pipeline may not.

import { textLiteral } from '@penstock/agent/config'

/** An expression for the value of a variable. */
export const variableRead = (name: string, byDefault = '') =>
  `(get_env_var(${textLiteral(name)}) ?? ${textLiteral(byDefault)})`

/**
 * An expression for the name of the node: that of the pod, or for files of the node, the variable that agents have in Kubernetes.
 * @param further expressions for agents without this variable
 */
export const nodeRead = (readsEnvironment: boolean, ...further: readonly string[]) => {
  const ofAgent = readsEnvironment ? ['get_env_var("AGENT_SELF_NODE_NAME")', ...further] : []
  return `(${['string(%orchestrator.pod_node_name)', ...ofAgent, '""'].join(' ?? ')})`
}

/** A report about a variable that a program reads. */
export const readReport = (name: string) => ({
  reason: 'the program reads the variable from the environment of the agent',
  nearest: `Set \`${name}\` in \`spec.podTemplate\` of the Agent, or replace the variable with its value.`,
})
