#!/usr/bin/env -S node --conditions=source
// The `penstock` command. Each sub-command is a file in cli/. It works on resources; the agent has its own command,
// `penstock-agent`.

import { endWithReader, keepCompiled, leaveMemoryOutOfDumps, printOnlyPrintable } from '@penstock/agent/program'

leaveMemoryOutOfDumps()
keepCompiled()
const { main, ownStreams } = await import('./cli/commands.ts')
if (!ownStreams.has(process.argv[2] ?? '')) {
  printOnlyPrintable()
  endWithReader()
}
process.exitCode = await main(process.argv.slice(2))
