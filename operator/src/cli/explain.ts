// `penstock explain NAME`: the reference page of a component, function, metric or error code, as the agent prints it.

import { run as explain } from '@penstock/agent/cli/explain'

export function run(argv: string[]): Promise<number> {
  return explain(argv)
}
