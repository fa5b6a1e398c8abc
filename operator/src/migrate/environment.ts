// Variables of the environment in values that a program gives to fields. The program of a ClusterPipeline reads them from the environment of
// the agent; that of a namespace may not.

import { textLiteral } from '@penstock/agent/config'

/** An expression for the value of a variable. */
export const variableRead = (name: string, byDefault = '') =>
  `(get_env_var(${textLiteral(name)}) ?? ${textLiteral(byDefault)})`

/** A report about a variable that a program reads. */
export const readReport = (name: string) => ({
  reason: 'the program reads the variable from the environment of the agent',
  nearest: `Set \`${name}\` in \`spec.podTemplate\` of the Agent, or write its value in its place.`,
})
