#!/usr/bin/env -S node --conditions=source
// The `penstock` command: one sub-command a file in cli/. It works on resources; the agent's own command is `penstock-agent`.

import { endWithReader, keepCompiled, leaveMemoryOutOfDumps, printOnlyPrintable } from '@penstock/agent/program'

leaveMemoryOutOfDumps()
keepCompiled()
const { main, ownStreams } = await import('./cli/commands.ts')
if (!ownStreams.has(process.argv[2] ?? '')) {
  printOnlyPrintable()
  endWithReader()
}
process.exitCode = await main(process.argv.slice(2))
