// `penstock explain NAME`: the reference page of a component, function, metric or error code, as the agent prints it.

import { run as explain } from '@penstock/agent/cli/explain'
import { PenstockError } from '@penstock/agent/errors'

export const usage = `Usage: penstock explain NAME

Prints the page of a component (search_engine), a function of programs (parse_json), a metric or an error code (E103).
`

export async function run(argv: string[]): Promise<number> {
  if (argv.length !== 1)
    throw new PenstockError('PEN_USAGE', 'Name one component, function, metric or error code: penstock explain NAME.')
  return explain(argv)
}
