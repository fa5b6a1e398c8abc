// `penstock version`, same as `penstock --version`.

import { version } from '@penstock/agent/program'
import { parseFlags } from './arguments.ts'

export const options = {}

export const usage = `Usage: penstock version

Prints the version of this command.
`

export async function run(argv: string[]): Promise<number> {
  parseFlags(argv, options)
  console.log(`penstock ${version}`)
  return 0
}
